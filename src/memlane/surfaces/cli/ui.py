"""`memlane ui`: see the bank in a browser."""

from __future__ import annotations

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
    serve(folder, flags, port, _tell, browser=not no_open)


def _tell(address: str) -> None:
    say("good for one browser of this machine, as long as this runs; Ctrl-C ends it")
    print_text(address, as_it_is=True)  # it holds a token
