"""Staying in step: `--watch`, a server that acknowledges what the remote has, and who says when something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from conftest import trusted
from memlane import Bank
from memlane.care import doctor, sync
from memlane.care.sync.results import Synced
from memlane.care.sync.state import path_of
from memlane.care.sync.watching import watch
from memlane.core.errors import InvalidInput
from memlane.disk import files
from memlane.exchange.remotes import Unreachable
from memlane.surfaces.mcp.server import build_server
from memlane.surfaces.ui.api.health import health
from synced import TEAM, at_remote, contents, member, synced

Call = Callable[..., str]


def test_watching_brings_what_was_changed_here_and_there(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    news = watch(bob, TEAM)
    next(news)
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    done = next(news)
    assert isinstance(done, Synced)
    assert (done.received, sorted(contents(bob))) == (1, ["deploy-day.md"])
    bob.add("Tea at four.", title="Tea")
    done = next(news)
    assert isinstance(done, Synced)
    assert (done.sent, sorted(at_remote(tmp_path))) == (1, ["deploy-day.md", "tea.md"])


def test_watching_outlasts_a_remote_that_cannot_be_reached(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    (tmp_path / "remote").rename(tmp_path / "away")
    waits: list[float] = []
    news = watch(ann, TEAM, sleep=waits.append)
    for _ in range(3):
        assert "Trying again" in str(next(news))
    (tmp_path / "away").rename(tmp_path / "remote")
    assert isinstance(next(news), Synced)
    assert waits == [2.0, 4.0, 8.0]


def never(seconds: float) -> None:
    raise AssertionError(f"slept for {seconds} s beside a remote that tells of changes")


def joined(tmp_path: Path, bank: Bank, name: str) -> Bank:
    """The bank with one more remote, a folder of that name."""
    (tmp_path / name).mkdir(exist_ok=True)
    sync.add(bank, name, str(tmp_path / name))
    return bank


def test_watching_two_remotes_brings_at_once_what_each_has_for_the_other(tmp_path: Path) -> None:
    ann, bob = joined(tmp_path, member(tmp_path, "ann"), "home"), member(tmp_path, "bob")
    news = watch(ann, sleep=never)
    assert [next(news), next(news)] == [Synced("home"), Synced("team")]
    bob.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(bob)
    said = [next(news) for _ in range(4)]
    assert said == [Synced("home"), Synced("team", received=1), Synced("home", sent=1), Synced("team")]


def test_watching_two_remotes_of_which_one_is_away_keeps_in_step_with_the_other(tmp_path: Path) -> None:
    ann = joined(tmp_path, member(tmp_path, "ann"), "home")
    sync.sync(ann)
    (tmp_path / "home").rename(tmp_path / "away")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    news = watch(ann, sleep=never)
    assert str(next(news)).endswith("home cannot be reached: it is not there. Trying again in 2 s.")
    assert next(news) == Synced("team", sent=1)
    ann.add("Tea at four.", title="Tea")
    assert next(news) == Synced("team", sent=1)
    (tmp_path / "away").rename(tmp_path / "home")
    said = [one for one in (next(news) for _ in range(4)) if isinstance(one, Synced) and one.remote == "home"]
    assert [one.sent for one in said][:1] == [2]


def test_watching_outlasts_another_sync_of_the_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = member(tmp_path, "ann")
    monkeypatch.setattr(sync, "PATIENCE", 0.01)
    waits: list[float] = []
    news = watch(ann, sleep=waits.append)
    with files.locked(str(path_of(ann.root)), 1.0):
        assert next(news) == "Another sync of this bank is under way. Trying again in 2 s."
    assert next(news) == Synced(TEAM)
    assert waits == [2.0]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call a tool of Ann's server, which acknowledges a write when the remote has it; gives what it says."""
    ann = member(tmp_path, "ann")
    assert ann.config.file
    text = ann.config.file.read_text()
    ann.config.file.write_text(text.replace("[memory]\n", '[memory]\nsync = "on-write"\n', 1))
    trusted(ann.config.file)

    def called(name: str, /, **arguments: Any) -> str:
        async def run() -> str:
            async with Client(build_server(tmp_path / "ann")) as client:
                result = await client.call_tool(name, arguments)
                return ("failed: " if result.is_error else "") + result.content[0].text  # type: ignore[union-attr]

        return anyio.run(run)

    return called


def test_a_server_acknowledges_a_write_when_the_remote_has_it(tmp_path: Path, call: Call) -> None:
    said = call("remember", text="Deploys go out on Tuesdays.", title="Deploy day")
    assert not said.startswith("failed")
    assert sorted(at_remote(tmp_path)) == ["deploy-day.md"]
    call("delete_memory", filename="deploy-day.md")
    assert sorted(at_remote(tmp_path)) == ["tombstones.jsonl"]


def test_a_server_says_that_a_write_is_stored_here_and_not_yet_there(tmp_path: Path, call: Call) -> None:
    call("remember", text="Deploys go out on Tuesdays.", title="Deploy day")
    sync.sync(Bank.open(tmp_path / "ann"))
    (tmp_path / "remote").rename(tmp_path / "away")
    said = call("remember", text="Tea at four.", title="Tea")
    assert said.startswith("failed: Stored here, not yet at the remote: ")
    assert "Do not store it again" in said
    assert (tmp_path / "ann/.memories/tea.md").exists()
    (tmp_path / "away").rename(tmp_path / "remote")
    assert [done.sent for done in sync.sync(Bank.open(tmp_path / "ann"))] == [1]


def test_a_server_sends_a_write_to_the_remotes_that_are_there(tmp_path: Path, call: Call) -> None:
    ann = joined(tmp_path, Bank.open(tmp_path / "ann"), "home")
    sync.sync(ann)
    (tmp_path / "home").rename(tmp_path / "away")
    said = call("remember", text="Tea at four.", title="Tea")
    assert said.startswith("failed: Stored here, not yet at the remote: ")
    assert sorted(at_remote(tmp_path)) == ["tea.md"]
    assert [(each.settings.name, bool(each.failed)) for each in sync.status(ann)] == [("home", True), (TEAM, False)]


def test_a_write_meets_what_others_wrote_meanwhile(tmp_path: Path, call: Call) -> None:
    call("remember", text="Deploys go out on Tuesdays.", title="Deploy day")
    bob = member(tmp_path, "bob")
    synced(bob)
    bob.append("notes:deploy-day", "Bob says: not in August.")
    synced(bob)
    call("append_memory", filename="deploy-day.md", content="Ann says: not in May.")
    there = at_remote(tmp_path)["deploy-day.md"].decode()
    assert ("Bob says" in there, "Ann says" in there) == (True, True)


def test_doctor_review_and_the_page_say_what_was_held_back(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    (ann.root / "leak.md").write_text(f"# Leak\n\nThe token is {token}.\n")
    ann.config.file.write_text(ann.config.file.read_text() + '\n[gate]\nsecrets = "off"\n')  # type: ignore[union-attr]
    trusted(ann.config.file)  # type: ignore[arg-type]
    synced(Bank.open(tmp_path / "ann"), bob)
    report = doctor.examine(str(tmp_path / "bob"), only="sync")
    assert [(finding.where, finding.severity) for finding in report.findings] == [("leak.md", "warning")]
    assert "is held back at team: looks like it contains a secret" in report.findings[0].why
    assert "1 file at team did not pass the gate" in " ".join(bob.review().remarks)
    [shown] = health(bob, {})["sync"]
    assert (shown["name"], len(shown["held"])) == ("team", 1)
    assert token not in repr((report.findings, shown))


def test_a_remote_that_cannot_be_reached_keeps_none_of_the_others_from_being_in_step(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    (tmp_path / "home").mkdir()
    sync.add(ann, "home", str(tmp_path / "home"))
    sync.sync(ann)
    (tmp_path / "home").rename(tmp_path / "away")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    with pytest.raises(Unreachable, match="home cannot be reached") as told:
        sync.sync(ann)
    assert told.value.hint.endswith("In step with team.")
    assert sorted(at_remote(tmp_path)) == ["deploy-day.md"]
    assert [bool(each.failed) for each in sync.status(ann)] == [True, False]


def test_nothing_waits_of_a_note_that_went_to_another_scope(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann", scopes=["shared", "billing"])
    ann.add("Bills are due on Mondays.", title="Bills")
    synced(ann)
    for scope in ("billing", "shared"):
        ann.update("notes:bills", scope=scope)
        synced(ann)
        assert [(each.files, each.waiting) for each in sync.status(ann)] == [(1, ())]


def test_what_is_held_back_is_named_so_that_a_person_can_allow_it(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    (ann.root / "leak.md").write_text(f"# Leak\n\nThe token is {token}.\n")
    configure(ann, '[gate]\nsecrets = "off"')
    synced(Bank.open(tmp_path / "ann"), bob)
    [held] = sync.status(bob)[0].held
    name = held.why.rpartition(", ")[2].removesuffix(")")
    assert held.why == f"looks like it contains a secret or personal data (GitHub token, {name})"
    configure(bob, f'[[allow]]\nfingerprint = "{name}"\nreason = "A made-up one."')
    synced(Bank.open(tmp_path / "bob"))
    assert (sorted(contents(bob)), sync.status(bob)[0].held) == (["leak.md"], ())


def configure(bank: Bank, text: str) -> None:
    file = bank.config.file
    assert file
    file.write_text(f"{file.read_text()}\n{text}\n")
    trusted(file)


def test_many_secrets_are_held_back_and_some_of_them_named(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    for number in range(30):
        token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + f"1234{number:02}"
        (ann.root / f"leak-{number}.md").write_text(f"# Leak\n\nThe token is {token}.\n")
    configure(ann, '[gate]\nsecrets = "off"')
    synced(Bank.open(tmp_path / "ann"), bob)
    held = sync.status(bob)[0].held
    assert (len(held), sum("github-token@" in one.why for one in held)) == (30, 20)


@pytest.mark.parametrize(("url", "scope"), [("", "shared"), (" ", "shared"), ("{top}/home", "file:src/auth.py")])
def test_what_is_no_address_or_no_scope_of_a_remote_is_not_added(tmp_path: Path, url: str, scope: str) -> None:
    (tmp_path / "home").mkdir()
    ann = member(tmp_path, "ann")
    with pytest.raises(InvalidInput):
        sync.add(ann, "home", url.format(top=tmp_path), scopes=[scope])
    assert [each.settings.name for each in sync.status(ann)] == [TEAM]
