"""`memlane review --only unconfirmed`: what was distilled is decided on, one by one, by single keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.care.distilled import store
from terminals import on_terminal

TEXTS = (
    "The importer fails because SQLite does not support DROP CONSTRAINT.",
    "Payments must never be retried, since the provider is not idempotent.",
    "Staging is reset on Monday nights by a job of the build server.",
)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    made = (
        Candidate(text, "lesson", 0.9 - number / 10, "s1", "2026-03-04", (3,), (), (), "assistant", {})
        for number, text in enumerate(TEXTS)
    )
    store(bank, made)
    return bank


def left(bank: Bank) -> dict[str, tuple[str, ...]]:
    return {memory.text.strip(): memory.tags for memory in bank.list()}


def test_each_key_does_what_it_says(bank: Bank, tmp_path: Path) -> None:
    shown = on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"krx")
    assert left(bank) == {TEXTS[0]: ("lesson",), TEXTS[1]: ("rule", "pinned", "lesson")}
    assert "1/3" in shown
    assert "said on 2026-03-04, session s1, line 3, confidence 0.9" in shown
    assert shown.rstrip().endswith("1 kept, 1 made a rule, 1 rejected")


def test_quit_and_skip_leave_the_rest_as_it_is(bank: Bank, tmp_path: Path) -> None:
    shown = on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"?sq")
    assert left(bank) == dict.fromkeys(TEXTS, ("lesson", "unconfirmed"))
    assert shown.rstrip().endswith("1 skipped")


def test_edit_opens_the_editor_and_confirms(bank: Bank, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/importer/loader/" "$1"\n')
    editor.chmod(0o755)
    on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"eq", env={"EDITOR": str(editor)})
    assert left(bank)[TEXTS[0].replace("importer", "loader")] == ("lesson",)


def test_merge_adds_the_text_to_the_memory_that_is_most_like_it(bank: Bank, tmp_path: Path) -> None:
    note = bank.add("The importer of the shop fails because SQLite does not support DROP CONSTRAINT at all.")
    on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"myq")
    assert TEXTS[0] not in left(bank)
    assert bank.get(note.id).text.strip().endswith(TEXTS[0])


def test_where_nothing_is_alike_another_key_is_asked_for(bank: Bank, tmp_path: Path) -> None:
    shown = on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"mkq")
    assert "nothing is much like it" in shown
    assert left(bank)[TEXTS[0]] == ("lesson",)


def test_a_key_that_does_nothing_is_answered(bank: Bank, tmp_path: Path) -> None:
    shown = on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"zkq")
    assert "that key does nothing here: one of k, " in shown
    assert left(bank)[TEXTS[0]] == ("lesson",)


def test_a_key_lets_it_take_the_place_of_what_it_contradicts_both_being_shown(bank: Bank, tmp_path: Path) -> None:
    note = bank.add("Staging is reset on Friday nights by a job of the build server.", created_at="2026-01-01")
    said = TEXTS[2].replace("Monday", "Sunday")
    store(bank, [Candidate(said, "lesson", 0.9, "s2", "2026-03-05", (), (), (), "", {})])
    shown = on_terminal("review", "--only", "unconfirmed", cwd=tmp_path, typed=b"tq")
    assert f"[t] it takes the place of {note.id}, which says:" in shown
    assert note.text.strip() in shown
    assert "Sunday" in bank.get(bank.get(note.id).superseded_by or "").text
    bank.undo()
    assert bank.get(note.id).superseded_by is None


def test_programs_decide_by_the_same_keys(bank: Bank, run: Run) -> None:
    first, second, third = (memory["id"] for memory in run("review", "--only", "unconfirmed", "--json").json)
    assert run("review", "--only", "unconfirmed", "--key", "k", first).err == f"kept: {first}\n"
    assert run("review", "--only", "unconfirmed", "--key", "x", second, third, "--json").json == {
        "rejected": [second, third]
    }
    assert left(bank) == {TEXTS[0]: ("lesson",)}
    assert run("review", "--only", "unconfirmed", "--key", "k", first).code == 2
    assert run("review", "--only", "unconfirmed", "--key", "k").code == 2
    assert run("review", "--key", "k", first).code == 2


def test_get_shows_the_evidence(bank: Bank, run: Run) -> None:
    [first, *_] = (memory["id"] for memory in run("review", "--only", "unconfirmed", "--json").json)
    assert "said on 2026-03-04, session s1, line 3, confidence 0.9" in run("get", first).err


def test_programs_get_a_list(bank: Bank, run: Run) -> None:
    result = run("review", "--only", "unconfirmed")
    assert [line.split("\t")[1:] for line in result.out.splitlines()] == [["lesson", text] for text in TEXTS]
    assert result.err == "to be confirmed: 3; in a terminal, a key decides on each, and so does --key\n"
    told = run("review", "--only", "unconfirmed", "--json").json
    assert [(one["text"].strip(), one["fields"]["confidence"]) for one in told] == list(
        zip(TEXTS, (0.9, 0.8, 0.7), strict=True)
    )


def test_it_stands_alone(bank: Bank, run: Run) -> None:
    assert run("review", "--only", "unconfirmed", "--apply").code == 2
