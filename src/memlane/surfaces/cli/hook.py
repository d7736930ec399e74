"""`memlane hook`: its help. Hooks themselves are answered by `memlane.surfaces.hook`, without the command line."""

from __future__ import annotations

import click

from memlane.surfaces.cli.options import always_json
from memlane.surfaces.hook import EVENTS


@click.command()
@click.argument("client")
@click.argument("event", required=False, type=click.Choice(tuple(EVENTS)))
@always_json
def hook(client: str, event: str | None) -> None:
    """Answer an event of an agent's client, whose JSON is on stdin. `memlane connect` sets this up.

    Context at the start of a session and for each prompt, capture at the end of a turn. Always exits with 0.

    \b
    $ memlane hook claude-code session-start
    """
    from memlane.surfaces.hook import main

    main([client, event] if event else [client])
