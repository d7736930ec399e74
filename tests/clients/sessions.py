"""Real clients, from connecting to disconnecting, against a scripted model on this machine: `make test-clients`.

The name keeps it out of `make test`, which replays what was recorded here (tests/test_payloads.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from agents import AGENTS, Agent
from recording import record
from scripted import REQUEST, Call, Model, Script, completions, serve

from memlane import Bank
from story import ANSWER, ANSWERS, FACT, HOUSE_RULE, PROMPTS, RELEVANT, SECOND_ANSWER, THIRD_ANSWER, fill

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MODULES = ROOT / ".clients/node_modules"
LONGEST = 180  # seconds for one process
REMEMBERS = [Call("remember", {"text": FACT})]


@dataclass(frozen=True)
class Place:
    """A home and a project of their own for one client, with nothing of whoever runs this."""

    agent: Agent
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(self, program: str, *arguments: str, url: str = "http://127.0.0.1:9") -> str:
        """Run a program to its end. Returns what it wrote to stdout."""
        with self.started(program, *arguments, url=url) as process:
            out, err = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, f"{program} ended with {process.returncode}:\n{out[-2000:]}\n{err[-2000:]}"
        return out

    @contextmanager
    def started(self, program: str, *arguments: str, url: str) -> Iterator[subprocess.Popen[str]]:
        """A program that runs; it and its children are gone afterwards."""
        node = next((str(path) for path in MODULES.glob("node-linux-*/bin")), "")
        path = [str(self.folder / "bin"), *filter(None, [node]), str(MODULES / ".bin"), "/usr/bin", "/bin"]
        variables = {
            "HOME": str(self.home),
            "PATH": ":".join(path),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.folder),
            **{name: value.replace("{url}", url) for name, value in self.agent.variables.items()},
        }
        with subprocess.Popen(
            [shutil.which(program, path=variables["PATH"]) or program, *arguments],
            cwd=self.project,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def serving(self, url: str) -> Iterator[str]:
        """The client as a server, until the block ends; gives its address."""
        with self.started(self.agent.program, "serve", "--port", "0", url=url) as process:
            assert process.stdout
            found = (re.search(r"http://[\d.:]+", line) for line in process.stdout)
            yield next(match[0] for match in found if match)

    def ask(self, prompt: str, script: Script, *, resume: bool = False) -> Model:
        """One run of the client: a prompt, and what comes of it; in a new session, or in the last one."""
        words = self.agent.arguments
        if resume:
            *words, last = words
            at = -1 if words[-1] == "-p" else len(words)
            words = (*words[:at], *self.agent.resume, *words[at:], last)
        with serve(self.agent.wire, script) as model:
            given = [word.replace("{url}", model.url).replace("{prompt}", prompt) for word in words]
            self.run(self.agent.program, *given, url=model.url)
        return model

    @property
    def settings(self) -> Path:
        return self.home / self.agent.settings[0]

    def hooks(self) -> list[dict[str, Any]]:
        path = self.folder / "bin/hooks.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass(frozen=True)
class Story:
    """Two sessions of a client, the second of them resumed, and what was left behind."""

    place: Place
    first: Model
    second: Model

    @property
    def bank(self) -> Bank:
        return Bank.open(self.place.project)

    def fired(self) -> list[str]:
        return [call["arguments"][1] for call in self.place.hooks()]


def installed(agent: Agent, folder: Path, distil: str = "rules") -> Place:
    """A client with settings of its own, in a project with memories."""
    if not (MODULES / ".bin" / agent.program).exists():
        pytest.skip(f"{agent.package} is not installed")
    place = Place(agent, folder)
    place.settings.parent.mkdir(parents=True)
    place.settings.write_text(agent.settings[1])
    place.project.mkdir()
    memlane = place.folder / "bin/memlane"
    memlane.parent.mkdir()
    memlane.write_text(f"#!{sys.executable}\n{(HERE / 'recorder.py').read_text()}")
    memlane.chmod(0o755)
    place.run("memlane", "init")
    configure(place, distil)
    os.environ["HOME"] = str(place.home)  # whose user looks into the bank here, too
    fill(Bank.open(place.project))
    return place


def configure(place: Place, distil: str) -> None:
    with open(place.project / "memlane.toml", "w") as file:
        file.write(f'[memory]\nenabled = true\n[hook]\ndistil = "{distil}"\n')
        file.write("deadline = 30.0\n")  # this is not about speed
    place.run("memlane", "trust", "--yes")


def connected(agent: Agent, folder: Path, distil: str = "rules") -> Place:
    """The same, connected by memlane's own command."""
    place = installed(agent, folder, distil)
    place.run("memlane", "connect", agent.client)
    return place


@pytest.fixture(scope="module", params=AGENTS, ids=lambda agent: agent.client)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The whole story of a client; it ends connected."""
    place = connected(request.param, tmp_path_factory.mktemp(request.param.client))
    first = place.ask(PROMPTS[0], Script(ANSWER, REMEMBERS))
    second = place.ask(PROMPTS[1], Script(SECOND_ANSWER))
    place.ask(PROMPTS[2], Script(THIRD_ANSWER), resume=True)
    return Story(place, first, second)


def test_the_tool_is_called_and_its_result_reaches_the_model(story: Story) -> None:
    assert [turn.result for turn in story.first.turns] == [False, True]
    assert "notes:the-staging-database-is-called-heron" in story.first.turns[1].text
    assert FACT in [memory.text.strip() for memory in story.bank.list(lane="notes", limit=100)]


def test_the_session_starts_with_the_snapshot(story: Story) -> None:
    assert "session-start" in story.fired()
    assert HOUSE_RULE in story.first.turns[0].text


def test_the_prompt_brings_what_is_relevant(story: Story) -> None:
    assert "prompt" in story.fired()
    assert RELEVANT in story.first.turns[0].text


def test_memory_goes_into_the_conversation_alone(story: Story) -> None:
    """Not into what a client asks besides, such as a title for the session."""
    aside = [asked.text for asked in story.first.requests if not asked.main]
    assert [text for text in aside if HOUSE_RULE in text] == []


def test_every_answer_is_captured_once(story: Story) -> None:
    assert {"stop", "session-end"} & set(story.fired())
    assert sorted(memory.text for memory in story.bank.list(lane="records", limit=100)) == sorted(ANSWERS)


def test_the_next_session_recalls_it(story: Story) -> None:
    asked = story.second.turns[0].text
    assert [line in asked for line in (*ANSWER.split("\n\n"), FACT)] == [True, True, True]


def test_no_hook_has_anything_to_complain_about(story: Story) -> None:
    assert not (story.place.home / ".local/state/memlane/hook.log").exists()


def test_disconnecting_brings_the_settings_back(story: Story, request: pytest.FixtureRequest) -> None:
    """The last one: it ends the story."""
    if request.config.getoption("record", False):
        record(story.place.agent.client, story.place.home, story.place.project, story.place.hooks())
    place = story.place
    listed = json.loads(place.run("memlane", "connect", place.agent.client, "--print", "--json"))
    written = [Path(file["path"]) for file in listed[0]["files"]]
    assert [path.read_text().count("/bin/memlane") > 0 for path in written] == [True] * len(written)
    place.run("memlane", "connect", place.agent.client, "--remove")
    assert place.settings.read_text() == place.agent.settings[1]
    assert [path for path in written if path.exists() and "/bin/memlane" in path.read_text()] == []


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.client)
def test_a_connection_for_the_project_alone_works_too(agent: Agent, tmp_path: Path) -> None:
    place = installed(agent, tmp_path)
    if agent.client == "codex":  # reads a project's configuration only where it trusts the project
        with open(place.settings, "a") as file:
            file.write(f'\n[projects."{place.project}"]\ntrust_level = "trusted"\n')
    place.run("memlane", "connect", agent.client, "--project")
    model = place.ask(PROMPTS[0], Script(ANSWER, REMEMBERS))
    assert [turn.result for turn in model.turns] == [False, True]
    assert [text in model.turns[0].text for text in (HOUSE_RULE, RELEVANT)] == [True, True]
    assert [memory.text for memory in Bank.open(place.project).list(lane="records", limit=100)] == [ANSWER]
    place.run("memlane", "connect", agent.client, "--remove", "--project")
    left = [path for path in place.project.rglob("*") if path.is_file()]
    assert [path for path in left if b"/bin/memlane" in path.read_bytes()] == []


# -- asking the agent


def edits(place: Place) -> list[Call]:
    """Five files that the client's own tool writes."""
    tool, told = place.agent.writes
    named = [(str(place.project / f"part{number}.py"), f"part = {number}") for number in range(5)]
    return [
        Call(tool, {key: text.replace("{file}", file).replace("{text}", line) for key, text in told.items()})
        for file, line in named
    ]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.client)
def test_the_agent_is_asked_once_what_to_remember(agent: Agent, tmp_path: Path) -> None:
    if agent.client == "opencode":
        pytest.skip("`opencode run` ends with the turn; see the test of `opencode serve`")
    place = connected(agent, tmp_path, "agent")
    quick = place.ask(PROMPTS[0], Script(ANSWER))
    assert [REQUEST in asked.text for asked in quick.requests] == [False] * len(quick.requests)
    stores = Call("remember", {"text": FACT, "scope": "private", "extra": {"client": agent.client}})
    first = place.ask("No, always use uv instead of pip here.", Script(ANSWER, edits(place), [stores]))
    assert [REQUEST in turn.text for turn in first.turns] == [False] * 6 + [True] * 2
    assert "- rule: No, always use uv instead of pip here." in first.turns[6].text
    later = place.ask(PROMPTS[1], Script(SECOND_ANSWER, edits(place)), resume=True)
    assert len([asked for asked in later.turns if REQUEST in asked.text.split(PROMPTS[1])[-1]]) == 0
    notes = [memory for memory in Bank.open(place.project).list(lane="notes", limit=100) if memory.text.strip() == FACT]
    assert [(memory.id, memory.fields["client"]) for memory in notes] == [
        ("notes:private/the-staging-database-is-called-heron", agent.client)
    ]
    assert Bank.open(place.project).list(tags=["unconfirmed"]) == []


def test_opencode_asks_where_it_stays_open(tmp_path: Path) -> None:
    """As its screen does, `opencode serve` goes on after a turn. `opencode run` does not: there the rules distil."""
    place = connected(AGENTS[2], tmp_path, "agent")
    correction = "No, always use uv instead of pip here."
    alone = place.ask(correction, Script(ANSWER, edits(place)))
    assert [REQUEST in turn.text for turn in alone.turns] == [False] * 6
    assert correction in "".join(memory.text for memory in Bank.open(place.project).list(tags=["unconfirmed"]))
    stores = Call("remember", {"text": FACT, "scope": "private", "extra": {"client": "opencode"}})
    with serve(completions, Script(ANSWER, edits(place), [stores])) as model, place.serving(model.url) as url:
        session = post(f"{url}/session", {})["id"]
        with urlopen(f"{url}/event", timeout=LONGEST) as events:
            text = {"parts": [{"type": "text", "text": correction}]}
            post(f"{url}/session/{session}/message", text)
            idle = (line for line in events if b'"session.idle"' in line)
            next(idle), next(idle)
            post(f"{url}/session/{session}/message", text)
            next(idle)
    assert [REQUEST in turn.text for turn in model.turns[:8]] == [False] * 6 + [True] * 2
    assert sum(REQUEST in str(message) for message in model.turns[-1].body["messages"]) == 1
    notes = [memory.id for memory in Bank.open(place.project).list(lane="notes", limit=100) if FACT in memory.text]
    assert notes == ["notes:private/the-staging-database-is-called-heron"]


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=LONGEST) as answer:
        return json.load(answer)  # type: ignore[no-any-return]


def test_claude_code_asks_after_a_compaction_that_came_first(tmp_path: Path) -> None:
    """In the context that the session goes on with, which takes no turn of its own."""
    place = connected(AGENTS[0], tmp_path, "off")
    place.ask("No, always use uv instead of pip here.", Script(ANSWER, edits(place)))
    configure(place, "agent")
    place.ask("/compact", Script("A summary of what was said.\n\nOf more than one line."), resume=True)
    after = place.ask(PROMPTS[1], Script(SECOND_ANSWER), resume=True)
    assert [REQUEST in turn.text for turn in after.turns] == [True]
    assert "- rule: No, always use uv instead of pip here." in after.turns[0].text


# -- what one client alone does


def test_claude_code_is_reminded_after_compaction(tmp_path: Path) -> None:
    """The summary that Claude Code writes is not captured: it is not what was said to the user."""
    place = connected(AGENTS[0], tmp_path)
    place.ask(PROMPTS[0], Script(ANSWER))
    place.ask("/compact", Script("A summary of what was said.\n\nOf more than one line."), resume=True)
    after = place.ask(PROMPTS[1], Script(SECOND_ANSWER), resume=True)
    fired = [(call["arguments"][1], call["payload"].get("source")) for call in place.hooks()]
    assert ("pre-compact", None) in fired
    assert ("session-start", "compact") in fired
    assert HOUSE_RULE in after.turns[0].text
    records = Bank.open(place.project).list(lane="records", limit=100)
    assert sorted(memory.text for memory in records) == sorted([ANSWER, SECOND_ANSWER])


def test_the_plugin_for_claude_code_does_the_same_as_connecting(tmp_path: Path) -> None:
    allowed = "mcp__plugin_memlane_memlane__remember"
    words = (word.replace("mcp__memlane__remember", allowed) for word in AGENTS[0].arguments)
    place = installed(replace(AGENTS[0], arguments=tuple(words)), tmp_path)
    for name in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / name, place.folder / "market" / name)
    place.run("claude", "plugin", "marketplace", "add", str(place.folder / "market"))
    place.run("claude", "plugin", "install", "memlane@memlane")
    model = place.ask(PROMPTS[0], Script(ANSWER, REMEMBERS))
    assert [turn.result for turn in model.turns] == [False, True]
    assert [text in model.turns[0].text for text in (HOUSE_RULE, RELEVANT)] == [True, True]
    bank = Bank.open(place.project)
    assert [memory.text for memory in bank.list(lane="records", limit=100)] == [ANSWER]
    assert FACT in [memory.text.strip() for memory in bank.list(lane="notes", limit=100)]


def test_codex_runs_no_hook_that_it_does_not_trust(tmp_path: Path) -> None:
    agent = replace(AGENTS[1], arguments=tuple(word for word in AGENTS[1].arguments if "hook-trust" not in word))
    place = connected(agent, tmp_path)
    model = place.ask(PROMPTS[0], Script(ANSWER, REMEMBERS))
    assert [turn.result for turn in model.turns] == [False, True]  # the tools are there
    assert place.hooks() == []


# -- tools of the client


COMMANDS = {  # how each client's own tool is told to run a command
    "claude-code": ("Bash", {"command": "echo heron", "description": "Say it"}),
    "codex": ("exec_command", {"cmd": "echo heron"}),
    "opencode": ("bash", {"command": "echo heron", "description": "Say it"}),
    "gemini": ("run_shell_command", {"command": "echo heron"}),
}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.client)
def test_what_applies_to_a_command_comes_with_its_result(agent: Agent, tmp_path: Path) -> None:
    words = (word.replace("mcp__memlane__remember", "mcp__memlane__remember,Bash") for word in agent.arguments)
    place = connected(replace(agent, arguments=tuple(words)), tmp_path)
    moment = "Herons are counted twice before anybody hears of them."
    Bank.open(place.project).add(moment, title="Herons", when="echo heron", created_at="2024-01-03")
    tool, arguments = COMMANDS[agent.client]
    model = place.ask("Go on with the next step.", Script("Done.", [Call(tool, arguments)]))
    assert [moment in turn.text for turn in model.turns] == [False, True]
    assert [call["arguments"][1] for call in place.hooks()].count("tool") == 1
