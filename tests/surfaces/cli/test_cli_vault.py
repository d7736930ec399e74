"""`memlane vault`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_vaults_verbs(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "Projects: dashboard", "--tier", "register", "--topic", "now", "--json").json["id"]
    assert (
        run("vault", "add", "Projects: dashboard, search", "--tier", "register", "--topic", "now", "--json").json[
            "version"
        ]
        == 2
    )
    assert [row["version"] for row in run("vault", "history", id, "--json").json] == [1, 2]
    assert [row["id"] for row in run("vault", "search", "dashboard", "--json").json] == [id]
    assert [row["id"] for row in run("vault", "list", "--json").json] == [id]
    assert "Active Registers" in run("vault", "snapshot").out
    assert run("vault", "promote", f"vault:{id}", "We build a dashboard.", "--json").json["tier"] == "canon"
    assert run("vault", "update", id, "We built a dashboard.").code == 0
    assert run("vault", "compact", "--json").json == {"lines_before": 4, "lines_after": 1, "lines_removed": 3}
    assert run("vault", "stats", "--json").json["active_count"] == 1
    assert run("vault", "candidates", "--json").json == []
    assert run("vault", "proposals", "--json").json == []
