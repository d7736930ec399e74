"""`memlane token`: who may use this bank over HTTP, and what for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from memlane import config
from memlane.config import grants, tokens
from memlane.core.access import RIGHTS, Access
from memlane.core.errors import NotFound
from memlane.disk import audit_log
from memlane.surfaces.cli.options import Count, as_json
from memlane.surfaces.cli.output import print_json, print_rows, print_text, say


@click.group()
def token() -> None:
    """Let others use this bank by `memlane mcp --http`: who, for how long, and what for.

    \b
    $ memlane token add ann --scope write
    $ memlane token add ci --scope read --scopes 'team/*' --days 30
    $ memlane token revoke ann
    """


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "right",
    type=click.Choice(RIGHTS),
    default="read",
    show_default=True,
    help="What it may do: read, add to it, or change and delete as well.",
)
@click.option(
    "--scopes", multiple=True, help="Only memories of this scope; may be repeated. 'team/*': all that begin so."
)
@click.option("--days", type=int, default=tokens.DAYS, show_default=True, help="How long it lasts.")
@click.pass_context
@as_json
def add(ctx: click.Context, name: str, right: str, scopes: Sequence[str], days: int, as_json: bool) -> None:
    """Make a token for somebody and print it, this once: only a hash of it is kept.

    A server that runs takes it at once. Memories without a scope are in the scope 'global'.

    \b
    $ memlane token add ann --scope write
    $ memlane token add ci --scopes 'team/*' --days 30
    """
    made = tokens.add(_bank(ctx), Access(name, right, tuple(scopes) or None), days)
    if as_json:
        print_text(f'{{"name": "{name}", "token": "{made}"}}', as_it_is=True)
        return
    print_text(made, as_it_is=True)
    what = {"read": "read", "write": "read and add", "remove": "read, add, change and delete"}[right]
    where = f" in {', '.join(scopes)}" if scopes else ""
    lasts = "a day" if days == 1 else f"{days} days"
    say(f"{name} may {what}{where} for {lasts}. It is sent as `Authorization: Bearer …`, and not shown again.")


@token.command("list")
@click.pass_context
@as_json
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the tokens of this bank: names, rights, scopes and when they end. Nobody can see a token again.

    Programs that were let in on the page of `memlane mcp --oauth` are listed, too.

    \b
    $ memlane token list
    """
    bank = _bank(ctx)
    named, connected = tokens.listed(bank), grants.listed(bank)
    found = [*named, *connected]
    if as_json:
        kinds = ["token"] * len(named) + ["program"] * len(connected)
        print_json([{**one.to_dict(), "kind": kind} for one, kind in zip(found, kinds, strict=True)])
        return
    if not found:
        say("there are no tokens; `memlane token add NAME` makes one")
    print_rows(
        (
            one.access.name,
            one.access.right,
            "all scopes" if one.access.scopes is None else ", ".join(one.access.scopes),
            f"{one.state}, until {one.expires:%Y-%m-%d}" if one.state == "active" else one.state,
        )
        for one in found
    )


@token.command()
@click.argument("name")
@click.pass_context
@as_json
def revoke(ctx: click.Context, name: str, as_json: bool) -> None:
    """End a token, or the connection of a program, now: in sessions that are open as well.

    \b
    $ memlane token revoke ann
    """
    bank = _bank(ctx)
    try:
        tokens.revoke(bank, name)
    except NotFound:
        if not grants.end(bank, name):
            raise
    else:
        grants.end(bank, name)
    if as_json:
        print_json({"revoked": name})
        return
    say(f"the token of {name} does not count any more")


@token.command()
@click.argument("number")
@click.pass_context
@as_json
def code(ctx: click.Context, number: str, as_json: bool) -> None:
    """Print the code for the page on which a program is let in; NUMBER is the one that the page shows.

    The server prints it as well, unless very many programs ask.

    \b
    $ memlane token code K7DF-2MXP
    """
    with closing(grants.opened(_bank(ctx))) as kept:
        found = grants.spaced(kept.code(number))
    if as_json:
        print_text(f'{{"code": "{found}"}}', as_it_is=True)
        return
    print_text(found, as_it_is=True)
    say("Type it into the page only if it was you who asked to connect the program.")


@token.command()
@click.option("--limit", type=Count(1), default=50, show_default=True, help="The newest so many.")
@click.option("--name", default="", help="Only what this token did.")
@click.pass_context
@as_json
def log(ctx: click.Context, limit: int, name: str, as_json: bool) -> None:
    """Show what was done with tokens: when, by whom, with which tool, which memories, and how it ended.

    \b
    $ memlane token log --name ann
    """
    lines = audit_log.lines(config.user_state(), _bank(ctx))
    found: list[dict[str, Any]] = [line for line in lines if name in ("", line.get("who"))][-limit:]
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing was done with tokens yet" if not name else "nothing was done with tokens of that name yet")
    keys = ("at", "who", "what", "outcome")
    print_rows((*(str(line.get(key, "")) for key in keys), " ".join(map(str, line.get("ids", ())))) for line in found)


def _bank(ctx: click.Context) -> Path:
    """The bank of the folder. Raises NotEnabled, NotTrusted."""
    settings = config.load(*ctx.find_root().obj)
    config.require_enabled(settings)
    config.require_trust(settings)
    return settings.root
