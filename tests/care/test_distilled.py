"""What was distilled from sessions becomes notes with care: once, unconfirmed, private, and never against the user."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from commands import CANARY, Run
from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.care import deciding
from memlane.care.distilled import Stored, store
from memlane.core.dates import utc_now

NEXT = "`memlane review --only unconfirmed` goes through them"
TEXT = "Backups of the orders table are kept for 1 day, because the disk of the old server is small."


def candidate(
    text: str = TEXT, type: str = "lesson", date: str = "2026-03-04", session: str = "s1", branch: str = ""
) -> Candidate:
    return Candidate(text, type, 0.8, session, date, (3,), ("u3",), (), "assistant", {}, branch)


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
    assert memory.fields == {
        "confidence": 0.8, "session": "s1", "lines": [3], "uuids": ["u3"], "distilled": f"{utc_now():%Y-%m-%d}",
    }  # fmt: skip
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
    assert not bank.review(only=["duplicate"]).steps  # that is settled
    assert counts(store(bank, [candidate(TEXT.replace("1 day", "9 days"), date="2026-04-01")])) == (0, 1, 0, 0)


def test_what_another_session_says_again_is_noted_once_in_the_note(bank: Bank) -> None:
    [memory] = store(bank, [candidate()]).memories
    nearly = "Backups of the orders table are kept 1 day because the disk of the old server is small"
    again = candidate(nearly, session="s2", date="2026-06-01T10:00:00Z")
    assert counts(store(bank, [again, again])) == (0, 2, 0, 0)
    assert counts(store(bank, [candidate()])) == (0, 1, 0, 0)
    fields = bank.get(memory.id).fields
    assert (fields["seen"], fields["seen_in"]) == ("2026-06-01", ["s2"])


def test_a_memory_that_somebody_wrote_is_left_as_it_is_when_a_session_says_the_same(bank: Bank) -> None:
    file = bank.add(TEXT).path
    before = file.read_bytes()
    assert counts(store(bank, [candidate(session="s9")])) == (0, 1, 0, 0)
    assert file.read_bytes() == before


def test_what_the_users_own_bank_says_is_not_stored_in_a_project(bank: Bank) -> None:
    with Bank.init(user=True) as own:
        own.add("Use uv for Python packages, and never pip.")
    text = "Use uv for Python packages and never pip!"
    assert counts(store(bank, [candidate(text, "rule")])) == (0, 1, 0, 0)


def test_what_is_said_again_after_it_was_replaced_takes_its_place_back(bank: Bank) -> None:
    other = TEXT.replace("1 day", "2 days")
    [first, second] = store(bank, [candidate(), candidate(other, date="2026-05-01", session="s2")]).memories
    assert counts(store(bank, [candidate()])) == (0, 1, 0, 0)  # the old session, read once more
    [third] = store(bank, [candidate(date="2026-07-01", session="s3")]).memories
    assert bank.get(second.id).superseded_by == third.id
    assert bank.get(first.id).superseded_by == third.id


def test_what_was_written_on_purpose_is_not_replaced_but_it_is_proposed(bank: Bank) -> None:
    purpose = bank.add(TEXT, created_at="2026-01-01")
    done = store(bank, [candidate(TEXT.replace("1 day", "2 days"))])
    [memory] = done.memories
    assert (counts(done), done.proposed) == ((1, 0, 0, 0), (memory.id,))
    assert bank.get(purpose.id).superseded_by is None
    assert bank.get(memory.id).fields["instead_of"] == purpose.id
    [item] = bank.review(only=["superseded"]).steps
    assert (item.id, item.action, item.to_dict()["others"]) == (purpose.id, "look at", [memory.id])
    deciding.take_place(bank, memory.id)
    assert bank.get(purpose.id).superseded_by == memory.id
    assert "instead_of" not in bank.get(memory.id).fields
    assert not bank.review(only=["superseded"]).steps


def test_forgetting_takes_its_name_out_of_what_would_take_its_place(bank: Bank) -> None:
    purpose = bank.add(TEXT, created_at="2026-01-01")
    [memory] = store(bank, [candidate(TEXT.replace("1 day", "2 days"))]).memories
    bank.forget(purpose.id)
    assert "instead_of" not in memory.path.read_text()


def test_an_old_session_says_nothing_against_what_was_written_later(bank: Bank) -> None:
    bank.add(TEXT, created_at="2026-09-01")
    assert counts(store(bank, [candidate(TEXT.replace("1 day", "2 days"))])) == (0, 1, 0, 0)


OPEN = candidate("UNRESOLVED: the export of invoices to PDF fails on CI.", "open", branch="pdf")
DONE = "The export of invoices to PDF failed on CI because a library was missing; it is fixed."
SOLVED = candidate(DONE, "lesson", "2026-03-09", "s2")


def test_open_work_is_archived_with_what_solved_it_and_undo_brings_it_back(bank: Bank) -> None:
    [work] = store(bank, [OPEN]).memories
    done = store(bank, [SOLVED])
    [memory] = done.memories
    assert done.closed == (work.id,)
    assert (bank.get(work.id).status, bank.get(work.id).superseded_by) == ("archived", memory.id)
    assert counts(store(bank, [OPEN])) == (0, 1, 0, 0)  # of before it was solved
    bank.undo()
    assert (bank.get(work.id).status, bank.get(work.id).superseded_by) == ("active", None)


def test_open_work_of_a_branch_that_is_gone_is_shown_by_review(bank: Bank, tmp_path: Path) -> None:
    today = f"{utc_now():%Y-%m-%d}"
    [work] = store(bank, [replace(OPEN, date=today)]).memories
    assert not bank.review(only=["stale"]).steps  # there is no git here
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert [(item.id, item.action) for item in bank.review(only=["stale"]).steps] == [(work.id, "look at")]


def test_open_work_is_that_of_the_branch_it_was_last_said_on(bank: Bank) -> None:
    [work] = store(bank, [OPEN]).memories
    store(bank, [replace(OPEN, date="2026-03-20", session="s7", branch="invoices")])
    store(bank, [replace(OPEN, date="2026-03-10", session="s6", branch="older")])
    assert bank.get(work.id).fields["branch"] == "invoices"


def test_open_work_that_is_mentioned_after_it_was_solved_is_open_again(bank: Bank) -> None:
    store(bank, [OPEN, SOLVED])
    [again] = store(bank, [replace(OPEN, date="2026-04-01", session="s3")]).memories
    assert [memory.id for memory in bank.list(tags=["open"])] == [again.id]


def test_open_work_that_somebody_wrote_is_only_proposed_to_be_closed(bank: Bank) -> None:
    work = bank.add("The export of invoices to PDF fails on CI.", tags=["open"], created_at="2026-01-01")
    done = store(bank, [SOLVED])
    assert (done.closed, done.proposed, bank.get(work.id).status) == ((), (done.memories[0].id,), "active")
    deciding.take_place(bank, done.memories[0].id)
    assert bank.get(work.id).status == "archived"


def test_one_call_is_one_change_to_undo(bank: Bank) -> None:
    store(bank, [candidate(), candidate("Payments must never be retried, as the provider is not idempotent.")])
    bank.undo()
    assert bank.list() == []


@pytest.mark.parametrize("gone", [deciding.reject, Bank.delete])
def test_what_was_rejected_or_deleted_never_comes_back_in_these_words_or_nearly(
    bank: Bank, gone: Callable[[Bank, str], object]
) -> None:
    [memory] = store(bank, [candidate()]).memories
    gone(bank, memory.id)
    assert bank.list() == []
    nearly = TEXT.replace("kept", "retained").replace("Backups", "The backups")
    assert counts(store(bank, [candidate(), candidate(nearly, session="s2", date="2026-08-01")])) == (0, 0, 2, 0)
    assert counts(store(bank, [candidate(TEXT.replace("1 day", "3 days"), session="s3")])) == (1, 0, 0, 0)


def test_what_is_not_said_again_fades_and_is_proposed_for_removal(bank: Bank) -> None:
    def ago(days: int) -> str:
        return f"{utc_now() - timedelta(days=days):%Y-%m-%d}"

    [old] = store(bank, [candidate(date=ago(400))]).memories
    assert not bank.review(only=["stale"]).steps  # it was distilled just now
    bank.update(old.id, extra={"distilled": ago(399)})
    [item] = bank.review(only=["stale"]).steps
    assert (item.id, item.action) == (old.id, "look at")
    assert [hit.why["confirmed"] for hit in bank.search("backups of orders")] == [0.4]
    store(bank, [candidate(date=ago(10), session="s2")])
    assert not bank.review(only=["stale"]).steps
    assert [hit.why["confirmed"] for hit in bank.search("backups of orders")] == [0.8]


def test_a_secret_is_refused(bank: Bank) -> None:
    assert counts(store(bank, [candidate(f"The token {CANARY} is needed, because it does not work.")])) == (0, 0, 0, 1)


def test_it_ranks_below_what_was_written_on_purpose_until_it_is_confirmed(bank: Bank) -> None:
    today = f"{utc_now():%Y-%m-%d}"
    [memory] = store(bank, [candidate("Deploys of the shop go out on Tuesdays, never later.", date=today)]).memories
    bank.add("Deploys of the shop go out on Thursdays, never later.", created_at=today)
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
        "stored": [], "known": 0, "deleted": 1, "refused": 0, "closed": [], "proposed": [],
    }  # fmt: skip
