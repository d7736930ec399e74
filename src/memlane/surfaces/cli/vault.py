"""`memlane vault`: the verbs of the vault lane, short durable facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.choosing import scope_given
from memlane.core.errors import InvalidInput
from memlane.core.model import Draft
from memlane.lanes.vault.record import CATEGORIES, SOURCES, TIERS, Record
from memlane.recall.address import find_any, native, split
from memlane.recall.scopes import spelt
from memlane.surfaces.cli.options import (
    Number,
    any_tag_option,
    dates,
    id_argument,
    limit_option,
    tag_option,
    text_argument,
    with_bank,
    words_argument,
)
from memlane.surfaces.cli.output import print_json, print_result, print_stored, print_text, say_notes, take_text


@click.group()
def vault() -> None:
    """The vault: short, durable facts by scope and tier, one JSON line each.

    \b
    $ memlane vault add "Mission: keep the runtime stable" --scope shared --category mission
    """


scopes_option = click.option("--scope", "scopes", multiple=True, help="A scope; may be repeated.")


def _print_written(record: Record, as_json: bool, remarks: tuple[str, ...] = ()) -> None:
    say_notes(remarks or record.remarks)
    print_stored(record, as_json, f"vault:{record.id}", f"version {record.version}")


def _print_records(records: list[Record], as_json: bool) -> None:
    rows = ((f"vault:{record.id}", record.scope, record.tier, " ".join(record.text.split())) for record in records)
    print_result(records, as_json, rows)


@vault.command()
@text_argument
@click.option("--scope", help="For whom or what: user:alice; shared unless configured.")
@click.option("--category", help=f"For example {', '.join(CATEGORIES)}; other for a new record.")
@click.option("--tier", type=click.Choice(TIERS), default="canon", show_default=True)
@click.option("--topic", "topic_id", help="A register's stable key: the same key updates instead of adding.")
@click.option("--source", type=click.Choice(SOURCES), help="Where it comes from; manual for a new record.")
@tag_option
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
    draft = Draft(take_text(text), tags=tags, type=category, scope=scope_given(scope), fields=fields)
    memory = bank.vault.put(draft)
    bank.anchor(memory.id)
    _print_written(bank.vault.get_memory(memory.native_id), as_json, memory.remarks)


@vault.command()
@id_argument
@text_argument
@click.option("--category")
@tag_option
@with_bank
def update(bank: Bank, id: str, text: str | None, category: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """Append the next version of a record.

    \b
    $ memlane vault update 3f9a1c0b7d2e "Projects: dashboard, search"
    """
    if text is None and category is None and not tags:
        raise InvalidInput("There is nothing to change.", hint="Give a text (- reads a pipe), --category or --tag.")
    given = take_text(text) if text is not None else None
    record = bank.vault.update_memory(native(bank, "vault", id), given, category, list(tags) or None)
    bank.anchor(f"vault:{record.id}")
    _print_written(record, as_json)


@vault.command()
@words_argument("query")
@scopes_option
@click.option("--category", "type")
@any_tag_option
@dates
@limit_option()
@with_bank
def search(bank: Bank, query: str, scopes: tuple[str, ...], as_json: bool, **chosen: Any) -> None:
    """Find records that share a word with QUERY, the best first.

    \b
    $ memlane vault search "dashboard projects" --scope shared
    """
    _print_records(bank.vault.search_memories(query, scope=_scopes(bank, scopes), **chosen), as_json)


@vault.command("list")
@scopes_option
@click.option("--category")
@tag_option
@limit_option()
@with_bank
def list_(
    bank: Bank, scopes: tuple[str, ...], category: str | None, tags: tuple[str, ...], limit: int | None, as_json: bool
) -> None:
    """List active records, the newest first.

    \b
    $ memlane vault list --scope user:alice
    """
    options: dict[str, Any] = {} if limit is None else {"limit": limit}
    records = bank.vault.recall_memories(_scopes(bank, scopes), category=category, tags=list(tags) or None, **options)
    _print_records(records, as_json)


@vault.command()
@id_argument
@with_bank
def history(bank: Bank, id: str, as_json: bool) -> None:
    """Every version of a record, the oldest first.

    \b
    $ memlane vault history 3f9a1c0b7d2e
    """
    versions = bank.vault.history(find_any(bank, id if split(id)[0] else f"vault:{id}").native)
    rows = (
        (
            str(record.version),
            record.deleted_at or record.updated_at or record.created_at,
            "(deleted)" if record.deleted_at else " ".join(record.text.split()),
        )
        for record in versions
    )
    print_result(versions, as_json, rows)


@vault.command()
@id_argument
@text_argument
@tag_option
@with_bank
def promote(bank: Bank, id: str, text: str | None, tags: tuple[str, ...], as_json: bool) -> None:
    """Make a register canon: it stays until somebody changes it. With TEXT, in these words.

    \b
    $ memlane vault promote 3f9a1c0b7d2e "We ship on Tuesdays."
    """
    own = native(bank, "vault", id)
    given = bank.vault.get_memory(own).text if text is None else take_text(text)
    record = bank.vault.promote_to_canon(own, given, list(tags) or None)
    bank.anchor(f"vault:{record.id}")
    _print_written(record, as_json)


@vault.command()
@scopes_option
@click.option("--floor", type=Number(0, 1), default=0.5, show_default=True)
@with_bank
def candidates(bank: Bank, scopes: tuple[str, ...], floor: float, as_json: bool) -> None:
    """List pairs of similar records that could be merged. Changes nothing.

    \b
    $ memlane vault candidates --floor 0.4
    """
    pairs = bank.vault.find_consolidation_candidates(_scopes(bank, scopes), floor)
    value = [{"a": a, "b": b, "score": score} for a, b, score in pairs]
    rows = ((f"{score:.2f}", f"vault:{a.id}", f"vault:{b.id}", a.text[:60]) for a, b, score in pairs)
    print_result(value, as_json, rows)


@vault.command()
@scopes_option
@with_bank
def proposals(bank: Bank, scopes: tuple[str, ...], as_json: bool) -> None:
    """List records that could be deleted, each with a reason. Deletes nothing.

    \b
    $ memlane vault proposals
    """
    proposed = bank.vault.propose_deletions(_scopes(bank, scopes))
    print_result(proposed, as_json, ((f"vault:{item['id']}", item["reason"], item["text"][:60]) for item in proposed))


@vault.command()
@scopes_option
@with_bank
def snapshot(bank: Bank, scopes: tuple[str, ...], as_json: bool) -> None:
    """Print the always-injected block: canon and active registers.

    \b
    $ memlane vault snapshot --scope shared --scope user:alice
    """
    from memlane.recall.vault_blocks import snapshot_block

    chosen = _scopes(bank, scopes)
    profile = replace(bank.profile, scopes=tuple(chosen)) if chosen else bank.profile
    block = snapshot_block(bank.vault, profile)
    if as_json:
        print_json({"text": block})
    elif block:
        print_text(block)


@vault.command()
@with_bank
def stats(bank: Bank, as_json: bool) -> None:
    """Print the vault's health.

    \b
    $ memlane vault stats
    """
    counts = bank.vault.vault_stats()
    print_result(counts, as_json, ((key, str(value)) for key, value in counts.items()))


@vault.command()
@with_bank
def compact(bank: Bank, as_json: bool) -> None:
    """Keep only the latest active version of each record. Old versions and tombstones go.

    \b
    $ memlane vault compact
    """
    done = bank.vault.compact()
    talk = f"{done['lines_before']} lines before, {done['lines_after']} after, {done['lines_removed']} removed"
    print_result(done, as_json, talk=talk)


def _scopes(bank: Bank, given: tuple[str, ...]) -> list[str] | None:
    """The scopes to look at; None means all. Raises InvalidInput for one that the vault does not have."""
    return [spelt(bank, scope, "vault") or "" for scope in given] or None
