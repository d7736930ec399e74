"""What was distilled from sessions becomes notes with care: once, unconfirmed, private, and never against the user."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from commands import CANARY, Run
from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.care.distilled import Stored, store

NEXT = "`memlane review --only unconfirmed` goes through them"
TEXT = "Backups of the orders table are kept for 1 day, because the disk of the old server is small."


def candidate(text: str = TEXT, type: str = "lesson", date: str = "2026-03-04") -> Candidate:
    return Candidate(text, type, 0.8, "s1", date, (3,), ("u3",), (), "assistant", {})


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def counts(done: Stored) -> tuple[int, int, int, int]:
    return len(done.memories), done.known, done.deleted, done.refused


def test_a_candidate_becomes_an_unconfirmed_note_with_its_evidence(bank: Bank) -> None:
    [memory] = store(bank, [candidate()]).memories
    assert (memory.text, memory.tags, memory.type, memory.unconfirmed) == (
        f"{TEXT}\n", ("lesson", "unconfirmed"), "observation", True,
    )  # fmt: skip
    assert str(memory.created_at)[:10] == "2026-03-04"
    assert memory.fields == {"confidence": 0.8, "session": "s1", "lines": [3], "uuids": ["u3"]}
    assert memory.id.startswith("notes:private/distilled/backups-of-the-orders")


def test_git_does_not_take_what_was_distilled(bank: Bank, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    store(bank, [candidate()])
    status = subprocess.run(
        ["git", "status", "--short", "-uall"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "distilled" not in status.stdout


def test_what_is_there_already_is_not_stored_again(bank: Bank) -> None:
    bank.add("The API of the shop listens on port 8080, and so does its mirror.")
    again = "The API of the shop listens on port 8080 and so does its mirror"
    assert counts(store(bank, [candidate(), candidate(), candidate(again)])) == (1, 2, 0, 0)
    assert counts(store(bank, [candidate()])) == (0, 1, 0, 0)


def test_a_newer_candidate_with_another_value_takes_the_place_of_the_older_one(bank: Bank) -> None:
    newer = TEXT.replace("1 day", "2 days")
    [old, new] = store(bank, [candidate(), candidate(newer, date="2026-05-01")]).memories
    assert bank.get(old.id).superseded_by == new.id
    assert counts(store(bank, [candidate(TEXT.replace("1 day", "9 days"), date="2026-04-01")])) == (0, 1, 0, 0)


def test_what_was_written_on_purpose_is_not_replaced(bank: Bank) -> None:
    purpose = bank.add(TEXT)
    assert counts(store(bank, [candidate(TEXT.replace("1 day", "2 days"))])) == (1, 0, 0, 0)
    assert bank.get(purpose.id).superseded_by is None


def test_what_was_rejected_never_comes_back(bank: Bank) -> None:
    [memory] = store(bank, [candidate()]).memories
    bank.delete(memory.id)
    assert counts(store(bank, [candidate()])) == (0, 0, 1, 0)


def test_a_secret_is_refused(bank: Bank) -> None:
    assert counts(store(bank, [candidate(f"The token {CANARY} is needed, because it does not work.")])) == (0, 0, 0, 1)


def test_it_ranks_below_what_was_written_on_purpose_until_it_is_confirmed(bank: Bank) -> None:
    [memory] = store(bank, [candidate("Deploys of the shop go out on Tuesdays, never later.")]).memories
    bank.add("Deploys of the shop go out on Thursdays, never later.", created_at="2026-03-04")
    first, second = bank.search("when do deploys of the shop go out")
    assert (first.memory.unconfirmed, second.memory.id, second.why["confirmed"]) == (False, memory.id, 0.8)
    bank.update(memory.id, tags=["lesson"])
    assert not any("confirmed" in hit.why for hit in bank.search("when do deploys of the shop go out"))


def test_the_command_stores_and_says_what_became_of_them(bank: Bank, tmp_path: Path, run: Run) -> None:
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": TEXT}]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in talk))
    result = run("distil", "talk.jsonl", "--store")
    id, kind, title = result.out.rstrip("\n").split("\t")
    assert (kind, title, result.err) == ("lesson", bank.get(id).title, f"1 stored; {NEXT}\n")
    assert run("distil", "talk.jsonl", "--store").err == f"0 stored; {NEXT}; 1 known\n"
    run("rm", id)
    assert run("distil", "talk.jsonl", "--store", "--json").json == {
        "stored": [], "known": 0, "deleted": 1, "refused": 0,
    }  # fmt: skip
