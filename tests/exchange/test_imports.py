"""Import: once and only once, through the gate, knowing again what it has taken."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands import CANARY, Run
from conftest import tree
from memlane import Bank, InvalidInput, NotFound
from memlane.exchange import imports
from memlane.exchange.imports import Outcome, import_from
from samples import LANES
from taking import made, statuses, took, write

GRAPH = (
    '{"type":"entity","name":"Ada","entityType":"person","observations":["Likes tea"]}\n'
    '{"type":"entity","name":"Acme","entityType":"company","observations":[]}\n'
    '{"type":"relation","from":"Ada","to":"Acme","relationType":"works_at"}\n'
)
MEM0 = '[{"id":"m1","memory":"Prefers green tea"},{"id":"m2","memory":"Prefers green tea"}]'


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(made(tmp_path / "project"))


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = made(tmp_path / "my-vault")
    (root / ".obsidian").mkdir()
    write(root / "Alpha.md", "---\naliases: [A]\ncreated: 2024-01-02\n---\n\nSee [[Beta]]. #one\n")
    write(root / "sub/Beta.md", "# Beta\n\nText.\n")
    return root


def test_a_vault_comes_in_with_tags_dates_links_and_where_it_came_from(bank: Bank, vault: Path) -> None:
    assert list(import_from(bank, vault)) == [
        Outcome("new", "Alpha.md", "notes:Alpha"),
        Outcome("new", "sub/Beta.md", "notes:sub/Beta"),
    ]
    alpha = bank.get("notes:Alpha")
    assert (alpha.text, alpha.title, alpha.tags) == ("See [[Beta]]. #one\n", "Alpha", ("one",))
    assert alpha.created_at == datetime(2024, 1, 2, tzinfo=UTC)
    assert alpha.fields == {
        "created": "2024-01-02",
        "aliases": ["A"],
        "imported_from": "obsidian:my-vault/Alpha.md",
        "imported_hash": imports.digest(alpha),
    }
    assert bank.search("Beta")[0].memory.lane == "notes"


def sources(tmp_path: Path, vault: Path) -> list[Path]:
    write(tmp_path / "claude/MEMORY.md", "Use pnpm.\n")
    write(tmp_path / "claude/user.md", "---\nname: user\ntype: user\n---\nAn engineer.\n")
    write(tmp_path / "api/.serena/memories/style.md", "Short names.\n")
    write(tmp_path / "web/memory-bank/progress.md", "Half done.\n")
    write(tmp_path / "web/memory-bank/projectbrief.md", "A shop.\n")
    return [
        vault,
        tmp_path / "claude",
        tmp_path / "api",
        tmp_path / "web",
        write(tmp_path / "memory.jsonl", GRAPH),
        write(tmp_path / "mem0.json", MEM0),
        write(tmp_path / "single.md", "One note.\n"),
    ]


def test_a_second_import_adds_nothing(bank: Bank, vault: Path, tmp_path: Path) -> None:
    paths = sources(tmp_path, vault)
    first = [took(bank, path) for path in paths]
    assert {status for taken in first for status, _ in taken} == {"new"}
    assert sorted(memory.id for memory in bank.memories()) == sorted(id for taken in first for _, id in taken)
    before = tree(bank.root)
    assert [took(bank, path) for path in paths] == [[("same", id) for _, id in taken] for taken in first]
    assert tree(bank.root) == before


def test_no_path_of_this_machine_is_stored(bank: Bank, vault: Path, tmp_path: Path) -> None:
    for path in sources(tmp_path, vault):
        list(import_from(bank, path))
    assert not [name for name, data in tree(bank.root).items() if str(tmp_path).encode() in data]
    marks = {memory.fields["imported_from"] for memory in bank.memories()}
    assert {"serena:api/style.md", "cline:web/progress.md", "claude:user.md", "memory-json:Ada", "mem0:m1"} <= marks


def test_a_moved_or_renamed_source_is_known_again(bank: Bank, vault: Path, tmp_path: Path) -> None:
    list(import_from(bank, vault))
    vault.rename(tmp_path / "renamed")
    assert statuses(bank, tmp_path / "renamed") == ["same", "same"]
    assert statuses(bank, tmp_path / "renamed/sub") == ["same"]
    assert statuses(bank, tmp_path / "renamed", kind="markdown", label="x") == ["new", "same"]  # without inline tags


def test_two_sources_with_the_same_names_do_not_meet(bank: Bank, tmp_path: Path) -> None:
    write(tmp_path / "one/README.md", "First.\n")
    write(tmp_path / "two/README.md", "Second.\n")
    assert took(bank, tmp_path / "one") == [("new", "notes:README")]
    assert took(bank, tmp_path / "two") == [("new", "notes:README-2")]
    assert [bank.get(id).text for id in ("notes:README", "notes:README-2")] == ["First.\n", "Second.\n"]


def test_what_changed_at_the_source_is_reported_and_taken_only_when_asked(bank: Bank, vault: Path) -> None:
    list(import_from(bank, vault))
    write(vault / "sub/Beta.md", "# Beta\n\nNew text.\n")
    before = tree(bank.root)
    assert took(bank, vault) == [("same", "notes:Alpha"), ("changed", "notes:sub/Beta")]
    assert statuses(bank, vault, update=True, dry_run=True) == ["same", "updated"]
    assert tree(bank.root) == before
    assert took(bank, vault, update=True) == [("same", "notes:Alpha"), ("updated", "notes:sub/Beta")]
    assert bank.get("notes:sub/Beta").text == "# Beta\n\nNew text.\n"
    assert [removed.id for removed in bank.removed()] == ["notes:sub/Beta"]
    assert statuses(bank, vault, update=True) == ["same", "same"]


def test_an_update_keeps_what_was_set_here_and_the_first_date(bank: Bank, vault: Path) -> None:
    os.utime(vault / "sub/Beta.md", (10**9, 10**9))
    list(import_from(bank, vault))
    bank.update("notes:sub/Beta", status="archived", project="p")
    write(vault / "sub/Beta.md", "# Beta\n\nNew text.\n")
    list(import_from(bank, vault, update=True))
    beta = bank.get("notes:sub/Beta")
    assert (beta.status, beta.project) == ("archived", "p")
    assert beta.created_at == datetime.fromtimestamp(10**9, UTC)


def test_what_was_edited_here_is_never_overwritten(bank: Bank, vault: Path) -> None:
    list(import_from(bank, vault))
    bank.append("notes:sub/Beta", "My own words.")
    assert statuses(bank, vault, update=True) == ["same", "same"]
    write(vault / "sub/Beta.md", "# Beta\n\nNew text.\n")
    last = list(import_from(bank, vault, update=True))[-1]
    assert (last.status, last.why) == ("changed", "was edited here, too, and is left as it is")
    assert bank.get("notes:sub/Beta").text == "# Beta\n\nText.\n\nMy own words."


def test_what_was_deleted_here_stays_deleted(bank: Bank, vault: Path) -> None:
    list(import_from(bank, vault))
    bank.delete("notes:Alpha")
    first = next(iter(import_from(bank, vault)))
    assert (first.status, first.why) == ("same", "deleted here; `memlane restore ID` brings it back")
    bank.restore("notes:Alpha")
    assert took(bank, vault)[0] == ("same", "notes:Alpha")


def test_a_secret_is_refused_and_named_nowhere(bank: Bank, vault: Path) -> None:
    write(vault / "login.md", f"token is {CANARY}\n")
    write(vault / f"{CANARY}.md", "the name is the secret\n")
    found = list(import_from(bank, vault))
    assert [one.status for one in found].count("refused") == 2
    assert CANARY not in repr(found)
    assert not any(CANARY.encode() in data or CANARY in name for name, data in tree(bank.root).items())


def test_a_dry_run_writes_nothing(bank: Bank, vault: Path) -> None:
    write(vault / "login.md", f"token is {CANARY}\n")
    before = tree(bank.root)
    assert sorted(took(bank, vault, dry_run=True)) == [
        ("new", "notes:Alpha"),
        ("new", "notes:sub/Beta"),
        ("refused", ""),
    ]
    assert tree(bank.root) == before


def test_names_that_meet_are_kept_apart(bank: Bank, tmp_path: Path) -> None:
    """Case, the folders of other lanes, and names that some file systems do not hold."""
    bank.add("mine", title="README")
    for name in ("readme.md", "topics/plan.md", "what?.md", "Sub/one.md", "sub/two.md", "records/x.md"):
        write(tmp_path / "v" / name, f"text of {name}\n")
    taken = took(bank, tmp_path / "v")
    assert {status for status, _ in taken} == {"new"}
    ids = [id for _, id in taken]
    assert len(set(ids)) == 6
    assert {"notes:readme-2", "notes:topics-plan", "notes:what-", "notes:records-x"} <= set(ids)
    assert len(list(bank.memories("notes"))) == 7
    assert bank.problems() == []


def test_notes_can_go_into_a_folder(bank: Bank, vault: Path) -> None:
    assert took(bank, vault, into="old/") == [("new", "notes:old/Alpha"), ("new", "notes:old/sub/Beta")]


def test_texts_can_go_into_the_vault_or_the_records(bank: Bank, tmp_path: Path) -> None:
    path = write(tmp_path / "mem0.json", '[{"memory":"Prefers green tea"},{"memory":"Never deploys on a Friday"}]')
    for lane in ("vault", "records"):
        assert statuses(bank, path, lane=lane, dry_run=True) == ["new", "new"]
        assert statuses(bank, path, lane=lane) == ["new", "new"]
        assert statuses(bank, path, lane=lane) == ["same", "same"]
    assert [len(list(bank.memories(lane))) for lane in LANES] == [0, 2, 0, 2, 0]


def test_what_makes_no_sense_is_said_before_anything_is_read(bank: Bank, vault: Path, tmp_path: Path) -> None:
    for path, options in (
        (vault, {"lane": "layers"}),
        (bank.root, {"kind": "markdown"}),
        (write(tmp_path / "x.jsonl", ""), {"kind": "jsonl", "lane": "notes"}),
    ):
        with pytest.raises(InvalidInput):
            import_from(bank, path, **options)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        import_from(bank, tmp_path / "missing", kind="markdown")


def test_the_links_of_a_graph_lead_somewhere(bank: Bank, tmp_path: Path) -> None:
    list(import_from(bank, write(tmp_path / "memory.jsonl", GRAPH)))
    (link,) = bank.linked("entities/Acme")
    assert (link.memory.id, link.edge_type) == ("notes:entities/Ada", "works_at")


# -- the command line


def test_import_prints_what_became_of_each(run: Run, vault: Path, tmp_path: Path) -> None:
    run("init")
    write(vault / "login.md", f"token is {CANARY}\n")
    write(vault / "image.png", "x")
    result = run("import", vault)
    assert result.code == 0
    assert result.out.splitlines()[0] == "new\tAlpha.md\tnotes:Alpha\t"
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["new", "refused", "new"]
    assert "reading my-vault as obsidian" in result.err
    assert "2 new, 1 refused, 1 skipped" in result.err
    again = run("import", vault, "--json").json
    assert (again["kind"], again["counts"]) == ("obsidian", {"same": 2, "refused": 1, "skipped": 1})
    assert again["items"][0] == {"status": "same", "item": "Alpha.md", "id": "notes:Alpha", "why": ""}
    assert CANARY not in result.out + result.err + json.dumps(again)


def test_exit_codes_of_import(run: Run, tmp_path: Path) -> None:
    run("init")
    assert run("import", write(tmp_path / "a/x.md", f"token is {CANARY}\n").parent).code == 4
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x.md").write_bytes(b"\xff\xff")
    assert run("import", tmp_path / "b").code == 6
    assert run("import", tmp_path / "missing").code == 3
    assert run("import", write(tmp_path / "data.json", "{}")).code == 2
    assert run("import", tmp_path / "b", "--from", "notion").code == 2


@pytest.mark.parametrize("kind", [None, "chatgpt"])
def test_a_packed_export_is_to_be_unpacked_first(bank: Bank, tmp_path: Path, kind: str | None) -> None:
    (tmp_path / "export.ZIP").write_bytes(b"PK\x03\x04")
    with pytest.raises(InvalidInput) as refused:
        list(import_from(bank, tmp_path / "export.ZIP", kind=kind))
    assert str(refused.value) == "export.ZIP is packed."
