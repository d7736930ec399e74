"""Run the real clients and print what was proven, as the table of docs/clients.md.

    python tests/clients               what `make test-clients` does
    python tests/clients --record      also write what the clients said to tests/payloads
    python tests/clients -k codex      one of them

A client that is not installed is skipped; the table says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import AGENTS, Agent

HERE = Path(__file__).parent
MODULES = HERE.parent.parent / ".clients/node_modules"

STEPS = {
    "test_the_tool_is_called_and_its_result_reaches_the_model": "tool called, result seen",
    "test_the_session_starts_with_the_snapshot": "snapshot in the request",
    "test_the_prompt_brings_what_is_relevant": "relevant memory in the request",
    "test_every_answer_is_captured_once": "answers captured once",
    "test_the_next_session_recalls_it": "next session recalls",
    "test_disconnecting_brings_the_settings_back": "settings restored",
}


class Table:
    """Collects the results, and prints them as the table of docs/clients.md."""

    def __init__(self) -> None:
        self.results: dict[tuple[str, str], str] = {}

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        parser.addoption("--record", action="store_true")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        step, _, client = report.nodeid.partition("::")[2].rstrip("]").partition("[")
        if report.when == "call" or report.outcome != "passed":
            self.results[client, step] = {"passed": "yes", "skipped": "not installed"}.get(report.outcome, "**no**")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        rows = [["client", "version", *STEPS.values()], ["---"] * (len(STEPS) + 2)]
        for agent in AGENTS:
            rows.append([agent.client, version(agent), *(self.results.get((agent.client, step), "") for step in STEPS)])
        terminalreporter.write_line("")
        for row in rows:
            terminalreporter.write_line(f"| {' | '.join(row)} |")


def version(agent: Agent) -> str:
    path = MODULES / agent.package / "package.json"
    return str(json.loads(path.read_text())["version"]) if path.exists() else ""


if __name__ == "__main__":
    raise SystemExit(pytest.main([str(HERE / "sessions.py"), *sys.argv[1:]], plugins=[Table()]))
