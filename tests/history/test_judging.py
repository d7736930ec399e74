"""What the user says of what an agent was given: useful, wrong, never again."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Ask, Run
from memlane import Bank, InvalidInput, NotFound
from memlane.disk import journal
from memlane.exchange import export
from memlane.history import sessions
from memlane.recall import judged

PROMPT = "When do deploys go out?"


@pytest.fixture
def day(bank: Bank) -> str:
    return bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day").id


def given(bank: Bank, prompt: str = PROMPT) -> list[str]:
    return [memory.id for memory in bank.for_prompt(prompt).memories]


def test_never_again_means_that_no_prompt_gets_it_unasked(bank: Bank, day: str, tmp_path: Path) -> None:
    bank.update(day, tags=["pinned"])
    file = (tmp_path / ".memories/deploy-day.md").read_bytes()
    bank.judge(day, "never")
    block = bank.for_prompt(PROMPT)
    assert (block, block.nothing) == ("", "notes:deploy-day was judged: never")
    assert bank.snapshot(recent=5) == ""
    assert [hit.memory.id for hit in bank.search("deploys")] == [day]
    assert [memory.id for memory in bank.context(PROMPT).memories] == [day]  # somebody asked
    bank.judge(day, None)
    assert given(bank) == [day]
    assert [memory.id for memory in bank.snapshot(recent=5).memories] == [day]
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.*") if path.suffix in (".md", ".jsonl")} == {
        "deploy-day.md": file
    }


def test_what_one_person_judged_stays_in_what_others_read(bank: Bank, day: str, tmp_path: Path) -> None:
    bank.update(day, tags=["rule"])
    bank.judge(day, "never")
    export.write_block(bank, tmp_path / "AGENTS.md")
    assert "Deploys go out on Tuesdays" in (tmp_path / "AGENTS.md").read_text()


def test_wrong_holds_until_it_says_something_else(bank: Bank, day: str, ask: Ask) -> None:
    ask("prompt", prompt=PROMPT)
    bank.judge(day, "wrong")
    assert given(bank) == []
    (step,) = bank.review(only=["wrong"]).steps
    on = judged.answers(bank)[0].at.date()
    assert (step.id, step.action, step.reason) == (day, "look at", f"was judged wrong on {on}, for: {PROMPT}")
    bank.update(day, tags=["release"])
    assert given(bank) == []
    bank.update(day, "Deploys go out on Mondays after standup.")
    assert given(bank) == [day]
    assert bank.review(only=["wrong"]).steps == ()


def test_wrong_is_about_what_was_shown(bank: Bank, day: str, ask: Ask) -> None:
    """A memory that was mended meanwhile is not held back for what it said before."""
    ask("prompt", prompt=PROMPT)
    bank.update(day, "Deploys go out on Mondays after standup.")
    bank.judge(day, "wrong", session="s1")
    assert given(bank) == [day]


def test_what_leaves_its_place_leaves_it_to_others(bank: Bank, day: str) -> None:
    other = bank.add("Deploys that go out late are announced in the channel.", title="Late deploys").id
    assert given(bank) == [day, other]
    bank.judge(day, "never")
    assert given(bank) == [other]


def test_useful_after_wrong_gives_it_again(bank: Bank, day: str) -> None:
    bank.judge(day, "wrong")
    bank.judge(day, "useful")
    assert given(bank) == [day]


def test_the_log_has_what_was_said_of_each_time(bank: Bank, day: str, ask: Ask, run: Run) -> None:
    for session in ("one", "two"):
        ask("prompt", session, prompt=PROMPT)
    bank.judge(day, "useful", session="one")
    (event,) = sessions.session(bank, "one").events
    bank.judge(day, "never", session="two", at=sessions.session(bank, "two").events[0].at)
    said = {one.id: one.events[0].given[0].verdict for one in sessions.sessions(bank)}
    assert said == {"one": "useful", "two": "never"}
    assert run("log", "--sessions", "one", "--json").json["events"][0]["given"][0]["verdict"] == "useful"
    bank.judge(day, None, session="two")
    assert [(one.session, one.told, one.verdict) for one in judged.answers(bank)] == [("one", event.at, "useful")]


def test_what_was_not_given_then_cannot_be_judged(bank: Bank, day: str, ask: Ask) -> None:
    ask("prompt", prompt="thanks")
    for given_then in ({"session": "s1"}, {"session": "none"}, {"at": "2025-01-01"}):
        with pytest.raises(NotFound):
            bank.judge(day, "useful", **given_then)
    with pytest.raises(NotFound):
        bank.judge("notes:none", "useful")
    with pytest.raises(InvalidInput):
        bank.judge(day, "great")
    assert judged.answers(bank) == []


def test_what_was_deleted_since_can_still_be_judged(bank: Bank, day: str, ask: Ask) -> None:
    ask("prompt", prompt=PROMPT)
    bank.delete(day)
    bank.judge(day, "wrong", session="s1")
    assert [one.verdict for one in judged.answers(bank)] == ["wrong"]


def test_an_agent_does_not_judge_itself(bank: Bank, day: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with journal.acting("mcp", "claude-code"), pytest.raises(InvalidInput):
        bank.judge(day, "useful")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert run("judge", day, "useful").code == 2


def test_what_is_said_of_the_users_own_holds_in_every_project(tmp_path: Path) -> None:
    with Bank.init(user=True) as own:
        own.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Bank.init(tmp_path / name).close()
    with Bank.open(tmp_path / "a") as one, Bank.open(tmp_path / "b") as other:
        assert given(one) == ["user/notes:deploy-day"]
        assert one.judge("user/notes:deploy-day", "never").id == "user/notes:deploy-day"
        assert (given(one), given(other)) == ([], [])
        assert other.snapshot(recent=5) == ""
        assert [step.id for step in other.review(only=["wrong"]).steps] == []
        other.judge("user/notes:deploy-day", None)
        assert given(one) == ["user/notes:deploy-day"]


def test_a_verdict_follows_a_note_to_its_new_name_and_goes_when_it_is_forgotten(
    bank: Bank, day: str, home: Path
) -> None:
    other = bank.add("The pool is limited to 10 clients.", title="Pool").id
    bank.judge(day, "never")
    bank.judge(other, "useful")
    moved = bank.move(day, "release-day").id
    assert given(bank) == []
    bank.forget(moved)
    assert [one.id for one in judged.answers(bank)] == [other]
    kept = "".join(path.read_text() for path in (home / ".local/state/memlane/judged").iterdir())
    assert "-day" not in kept


def test_what_is_no_answer_is_passed_over(bank: Bank, day: str, home: Path) -> None:
    bank.judge(day, "never")
    (path,) = (home / ".local/state/memlane/judged").iterdir()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    odd = [b"{", b"[]", b"\xff", b'{"id": 1}', b'{"id": "notes:a", "at": "2025-01-01", "verdict": "great"}', b"{"]
    path.write_bytes(path.read_bytes() + b"\n".join(odd))
    bank.judge(day, "useful", session=None)
    assert [(one.id, one.verdict) for one in judged.answers(bank)] == [(day, "useful")]


def test_a_long_list_keeps_what_holds_a_memory_back(bank: Bank, day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "MAX_BYTES", 2000)
    monkeypatch.setattr(judged, "KEPT", 3)
    bank.judge(day, "never")
    for number in range(40):
        judged.note(bank, judged.Judged(f"notes:n{number}", "useful", judged.answers(bank)[0].at))
    kept = [one.id for one in judged.answers(bank)]
    assert (kept[0], kept[-1], len(kept) < 30) == (day, "notes:n39", True)


def test_stats_say_how_useful_it_was(bank: Bank, day: str, ask: Ask, run: Run) -> None:
    for session in ("one", "two", "three"):
        ask("prompt", session, prompt=PROMPT)
    ask("prompt", "three", prompt="thanks, go on")
    bank.judge(day, "useful", session="one")
    bank.judge(day, "wrong", session="two")
    assert bank.stats()["told"] == {
        "injections": 3,
        "judged": 2,
        "useful": 1,
        "share_useful": 0.5,
        "prompts": 4,
        "prompts_without": 1,
        "most_given": [{"id": day, "times": 3, "useful": 1}],
    }
    assert run("stats", "--json").json["told"] == bank.stats()["told"]
    said = run("stats")
    assert f"{day}\tgiven 3\tuseful 1\n" in said.out
    assert "given to sessions: 3 times, 2 judged, 50% of them useful; prompts: 4, 1 without memory" in said.err


def test_the_command_line_judges_and_lists(bank: Bank, day: str, run: Run) -> None:
    assert "nothing has been judged yet" in run("judge").err
    done = run("judge", day, "never")
    assert done.err == f"{day}: no prompt gets it unasked any more; a search still finds it\n"
    assert run("judge").out.split("\t")[:2] == [day, "never"]
    assert [one["verdict"] for one in run("judge", day, "--json").json] == ["never"]
    assert run("judge", day, "none", "--json").json["verdict"] is None
    assert run("judge").out == ""
    assert run("judge", day, "--session", "x").code == 2
