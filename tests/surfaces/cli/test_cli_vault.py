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


def test_a_register_becomes_canon_in_its_own_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register", "--topic", "ship").out.strip()
    assert run("vault", "promote", id).out == f"{id}\n"
    memory = bank.get(id)
    assert (memory.text, memory.fields["tier"]) == ("We ship on Tuesdays.", "canon")
    assert run("vault", "promote", id, "again").code == 2


def test_a_register_becomes_canon_in_other_words(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register").out.strip()
    promoted = run("vault", "promote", id, "-", "-t", "release", "--json", stdin="Releases are on Tuesdays.").json
    assert (promoted["text"], promoted["tags"]) == ("Releases are on Tuesdays.", ["release"])


def test_only_registers_are_promoted(run: Run, bank: Bank) -> None:
    run("add", "text", "--title", "a")
    assert run("vault", "promote", "notes:a").code == 2
    assert run("vault", "promote", "vault:gone").code == 3
