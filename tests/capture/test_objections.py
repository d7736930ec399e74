"""Objections: which prompts turn down what the assistant said, and which words of it they mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostile_texts import in_proportion
from memlane import Bank
from memlane.capture.distil.candidates import Candidate, distil
from memlane.capture.messages import capture
from memlane.capture.objections import is_objected, is_proposal, objections
from memlane.care.distilled import store, store_new

CAUSE = "The price page is slow because every request asks the supplier's API again."
PROPOSAL = "I suggest caching prices in Redis with a TTL of 3600 seconds."
REFUSAL = "no redis please, ops refuses to run it. use an in-process LRU and 60 seconds"


def session(path: Path, *said: str, id: str = "s1", day: int = 10) -> Path:
    """A session in which the user and the assistant take turns, the user first."""
    lines = []
    for at, text in enumerate(said):
        role = "assistant" if at % 2 else "user"
        content = [{"type": "text", "text": text}] if at % 2 else text
        when = f"2026-11-{day}T10:{at:02}:00Z"
        message = {"role": role, "id": f"m{at}", "content": content}
        lines.append({"type": role, "uuid": f"u{at}", "sessionId": id, "timestamp": when, "message": message})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def texts(candidates: list[Candidate]) -> list[str]:
    return [one.text for one in candidates]


# -- which prompts object


@pytest.mark.parametrize(
    "prompt",
    [
        "No.",
        "nope, that is not what I meant",
        REFUSAL,
        "not Redis, use an LRU",
        "Don't cache anything.",
        "Stop. We talked about this.",
        "hmm, that's wrong: prices change every minute",
        "I'd rather not run another service.",
        "Actually prices must not be older than a minute.",
        "Thanks, that explains it. But please don't use Redis for this: ops refuses to run it.",
        "I appreciate the analysis. However, our hosting is fixed until May, so Redis is not an option.",
        "Great! One thing: 3600 seconds is too long, take 60.",
        "use an LRU instead of Redis",
        "Nein, bitte kein Redis. Nimm einen LRU.",
        "Non, pas de Redis ici.",
        "No uses Redis, por favor.",
    ],
)
def test_what_turns_down_the_message_before(prompt: str) -> None:
    assert is_objected(f"{CAUSE}\n\n{PROPOSAL}", prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "yes, do it",
        "No problem, go ahead.",
        "no, that's fine, go ahead",
        "No errors now, thanks!",
        "don't worry about the tests",
        "Not yet. Let me look at it first.",
        "not bad!",
        "Stop the server and start it again.",
        "I don't know",
        "don't we need a lock there?",
        "it doesn't work, I get an error",
        "Good. Now the invoices: don't print the due date twice.",
        "Looks good. There is no index on that table, add one.",
    ],
)
def test_what_does_not(prompt: str) -> None:
    assert not is_objected(f"{CAUSE}\n\n{PROPOSAL}", prompt)


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        (PROPOSAL, True),
        ("We could bundle the fonts.", True),
        ("Ich würde die Schriften mitliefern.", True),
        (CAUSE, False),
        ("The fonts are bundled in `src/jobs/fonts`.", False),
    ],
)
def test_what_is_proposed(text: str, proposal: bool) -> None:
    assert is_proposal(text) is proposal


@pytest.mark.parametrize("text", ["no ", "not a, ", "don't x instead of ", "but ", "we can't a is not allowed "])
def test_prompts_take_time_in_proportion(text: str) -> None:
    assert in_proportion(objections, text * 2_000)


# -- what is distilled


def test_a_proposal_that_was_turned_down_is_no_candidate_and_the_refusal_is(path: Path) -> None:
    talk = session(path, "Why is the price page slow?", f"{CAUSE}\n\n{PROPOSAL}", REFUSAL, "Done.")
    assert texts(distil(talk)) == [CAUSE, REFUSAL]


def test_a_proposal_that_nobody_turned_down_is_marked_as_one(path: Path) -> None:
    text = "I suggest caching prices in Redis with a TTL of 3600 seconds, because the supplier updates them hourly."
    [one] = distil(session(path, "Why is the price page slow?", text, "Now the invoices."))
    assert (one.text, one.proposed, one.to_dict()["proposed"]) == (text, True, True)


def test_a_refusal_in_the_middle_of_a_prompt_is_only_about_what_it_names(path: Path) -> None:
    text = "PDFs miss glyphs because the container has no fonts, so the fonts must be bundled in `src/jobs/fonts/`."
    other = "The retry of the mailer never stops, because `max_tries` is read from an unset variable."
    prompt = "Thanks, makes sense. But we can't bundle fonts, legal does not allow it: always install fonts-dejavu."
    found = distil(session(path, "Look at the PDFs and the mailer.", f"{text}\n\n{other}", prompt, "Done."))
    assert texts(found) == [other, "But we can't bundle fonts, legal does not allow it: always install fonts-dejavu."]


def test_a_bare_no_is_about_all_of_the_message(path: Path) -> None:
    assert texts(distil(session(path, "Why is the price page slow?", CAUSE, "No.", "Let me look again."))) == []


def test_a_no_that_names_something_else_leaves_what_the_message_found(path: Path) -> None:
    prompt = "No, always use pnpm instead of npm in this repository."
    assert texts(distil(session(path, "Why is the price page slow?", CAUSE, prompt))) == [CAUSE, prompt]


def test_a_no_that_points_back_is_about_all_of_the_message(path: Path) -> None:
    assert texts(distil(session(path, "Why is the price page slow?", CAUSE, "That's wrong."))) == []


def test_what_was_said_earlier_in_the_turn_is_left_out_too_if_it_is_named(path: Path) -> None:
    text = (
        "Prices must be kept in Redis with a TTL of 3600 seconds, because `price_cache.py` does not survive a restart."
    )
    first = session(path, "Make it fast.", text).read_text()
    more = session(path, "", "The cache is in place now.", REFUSAL).read_text()
    path.write_text(first + "".join(more.splitlines(keepends=True)[1:]))
    assert texts(distil(path)) == [REFUSAL]


def test_pasted_output_objects_to_nothing(path: Path) -> None:
    prompt = "go on\n\nsrc/prices.go:96:4: Use an LRU instead of Redis (staticcheck)"
    text = "Redis holds the prices for an hour, because the supplier's API allows one request a second."
    assert texts(distil(session(path, "Why?", text, prompt))) == [text]


def test_corrections_take_no_room_from_the_rest(path: Path) -> None:
    lessons = """\
The importer fails because SQLite does not support `DROP CONSTRAINT`: the whole table must be rebuilt with \
`copy_table()`, or the foreign keys of all the other tables are silently lost in the next migration.
`parse_date` cannot read years before 1970, because `strptime()` uses the C library of the platform, and that of \
musl does not support negative timestamps: parse with `fromisoformat()` instead, which never asks it.
Retries must be idempotent, because `PaymentProvider` does not deduplicate requests that have other headers: \
the key must be in the body, since their proxy silently drops what it does not know.
""".splitlines()
    told = "".join(f"- {text}\n" for text in lessons)
    refusal = "No, don't bundle fonts, legal does not allow it"
    kept = {
        prompt: texts(distil(session(path, "Look at it.", f"{told}\nWe could bundle the fonts.", prompt)))
        for prompt in ("go on", refusal)
    }
    assert kept == {"go on": lessons, refusal: [*lessons, refusal]}


# -- what is left for later


def test_what_the_user_leaves_for_later_is_open_work_however_much_else_there_is(path: Path) -> None:
    lesson = "The importer fails because SQLite does not support `DROP CONSTRAINT`; the table must be rebuilt."
    other = "`parse_date` cannot read years before 1970, because `strptime` asks the C library of the platform."
    third = "Retries must be idempotent, because the payment provider does not deduplicate its requests."
    talk = session(path, f"{lesson}\n\n{other}", third, "Thanks!\n\nTODO next week: move the invoices job to the queue")
    found = [(one.type, one.text) for one in distil(talk)]
    assert found[-1] == ("open", "TODO next week: move the invoices job to the queue")


def test_what_the_same_session_says_is_done_is_not_open(path: Path) -> None:
    done = "The rate limit of the login endpoint is implemented."
    talk = session(path, "hi", "Hello.", "we still need to add a rate limit to the login endpoint", done)
    assert [one.type for one in distil(talk)] == []


# -- what is stored


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    return Bank.init(tmp_path / "project")


def test_a_correction_takes_the_place_of_what_an_earlier_session_taught(bank: Bank, path: Path) -> None:
    text = "Invoices are sent again after a failure, with at most 6 attempts, because the mail server drops some."
    [old] = store(bank, distil(session(path, "How are invoices sent?", text))).memories
    prompt = "No, at most 4 attempts: the bank blocks us after five."
    again = session(path, "How often do we try?", text, prompt, "Noted.", id="s2", day=12)
    [new] = store(bank, distil(again)).memories
    assert (new.text, bank.get(old.id).superseded_by) == (f"{prompt}\n", new.id)


def test_a_session_that_goes_on_with_a_refusal_takes_back_what_it_taught(bank: Bank, path: Path) -> None:
    text = (
        "Prices must be kept in Redis with a TTL of 3600 seconds, because `price_cache.py` does not survive a restart."
    )
    whole = session(path, "Make it fast.", text, REFUSAL, "Done.").read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:2]))
    [old] = store_new(bank, str(path), 5).memories
    path.write_text(whole)
    [new] = store_new(bank, str(path), 5).memories
    assert (new.text, bank.get(old.id).superseded_by) == (f"{REFUSAL}\n", new.id)


def test_a_message_that_was_objected_to_is_given_with_the_correction_in_its_place(bank: Bank, path: Path) -> None:
    talk = session(path, "Why is the price page slow?", f"{CAUSE}\n\n{PROPOSAL}", REFUSAL, "Done.")
    capture(bank, talk)
    store(bank, distil(talk))
    block = bank.for_prompt("should we use redis to cache prices?")
    assert (PROPOSAL in block, REFUSAL in block) == (False, True)


def test_a_message_that_was_objected_to_is_never_given_without_a_mark(bank: Bank, path: Path) -> None:
    capture(bank, session(path, "Why is the price page slow?", f"{CAUSE}\n\n{PROPOSAL}", "no", "Done."))
    block = bank.for_prompt("should we use redis to cache prices?")
    [line] = [line for line in block.splitlines() if "Redis" in line]
    assert line.endswith("(said by the assistant) ⚠ the user objected to it in the next prompt")
    assert "said by the assistant · ⚠ the user objected to it in the next prompt" in bank.context("redis prices")


def test_what_a_later_session_says_is_done_closes_what_the_user_left_open(
    bank: Bank, path: Path, tmp_path: Path
) -> None:
    left = "One more thing for tomorrow: the retry of the invoice mailer is still missing"
    [work] = store_new(bank, str(session(path, "Mailer?", "It sends.", left)), 5).memories
    assert (work.tags[0], left in bank.snapshot(recent=5)) == ("open", True)
    done = "Done. The retry of the invoice mailer is implemented."
    later = store_new(bank, str(session(tmp_path / "later.jsonl", "Go on.", done, id="s2", day=11)), 5)
    assert (later.closed, bank.get(work.id).status, left in bank.snapshot(recent=5)) == ((work.id,), "archived", False)


def test_an_objection_is_noted_in_the_record_when_it_comes_after_a_capture(bank: Bank, path: Path) -> None:
    whole = session(path, "Why is the price page slow?", f"{CAUSE}\n\n{PROPOSAL}", REFUSAL, "Done.").read_text()
    lines = whole.splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    capture(bank, path)
    [before] = bank.records.list()
    path.write_text(whole)
    capture(bank, path)
    [after] = bank.records.list()
    assert (before.objected, after.objected, after.content) == (False, True, before.content)
    assert list(bank.records.validate()) == []


def test_an_edit_of_a_record_keeps_the_objection(bank: Bank, path: Path) -> None:
    capture(bank, session(path, "Why is the price page slow?", f"{CAUSE}\n\n{PROPOSAL}", REFUSAL))
    [record] = bank.records.list()
    bank.update(f"records:{record.id}", title="Prices")
    [after] = bank.records.list()
    assert (after.subject, after.objected) == ("Prices", True)


def test_a_proposal_says_so_in_a_block(bank: Bank, path: Path) -> None:
    text = "I suggest caching prices in Redis with a TTL of 3600 seconds, because the supplier updates them hourly."
    store(bank, distil(session(path, "Why is the price page slow?", text)))
    block = bank.for_prompt("should we use redis to cache prices?")
    assert block.splitlines()[-2].endswith(f"{text} (proposed by the assistant)")
