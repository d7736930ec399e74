"""`memlane vault`: seed 002's verbs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.errors import InvalidInput, NotFound
from memlane.core.model import Draft
from memlane.gate import shown
from memlane.lanes.vault.record import CATEGORIES, SOURCES, TIERS, Record
from memlane.surfaces.cli.output import (
    as_json,
    id_argument,
    print_json,
    print_rows,
    print_text,
    say,
    tag_option,
    take_text,
    with_bank,
)


@click.group()
def vault() -> None:
    """The vault: short, durable facts by scope and tier, one JSON line each.

    \b
    $ memlane vault add "Mission: keep the runtime stable" --scope shared --category mission
    """


scopes_option = click.option("--scope", "scopes", multiple=True, help="A scope; may be repeated.")


def _print_written(record: Record, as_json: bool, remarks: tuple[str, ...] = ()) -> None:
    for remark in remarks or record.remarks:
        say(f"note: {remark}")
    if as_json:
        print_json(record.to_dict())
    else:
        say(f"version {record.version}")
        click.echo(f"vault:{record.id}")


def _print_records(records: list[Record], as_json: bool) -> None:
    if as_json:
        print_json([record.to_dict() for record in records])
    else:
        print_rows(
            (f"vault:{record.id}", record.scope, record.tier, " ".join(record.text.split())) for record in records
        )


@vault.command()
@click.argument("text", required=False)
@click.option("--scope", help="One of the vault's scopes; else the first of them.")
@click.option("--category", help=f"For example {', '.join(CATEGORIES)}; other for a new record.")
@click.option("--tier", type=click.Choice([*TIERS, "log"]), default="canon", show_default=True)
@click.option("--topic", "topic_id", help="A register's stable key: the same key updates instead of adding.")
@click.option("--source", type=click.Choice(SOURCES), help="Where it comes from; manual for a new record.")
@tag_option
@as_json
@with_bank
def add(
    bank: Bank,
    text: str | None,
    scope: str | None,
    category: str | None,
    tags: tuple[str, ...],
    as_json: bool,
    **fields: Any,
) -> None:
    """Store TEXT; a register with a known topic is updated.

    \b
    $ memlane vault add "Projects: dashboard" --tier register --topic current_projects
    """
    memory = bank.vault.put(Draft(take_text(text), tags=tags, type=category, scope=scope, fields=fields))
    bank.anchor(memory.id)
    _print_written(bank.vault.get_memory(memory.native_id), as_json, memory.remarks)


@vault.command()
@id_argument
@click.argument("text", required=False)
@click.option("--category")
@tag_option
@as_json
@with_bank
def update(bank: Bank, id: str, text: str | None, category: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """Append the next version of a record.

    \b
    $ memlane vault update 3f9a1c0b7d2e "Projects: dashboard, search"
    """
    if text is None and category is None and not tags:
        raise InvalidInput("There is nothing to change.", hint="Give a text (- reads a pipe), --category or --tag.")
    given = take_text(text) if text is not None else None
    record = bank.vault.update_memory(_native(id), given, category, list(tags) or None)
    bank.anchor(f"vault:{record.id}")
    _print_written(record, as_json)


@vault.command()
@click.argument("query")
@scopes_option
@as_json
@with_bank
def search(bank: Bank, query: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Find records by the seed's own scoring.

    \b
    $ memlane vault search "dashboard projects" --scope shared
    """
    _print_records(bank.vault.search_memories(query, scope=_scopes(bank, scopes)), as_json)


@vault.command("list")
@scopes_option
@click.option("--category")
@tag_option
@click.option("--limit", "-n", type=click.IntRange(min=0), default=None)
@as_json
@with_bank
def list_(
    bank: Bank, scopes: tuple[str, ...], category: str | None, tags: tuple[str, ...], limit: int | None, as_json: bool
) -> None:
    """List active records, the newest first.

    \b
    $ memlane vault list --scope orion
    """
    options: dict[str, Any] = {} if limit is None else {"limit": limit}
    records = bank.vault.recall_memories(_scopes(bank, scopes), category=category, tags=list(tags) or None, **options)
    _print_records(records, as_json)


@vault.command()
@id_argument
@as_json
@with_bank
def history(bank: Bank, id: str, as_json: bool) -> None:
    """Every version of a record, the oldest first.

    \b
    $ memlane vault history 3f9a1c0b7d2e
    """
    versions = bank.vault.history(_native(id))
    if not versions:
        raise NotFound(f"The vault has no record {shown(id)}.", hint="`memlane vault list` shows the ids.")
    if as_json:
        print_json([record.to_dict() for record in versions])
    else:
        print_rows(
            (
                str(record.version),
                record.deleted_at or record.updated_at or record.created_at,
                "(deleted)" if record.deleted_at else " ".join(record.text.split()),
            )
            for record in versions
        )


@vault.command()
@id_argument
@click.argument("text", required=False)
@tag_option
@as_json
@with_bank
def promote(bank: Bank, id: str, text: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """Make a register canon, with the TEXT it shall have.

    \b
    $ memlane vault promote 3f9a1c0b7d2e "We ship on Tuesdays."
    """
    record = bank.vault.promote_to_canon(_native(id), take_text(text), list(tags) or None)
    bank.anchor(f"vault:{record.id}")
    _print_written(record, as_json)


@vault.command()
@scopes_option
@click.option("--floor", type=click.FloatRange(0, 1), default=0.5, show_default=True)
@as_json
@with_bank
def candidates(bank: Bank, scopes: tuple[str, ...], floor: float, as_json: bool) -> None:
    """List pairs of similar records that could be merged. Changes nothing.

    \b
    $ memlane vault candidates --floor 0.4
    """
    pairs = bank.vault.find_consolidation_candidates(_scopes(bank, scopes), floor)
    if as_json:
        print_json([{"a": a.to_dict(), "b": b.to_dict(), "score": score} for a, b, score in pairs])
    else:
        print_rows((f"{score:.2f}", f"vault:{a.id}", f"vault:{b.id}", a.text[:60]) for a, b, score in pairs)


@vault.command()
@scopes_option
@as_json
@with_bank
def proposals(bank: Bank, scopes: tuple[str, ...], as_json: bool) -> None:
    """List records that could be deleted, each with a reason. Deletes nothing.

    \b
    $ memlane vault proposals
    """
    found = bank.vault.propose_deletions(_scopes(bank, scopes))
    if as_json:
        print_json(found)
    else:
        print_rows((f"vault:{item['id']}", item["reason"], item["text"][:60]) for item in found)


@vault.command()
@scopes_option
@as_json
@with_bank
def snapshot(bank: Bank, scopes: tuple[str, ...], as_json: bool) -> None:
    """Print the always-injected block: canon and active registers.

    \b
    $ memlane vault snapshot --scope shared --scope orion
    """
    from memlane.recall.vault_blocks import snapshot_block

    wanted = _scopes(bank, scopes)
    profile = replace(bank.profile, scopes=tuple(wanted)) if wanted else bank.profile
    block = snapshot_block(bank.vault, profile)
    if as_json:
        print_json({"text": block})
    elif block:
        print_text(block)


@vault.command()
@as_json
@with_bank
def stats(bank: Bank, as_json: bool) -> None:
    """Print the vault's health.

    \b
    $ memlane vault stats
    """
    found = bank.vault.vault_stats()
    if as_json:
        print_json(found)
    else:
        print_rows((key, str(value)) for key, value in found.items())


@vault.command()
@as_json
@with_bank
def compact(bank: Bank, as_json: bool) -> None:
    """Keep only the latest active version of each record. Old versions and tombstones go.

    \b
    $ memlane vault compact
    """
    found = bank.vault.compact()
    if as_json:
        print_json(found)
    else:
        say(f"{found['lines_before']} lines before, {found['lines_after']} after, {found['lines_removed']} removed")


def _native(id: str) -> str:
    return id.removeprefix("vault:")


def _scopes(bank: Bank, given: tuple[str, ...]) -> list[str] | None:
    """The scopes to look at; None means all. Raises InvalidInput for one that the vault does not have."""
    allowed = bank.vault.scopes
    wanted = [scope.strip().lower() for scope in given]
    if not set(wanted) <= set(allowed):
        raise InvalidInput("There is no such scope.", hint=f"Use one of: {', '.join(allowed)}.")
    return wanted or None
