"""Capture: which messages of a transcript become records, and that each becomes one only once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from conftest import Clock, tree
from memlane import Bank, InvalidInput, NotFound, RecordLane
from memlane.capture import transcript_file
from memlane.capture.messages import Captured, capture
from memlane.capture.scope import relative, scope_of
from memlane.core.front_matter import find_front, load_front
from memlane.lanes.records.record import Record, subject_of

TWO = "Errors extend AppError.\nThey carry a code."
CANARY = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    return Bank.init(tmp_path / "project")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def at(second: int) -> str:
    return f"2025-01-15T10:{second // 60:02}:{second % 60:02}.123Z"


def line(type: str, content: Any, second: int = 0, id: str = "", **keys: Any) -> str:
    message = {"role": type, "content": content, **({"id": id} if id else {})}
    whole = {"type": type, "timestamp": at(second), "sessionId": "s1", "message": message, **keys}
    return json.dumps(whole, ensure_ascii=False) + "\n"


def says(text: str, second: int = 0, id: str = "", **keys: Any) -> str:
    return line("assistant", [{"type": "text", "text": text}], second, id, **keys)


def edits(file: str, id: str = "", **keys: Any) -> str:
    return line("assistant", [{"type": "tool_use", "name": "Edit", "input": {"file_path": file}}], 0, id, **keys)


def asks(text: str = "Fix it") -> str:
    return line("user", text)


def write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(lines), encoding="utf-8")


def append(path: Path, *lines: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(lines)


def stored(bank: Bank) -> list[Record]:
    """All records, the oldest first."""
    return bank.records.list()[::-1]


def contents(bank: Bank) -> list[str]:
    return [record.content for record in stored(bank)]


# -- what is kept


def test_only_assistant_messages_of_two_lines_are_kept_whole(bank: Bank, path: Path) -> None:
    """S001-24, S001-25, S001-26, S001-27."""
    text = "  One line,\n\n    and another.  \n\n"
    lines = [asks("Two\nlines"), says("One line.", 1), says("\n  \nOne line.\n\n", 2), says(text, 3)]
    write(path, lines)
    result = capture(bank, path)
    assert contents(bank) == [text]
    assert (result.captured, result.known, result.refused, dict(result.skipped)) == (1, 0, 0, {"single_line": 2})
    assert result.ids == (f"records:{stored(bank)[0].id}",)


def test_a_record_says_when_it_was_said_and_what_it_is_about(bank: Bank, path: Path) -> None:
    """S001-17, S001-03: six keys; the session stands below them as a comment."""
    write(path, [asks(), says(TWO, 7)])
    capture(bank, path)
    (record,) = stored(bank)
    assert (record.occurred_at, record.subject, record.applies_to, record.thread) == (
        at(7),
        "Errors extend AppError.",
        "global",
        "s1",
    )
    text = Path(record.path).read_text()
    front = find_front(text)
    assert front is not None
    keys = list(load_front(text[front.start : front.end]))
    assert keys == ["id", "subject", "keywords", "applies_to", "occurred_at", "content_hash"]
    assert bank.get(f"records:{record.id}").thread == "s1"
    assert bank.problems() == []


def test_a_hundred_kilobytes_are_kept_in_full(bank: Bank, path: Path) -> None:
    """S001-28."""
    text = "A line about the queue and its workers.\n" * 2600
    write(path, [says(text)])
    capture(bank, path)
    assert contents(bank) == [text]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("\n\nFirst line\nsecond", "First line"),
        ("x" * 200 + "\nsecond", "x" * 200),
        ("x" * 201 + "\nsecond", "x" * 197 + "..."),
        ("エラー処理の方針\n詳細はこちら", "エラー処理の方針"),
        ("---\n```python\nprint(1)\n```", "print(1)"),
        ("**Done.**  All\ttests pass\nnow", "**Done.** All tests pass"),
    ],
)
def test_the_subject_is_the_first_line_that_says_something(text: str, subject: str) -> None:
    """S001-46."""
    assert subject_of(text) == subject


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The cache and the Cache.\nThe cache is warm in 2024.", "cache"),
        ("エラー処理の方針\n詳細はこちら", "エラー処理の方針"),
        ("Кэш прогрет.\nКэш быстрый.", "кэш"),
        (" ".join(f"word{number}" for number in range(40)) + "\nsecond", "word0"),
    ],
)
def test_keywords_are_the_most_frequent_words_in_any_script(bank: Bank, path: Path, text: str, first: str) -> None:
    """S001-47."""
    write(path, [says(text)])
    capture(bank, path)
    words = stored(bank)[0].keywords
    assert words[0] == first
    assert 1 <= len(words) <= 20
    assert all(1 <= len(word) <= 50 for word in words)
    assert not {"the", "and", "is"} & set(words)


def test_a_message_that_cannot_be_a_record_does_not_stop_the_others(bank: Bank, path: Path) -> None:
    """S001-48."""
    broken = says("? broken\ntext of two lines", 2).replace("?", "\\ud800")  # half of a pair, as some clients cut
    write(path, [says("a\nb", 1), broken, says("---\n***\n=====", 3), says(TWO, 4)])
    assert dict(capture(bank, path).skipped) == {"invalid": 3}
    assert contents(bank) == [TWO]


def test_a_message_without_a_time_is_skipped(bank: Bank, path: Path) -> None:
    """R-15: a clock value would make it another message each time."""
    lines = [json.loads(says(TWO, 1)) for _ in range(3)]
    lines[0].pop("timestamp")
    lines[1]["timestamp"] = "yesterday"
    write(path, (json.dumps(whole) + "\n" for whole in lines))
    assert dict(capture(bank, path).skipped) == {"no_timestamp": 2}
    assert contents(bank) == [TWO]


def test_what_is_not_the_assistants_word_to_the_user_is_never_kept(bank: Bank, path: Path) -> None:
    """S001-49."""
    write(
        path,
        [
            line("assistant", [{"type": "thinking", "thinking": TWO}], 1),
            line("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": TWO}}], 2),
            line("user", [{"type": "tool_result", "content": TWO}], 3),
            says(TWO, 4, isSidechain=True),
            says(TWO, 5, isApiErrorMessage=True),
            says(TWO, 6, isMeta=True),
            line("user", TWO, 7, isCompactSummary=True),
            line("user", f"<command-name>/clear</command-name>\n{TWO}", 8),
            json.dumps({"type": "summary", "summary": TWO, "leafUuid": "x"}) + "\n",
            json.dumps({"type": "system", "subtype": "compact_boundary", "content": TWO, "sessionId": "s1"}) + "\n",
            "not json\n",
            "42\n",
            "\n",
        ],
    )
    result = capture(bank, path)
    assert stored(bank) == []
    assert dict(result.skipped) == {"sidechain": 1, "error": 1, "meta": 1, "unreadable": 2}


def test_a_subagents_line_without_text_is_not_counted(bank: Bank, path: Path) -> None:
    write(path, [asks(), edits("/app/a.py", isSidechain=True), says(TWO, 1)])
    result = capture(bank, path)
    assert (result.captured, dict(result.skipped)) == (1, {})


# -- what one message is


def test_the_blocks_of_one_message_are_one_record(bank: Bank, path: Path) -> None:
    """Blocks share a message id; tools answer, and subagents speak, between them."""
    write(
        path,
        [
            asks(),
            says("First block.", 1, "m1"),
            edits("/app/a.py", "m1"),
            line("user", [{"type": "tool_result", "content": "ok"}]),
            says("A subagent\nspeaks.", 2, "m9", isSidechain=True),
            says("Second block.", 3, "m1"),
            says("Another message,\nof its own.", 4, "m2"),
        ],
    )
    capture(bank, path)
    assert [(record.content, record.occurred_at) for record in stored(bank)] == [
        ("First block.\nSecond block.", at(1)),
        ("Another message,\nof its own.", at(4)),
    ]


def test_a_message_that_is_written_again_while_it_grows_is_one_record(bank: Bank, path: Path) -> None:
    parts = ["Errors", "Errors extend AppError.\nThey", TWO, TWO]
    write(path, [says(text, 1, "m1") for text in parts])
    capture(bank, path)
    assert contents(bank) == [TWO]


def test_a_message_that_grew_between_two_captures_takes_the_place_of_its_first_half(bank: Bank, path: Path) -> None:
    write(path, [asks(), says(TWO, 1, "m1")])
    capture(bank, path)
    append(path, says("And a hint.", 2, "m1"))
    assert capture(bank, path).captured == 1
    assert contents(bank) == [f"{TWO}\nAnd a hint."]
    assert [removed.how for removed in bank.removed()] == ["trash"]
    append(path, asks(), says("Something else,\nlater.", 3, "m2"))
    assert capture(bank, path).captured == 1
    assert len(stored(bank)) == 2


# -- what it applies to


def test_the_scope_is_the_one_file_that_the_turn_changed(bank: Bank, path: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "project" / "src" / "auth.py")
    other = str(tmp_path / "project" / "src" / "cache.py")
    write(
        path,
        [
            asks(),
            edits(file, "m1"),
            edits(file, "m2"),
            says("Mended.\nTests pass.", 1, "m3"),
            asks(),
            edits(file, "m4"),
            edits(other, "m5"),
            says("Mended both.\nTests pass.", 2, "m6"),
            asks(),
            says("Nothing to do.\nAll is well.", 3, "m7"),
            asks(),
            edits("/elsewhere/x.py", "m8"),
            says("Outside.\nNo path of this machine.", 4, "m9"),
        ],
    )
    capture(bank, path)
    assert [record.applies_to for record in stored(bank)] == ["file:src/auth.py", "global", "global", "global"]


def test_the_scope_is_known_when_the_turn_was_read_in_two_parts(bank: Bank, path: Path) -> None:
    write(path, [asks(), edits("/app/src/auth.py", "m1", cwd="/app")])
    capture(bank, path)
    append(path, says(TWO, 1, "m2"))
    capture(bank, path)
    assert [record.applies_to for record in stored(bank)] == ["file:src/auth.py"]


@pytest.mark.parametrize(
    ("text", "changed", "scope"),
    [
        ("Fixed it.", ["src/a.py"], "file:src/a.py"),
        ("Fixed it in src/a.py.", ["b.py", "c.py"], "global"),
        ("The bug was in `src/api/auth.ts`, at line 3.", [], "file:src/api/auth.ts"),
        ("See the note in auth.ts.", [], "file:auth.ts"),
        ("Both in a1.py and in b1.py.", [], "global"),
        ("It runs in Node.js and at example.com.", [], "global"),
        ("It is in /home/me/app/x.py now.", [], "global"),
        ("The pool in the database layer was too small.", [], "area:database"),
        ("Used in the auth module and in the cache module.", [], "global"),
        ("It holds for the following module.", [], "global"),
        ("Ошибка in the Платежи service.", [], "area:платежи"),
        ("Just words.", [], "global"),
    ],
)
def test_the_scope_of_a_text(text: str, changed: list[str], scope: str) -> None:
    assert scope_of(text, changed) == scope


@pytest.mark.parametrize(
    ("name", "cwd", "path"),
    [
        ("/app/src/a.py", "/app", "src/a.py"),
        ("src/a.py", "/app", "src/a.py"),
        ("a.py", "/app/src", "src/a.py"),
        ("/app/src/../a.py", "", "a.py"),
        ("/other/a.py", "/other", "a.py"),
        ("/other/a.py", "/app", ""),
        ("../a.py", "", ""),
        ("~/a.py", "", ""),
        ("C:\\work\\src\\a.py", "C:\\work", "src/a.py"),
        ("C:\\else\\a.py", "C:\\work", ""),
        ("", "/app", ""),
    ],
)
def test_paths_are_those_of_the_project(name: str, cwd: str, path: str) -> None:
    assert relative(name, Path("/app"), cwd) == path


# -- again and again


def test_a_second_capture_adds_nothing(bank: Bank, path: Path) -> None:
    """S001-33; also when what was remembered of the transcript is deleted."""
    write(path, [asks(), says(TWO, 1, "m1"), asks(), says("Something else,\nlater.", 2, "m2")])
    assert capture(bank, path).captured == 2
    before = tree(bank.records.root)
    assert capture(bank, path).captured == 0
    for file in (bank.root / "indices" / "capture").iterdir():
        file.unlink()
    again = capture(bank, path)
    assert (again.captured, again.known) == (0, 2)
    assert tree(bank.records.root) == before


def test_a_transcript_that_grew_adds_only_what_is_new(bank: Bank, path: Path) -> None:
    """S001-34; the part that was read is not read again."""
    write(path, [asks(), says(TWO, 1, "m1"), asks(), says("Something else,\nlater.", 2, "m2")])
    capture(bank, path)
    append(path, asks(), says("The newest\nof all.", 3, "m3"))
    result = capture(bank, path)
    assert (result.captured, result.known) == (1, 1)
    assert contents(bank) == [TWO, "Something else,\nlater.", "The newest\nof all."]


def test_half_a_line_waits_for_its_other_half(bank: Bank, path: Path) -> None:
    last = says("The newest\nof all.", 2, "m2")
    write(path, [says(TWO, 1, "m1"), last[:60]])
    assert capture(bank, path).captured == 1
    append(path, last[60:])
    assert capture(bank, path).captured == 1
    assert contents(bank) == [TWO, "The newest\nof all."]


def test_a_last_line_without_a_line_end_is_read_when_it_is_whole(bank: Bank, path: Path) -> None:
    write(path, [asks(), says(TWO, 1).rstrip("\n")])
    assert capture(bank, path).captured == 1
    append(path, "\n", says("The newest\nof all.", 2))
    assert capture(bank, path).captured == 1


def test_a_transcript_that_was_cut_or_replaced_is_read_anew(bank: Bank, path: Path) -> None:
    write(path, [asks(), *(says(f"Message {number}\nof many.", number) for number in range(5))])
    capture(bank, path)
    write(path, [asks("Another"), says("Short\nnow.", 9)])
    assert capture(bank, path).captured == 1
    write(path, [asks("Yet another"), *(says(f"Other {number}\nof many.", 20 + number) for number in range(9))])
    assert capture(bank, path).captured == 9
    assert len(stored(bank)) == 15


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"offset": "x"}', '{"print": "", "offset": 5}'])
def test_damage_in_what_was_remembered_does_not_matter(bank: Bank, path: Path, damage: str) -> None:
    write(path, [says(TWO, 1)])
    capture(bank, path)
    (memo,) = (bank.root / "indices" / "capture").iterdir()
    memo.write_text(damage)
    assert capture(bank, path).known == 1


def test_what_is_remembered_of_a_transcript_stays_out_of_git(bank: Bank, path: Path) -> None:
    write(path, [says(TWO, 1)])
    capture(bank, path)
    assert (bank.root / "indices" / ".gitignore").read_text() == "*\n"
    assert bank.problems() == []


def test_a_message_that_was_deleted_or_archived_does_not_come_back(bank: Bank, path: Path, tmp_path: Path) -> None:
    write(path, [says(TWO, 1), says("The newest\nof all.", 2)])
    first, second = capture(bank, path).ids
    bank.delete(first)
    bank.records.archive(second.removeprefix("records:"))
    copy = tmp_path / "resumed.jsonl"  # clients copy the messages of a session that is resumed
    copy.write_bytes(path.read_bytes())
    assert (capture(bank, copy).captured, stored(bank)) == (0, [])
    assert [removed.id for removed in bank.removed()] == [first]
    assert [memory.id for memory in bank.list(status="archived")] == [second]
    bank.restore(second)
    assert contents(bank) == ["The newest\nof all."]


def test_two_captures_at_once_store_each_message_once(bank: Bank, path: Path) -> None:
    write(path, [says(f"Message {number}\nof many.", number) for number in range(40)])
    code = (
        "import sys; from memlane.bank import Bank; from memlane.capture.messages import capture;"
        "print(capture(Bank.open(sys.argv[1]), sys.argv[2]).captured)"
    )
    command = [sys.executable, "-c", code, str(bank.config.project), str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    counts = [int(process.communicate()[0]) for process in running]
    assert sum(counts) == len(stored(bank)) == 40
    assert capture(bank, path).captured == 0


def test_a_dry_run_writes_nothing(bank: Bank, path: Path) -> None:
    write(path, [asks(), says(TWO, 1), says(f"The token is\n{CANARY}", 2)])
    before = tree(bank.root)
    result = capture(bank, path, dry_run=True)
    assert tree(bank.root) == before
    assert (result.captured, result.refused) == (1, 1)
    assert result.records[0][1:] == (at(1), "global", "Errors extend AppError.")
    assert capture(bank, path).ids == result.ids


def test_when_time_is_up_the_next_capture_goes_on(bank: Bank, path: Path) -> None:
    write(path, [says(f"Message {number}\nof many.", number) for number in range(5)])
    rounds = 0
    while not capture(bank, path, seconds=0).complete:
        rounds += 1
    assert rounds > 1
    assert len(stored(bank)) == 5


# -- size


def test_a_line_that_is_too_long_is_passed_over(bank: Bank, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_file, "MAX_LINE", 1000)
    long = line("user", "x" * 5000)
    write(path, [asks(), long, says(TWO, 1), says("x" * 5000 + TWO, 2), long[:3000]])
    assert dict(capture(bank, path).skipped) == {"too_long": 2}
    assert contents(bank) == [TWO]
    append(path, long[3000:], says("The newest\nof all.", 3))
    assert dict(capture(bank, path).skipped) == {"too_long": 2}
    assert contents(bank) == [TWO, "The newest\nof all."]


# -- the gate


def test_what_the_gate_refuses_is_counted_and_leaves_no_trace(bank: Bank, path: Path) -> None:
    write(path, [asks(), says(f"The token is\n{CANARY}", 1), edits(f"/app/{CANARY}.py", cwd="/app"), says(TWO, 2)])
    result = capture(bank, path)
    assert (result.captured, result.refused) == (1, 1)
    assert CANARY not in json.dumps(result.to_dict())
    assert not any(CANARY.encode() in data or CANARY.lower().encode() in data for data in tree(bank.root).values())


def test_a_secret_in_a_folder_or_a_session_is_not_remembered(bank: Bank, path: Path) -> None:
    write(path, [asks(), says(TWO, 1, cwd=f"/app/{CANARY}", sessionId=CANARY)])
    assert (capture(bank, path).captured, stored(bank)[0].content) == (1, TWO)
    assert not any(CANARY.encode() in data for data in tree(bank.root).values())


def test_what_the_gate_redacts_is_not_in_subject_or_keywords_either(bank: Bank, path: Path) -> None:
    write(path, [says(f"{'x ' * 90}{CANARY}\n{CANARY}", 1)])
    with Bank.open(bank.config.project, gate__secrets="redact") as redacting:
        assert capture(redacting, path).captured == 1
    assert not any(CANARY[:12].lower().encode() in data.lower() for data in tree(bank.root).values())


# -- memory does not feed on itself


def injected(records: Iterable[Record]) -> str:
    """A block as it is put into a prompt."""
    items = "".join(
        f"- records:{record.id}\n    " + record.content.replace("\n", "\n    ") + "\n" for record in records
    )
    return f"<memlane-context>\nRemembered earlier.\n{items}</memlane-context>"


def hook(text: str) -> str:
    attachment = {"type": "hook_additional_context", "content": [text], "hookEvent": "UserPromptSubmit"}
    return json.dumps({"type": "attachment", "sessionId": "s1", "attachment": attachment}) + "\n"


def test_ten_rounds_of_injected_and_echoed_memory_add_only_what_is_new(bank: Bank, path: Path) -> None:
    write(path, [])
    for turn in range(10):
        block = injected(stored(bank))
        inner = "\n".join(block.splitlines()[1:-1])
        new = f"New insight {turn}:\nthe answer is {turn * 7}."
        append(
            path,
            hook(block),
            asks(f"{block}\nWhat do you know?"),
            says(f"Here is what I remember:\n{block}", 100 * turn + 1, f"a{turn}"),
            says(f"> {block}".replace("\n", "\n> "), 100 * turn + 2, f"b{turn}"),
            says(f"I remember:\n{inner}", 100 * turn + 3, f"c{turn}"),
            says(block.replace("<", "&lt;").replace(">", "&gt;"), 100 * turn + 4, f"d{turn}"),
            says(new, 100 * turn + 5, f"e{turn}"),
        )
        result = capture(bank, path)
        assert result.captured == 1
        assert len(stored(bank)) == turn + 1
    assert contents(bank) == [f"New insight {turn}:\nthe answer is {turn * 7}." for turn in range(10)]


def test_ten_rounds_with_the_banks_own_context(bank: Bank, path: Path) -> None:
    bank.vault.add_memory("Deploys go out on Tuesdays", "shared", "process", tier="canon")
    write(path, [])
    for turn in range(10):
        block = bank.snapshot(recent=5) + bank.context("insight about the deploy answer")
        append(path, hook(block), asks("And?"), says(block, 10 * turn + 1, f"a{turn}"))
        append(path, says(f"Insight {turn} about the deploy:\nthe answer is {turn}.", 10 * turn + 2, f"b{turn}"))
        assert capture(bank, path).captured == 1
    assert len(stored(bank)) == 10


def wrapped(lines: list[str]) -> str:
    return textwrap.fill(" ".join(lines), 40)


ECHOES: dict[str, Callable[[list[str], int], str]] = {
    "numbered": lambda lines, _: "\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1)),
    "table": lambda lines, _: "| known |\n|---|\n" + "\n".join(f"| {line} |" for line in lines),
    "fenced": lambda lines, _: "\n".join(("```text", *lines, "```")),
    "wrapped": lambda lines, _: wrapped(lines),
    "joined": lambda lines, turn: f"From memory, in round {turn}: {' '.join(lines)}\nNo more in round {turn}.",
    "halved": lambda lines, _: "\n".join(line[: len(line) // 2] for line in lines),
    "framed": lambda lines, turn: "\n".join((f"Round {turn}, as I know it:", *lines, f"Shall we go on with {turn}?")),
    "japanese": lambda lines, turn: f"{turn}回目:\n" + "".join(lines).replace(" ", ""),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_memory_in_other_clothes_is_not_captured_round_after_round(bank: Bank, path: Path, echo: str) -> None:
    """However an answer lays out what it was shown, the bank does not fill up with copies of it."""
    if echo == "japanese":
        bank.add(
            "配備は毎週火曜日に、検証環境での試験が通った後、公開用の枝から行う。\n検証用の記録は月曜の夜に消される。"
        )
    else:
        bank.add(
            "Deploys go out on Tuesdays, from the release branch, after the tests have passed on staging.\n\n"
            "The staging database is reset every Monday night by a job that nobody owns."
        )
    write(path, [])
    for turn in range(4):
        block = bank.snapshot(recent=5)
        lines = [line.strip() for line in block.splitlines() if line.startswith("  ")]
        append(path, hook(block), asks(), says(ECHOES[echo](lines, turn), 10 * turn, f"a{turn}"))
        capture(bank, path)
    assert contents(bank) == []


def test_many_blank_lines_do_not_take_long(bank: Bank, path: Path) -> None:
    text = "First." + "\n" * 300_000 + "Last."
    write(path, [says(text, 1)])
    assert capture(bank, path).captured == 1


def test_what_was_recalled_by_a_tool_is_memory_too(bank: Bank, path: Path) -> None:
    bank.add("Deploys go out on Tuesdays, from the release branch.\n\nStaging is reset on Monday night.")
    answer = json.dumps({"block": bank.context("when do deploys go out?"), "ids": ["notes:x"]})
    result = line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": answer}])
    again = "Deploys go out on Tuesdays, from the release branch.\nStaging is reset on Monday night."
    write(path, [asks(), result, says(again, 1), says("It is Tuesday today.\nSo I have deployed it.", 2)])
    assert dict(capture(bank, path).skipped) == {"injected": 1}
    assert contents(bank) == ["It is Tuesday today.\nSo I have deployed it."]


def test_an_answer_that_only_mentions_what_was_remembered_is_kept(bank: Bank, path: Path) -> None:
    write(
        path, [hook(f"<memlane-context>\n{TWO}\n</memlane-context>"), asks(), says(f"{TWO}\nSo I did.\nIt works.", 1)]
    )
    assert capture(bank, path).captured == 1


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (
            "Backups are kept for 1 day.\nThey lie in the bucket.",
            "Backups are kept for 2 days.\nThey lie in the bucket.",
        ),
        ("Deploys go out on Tuesdays.\nStaging is reset.", "Deploys go out on Thursdays.\nStaging is reset."),
        ("The cache lives on db1 for one hour.", "The cache lives on db2\nfor one hour."),
        ("The old API is stable.\nUse it.", "The old API is not stable.\nUse it."),
        ("We do not retry payments.\nThey are queued.", "We do retry payments.\nThey are queued."),
    ],
)
def test_a_corrected_answer_is_kept_though_it_shares_most_words_with_what_was_shown(
    bank: Bank, path: Path, shown: str, said: str
) -> None:
    block = f"<memlane-context>\n{shown}\n</memlane-context>"
    write(path, [hook(block), asks(), says(said, 1), says(f"As I know:\n{shown}", 2)])
    assert (capture(bank, path).captured, contents(bank)) == (1, [said])


# -- other transcripts


def test_a_codex_rollout(bank: Bank, path: Path) -> None:
    def item(second: int, **payload: Any) -> str:
        return json.dumps({"timestamp": at(second), "type": "response_item", "payload": payload}) + "\n"

    patch = "*** Begin Patch\n*** Update File: src/a.py\n*** End Patch"
    meta = {"id": "r1", "cwd": "/app", "source": "cli"}
    event = {"type": "agent_message", "message": TWO}
    write(
        path,
        [
            json.dumps({"timestamp": at(0), "type": "session_meta", "payload": meta}) + "\n",
            item(1, type="message", role="user", content=[{"type": "input_text", "text": "Fix\nit"}]),
            item(2, type="custom_tool_call", name="apply_patch", input=patch),
            item(3, type="message", role="assistant", content=[{"type": "output_text", "text": TWO}]),
            json.dumps({"timestamp": at(3), "type": "event_msg", "payload": event}) + "\n",
        ],
    )
    capture(bank, path)
    (record,) = stored(bank)
    assert (record.content, record.occurred_at, record.thread, record.applies_to) == (TWO, at(3), "r1", "file:src/a.py")


def test_a_subagents_rollout_stays_aside_when_it_grows(bank: Bank, path: Path) -> None:
    meta = {"id": "r1", "source": {"subagent": "review"}}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TWO}]}
    write(path, [json.dumps({"timestamp": at(0), "type": "session_meta", "payload": meta}) + "\n"])
    capture(bank, path)
    append(path, json.dumps({"timestamp": at(1), "type": "response_item", "payload": said}) + "\n")
    assert dict(capture(bank, path).skipped) == {"sidechain": 1}


def test_a_gemini_chat_whose_messages_are_written_again(bank: Bank, path: Path) -> None:
    said = {"id": "m2", "timestamp": at(2), "type": "gemini", "content": TWO}
    lines = [
        {"sessionId": "g1", "projectHash": "x", "startTime": at(0), "kind": "main"},
        {"id": "m1", "timestamp": at(1), "type": "user", "content": [{"text": "Fix\nit"}]},
        said,
        {"$set": {"lastUpdated": at(3)}},
        {**said, "toolCalls": [{"name": "read_file", "args": {}}]},
    ]
    write(path, (json.dumps(whole) + "\n" for whole in lines))
    capture(bank, path)
    assert [(record.content, record.thread) for record in stored(bank)] == [(TWO, "g1")]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shape", ["older", "list", "messages"])
def test_transcripts_that_are_one_json_document(bank: Bank, path: Path, shape: str, indent: int | None) -> None:
    messages = [
        {"role": "user", "content": "Fix\nit", "timestamp": at(0)},
        {"role": "assistant", "content": TWO, "timestamp": at(1)},
    ]
    shapes: dict[str, Any] = {
        "older": {"transcript": messages, "session_id": "s1", "working_directory": "/app"},
        "list": messages,
        "messages": {"sessionId": "g1", "messages": messages},
    }
    path.write_text(json.dumps(shapes[shape], indent=indent))
    assert capture(bank, path).captured == 1
    assert capture(bank, path).captured == 0
    messages.append({"role": "assistant", "content": "The newest\nof all.", "timestamp": at(2)})
    path.write_text(json.dumps(shapes[shape], indent=indent))
    assert capture(bank, path).captured == 1
    assert contents(bank) == [TWO, "The newest\nof all."]


def test_a_lane_by_itself_captures_too(tmp_path: Path, path: Path, clock: Clock) -> None:
    lane = RecordLane(tmp_path / "records", clock=clock)
    write(path, [says(TWO, 1)])
    assert lane.capture(path).captured == 1
    assert (lane.capture(path).known, len(lane.list())) == (1, 1)


def test_what_is_no_transcript_is_an_error(bank: Bank, path: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        capture(bank, tmp_path / "none.jsonl")
    with pytest.raises(InvalidInput):
        capture(bank, tmp_path)
    path.write_bytes(b"# A readme\n\xff\xfe\n")
    with pytest.raises(InvalidInput):
        capture(bank, path)
    with pytest.raises(InvalidInput):
        capture(bank, path, kind="word")
    assert not (bank.root / "indices" / "capture").exists()


def test_an_empty_transcript_is_none(bank: Bank, path: Path) -> None:
    path.write_text("")
    assert capture(bank, path) == Captured()


def test_a_pipe_is_not_waited_for(bank: Bank, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput):
        capture(bank, tmp_path / "pipe")


def test_capture_needs_none_of_the_heavy_modules(bank: Bank, path: Path) -> None:
    """It runs at the end of every turn. What it stores goes into the journal, so that it needs SQLite then."""
    write(path, [asks(), says(TWO, 1)])
    code = (
        "import sys; from memlane.bank import Bank; from memlane.capture.messages import capture;"
        "capture(Bank.open(sys.argv[1]), sys.argv[2]); capture(Bank.open(sys.argv[1]), sys.argv[2]);"
        "heavy = {'numpy', 'yaml', 'mcp', 'pydantic', 'memlane.recall.blocks', 'memlane.lanes.vault.store'};"
        "print(*heavy & {*sys.modules})"
    )
    command = [sys.executable, "-c", code, str(bank.config.project), str(path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "\n"


# -- retention


def test_records_are_kept_for_ever_by_default(bank: Bank) -> None:
    assert (bank.config["capture.keep_days"], bank.config["capture.keep_count"]) == (0, 0)
    assert bank.records.prune() == []


def test_records_that_are_too_old_or_too_many_go_to_the_archive(tmp_path: Path, clock: Clock) -> None:
    lane = RecordLane(tmp_path / "records", clock=clock)
    for day in range(1, 7):
        fields: dict[str, Any] = {
            "subject": f"Day {day}",
            "keywords": ["day"],
            "occurred_at": f"2025-01-0{day}T12:00:00Z",
        }
        lane.create(f"What was said on day {day}.", **fields)
    before = tree(tmp_path)
    proposed = [(record.subject, why) for record, why in lane.prune(keep_days=7, keep_count=3, dry_run=True)]
    assert proposed == [
        ("Day 1", "older than 7 days"),
        ("Day 2", "older than 7 days"),
        ("Day 3", "older than 7 days"),
    ]
    assert tree(tmp_path) == before
    moved = lane.prune(keep_days=7, keep_count=2)
    assert [record.subject for record in lane.list()] == ["Day 6", "Day 5"]
    assert moved[-1][1] == "beyond the newest 2"
    assert sorted(tree(tmp_path).values()) == sorted(before.values())
    for record, _ in moved:
        lane.recover(record.id)
    assert tree(tmp_path) == before


# -- the command line


def run(bank: Bank, *args: object) -> subprocess.CompletedProcess[str]:
    code = "from memlane.surfaces.cli import main; main()"
    command = [sys.executable, "-c", code, "--bank", str(bank.config.project), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_prints_what_was_captured(bank: Bank, path: Path) -> None:
    write(path, [asks(), says("One line.", 1), says(TWO, 2), says(f"The token is\n{CANARY}", 3)])
    shown = run(bank, "capture", path, "--dry-run")
    assert (shown.returncode, shown.stderr) == (
        0,
        "1 would be captured; 1 refused by the gate; skipped: 1 single line\n",
    )
    assert stored(bank) == []
    done = run(bank, "capture", path, "--json")
    (record,) = stored(bank)
    assert json.loads(done.stdout) == {
        "captured": 1,
        "known": 0,
        "refused": 1,
        "skipped": {"single_line": 1},
        "complete": True,
        "ids": [f"records:{record.id}"],
        "records": [
            {
                "id": f"records:{record.id}",
                "occurred_at": at(2),
                "applies_to": "global",
                "subject": "Errors extend AppError.",
            }
        ],
    }
    assert shown.stdout == f"records:{record.id}\t{at(2)}\tglobal\tErrors extend AppError.\n"


def test_a_bad_transcript_among_others_is_named_and_the_others_are_captured(bank: Bank, path: Path) -> None:
    write(path, [says(TWO, 2)])
    result = run(bank, "capture", "none.jsonl", path)
    assert (result.returncode, result.stderr) == (3, "error: There is no transcript none.jsonl.\n1 captured\n")
    assert contents(bank) == [TWO]


def test_retain_shows_a_plan_and_applies_it_on_request(bank: Bank, path: Path) -> None:
    write(path, [says(f"Message {number}\nof many.", number) for number in range(3)])
    ids = capture(bank, path).ids
    assert run(bank, "records", "retain").stdout == ""
    shown = run(bank, "records", "retain", "--count", 1)
    assert [row.split("\t")[:3] for row in shown.stdout.splitlines()] == [
        [ids[0], "archive", "beyond the newest 1"],
        [ids[1], "archive", "beyond the newest 1"],
    ]
    assert len(stored(bank)) == 3
    done = json.loads(run(bank, "--set", "capture.keep_count=1", "records", "retain", "--apply", "--json").stdout)
    assert (done["applied"], [step["id"] for step in done["steps"]]) == (True, [*ids[:2]])
    assert contents(bank) == ["Message 2\nof many."]
