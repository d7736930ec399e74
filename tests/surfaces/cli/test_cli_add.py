"""`memlane add`, `update` and `append`, in every lane."""

from __future__ import annotations

import pytest

from commands import Run
from memlane import Bank
from samples import LANES, draft


def test_text_can_be_piped_in(run: Run, bank: Bank) -> None:
    run("add", "-", "--title", "a", stdin="first\n")
    run("append", "a", "-", stdin="second\n")
    run("add", "--title", "b", stdin="no dash needed")
    assert [bank.get("a").text, bank.get("b").text] == ["first\n\nsecond\n", "no dash needed\n"]


def test_piped_bytes_that_are_no_text_are_refused(run: Run, bank: Bank) -> None:
    result = run("add", "-", stdin=b"\xff\xfe")
    assert (result.code, "not UTF-8" in result.err) == (2, True)


@pytest.mark.parametrize(("words", "stdin"), [(["-"], b"\xef\xbb\xbfShip on Friday"), (["\ufeffShip on Friday"], b"")])
def test_the_mark_of_an_encoding_is_no_part_of_the_text(run: Run, bank: Bank, words: list[str], stdin: bytes) -> None:
    run("add", *words, stdin=stdin)
    assert [(memory.id, memory.title, memory.text) for memory in bank.list()] == [
        ("notes:ship-on-friday", "Ship on Friday", "Ship on Friday\n")
    ]


@pytest.mark.parametrize("lane", LANES)
def test_every_lane_can_be_added_to(run: Run, bank: Bank, lane: str) -> None:
    sample = draft(lane, 1)
    fields = [part for name, value in sample.fields.items() for part in ("--field", f"{name}={value}")]
    added = run("add", sample.text, "--lane", lane, "--created-at", "2025-01-01T00:01:00Z", *fields, "--json")
    assert added.code == 0
    assert added.json == bank.get(added.json["id"]).to_dict()


def test_update_changes_what_is_named(run: Run, bank: Bank) -> None:
    run("add", "old", "--title", "a", "-t", "x")
    run("update", "a", "new", "--type", "fact")
    memory = bank.get("a")
    assert (memory.text, memory.tags, memory.type) == ("new\n", ("x",), "fact")


@pytest.mark.parametrize("field", ["title=x", "text=x", "tags=x", "lane=x", "id=x"])
def test_options_are_not_fields(run: Run, bank: Bank, field: str) -> None:
    run("add", "text", "--title", "a")
    for command in (["add", "x"], ["update", "a", "x"]):
        assert run(*command, "--field", field).code == 2


def test_a_moment_without_words_is_an_error(run: Run, bank: Bank) -> None:
    done = run("add", "Run the linter.", "--when=")
    assert (done.code, done.out) == (2, "")
    assert "--when is empty" in done.err
    assert bank.list() == []


def test_a_type_that_there_is_not_names_all_that_there_are(run: Run, bank: Bank) -> None:
    done = run("add", "Run the linter.", "--type", "nonsense")
    assert "Use one of: journal, plan, fact, observation, reflection, rule, preference." in done.err
    assert run("add", "Run the linter.", "--type", "preference").code == 0


def test_put_makes_and_replaces_the_note_of_a_name(run: Run, bank: Bank) -> None:
    made = run("put", "on-call", "Maria.", "--extra", "month=3", "--expires", "30d", "--json").json
    assert (made["id"], made["fields"]["month"]) == ("notes:on-call", 3)
    assert run("put", "on-call", "Ben.", "--expected", "").code == 5
    assert run("put", "on-call", "-", "--expected", made["version"], stdin="Ben.\n").code == 0
    assert run("update", "on-call", "Ann.", "--expected", made["version"]).code == 5
    assert (bank.get("on-call").text, bank.get("on-call").fields) == ("Ben.\n", {})


def test_renaming_to_the_same_name_changes_nothing(run: Run, bank: Bank) -> None:
    bank.put("heron", "A heron.")
    same = run("rename", "heron", "heron").err
    assert same == f"note: that is its name already\nnothing changed in {bank.root / 'heron.md'}\n"
    assert run("rename", "heron", "birds/heron").err.startswith("moved to ")


def test_a_text_without_quotes_is_told_that_it_needs_them(run: Run, bank: Bank) -> None:
    refused = run("add", "Deploys", "go", "out")
    assert refused.code == 2
    assert refused.err.splitlines()[1] == "next: Put the text in quotes; `memlane add --help` shows what it takes."
    assert bank.list() == []


def test_messages_speak_of_options(run: Run, bank: Bank) -> None:
    id = bank.add("Deploys go out on Tuesdays.").id
    assert f"if this replaces it, add it with --replaces {id}\n" in run("add", "Deploys go out on Wednesdays.").err
    assert "next: For example --extra ticket=42.\n" in run("add", "x", "--extra", "foo").err
    assert "Give a new text, or a field such as the tags." in run("update", id).err + run("edit", id, "--append").err


def test_an_entry_that_is_much_like_it_is_named_by_its_title(bank: Bank) -> None:
    entry = {"lane": "topics", "topic": "ops/queue"}
    bank.add("Restart the queue before every deploy.", title="Restart first", **entry)
    [remark, *_] = bank.add("Restart the queue before each deploy.", title="Restart again", **entry).remarks
    assert " is much like it (Restart first): " in remark
