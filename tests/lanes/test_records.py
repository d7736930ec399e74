"""Records: seed 001's storage, validation, hash, deduplication and lookup."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock, tree
from memlane import Bank, InvalidInput, NotFound, RecordLane, Refused, gate
from memlane.core.model import Draft, Problem
from memlane.lanes.records.record import content_hash

WHEN = "2025-01-15T10:30:00Z"
TEXT = "All errors extend AppError.\nThey carry a code."
EXAMPLES = {
    "550e8400-e29b-41d4-a716-446655440000": (
        "Error handling convention",
        ("errors", "exceptions", "error-handling", "conventions"),
        "global",
    ),
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8": (
        "Auth middleware requires user context",
        ("auth", "middleware", "user-context", "authentication"),
        "file:src/middleware/auth.ts",
    ),
    "6ba7b811-9dad-11d1-80b4-00c04fd430c8": (
        "Database connection pooling settings",
        ("database", "postgres", "connection-pool", "performance"),
        "area:database",
    ),
}


@pytest.fixture
def records(tmp_path: Path, clock: Clock) -> RecordLane:
    return RecordLane(tmp_path / "records", clock=clock)


def store(lane: RecordLane, content: str = TEXT, **fields: Any) -> Any:
    return lane.create(
        content, **{"subject": "Errors", "keywords": ["errors"], "applies_to": "global", "occurred_at": WHEN, **fields}
    )


def write_example(root: Path, id: str) -> None:
    subject, keywords, scope = EXAMPLES[id]
    root.mkdir(exist_ok=True)
    listed = "".join(f"  - {word}\n" for word in keywords)
    (root / f"{id}.md").write_text(
        f"---\nid: {id}\nsubject: {subject}\nkeywords:\n{listed}applies_to: {scope}\n"
        "occurred_at: 2025-01-15T10:30:00Z\ncontent_hash: a1b2c3d4e5f67890\n---\n\nSome content that is long enough.\n"
    )


def refused(lane: RecordLane, **fields: Any) -> str:
    before = tree(lane.root)
    with pytest.raises(InvalidInput) as caught:
        store(lane, **fields)
    assert tree(lane.root) == before
    return str(caught.value)


# -- the file


def test_a_record_is_one_file_named_by_its_id(records: RecordLane) -> None:
    """S001-01"""
    record = store(records)
    assert list(tree(records.root)) == [f"{record.id}.md"]


def test_the_file_is_front_matter_then_the_content(records: RecordLane) -> None:
    """S001-02, S001-03, S001-08: the six keys in the seed's order."""
    record = store(records, keywords=["errors", "exceptions"])
    assert Path(record.path).read_text() == textwrap.dedent(f"""\
        ---
        id: {record.id}
        subject: Errors
        keywords:
          - errors
          - exceptions
        applies_to: global
        occurred_at: 2025-01-15T10:30:00Z
        content_hash: {content_hash(TEXT)}
        ---

        All errors extend AppError.
        They carry a code.""")


def test_ids_are_version_4_uuids_and_unique(records: RecordLane) -> None:
    """S001-04"""
    ids = [store(records, f"{TEXT} {number}").id for number in range(200)]
    assert len(set(ids)) == 200
    assert {uuid.UUID(id).version for id in ids} == {4}
    assert {uuid.UUID(id).variant for id in ids} == {uuid.RFC_4122}


@pytest.mark.parametrize("id", ["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "x", "", "550e8400e29b41d4a716446655440000"])
def test_an_id_that_is_no_version_4_uuid_is_refused(records: RecordLane, id: str) -> None:
    """S001-05"""
    assert refused(records, id=id) == "The id is not a version-4 UUID."


def test_a_given_version_4_id_is_kept(records: RecordLane) -> None:
    """S001-05"""
    assert store(records, id="550e8400-e29b-41d4-a716-446655440000").id == "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize("subject", ["", "   ", "x" * 201])
def test_a_subject_of_the_wrong_length_is_refused(records: RecordLane, subject: str) -> None:
    """S001-06"""
    assert refused(records, subject=subject) == "Not stored: subject must have 1 to 200 characters."


@pytest.mark.parametrize("subject", ["x", "x" * 200])
def test_subjects_of_1_and_200_characters_are_accepted(records: RecordLane, subject: str) -> None:
    """S001-06"""
    assert store(records, subject=subject).subject == subject


def test_a_subject_is_flattened_to_one_line(records: RecordLane) -> None:
    """S001-07"""
    assert store(records, subject="two\nlines").subject == "two lines"


@pytest.mark.parametrize("count", [0, 21])
def test_too_few_or_many_keywords_are_refused(records: RecordLane, count: int) -> None:
    """S001-09"""
    words = [f"word{number}" for number in range(count)]
    assert refused(records, keywords=words) == "Not stored: there must be 1 to 20 keywords."


@pytest.mark.parametrize("count", [1, 20])
def test_1_and_20_keywords_are_accepted(records: RecordLane, count: int) -> None:
    """S001-09"""
    assert len(store(records, keywords=[f"word{number}" for number in range(count)]).keywords) == count


@pytest.mark.parametrize("word", ["", "x" * 51])
def test_a_keyword_of_the_wrong_length_is_refused(records: RecordLane, word: str) -> None:
    """S001-10"""
    assert refused(records, keywords=[word]) == "Not stored: each keyword must have 1 to 50 characters."


def test_a_keyword_of_50_characters_is_accepted(records: RecordLane) -> None:
    """S001-10"""
    assert store(records, keywords=["x" * 50]).keywords == ("x" * 50,)


@pytest.mark.parametrize("scope", ["global", "file:src/api/auth.ts", "area:authentication"])
def test_the_three_kinds_of_scope_are_accepted(records: RecordLane, scope: str) -> None:
    """S001-11, S001-12, S001-13"""
    assert store(records, applies_to=scope).applies_to == scope


@pytest.mark.parametrize("scope", ["file:", "area:", "", "Global", "project:x", "xglobal"])
def test_other_scopes_are_refused(records: RecordLane, scope: str) -> None:
    """S001-14"""
    assert refused(records, applies_to=scope) == ("Not stored: applies_to must be global, file:<path> or area:<name>.")


@pytest.mark.parametrize("when", ["yesterday", "2025-13-01T00:00:00Z", "2025-01-15", "", "20250115"])
def test_what_is_no_iso_datetime_is_refused(records: RecordLane, when: str) -> None:
    """S001-15"""
    assert refused(records, occurred_at=when) == "Not stored: occurred_at must be an ISO 8601 date and time."


@pytest.mark.parametrize("when", [WHEN, "2025-01-15T10:30:00+02:00", "2025-01-15T10:30:00.123456Z"])
def test_utc_offsets_and_fractions_are_accepted(records: RecordLane, when: str) -> None:
    """S001-16: the caller's text is kept."""
    assert store(records, occurred_at=when).occurred_at == when


def test_the_hash_is_the_first_16_hex_digits_of_sha256(records: RecordLane) -> None:
    """S001-18: SHA-256("hello world") is b94d27b9934d3e08a52e52d7da7dabfa…"""
    assert store(records, "hello world").content_hash == "b94d27b9934d3e08"


def test_a_given_hash_is_ignored(records: RecordLane) -> None:
    """S001-19"""
    assert store(records, "hello world", content_hash="0" * 16).content_hash == "b94d27b9934d3e08"


@pytest.mark.parametrize("content", ["123456789", "123456789\n\n   "])
def test_content_under_10_characters_is_refused(records: RecordLane, content: str) -> None:
    """S001-20"""
    with pytest.raises(InvalidInput, match="at least 10 characters"):
        store(records, content)


def test_content_of_10_characters_is_accepted(records: RecordLane) -> None:
    """S001-20"""
    assert store(records, "1234567890").content == "1234567890"


@pytest.mark.parametrize(
    "content",
    [
        "trailing spaces  \n and newlines\n\n\n",
        "\n\nleading blank lines\n",
        "windows\r\nlines\r\n",
        "no final newline at all",
        "---\nid: looks like front matter\n---\n\nbut is content",
        "a rule\n\n---\n\nand another\n\n---\n",
        "para\n\n```python\nprint('x')\n```\n\n1. one\n2. two\n\n- [a](b)\n\n*em* **strong**\n\n| a | b |\n|---|---|\n",
    ],
)
def test_content_is_stored_byte_for_byte(records: RecordLane, content: str) -> None:
    """S001-21, S001-22, S001-23"""
    id = store(records, content).id
    record = RecordLane(records.root).get(id)
    assert record is not None
    assert record.content == content


HIDDEN = [
    "\x1b[31mRed\x1b[0m is an error here.", "co\xadoperate\u200b with\u2060out joiners\u200d.",
    "first\u2028second\u2029third",
    "left\u202eright\u2066mark", "tab\x0bfeed\x0c\x85next line", "\ufeffmark and \U000e0041tag",
    "bell\x07 and back\x08space",
]  # fmt: skip


@pytest.mark.parametrize("content", HIDDEN)
def test_what_nobody_sees_is_stored_too(tmp_path: Path, content: str) -> None:
    """S001-21: by create, by the bank, and through a change; the hash is that of the unchanged text."""
    Bank.init(tmp_path)
    with Bank.open(tmp_path) as bank:
        made = store(bank.records, content)
        added = bank.add(content, lane="records", title="Other", tags=["other"])
        changed = bank.append(added.id, content)
        assert (made.content, made.content_hash, made.remarks) == (content, content_hash(content), ())
        assert (added.text, added.remarks) == (content, ())
        assert (changed.text, changed.remarks) == (f"{content}\n\n{content}", ())
        assert content.encode() in Path(made.path).read_bytes()
        assert bank.records.validate() == []


def test_what_names_a_record_is_clean_and_says_so(records: RecordLane) -> None:
    record = store(records, subject="Er\u200brors", keywords=["er\u2028rors"])
    assert (record.subject, record.keywords) == ("Errors", ("er\nrors",))
    assert record.to_dict()["remarks"] == [
        "1 invisible or control characters were removed", "1 line separators became newlines",
    ]  # fmt: skip
    put = records.put(Draft("\u200bHidden \x1b[31mcolours in a message", created_at=records.clock()))
    assert (put.title, put.remarks) == ("Hidden colours in a message", ())


def test_a_secret_does_not_hide_between_characters_that_are_kept(tmp_path: Path) -> None:
    secret = "ghp_xK7pQ2mZ9wL4vB8nT1cR6yJ3sD5fG0hA2eU7"
    hidden = f"Use {secret[:9]}\u200b{secret[9:]} there."
    with pytest.raises(Refused):
        store(RecordLane(tmp_path / "a"), hidden)
    redacting = RecordLane(tmp_path / "b", guard=gate.Guard(secrets="redact"))
    kept = store(redacting, hidden).content
    assert (secret[9:] in kept, kept.startswith("Use "), kept.endswith(" there.")) == (False, True, True)


def test_a_user_may_refuse_what_nobody_sees(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="2 invisible or control"):
        store(RecordLane(tmp_path, guard=gate.Guard(characters="refuse")), "first\u2028second\u200b line")


# -- deduplication


def test_the_same_message_is_stored_once(records: RecordLane) -> None:
    """S001-29: the existing record comes back, whatever else was given."""
    first = store(records)
    assert store(records, subject="Other") == first
    assert len(tree(records.root)) == 1


def test_the_same_instant_in_another_time_zone_is_the_same_message(records: RecordLane) -> None:
    """S001-29"""
    assert store(records).id == store(records, occurred_at="2025-01-15T11:30:00+01:00").id


def test_the_same_content_at_another_time_is_another_record(records: RecordLane) -> None:
    """S001-30"""
    assert store(records).id != store(records, occurred_at="2025-01-15T10:30:01Z").id


def test_other_content_at_the_same_time_is_another_record(records: RecordLane) -> None:
    """S001-31"""
    assert store(records).id != store(records, TEXT + "!").id


def test_a_record_under_a_foreign_id_is_recognised(records: RecordLane) -> None:
    """S001-29: written by another tool, or under an id the caller chose."""
    first = store(records, id=str(uuid.UUID(int=5, version=4)))
    assert store(records).id == first.id
    assert RecordLane(records.root).create(TEXT, subject="s", keywords=["k"], occurred_at=WHEN).id == first.id


def test_deduplication_works_across_processes(records: RecordLane) -> None:
    """S001-32: four processes store the same message at once."""
    code = (
        "import sys; from memlane import RecordLane\n"
        f"print(RecordLane(sys.argv[1]).create({TEXT!r}, subject='s', keywords=['k'], occurred_at={WHEN!r}).id)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(records.root)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ids = {process.communicate()[0].strip() for process in processes}
    assert [f"{id}.md" for id in ids] == list(tree(records.root))


# -- lookup


def test_every_keyword_maps_to_the_record(records: RecordLane) -> None:
    """S001-35"""
    record = store(records, keywords=["Errors", "logging"])
    index = records.index()
    assert index["keywords"] == {"errors": [record.id], "logging": [record.id]}
    assert index["memories"][record.id]["subject"] == "Errors"


@pytest.mark.parametrize("query", ["errors", "ERRORS", "how do errors work", "erors"])
def test_a_record_is_found_by_its_keyword(records: RecordLane, query: str) -> None:
    """S001-36: in any case, among other words, and misspelt."""
    record = store(records, keywords=["Errors", "logging"])
    store(records, "something else entirely", keywords=["database"])
    assert [found.id for found in records.find(query)] == [record.id]


def test_listings_contain_the_subject(records: RecordLane) -> None:
    """S001-37"""
    store(records)
    assert [record.subject for record in records.list()] == ["Errors"]
    assert [record.to_dict()["subject"] for record in records.find("errors")] == ["Errors"]


def test_listings_are_newest_first_across_offsets(records: RecordLane) -> None:
    """S001-38"""
    times = ["2025-01-15T10:00:00Z", "2025-01-15T12:30:00+05:00", "2025-01-15T09:00:00-05:00"]
    for when in times:
        store(records, f"{TEXT} {when}", occurred_at=when)
    assert [record.occurred_at for record in records.list()] == [times[2], times[0], times[1]]


def test_listings_can_be_paged(records: RecordLane) -> None:
    """S001-38"""
    for hour in range(5):
        store(records, f"{TEXT} {hour}", occurred_at=f"2025-01-15T1{hour}:00:00Z")
    assert [record.occurred_at[11:13] for record in records.list(limit=2, offset=1)] == ["13", "12"]


def test_listing_and_search_can_be_limited_to_a_scope(records: RecordLane) -> None:
    """S001-39: the scope applies before the cut."""
    for number in range(12):
        store(records, f"{TEXT} {number}", occurred_at=f"2025-02-01T00:00:{number:02}Z")
    wanted = store(records, applies_to="area:db")
    assert [record.id for record in records.list(scope="area:db")] == [wanted.id]
    assert [record.id for record in records.find("errors", scope="area:db", limit=1)] == [wanted.id]


# -- reading what others wrote


@pytest.mark.parametrize("id", EXAMPLES)
def test_the_seeds_examples_are_read(records: RecordLane, id: str) -> None:
    """S001-40, S001-41: unquoted timestamps are ISO strings."""
    write_example(records.root, id)
    record = records.get(id)
    assert record is not None
    assert (record.subject, record.keywords, record.applies_to) == EXAMPLES[id]
    assert record.occurred_at == "2025-01-15T10:30:00Z"


def test_version_1_ids_are_read_but_reported(records: RecordLane) -> None:
    """S001-42"""
    for id in EXAMPLES:
        write_example(records.root, id)
    reports = [(problem.path.stem, problem.why) for problem in records.validate() if "UUID" in problem.why]
    assert reports == [(id, "id must be a version-4 UUID") for id in list(EXAMPLES)[1:]]
    assert len(records.list()) == 3


def test_a_wrong_hash_is_reported_and_read(records: RecordLane) -> None:
    id = next(iter(EXAMPLES))
    write_example(records.root, id)
    assert [problem.why for problem in records.validate()] == ["content_hash is not that of the content"]
    assert records.get(id) is not None


def test_hand_edited_keywords_and_subjects_take_effect(records: RecordLane) -> None:
    """S001-43"""
    record = store(records)
    path = Path(record.path)
    path.write_text(path.read_text().replace("- errors", "- mistakes").replace("subject: Errors", "subject: Mistakes"))
    assert [found.subject for found in records.find("mistakes")] == ["Mistakes"]
    assert records.find("zebra") == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("---\nid: [\n---\n\ntext", "front matter"),
        ("---\nid: x\nsubject: y\n---\n\ntext", "front matter has no keywords"),
        ("no front matter", "has no front matter; a record begins with ---"),
        ("", "has no front matter; a record begins with ---"),
    ],
)
def test_a_damaged_file_is_reported_and_hides_nothing(records: RecordLane, damage: str, why: str) -> None:
    """S001-44"""
    good = store(records)
    (records.root / "bad.md").write_text(damage)
    items = [item for path in records.files() for item in records.parse(str(path))]
    assert [item.path.name for item in items if isinstance(item, Problem) and item.why.startswith(why)] == ["bad.md"]
    assert [record.id for record in records.list()] == [good.id]


@pytest.mark.parametrize(
    "word",
    ["colon: here", "'quotes' \"both\"", "# hash", "- dash", "日本語", "1e5", "true", "null", "a: #b", "{x}", "@x"],
)
def test_awkward_subjects_and_keywords_survive(records: RecordLane, word: str) -> None:
    """S001-45"""
    store(records, subject=word, keywords=[word])
    record = RecordLane(records.root).list()[0]
    assert (record.subject, record.keywords) == (word, (word,))


def test_an_interrupted_write_leaves_no_half_file(records: RecordLane) -> None:
    """S001-52: what a killed writer leaves is a hidden temporary file, which nothing reads."""
    store(records)
    (records.root / ".memlane-123-abc.tmp").write_text("---\nid: half")
    assert len(records.list()) == 1
    assert records.validate() == []


def test_a_write_that_stops_half_way_leaves_no_record(records: RecordLane) -> None:
    """S001-52: the file has its name only when all of it is there."""
    code = """
        import resource, signal, sys
        from memlane import MemlaneError, RecordLane
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        lane = RecordLane(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
        try:
            lane.create("x" * 5000, subject="Errors", keywords=["errors"])
        except MemlaneError as error:
            print(error.code)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(records.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("storage\n", "")
    assert [name for name in tree(records.root) if name.endswith(".md")] == []


def test_records_in_sub_folders_are_reported(records: RecordLane) -> None:
    record = store(records)
    (records.root / "sub").mkdir()
    (records.root / "sub" / f"{record.id}.md").write_bytes(Path(record.path).read_bytes())
    assert [found.id for found in records.list()] == [record.id]
    assert [problem.path.parent.name for problem in records.validate()] == ["sub"]


def test_a_record_under_another_name_is_reported(records: RecordLane) -> None:
    """S001-01"""
    record = store(records)
    Path(record.path).rename(records.root / "renamed.md")
    assert [problem.why for problem in records.validate()] == ["id is not the file's name"]
    assert records.fetch("renamed").text == TEXT


def test_a_keyword_of_several_words_is_found(records: RecordLane) -> None:
    """S001-36"""
    record = store(records, keywords=["big red dog"])
    for query in ("big red dog", "dog", "Red"):
        assert [found.id for found in records.find(query)] == [record.id]


def test_an_edited_record_still_stands_for_its_message(records: RecordLane) -> None:
    """S001-33: capturing it again brings back neither the old text nor a second record."""
    id = store(records).id
    records.revise(id, {"text": "a better wording of it"})
    assert store(records).content == "a better wording of it"
    assert len(records.list()) == 1


def test_a_naive_time_is_utc(records: RecordLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert store(records, occurred_at=datetime(2025, 1, 1, 12)).occurred_at == "2025-01-01T12:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("fields", [{"keywords": [1]}, {"subject": 5}, {"occurred_at": 5}, {"thread": 5}])
def test_wrong_types_are_refused(records: RecordLane, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store(records, **fields)
    with pytest.raises(InvalidInput):
        store(records, None)  # type: ignore[arg-type]
    assert tree(records.root) == {}


# -- changing


def test_a_change_of_one_key_leaves_the_other_lines(records: RecordLane) -> None:
    path = Path(store(records, thread="s1").path)
    path.write_text(path.read_text().replace("subject: Errors", "subject: 'Errors'  # mine"))
    before = path.read_text()
    records.revise(path.stem, {"scope": "area:x"})
    assert path.read_text() == before.replace("applies_to: global", 'applies_to: "area:x"')
    assert records.revise(path.stem, {"thread": None}).thread is None
    assert "thread" not in path.read_text()


def test_a_revised_record_keeps_its_id_and_gets_a_new_hash(records: RecordLane) -> None:
    id = store(records).id
    path = records.root / f"{id}.md"
    path.write_text(path.read_text().replace("applies_to: global", "mine: 1  # kept\napplies_to: global"))
    memory = records.revise(id, {"text": "hello world"})
    assert (memory.id, memory.fields["content_hash"]) == (f"records:{id}", "b94d27b9934d3e08")
    assert "mine: 1  # kept" in path.read_text()
    assert [problem.why for problem in records.validate()] == []


def test_a_deleted_record_can_be_brought_back(records: RecordLane) -> None:
    id = store(records).id
    before = tree(records.root)
    records.drop(id)
    assert records.get(id) is None
    records.recover(id)
    assert tree(records.root) == before


def test_an_unknown_record_is_not_found(records: RecordLane) -> None:
    assert records.get("550e8400-e29b-41d4-a716-446655440000") is None
    with pytest.raises(NotFound):
        records.fetch("550e8400-e29b-41d4-a716-446655440000")


# -- the session of a record


def test_the_session_is_a_comment_below_the_six_keys(records: RecordLane) -> None:
    """S001-03: the front matter has the seed's six keys and no other."""
    record = store(records, thread='s1: "a"')
    text = Path(record.path).read_text()
    assert text.split("---\n")[1].splitlines()[-1] == '# thread: "s1: \\"a\\""'
    assert records.get(record.id) == record


def test_the_session_can_be_changed_and_taken_away(records: RecordLane) -> None:
    record = store(records, thread="s1")
    before = Path(record.path).read_text()
    assert records.revise(record.id, {"thread": "s2"}).thread == "s2"
    assert Path(record.path).read_text() == before.replace("# thread: s1", "# thread: s2")
    assert records.revise(record.id, {"thread": None}).thread is None
    assert Path(record.path).read_text() == before.replace("# thread: s1\n", "")


def test_a_session_that_somebody_wrote_as_a_key_is_read_and_stays_a_key(records: RecordLane) -> None:
    record = store(records)
    path = Path(record.path)
    path.write_text(path.read_text().replace("content_hash:", "thread: s1\ncontent_hash:"))
    assert records.fetch(record.id).thread == "s1"
    assert records.revise(record.id, {"thread": "s2"}).thread == "s2"
    assert 'thread: "s2"\ncontent_hash:' in path.read_text()
