"""`memlane sync`: one bank on several machines, or of several people."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from memlane.bank import Bank
from memlane.care import sync as syncing
from memlane.care.sync.results import Held, Synced
from memlane.care.sync.sieve import LOOKS_LIKE
from memlane.core.errors import InvalidInput
from memlane.lanes import NAMES
from memlane.surfaces.cli.options import with_bank
from memlane.surfaces.cli.output import print_json, print_line, say

_SHOWN = 20  # files of a list


class _Sync(click.Group):
    """`memlane sync [NAME]` is short for `memlane sync now [NAME]`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["now", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Sync)
def sync() -> None:
    """Share the bank through a remote: a folder, a PostgreSQL database or an object store that others reach, too.

    `memlane sync` alone is short for `memlane sync now`. See docs/sync.md.

    \b
    $ memlane sync add team /mnt/team/memory
    $ memlane sync
    $ memlane sync status
    """


@sync.command()
@click.argument("name")
@click.argument("url")
@click.option("--mine", is_flag=True, help="Only your own machines use it: what comes from there counts as yours.")
@click.option("--lane", "lanes", multiple=True, type=click.Choice(NAMES), help="Share this lane only; may be repeated.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="Share what has this scope there; new files go to the first.",
)
@click.option("--author", default="", help="Who you are to the others; your user's name otherwise.")
@with_bank
def add(
    bank: Bank,
    name: str,
    url: str,
    mine: bool,
    lanes: tuple[str, ...],
    scopes: tuple[str, ...],
    author: str,
    as_json: bool,
) -> None:
    """Name a remote of this bank: a folder, postgresql://USER@HOST/DATABASE or s3://BUCKET/PREFIX.

    It is kept on this machine, outside of the project, so that no clone of it says where memory is sent. Passwords
    belong elsewhere: PGPASSWORD or ~/.pgpass, AWS_ACCESS_KEY_ID and the like.

    \b
    $ memlane sync add team /mnt/team/memory
    $ memlane --user sync add home s3://my-memory/bank --mine
    """
    settings, remarks = syncing.add(bank, name, url, lanes=lanes, scopes=scopes, mine=mine, author=author)
    if as_json:
        print_json(settings)
        return
    say(f"added; `memlane sync {name}` fetches what is there and sends what is here")
    for remark in remarks:
        say(f"note: {remark}")
    print_line(name)


@sync.command()
@click.argument("name", required=False)
@click.option("--watch", is_flag=True, help="Stay in step until Ctrl-C.")
@click.option("--deletions", is_flag=True, help="Delete there what is gone here, even if it is much.")
@with_bank
def now(bank: Bank, name: str | None, watch: bool, deletions: bool, as_json: bool) -> None:
    """Fetch, merge and send: with the remote NAME, or with all.

    \b
    $ memlane sync now
    $ memlane sync now team --watch
    """
    if watch and deletions:
        raise InvalidInput(
            "--deletions is for one sync, and --watch makes many.",
            hint="Run `memlane sync --deletions` once, and then `memlane sync --watch`.",
        )
    if watch:
        _watch(bank, name, as_json)
    else:
        _print(bank.sync(name, deletions=deletions), as_json)


@sync.command()
@with_bank
def status(bank: Bank, as_json: bool) -> None:
    """How the bank stands with its remotes, what waits to be sent, and what is held back and why. Asks no remote.

    \b
    $ memlane sync status
    """
    found = syncing.status(bank)
    if as_json:
        print_json([each.to_dict() for each in found])
        return
    if not found:
        say("This bank has no remote: `memlane sync add NAME FOLDER-OR-URL` adds one.")
    for each in found:
        settings = each.settings
        what = f"lanes {', '.join(settings.lanes)}" if settings.lanes else "all lanes"
        whose = "your own machines" if settings.mine else f"you are {settings.author}"
        print_line(f"{settings.name}\t{settings.url}\t{what}, {', '.join(settings.scopes)}\t{whose}")
        print_line(f"  in step on {each.at}, {_count(each.files, 'file')}" if each.at else "  never in step yet")
        if each.failed:
            print_line(f"  the last sync failed: {each.failed}")
        if each.waiting:
            print_line(f"  {_count(len(each.waiting), 'file')} to be sent: {', '.join(each.waiting[:5])}")
        _print_held("held back: not written here", each.held)
        _print_held("not sent", each.unsent)
    if any(LOOKS_LIKE in one.why for each in found for one in (*each.held, *each.unsent)):
        say(
            "next: take the value out where it was written. If it is no secret, allow it by the name in brackets, "
            '`memlane gate allow NAME --reason "…"`; the next sync goes on'
        )


@sync.command()
@click.argument("name")
@with_bank
def remove(bank: Bank, name: str, as_json: bool) -> None:
    """Share with the remote NAME no longer. Deletes nothing, neither here nor there.

    \b
    $ memlane sync remove team
    """
    syncing.remove(bank, name)
    if as_json:
        print_json({"removed": name})
    else:
        print_line(name)


def _watch(bank: Bank, name: str | None, as_json: bool) -> None:
    from memlane.care.sync.watching import watch

    # the first process of a container does not end by this signal unless it says so
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    kept: dict[str, tuple[list[Held], list[Held]]] = {}  # what each remote does not take or give, as it was said last
    for done in watch(bank, name):
        if isinstance(done, str):
            say(done)
            continue
        before, kept[done.remote] = kept.get(done.remote, ([], [])), (done.held, done.unsent)
        if done.changed or kept[done.remote] != before:
            _print([done], as_json)


def _print(done: list[Synced], as_json: bool) -> None:
    if as_json:
        print_json([each.to_dict() for each in done])
        return
    for each in done:
        counts: dict[str, Any] = {
            "sent": each.sent, "received": each.received, "merged": each.merged, "removed": each.removed,
            "forgotten": each.forgotten,
        }  # fmt: skip
        said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "in step already"
        print_line(f"{each.remote}: {said}")
        kept = [f"{len(each.held)} held back" * bool(each.held), f"{len(each.unsent)} not sent" * bool(each.unsent)]
        if any(kept):
            say(f"note: {' and '.join(filter(None, kept))}; `memlane sync status` says what and why")


def _print_held(what: str, held: tuple[Held, ...]) -> None:
    for each in held[:_SHOWN]:
        print_line(f"  {what}: {each.path}: {each.why}")
    if len(held) > _SHOWN:
        print_line(f"  {what}: {len(held) - _SHOWN:,} more; --json lists all")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"
