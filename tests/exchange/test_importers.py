"""The formats of other programs, read as values. Nothing here touches a bank."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import tree
from memlane import InvalidInput, NotFound, Problem
from memlane.core.model import Draft
from memlane.disk import files
from memlane.disk.names import safe_parts
from memlane.exchange import importers
from memlane.exchange.importers import Found, Item, Skipped, json_lines
from memlane.exchange.importers.folder import safe_name
from memlane.exchange.importers.obsidian import inline_tags

WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def write(path: Path, text: str = "some text\n") -> Path:
    """A file that was last written at WHEN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (WHEN.timestamp(), WHEN.timestamp()))
    return path


def items(found: list[Found]) -> list[Item]:
    return [one for one in found if isinstance(one, Item)]


def read(kind: str, path: Path) -> list[Found]:
    return list(importers.read(kind, path))


# -- which kind it is


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("obsidian", [".obsidian/app.json", "note.md"]),
        ("claude", ["MEMORY.md", "user_role.md"]),
        ("claude", ["memory/MEMORY.md"]),
        ("serena", [".serena/memories/overview.md", "README.md"]),
        ("cline", ["memory-bank/projectbrief.md", "memory-bank/progress.md"]),
        ("cline", ["projectbrief.md", "techContext.md", "more.md"]),
        ("markdown", ["a/b/note.markdown"]),
        ("markdown", ["progress.md"]),
    ],
)
def test_a_folder_is_told_by_its_content(kind: str, names: list[str], tmp_path: Path) -> None:
    for name in names:
        write(tmp_path / name)
    assert importers.detect(tmp_path) == kind


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("memory-json", '{"type":"entity","name":"Ada","entityType":"person","observations":[]}\n'),
        ("memory-json", '\n{"type":"relation","from":"a","to":"b","relationType":"knows"}'),
        ("jsonl", '{"id":"notes:a","lane":"notes","title":"a","text":"b"}\n'),
        ("vault", '{"id":"c7fe0a8f1977","version":1,"created_at":"2025-01-10T14:30:22Z","text":"b"}\n'),
        ("mem0", '[\n  {"id": "1", "memory": "Prefers tea"}\n]'),
        ("mem0", '{"results": [{"id": "1", "memory": "Prefers tea"}]}'),
    ],
)
def test_a_file_is_told_by_its_content(kind: str, text: str, tmp_path: Path) -> None:
    assert importers.detect(write(tmp_path / "export.json", text)) == kind


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be recognised by its content"):
        importers.detect(write(tmp_path / "data.json", '{"answer": 42}'))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput):
        importers.detect(tmp_path / "empty")
    with pytest.raises(NotFound):
        importers.detect(tmp_path / "missing")
    with pytest.raises(InvalidInput):
        importers.read("notion", tmp_path)


# -- folders of Markdown


def test_front_matter_becomes_a_draft_and_unknown_keys_survive(tmp_path: Path) -> None:
    front = (
        "---\ntitle: Alpha\ntags: [work, '#plan']\ncreated: 2023-01-02\naliases: [A, First]\ntype: book\n"
        "status: draft\nscope: area:x\n7: odd\nnested: {1: [a]}\n---\n\n"
    )
    write(tmp_path / "projects/alpha.md", front + "Body with [[Beta|a link]].\n")
    fields = {
        "imported_type": "book",
        "created": "2023-01-02",
        "aliases": ["A", "First"],
        "imported_status": "draft",
        "7": "odd",
        "nested": {"1": ["a"]},
    }
    created = datetime(2023, 1, 2, tzinfo=UTC)
    draft = Draft("Body with [[Beta|a link]].\n", "Alpha", ("work", "plan"), None, "area:x", None, created, fields)
    assert read("markdown", tmp_path) == [Item("projects/alpha.md", draft, "projects/alpha")]


def test_a_note_without_front_matter_goes_by_its_heading_and_its_file(tmp_path: Path) -> None:
    write(tmp_path / "Plain words.md", "just text\n")
    write(tmp_path / "headed.md", "# A heading\n\ntext\n")
    assert [(one.draft.title, one.draft.created_at, one.name) for one in items(read("markdown", tmp_path))] == [
        ("Plain words", WHEN, "Plain words"),
        ("A heading", WHEN, "headed"),
    ]


def test_a_single_file_is_read_alone(tmp_path: Path) -> None:
    write(tmp_path / "other.md")
    assert [one.key for one in items(read("markdown", write(tmp_path / "one.md")))] == ["one.md"]


def test_what_is_no_note_is_passed_over_and_named(tmp_path: Path) -> None:
    folders = (".obsidian/a.md", ".trash/b.md", ".git/c.md", "node_modules/d.md")
    for name in (*folders, ".hidden.md", "..md", ".DS_Store", "image.png"):
        write(tmp_path / "vault" / name)
    write(tmp_path / "vault/empty.md", "")
    write(tmp_path / "outside/stolen.md")
    (tmp_path / "vault/link.md").symlink_to(tmp_path / "outside/stolen.md")
    (tmp_path / "vault/folder").symlink_to(tmp_path / "outside")
    assert read("obsidian", tmp_path / "vault") == [
        Skipped("..md", "hidden"),
        Skipped(".hidden.md", "hidden"),
        Skipped("empty.md", "empty"),
        Skipped("folder", "a link, which is not followed"),
        Skipped("image.png", "not Markdown"),
        Skipped("link.md", "a link, which is not followed"),
    ]


def test_damage_is_reported_and_hides_no_other_note(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    with open(tmp_path / "huge.md", "wb") as huge:
        huge.truncate(files.MAX_BYTES + 1)
    write(tmp_path / "broken.md", "---\nkey: [\n---\ntext\n")
    write(tmp_path / "sound.md")
    found = read("markdown", tmp_path)
    assert [one.key for one in items(found)] == ["broken.md", "sound.md"]
    assert items(found)[0].draft.text == "---\nkey: [\n---\ntext\n"
    problems = [(one.path.name, one.why.split(" ")[0]) for one in found if isinstance(one, Problem)]
    assert problems == [("broken.md", "front"), ("huge.md", "The"), ("latin.md", "is")]


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one and #two/three, #four.", ["one", "two/three", "four"]),
        ("# Heading\n## Two\n", []),
        ("#123 #1a #2024-05 a#b C# x #", ["1a"]),
        ("`#code` and ``#more `#` `` #real", ["real"]),
        ("```\n#fenced\n```\n#after", ["after"]),
        ("#日本語 #déjà-vu", ["日本語", "déjà-vu"]),
        ("see https://example.org/#anchor", []),
    ],
)
def test_tags_in_the_text(text: str, tags: list[str]) -> None:
    assert list(inline_tags(text)) == tags


def test_tags_of_front_matter_and_text_are_joined(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\ntags: one two\ntag: three\n---\n\n#two #four\n")
    (one,) = items(read("obsidian", tmp_path))
    assert one.draft.tags == ("one", "two", "three", "four")
    assert items(read("markdown", tmp_path))[0].draft.tags == ("one", "two", "three")


@given(st.text(st.characters(codec="utf-8"), max_size=80) | st.sampled_from(["con.md", "indices/x", "a.md/b", "../x"]))
def test_every_name_becomes_one_that_all_file_systems_hold(name: str) -> None:
    made = safe_name(name)
    assert "/".join(safe_parts(f"{made}.md")) == f"{made}.md"
    assert safe_name(made) == made


def test_a_name_that_is_fine_stays_as_it_is() -> None:
    assert safe_name("Projects/Alpha & Beta (2024)") == "Projects/Alpha & Beta (2024)"
    assert safe_name("what: a?/x<y>") == "what- a-/x-y-"


# -- agents' own folders


def test_claudes_memories_keep_type_name_and_date(tmp_path: Path) -> None:
    write(tmp_path / "MEMORY.md", "# Memory\n\n- [Testing](feedback_testing.md) — how we test\n")
    write(
        tmp_path / "feedback_testing.md",
        "---\nname: Testing\ndescription: real database\ntype: feedback\nmodified: 2026-03-01T10:00:00Z\n---\n\n"
        "No mocks.\n",
    )
    write(tmp_path / "user_role.md", "---\nname: role\nmetadata:\n  type: user\n---\n\nAn engineer.\n")
    found = read("claude", tmp_path)
    modified = "2026-03-01T10:00:00Z"
    assert found == [
        Skipped("MEMORY.md", "an index of the other files"),
        Item(
            "feedback_testing.md",
            Draft(
                "No mocks.\n",
                "Testing",
                ("feedback",),
                "fact",
                created_at=datetime(2026, 3, 1, 10, tzinfo=UTC),
                fields={"description": "real database", "modified": modified},
            ),
            "claude/feedback_testing",
        ),
        Item(
            "user_role.md",
            Draft("An engineer.\n", "role", ("user",), "fact", created_at=WHEN, fields={"metadata": {"type": "user"}}),
            "claude/user_role",
        ),
    ]


def test_an_index_that_says_something_itself_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "MEMORY.md", "# Memory\n\nUse pnpm, not npm.\n")
    assert [one.name for one in items(read("claude", tmp_path))] == ["claude/MEMORY"]


def test_serenas_memories_keep_their_topics(tmp_path: Path) -> None:
    write(tmp_path / ".serena/memories/modules/frontend.md", "# Frontend\n")
    write(tmp_path / "README.md")
    for path in (tmp_path, tmp_path / ".serena", tmp_path / ".serena/memories"):
        assert importers.detect(path) == "serena"
        (one,) = items(read("serena", path))
        assert (one.key, one.name, one.draft.title) == ("modules/frontend.md", "serena/modules/frontend", "Frontend")


def test_clines_bank_is_read_from_the_project_or_from_itself(tmp_path: Path) -> None:
    for name in ("projectbrief", "progress", "api/endpoints"):
        write(tmp_path / f"memory-bank/{name}.md")
    for path in (tmp_path, tmp_path / "memory-bank"):
        assert [one.name for one in items(read("cline", path))] == [
            "cline/progress",
            "cline/projectbrief",
            "cline/api/endpoints",
        ]


# -- exports


def test_a_knowledge_graph_becomes_linked_notes(tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Spanish", "two\nlines"]},
        {"type": "entity", "name": "Acme/EU: [x]", "entityType": "organization", "observations": []},
        {"type": "relation", "from": "Ada", "to": "Acme/EU: [x]", "relationType": "works_at"},
        {"type": "relation", "from": "Ada", "to": "Acme/EU: [x]", "relationType": "works_at"},
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Spanish", "Likes tea"]},
        {"type": "future"},
        {"type": ["entity"]},
    ]
    path = write(tmp_path / "memory.jsonl", "\n".join(map(json.dumps, lines)))
    ada = (
        "# Ada\n\n- Speaks Spanish\n- two\n  lines\n- Likes tea\n\n- works_at [[entities/Acme-EU- -x-|type:works_at]]\n"
    )
    assert read("memory-json", path) == [
        Item("Ada", Draft(ada, "Ada", ("person",), "fact", created_at=WHEN), "entities/Ada"),
        Item(
            "Acme/EU: [x]",
            Draft("# Acme/EU: [x]\n", "Acme/EU: [x]", ("organization",), "fact", created_at=WHEN),
            "entities/Acme-EU- -x-",
        ),
    ]


def test_damaged_lines_of_a_graph_hide_no_other(tmp_path: Path) -> None:
    good = '{"type":"entity","name":"Ada","entityType":"person","observations":[]}'
    bad = [
        "not json",
        "[1]",
        '{"type":"entity","name":" ","entityType":"x"}',
        '{"type":"entity","name":"A","entityType":"x","observations":[1]}',
        '{"type":"entity","name":"\\ud800","entityType":"x"}',
        '{"type":"relation","from":"a","to":7,"relationType":"x"}',
        '{"type":"relation","from":"Nobody","to":"Ada","relationType":"knows"}',
    ]
    found = read("memory-json", write(tmp_path / "memory.jsonl", "\n".join([*bad, good])))
    assert [one.key for one in items(found)] == ["Ada"]
    assert [one.line for one in found if isinstance(one, Problem)] == [1, 2, 3, 4, 5, 6, None]


def test_entities_that_differ_only_in_case_get_names_of_their_own(tmp_path: Path) -> None:
    lines = [{"type": "entity", "name": name, "entityType": "", "observations": []} for name in ("Go", "go", "GO")]
    found = read("memory-json", write(tmp_path / "memory.jsonl", "\n".join(map(json.dumps, lines))))
    assert [one.name for one in items(found)] == ["entities/Go", "entities/go-2", "entities/GO-3"]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"results": x}, lambda x: {"count": 1, "memories": x}])
def test_mem0s_memories_keep_owner_metadata_and_dates(wrap: object, tmp_path: Path) -> None:
    one = {
        "id": "3c90c3cc",
        "memory": "Prefers green tea",
        "user_id": "ada",
        "agent_id": None,
        "run_id": "r1",
        "categories": ["food", "food"],
        "metadata": {"source": "chat"},
        "hash": "x",
        "created_at": "2024-07-01T10:00:00-07:00",
        "updated_at": "2024-07-02T10:00:00-07:00",
    }
    assert callable(wrap)
    path = write(tmp_path / "export.json", json.dumps(wrap([one, {"memory": " "}, 7])))
    fields = {"user_id": "ada", "metadata": {"source": "chat"}, "updated_at": "2024-07-02T10:00:00-07:00"}
    created = datetime(2024, 7, 1, 17, tzinfo=UTC)
    draft = Draft("Prefers green tea\n", "Prefers green tea", ("food",), "fact", None, "r1", created, fields)
    assert read("mem0", path) == [
        Item("3c90c3cc", draft, "mem0/prefers-green-tea"),
        Problem(path, "memory 2 has no text"),
        Problem(path, "memory 3 has no text"),
    ]


def test_a_file_that_is_no_export_of_mem0_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a JSON export"):
        read("mem0", write(tmp_path / "x.json", "{}"))


def test_lines_that_are_no_memories_are_problems_that_quote_nothing(tmp_path: Path) -> None:
    lines = [
        "{",
        "[]",
        '{"lane":"notes","id":"vault:x","text":"y"}',
        '{"lane":"notes","id":"notes:x","text":"y","tags":[1]}',
        '{"lane":"notes","id":"notes:x","text":"y","type":1}',
    ]
    found = read("jsonl", write(tmp_path / "x.jsonl", "\n".join(lines)))
    assert [(type(one), one.line) for one in found if isinstance(one, Problem)] == [(Problem, n) for n in range(1, 6)]


def test_reading_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "---\ntags: x\n---\ntext")
    before = tree(tmp_path)
    read("obsidian", tmp_path)
    assert tree(tmp_path) == before


def test_a_line_without_end_is_a_problem_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 100)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 1000 + b'\n{"a": 2}\n' + b"y" * 1000)
    found = list(json_lines.parsed(path, lambda item: item["a"]))
    why = "is longer than 100 bytes and is not read"
    assert found == [1, Problem(path, why, 2), 2, Problem(path, why, 4)]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    [problem] = json_lines.parsed(tmp_path / "pipe.jsonl", dict)
    assert isinstance(problem, Problem)
    assert json_lines.first(tmp_path / "pipe.jsonl") == {}
