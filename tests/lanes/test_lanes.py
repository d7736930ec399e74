"""The contract that all lanes keep, and design.md's laws over all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tree
from memlane import AlreadyExists, InvalidInput, Memory, NotFound, Problem, Refused, StorageError
from memlane.core.invisible import visible
from memlane.disk import files
from memlane.lanes import Lane, readable, scan
from samples import LANES, draft, make_lane, root_of, tries, words

CANARY = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
WITH_FILES = [name for name in LANES if name != "vault"]


@pytest.fixture(params=LANES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lane(name: str, tmp_path: Path) -> Lane:
    return make_lane(name, tmp_path)


def memories(lane: Lane) -> list[Memory]:
    return [item for item in scan(lane) if isinstance(item, Memory)]


def problems(lane: Lane) -> list[Problem]:
    return [item for item in scan(lane) if isinstance(item, Problem)]


# -- the verbs


def test_opening_a_lane_writes_nothing(lane: Lane, tmp_path: Path) -> None:
    assert (memories(lane), list(lane.removed()), tree(tmp_path)) == ([], [], {})


def test_what_was_put_is_fetched(lane: Lane, name: str) -> None:
    memory = lane.put(draft(name, 1))
    assert lane.fetch(memory.native_id) == memory
    assert memory.id == f"{name}:{memory.native_id}"
    assert words(1) in memory.text


def test_another_process_sees_what_was_put(lane: Lane, name: str, tmp_path: Path) -> None:
    memory = lane.put(draft(name, 1))
    assert memories(make_lane(name, tmp_path)) == [memory]


def test_every_memory_is_scanned_once(lane: Lane, name: str) -> None:
    put = [lane.put(draft(name, number)) for number in range(9)]
    assert sorted(memory.id for memory in memories(lane)) == sorted(memory.id for memory in put)
    assert problems(lane) == []


def test_a_revised_text_replaces_the_old_one(lane: Lane, name: str) -> None:
    native = lane.put(draft(name, 1)).native_id
    revised = lane.revise(native, {"text": words(2)})
    assert words(2) in revised.text
    assert words(1) not in revised.text
    assert lane.fetch(revised.native_id) == revised


def test_extended_text_follows_the_old_one(lane: Lane, name: str) -> None:
    native = lane.put(draft(name, 1)).native_id
    text = lane.extend(native, words(2)).text
    assert text.index(words(1)) < text.index(words(2))


def test_a_dropped_memory_is_gone_and_can_be_recovered(lane: Lane, name: str) -> None:
    kept = lane.put(draft(name, 1))
    memory = lane.put(draft(name, 2))
    removed = lane.drop(memory.native_id)
    assert (removed.id, [item.id for item in lane.removed()]) == (memory.id, [memory.id])
    assert [item.id for item in memories(lane)] == [kept.id]
    with pytest.raises(NotFound):
        lane.fetch(memory.native_id)
    recovered = lane.recover(memory.native_id)
    assert (recovered.id, recovered.text) == (memory.id, memory.text)
    assert sorted(item.id for item in memories(lane)) == sorted([kept.id, memory.id])
    assert list(lane.removed()) == []


@pytest.mark.parametrize("verb", ["fetch", "revise", "extend", "drop", "recover"])
def test_an_unknown_id_is_not_found(lane: Lane, name: str, verb: str, tmp_path: Path) -> None:
    lane.put(draft(name, 1))
    before = tree(tmp_path)
    more = {"revise": ({"text": words(2)},), "extend": (words(2),)}.get(verb, ())
    unknown = {
        "topics": "area/part1/2025-01-01-nothing",
        "layers": "shared-project/other/common_patterns",
        "vault": "0123456789ab",
    }
    with pytest.raises(NotFound):
        getattr(lane, verb)(unknown.get(name, "nothing"), *more)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("native", ["../../x", "/etc/passwd", "a\0b", "", "..", "x" * 5000])
@pytest.mark.parametrize("verb", ["fetch", "drop", "recover"])
def test_an_unsafe_id_reaches_no_file(lane: Lane, verb: str, native: str, tmp_path: Path) -> None:
    with pytest.raises((NotFound, InvalidInput)):
        getattr(lane, verb)(native)
    assert tree(tmp_path) == {}


def test_an_unknown_field_is_refused(lane: Lane, name: str, tmp_path: Path) -> None:
    native = lane.put(draft(name, 1)).native_id
    before = tree(tmp_path)
    with pytest.raises(InvalidInput):
        lane.revise(native, {"colour": "blue"})
    assert tree(tmp_path) == before


# -- bad input


@pytest.mark.parametrize(
    "text",
    ["binary \0 data and more", "lone \ud800 surrogate here", "x" * (files.MAX_BYTES + 1)],
    ids=["nul", "surrogate", "huge"],
)
def test_text_that_cannot_be_stored_writes_nothing(lane: Lane, name: str, tmp_path: Path, text: str) -> None:
    with pytest.raises((InvalidInput, Refused)) as caught:
        lane.put(draft(name, 1, text))
    assert caught.value.hint
    assert tree(tmp_path) == {}


def test_a_secret_leaves_no_trace(lane: Lane, name: str, tmp_path: Path) -> None:
    native = lane.put(draft(name, 1)).native_id
    before = tree(tmp_path)
    text = f"Deploy with {CANARY} please."
    attempts = [
        lambda: lane.put(draft(name, 2, text)),
        lambda: lane.revise(native, {"text": text}),
        lambda: lane.extend(native, text),
    ]
    for attempt in attempts:
        with pytest.raises(Refused) as caught:
            attempt()
        assert CANARY not in f"{caught.value} {caught.value.hint} {caught.value.__cause__} {caught.value.__context__}"
    assert tree(tmp_path) == before


def test_a_folder_in_the_way_is_an_error(name: str, tmp_path: Path) -> None:
    root = root_of(name, tmp_path)
    if name == "vault":
        root.mkdir()
    else:
        root.write_text("a file")
    before = tree(tmp_path)
    with pytest.raises(StorageError) as caught:
        make_lane(name, tmp_path).put(draft(name, 1))
    assert caught.value.hint
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", WITH_FILES)
def test_links_out_of_the_lane_are_not_followed(name: str, tmp_path: Path) -> None:
    lane = make_lane(name, tmp_path / "bank")
    memory = lane.put(draft(name, 1))
    outside = tmp_path / "outside"
    outside.mkdir()
    os.replace(memory.file, outside / "stolen.md")
    os.symlink(outside / "stolen.md", memory.file)
    before = tree(outside)
    assert memories(lane) == []
    assert [problem.why for problem in problems(lane)] == ["is a link out of the bank and not followed"]
    for attempt in (lambda: lane.fetch(memory.native_id), lambda: lane.extend(memory.native_id, words(2))):
        with pytest.raises((InvalidInput, NotFound)):
            attempt()
    assert tree(outside) == before


@pytest.mark.parametrize("name", [name for name in WITH_FILES if name != "topics"])
def test_recovering_onto_a_taken_name_changes_nothing(name: str, tmp_path: Path) -> None:
    lane = make_lane(name, tmp_path)
    memory = lane.put(draft(name, 1))
    before = Path(memory.file).read_bytes()
    lane.drop(memory.native_id)
    Path(memory.file).write_bytes(before)
    before = tree(tmp_path)
    with pytest.raises(AlreadyExists):
        lane.recover(memory.native_id)
    assert tree(tmp_path) == before


# -- the laws


@pytest.mark.parametrize("name", WITH_FILES)
@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff\xfe not utf-8 \x80", b"---\nkey: [\n---\ntext", b"---\na: &a [*a]\n---\n", b"\0\0\0"],
    ids=["empty", "not-utf8", "bad-yaml", "cycle", "nul"],
)
def test_one_damaged_file_hides_no_other_memory(name: str, damage: bytes, tmp_path: Path) -> None:
    lane = make_lane(name, tmp_path)
    put = [lane.put(draft(name, number)) for number in range(3)]
    Path(put[0].file).with_name("damaged.md").write_bytes(damage)
    found = {memory.id for memory in memories(make_lane(name, tmp_path))}
    assert found >= {memory.id for memory in put}


def test_reading_rewrites_nothing(lane: Lane, name: str, tmp_path: Path) -> None:
    put = [lane.put(draft(name, number)) for number in range(3)]
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    fresh = make_lane(name, tmp_path)
    for memory in put:
        fresh.fetch(memory.native_id)
    list(scan(fresh))
    list(fresh.removed())
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stamps


@pytest.mark.parametrize("name", WITH_FILES)
def test_changing_one_memory_leaves_the_other_files_alone(name: str, tmp_path: Path) -> None:
    lane = make_lane(name, tmp_path)
    first, second = (lane.put(draft(name, number)) for number in (1, 2))
    before = Path(first.file).read_bytes(), os.stat(first.file).st_ino
    lane.revise(second.native_id, {"text": words(3)})
    lane.drop(lane.extend(second.native_id, words(4)).native_id)
    assert (Path(first.file).read_bytes(), os.stat(first.file).st_ino) == before


BODIES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")) | st.just("\n"), max_size=300
).filter(lambda body: visible(body) == body)  # the gate strips what nobody sees


@pytest.mark.parametrize("name", ["notes", "records", "layers", "vault"])
@settings(max_examples=tries(25, 250))
@given(body=BODIES)
def test_the_text_put_is_the_text_fetched(name: str, body: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """parse(render(m)) == m, byte for byte; the vault strips the ends, as its seed says."""
    lane = make_lane(name, tmp_path_factory.mktemp("bank"))
    text = f"start {body} the end of it"
    assert lane.fetch(lane.put(draft(name, 1, text)).native_id).text == text


@pytest.mark.parametrize("name", WITH_FILES)
@pytest.mark.parametrize(
    "text",
    [
        "before\n\n```markdown\n## 2025-01-01: not an entry\n---\n# not a title\n---\n```\n\nafter it all",
        "~~~\n---\nid: x\n---\n~~~\nand some words after",
    ],
)
def test_fenced_code_is_opaque(name: str, text: str, tmp_path: Path) -> None:
    lane = make_lane(name, tmp_path)
    memory = lane.put(draft(name, 1, text))
    assert text in memory.text
    assert memories(make_lane(name, tmp_path)) == [memory]


@pytest.mark.parametrize("name", ["notes", "records", "layers"])
@pytest.mark.parametrize("final", ["", "\r\n"], ids=["no-final-newline", "final-newline"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["no-bom", "bom"])
def test_windows_files_stay_windows_files(name: str, final: str, bom: str, tmp_path: Path) -> None:
    """CRLF, a byte order mark and a missing final newline survive a change of another part."""
    lane = make_lane(name, tmp_path)
    memory = lane.put(draft(name, 1, "one line here\ntwo lines here"))
    path = Path(memory.file)
    windows = bom + path.read_text().replace("\n", "\r\n") + final
    path.write_bytes(windows.encode())
    before = lane.fetch(memory.native_id)
    assert before.text.rstrip() == "one line here\r\ntwo lines here"
    after = lane.extend(memory.native_id, "three\nfour")
    assert [line for line in after.text.split("\r\n") if line] == ["one line here", "two lines here", "three", "four"]
    raw = path.read_bytes()
    assert raw.startswith(bom.encode())
    assert raw.count(b"\n") == raw.count(b"\r\n")


def test_a_file_that_cannot_be_read_is_said_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "huge.md"
    with open(path, "wb") as file:
        file.truncate(11_000_000)
    with pytest.raises(StorageError) as caught:
        readable(str(path))
    assert (str(caught.value), caught.value.hint) == (
        "huge.md: The file has 11,000,000 bytes; 10,485,760 are read.",
        "Check its permissions and size, then try again.",
    )
