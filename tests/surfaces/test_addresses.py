"""Whatever a surface prints of a memory is understood by every verb of every surface: what is printed × the verbs."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from commands import Run
from memlane import Bank, InvalidInput, Memory, NotFound
from memlane.history import versions
from memlane.surfaces.mcp.server import build_server
from repositories import git

TOPIC = "topics:auth/oauth2/2025-01-10-refresh-fails"
LAYER = "layers:shared-project/my-api/project_profile"
NAMING = {"id", "memory_id", "title", "path", "file_path", "filename", "name", "uri", "subject"}  # keys of JSON answers


class Bank5(NamedTuple):
    """A bank with memories in all five lanes, one of them archived, one held back, committed to git."""

    bank: Bank
    folder: Path
    ids: tuple[str, ...]
    held: str


@pytest.fixture
def full(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Bank5:
    bank = Bank.init(repo)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("EDITOR", "true")
    ids = [
        bank.add("Deploys go out on Tuesdays, says [[src/auth.py]].", title="Deploy day").id,
        bank.add("Nobody works on that day.", filename="2025/january/holiday.md").id,
        bank.add("What we once thought of quicksilver.", title="Old ideas", status="archived").id,
        bank.add("We always use tabs in Makefiles.", lane="vault").id,
        bank.add("Dashboard and search.", lane="vault", tier="register", topic_id="current_projects").id,
        bank.add("It came too late.", lane="topics", title="Refresh fails", topic="auth/oauth2", date="2025-01-10").id,
        bank.add("The whole answer about errors.", lane="records", title="Error handling").id,
        bank.add("# The API of ours\n\nIt is in Go.", lane="layers", project="my-api", type="project_profile").id,
    ]
    assert {TOPIC, LAYER} < set(ids)
    held = bank.add("Came back by itself.", title="Revenant")
    text = held.path.read_text()
    bank.delete(held.id)
    held.path.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "all")
    return Bank5(bank, repo, tuple(ids), held.id)


# -- what the surfaces print


Said = tuple[str, str]  # the id of a memory, and a name that was printed for it


def from_json(value: Any, ids: Iterable[str], known: str = "") -> Iterator[Said]:
    """Every value in an answer that names a memory, with the memory's id."""
    if isinstance(value, list):
        for item in value:
            yield from from_json(item, ids, known)
    elif isinstance(value, dict):
        named = [str(value.get(key, "")) for key in ("id", "memory_id", "name")]
        found = [id for id in ids for name in named if name and name in (id, id.partition(":")[2], f"memory:{id[6:]}")]
        known = found[0] if found else known
        for key, item in value.items():
            if known and key in NAMING and isinstance(item, str):
                yield known, item
            yield from from_json(item, ids, known)


def from_lines(text: str, ids: Iterable[str], columns: int | None = None) -> Iterator[Said]:
    """The first columns of every line that names a memory by its id: those that are an id, a path or a title."""
    for line in text.splitlines():
        parts = [part.removeprefix("- [").removesuffix("]") for part in re.split(r"\t| · ", line)][:columns]
        for id in set(ids) & set(parts):
            yield from ((id, part) for part in parts if re.search(r"[/:]|^[A-Z]", part) and part[:2] != "20")


def printed_by_the_command_line(run: Run, ids: Iterable[str]) -> Iterator[Said]:
    for command in (
        ["list"], ["search", "tabs quicksilver errors", "--archived", "-n", "20"], ["links", "src/auth.py"],
        ["vault", "list"], ["records", "list"], ["topics", "search", "refresh"], ["layers", "project", "my-api"],
        ["context", "deploy tabs refresh errors"], ["context"],
    ):  # fmt: skip
        columns = {"links": 0, "search": 3}.get(command[0])  # the one that follows quotes the text
        yield from from_lines(run(*command).out, ids, columns)
        yield from from_json(run(*command, "--json").json, ids)
    for id in ids:
        yield from from_json(run("get", id, "--json").json, ids)
        yield from ((id, part.strip()) for part in run("get", id).err.split(" · ") if "/" in part)
        if not id.startswith(("vault:", "topics:")):
            yield id, run("history", id, "--json").json[0]["path"]
    yield LAYER, run("layers", "search", "in Go").out.split("\t")[0]
    yield LAYER, run("layers", "stale", "--json").json["fresh"][0]["id"]
    yield TOPIC, re.findall("<!-- (.*) -->", run("topics", "load", "auth/oauth2").out)[0]


def printed_by_the_server(folder: Path, ids: Iterable[str]) -> Iterator[Said]:
    async def steps(client: Client) -> list[Any]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("search_memories", {"query": "deploys tabs quicksilver", "limit": 20}),
            ("search_linked_memories", {"query": "", "target_document": "src/auth.py"}),
            ("recall", {"query": "deploys tabs refresh errors"}),
            *(("read_memory", {"filename": id}) for id in ids),
        ]
        results = [(await client.call_tool(name, arguments)).structured_content for name, arguments in calls]
        listed = [resource.model_dump(mode="json") for resource in (await client.list_resources()).resources]
        return [*results, listed, (await client.read_resource("memory://index")).contents[0].text]

    *results, overview = served(folder, steps)
    yield from from_json(results, ids)
    yield from ((id, uri) for id, uri in re.findall(r"\[(\S+)\]\((memory:\S+)\)", overview) if id in ids)
    yield from from_lines(results[2]["block"], ids)
    for id, read in zip(ids, results[3:], strict=False):
        yield from from_json({**read, "id": id}, ids)


def printed_by_python(full: Bank5, ids: Iterable[str]) -> Iterator[Said]:
    for memory in map(full.bank.get, ids):
        yield from ((memory.id, name) for name in (memory.id, memory.native_id, memory.title))
        if not full.bank.lane(memory.lane).answers.shares_files or memory.id == TOPIC:
            yield from files_of(full, memory)


def files_of(full: Bank5, memory: Memory) -> Iterator[Said]:
    """Every way to write where a memory's file is."""
    homes = (full.folder, full.bank.root, full.bank.lane(memory.lane).root)
    paths = [memory.file, *(str(memory.path.relative_to(home)) for home in homes)]
    paths += [path.removesuffix(".md") for path in paths]
    yield from ((memory.id, path) for path in (*paths, f"./{paths[1]}", f"{paths[1]}:3", f"{paths[1]}#Some heading"))


@pytest.fixture
def printed(full: Bank5, run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Said]:
    """(id, name) of all that the surfaces print, each once."""
    monkeypatch.chdir(full.folder)
    said = [
        *printed_by_the_command_line(run, full.ids),
        *printed_by_the_server(full.folder, full.ids),
        *printed_by_python(full, full.ids),
        *((full.held, name) for name in (full.held, "Revenant", "revenant.md")),
        *((id, f"[[{id}]]") for id in full.ids),
        (full.ids[4], "current_projects"),
    ]
    shared = str(full.bank.vault.path)  # holds two records, so that it names neither
    return sorted({(id, name) for id, name in said if name and shared not in (name, str(full.folder / name))})


def served(folder: Path, steps: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Client(build_server(folder)) as client:
            return await steps(client)

    return anyio.run(run)


# -- the verbs


def wrong(said: Iterable[Said], verb: Callable[[str], str]) -> list[tuple[str, str]]:
    """The names that a verb does not understand, each with what it did instead."""
    found = []
    for id, name in said:
        try:
            meant = verb(name)
        except Exception as error:
            meant = f"{error} {getattr(error, 'hint', '')}"
        if meant != id:
            found.append((name, meant))
    return found


def part(printed: list[Said], number: int) -> list[Said]:
    """A third of the names. All are looked up once; a verb that changes something finds a memory as looking up does."""
    return printed[number::3]


def test_the_surfaces_print_many_names(full: Bank5, printed: list[Said]) -> None:
    """The other tests would say nothing, were nothing printed."""
    names = {id: {name for said, name in printed if said == id} for id in full.ids}
    assert min(map(len, names.values())) >= 5
    assert names["notes:deploy-day"] >= {
        "notes:deploy-day", "memory:deploy-day", "memory://memory/notes:deploy-day", "deploy-day", "deploy-day.md",
        "Deploy day", ".memories/deploy-day.md", str(full.bank.root / "deploy-day.md"), "[[notes:deploy-day]]",
    }  # fmt: skip


def test_python_understands_what_is_printed(full: Bank5, printed: list[Said]) -> None:
    bank = full.bank
    texts = {id: bank.get(id).text for id in (*full.ids, full.held)}

    def written(name: str) -> str:
        id = bank.append(name, "And more.").id
        return bank.update(name, texts[id]).id

    def removed(name: str) -> str:
        id = bank.delete(name).id
        assert bank.restore(name).id == id
        return id

    def linked(name: str) -> str:
        [link] = bank.linked(name)
        return link.memory.text.removeprefix("See [[").removesuffix("]].")

    assert not wrong(printed, lambda name: bank.get(name).id)
    assert not wrong(part(printed, 0), lambda name: bank.forget(name, dry_run=True).ids[0])
    assert not wrong(part(printed, 1), written)
    assert not wrong(part(printed, 2), removed)
    for number, id in enumerate(full.ids):
        bank.add(f"See [[{id}]].", title=f"Reader {number}")
    assert not wrong([said for said in printed if said[0] != full.held], linked)


def test_the_command_line_understands_what_is_printed(full: Bank5, printed: list[Said], run: Run) -> None:
    texts = {id: full.bank.get(id).text for id in (*full.ids, full.held)}

    def said(*command: str) -> Any:
        result = run(*command, "--json")
        assert result.code == 0, result.err
        return result.json

    def written(name: str) -> str:
        id = said("append", name, "And more.")["id"]
        return str(said("update", name, texts[id])["id"])

    def removed(name: str) -> str:
        [gone] = said("rm", name)
        assert said("restore", name)["id"] == gone["id"]
        return str(gone["id"])

    assert not wrong(printed, lambda name: said("get", name)["id"])
    assert not wrong(part(printed, 2), lambda name: said("edit", name)["id"])
    assert not wrong(part(printed, 0), written)
    assert not wrong(part(printed, 1), removed)


def test_the_command_line_tells_the_past_of_what_is_printed(full: Bank5, printed: list[Said], run: Run) -> None:
    for id in full.ids:
        full.bank.append(id, "And more.")
        full.bank.delete(id)
        full.bank.restore(id)
    known = {id: [version.to_dict() for version in versions.history(full.bank, id)] for id in full.ids}

    def past(name: str) -> str:
        id = full.bank.get(name).id
        result = run("history", name, "--json")
        assert result.code == 0, result.err
        assert result.json == known.get(id, result.json)
        assert result.json
        return id

    assert [id for id, versions in known.items() if len(versions) < 2] == []
    assert not wrong(printed, past)


def test_the_server_understands_what_is_printed(full: Bank5, printed: list[Said]) -> None:
    bank = full.bank
    known = {id: bank.get(id) for id in full.ids}
    before = {id: memory.path.read_text() if memory.lane == "notes" else memory.text for id, memory in known.items()}
    names = {id: f"{memory.native_id}.md" if memory.lane == "notes" else id for id, memory in known.items()}

    async def steps(client: Client) -> list[Any]:
        wrong = []

        async def call(tool: str, name: str, **more: str) -> CallToolResult:
            result = await client.call_tool(tool, {"filename": name, **more})
            answer = result.structured_content or {}
            if answer.get("filename") != names[id]:
                wrong.append((tool, name, answer or result.content))
            return result

        for number, (id, name) in enumerate(printed):
            if id not in names:
                continue
            read = await call("read_memory", name)
            if (read.structured_content or {}).get("content") != before[id]:
                wrong.append(("content", name, read.structured_content))
            if number % 2:
                await call("append_memory", name, content="And more.")
                await call("update_memory", name, content=before[id])
            else:
                await call("delete_memory", name)
                bank.restore(id)
        return wrong

    assert served(full.folder, steps) == []
    assert {id: bank.get(id).text for id in known} == {id: memory.text for id, memory in known.items()}


# -- what was deleted


def names_of_deleted(full: Bank5, memory: Memory, moved: Path) -> list[str]:
    names = [memory.id, memory.native_id, memory.title]
    if not full.bank.lane(memory.lane).answers.shares_files:
        names += [memory.file, str(memory.path.relative_to(full.folder))]
    return names if memory.lane == "vault" else [*names, str(moved), moved.name, str(moved.relative_to(full.folder))]


def test_what_is_printed_of_a_deleted_memory_names_it(full: Bank5, run: Run, monkeypatch: Any) -> None:
    monkeypatch.chdir(full.folder)
    for memory in map(full.bank.get, full.ids):
        [gone] = run("rm", memory.id, "--json").json
        past = versions.history(full.bank, memory.id)
        for name in names_of_deleted(full, memory, Path(gone["path"])):
            assert (name, versions.history(full.bank, name)) == (name, past)
            assert (name, full.bank.forget(name, dry_run=True).ids) == (name, (memory.id,))


def test_what_is_printed_of_a_deleted_memory_brings_it_back(full: Bank5, run: Run, monkeypatch: Any) -> None:
    monkeypatch.chdir(full.folder)
    for memory in map(full.bank.get, full.ids):
        for number in range(len(names_of_deleted(full, memory, full.folder / "x"))):
            [gone] = run("rm", memory.id, "--json").json
            name = names_of_deleted(full, memory, Path(gone["path"]))[number]
            assert (name, run("restore", name).out.strip()) == (name, memory.id)


@pytest.mark.parametrize("name", ["notes:revenant", "Revenant", "revenant.md", ".memories/revenant.md"])
def test_what_is_held_back_is_kept_by_any_name(full: Bank5, name: str) -> None:
    assert full.bank.held(full.bank.get(name))
    assert full.bank.restore(name).id == full.held
    assert full.bank.held(full.bank.get(name)) is None


def test_a_record_in_the_archive_is_restored_by_its_path(full: Bank5) -> None:
    id = next(id for id in full.ids if id.startswith("records:"))
    archived = full.bank.records.archive(id.partition(":")[2])
    assert full.bank.restore(str(archived.path)).id == id


def test_a_name_of_what_was_deleted_is_not_the_title_of_something_else(full: Bank5) -> None:
    """Else a second `rm` of the same name would delete another memory."""
    other = full.bank.add("Another note.", filename="sub/deploy-day.md")
    full.bank.delete("deploy-day")
    with pytest.raises(NotFound) as caught:
        full.bank.delete("deploy-day")
    assert caught.value.to_dict() == {
        "code": "not_found",
        "message": "notes:deploy-day was deleted.",
        "hint": "`memlane restore notes:deploy-day` brings it back.",
    }
    assert full.bank.get("sub/deploy-day") == full.bank.get(other.id)


def test_an_older_deletion_is_not_taken_for_the_latest(full: Bank5) -> None:
    first = full.bank.delete("notes:deploy-day")
    full.bank.add("Anew.", title="Deploy day")
    full.bank.delete("notes:deploy-day")
    with pytest.raises(InvalidInput) as caught:
        full.bank.restore(str(first.path))
    assert str(first.path) in caught.value.hint
    assert full.bank.restore("notes:deploy-day").text == "Anew."


# -- what is not clear, and what is nearly right


def test_a_file_of_several_memories_names_them(full: Bank5) -> None:
    other = full.bank.add("Too early.", lane="topics", title="Second", topic="auth/oauth2", date="2025-01-11").id
    for name in ("topics/auth/oauth2.md", ".memories/topics/auth/oauth2.md", "auth/oauth2", "topics:auth/oauth2"):
        with pytest.raises(InvalidInput) as caught:
            full.bank.get(name)
        assert (caught.value.code, caught.value.hint) == ("ambiguous", f"Name one: {TOPIC}, {other}.")
    for heading in ("Refresh fails", "2025-01-10: Refresh fails"):
        assert full.bank.get(f"topics/auth/oauth2.md#{heading}").id == TOPIC


def test_a_title_that_two_memories_have_names_both(full: Bank5) -> None:
    full.bank.add("Deploys go out on Wednesdays.", title="Deploy day")
    with pytest.raises(InvalidInput) as caught:
        full.bank.delete("deploy DAY")
    assert caught.value.hint == "Name one: notes:deploy-day, notes:deploy-day-2."
    assert full.bank.get("deploy-day").id == "notes:deploy-day"


NEARLY = {
    "deploy-dya": "notes:deploy-day",
    "notes:deploy": "notes:deploy-day",
    "memory:deplyo-day": "notes:deploy-day",
    ".memories/deploy-dya.md": "notes:deploy-day",
    "Deploys day": "notes:deploy-day",
    "vault:deploy-dya": "notes:deploy-day",
    "holidays.md": "notes:2025/january/holiday",
    "auth/oauth2/2025-01-10-refresh-failed": TOPIC,
    "topics:auth/oauth2/2025-01-01-refresh-fails": TOPIC,
    "project-profiles": LAYER,
}


def test_a_name_that_is_nearly_right_is_answered_with_the_nearest(full: Bank5, run: Run) -> None:
    for name, near in NEARLY.items():
        with pytest.raises(NotFound) as caught:
            full.bank.get(name)
        assert caught.value.near[0] == near
        assert len(caught.value.near) <= 3
        assert caught.value.hint.startswith(f"Did you mean {', '.join(caught.value.near)}?")
        said = json.loads(run("--bank", str(full.folder), "append", name, "x", "--json").err)["error"]
        assert said["near"] == list(caught.value.near)


def test_a_forgotten_name_is_not_near(full: Bank5) -> None:
    with pytest.raises(NotFound) as caught:
        full.bank.get("revenants")
    assert full.held not in caught.value.near


def test_what_leads_out_of_the_bank_names_nothing(full: Bank5, tmp_path: Path) -> None:
    outside = full.folder / "README.md"
    outside.write_text("Not a memory.")
    for name in ("README.md", "../README.md", str(outside), "/etc/passwd", "notes:../README", ".memories/../README.md"):
        with pytest.raises((NotFound, InvalidInput)):
            full.bank.get(name)


def test_a_damaged_file_is_found_by_any_name(full: Bank5, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(full.folder)
    id = next(id for id in full.ids if id.startswith("records:"))
    path = full.bank.get(id).path
    path.write_text("no front matter\n")
    for name in (id, str(path), path.name, f"records/{path.name}"):
        assert run("edit", name).err.strip() == "nothing changed"
        assert run("doctor", "--only", "format", name).code == 6
