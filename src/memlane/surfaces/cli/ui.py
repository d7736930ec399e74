"""`memlane ui`: see the bank in a browser."""

from __future__ import annotations

from functools import partial

import click

from memlane.surfaces.cli.output import print_text, say


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Else 7417, or any free one where that is taken.")
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@click.pass_context
def ui(ctx: click.Context, port: int | None, no_open: bool) -> None:
    """Show the bank in a browser: what agents were told, what they learned, and what is wrong with it.

    It is served to this machine alone, as long as this command runs, and loads nothing from anywhere else. The printed
    address is good for one browser; when it was opened, another one is printed for the next.

    \b
    $ memlane ui
    $ memlane ui --port 8080 --no-open
    """
    from memlane.surfaces.ui.serving import serve

    folder, flags = ctx.find_root().obj
    say("serving your memory to this machine alone; Ctrl-C ends it")
    serve(folder, flags, port, partial(print_text, as_it_is=True), browser=not no_open)  # it holds a token
