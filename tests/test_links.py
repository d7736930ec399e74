"""The short version of `make torture-links`: links that lead out of a bank, under the commands that write most."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memlane import Bank
from memlane.surfaces.cli import COMMANDS as ALL
from torture_links import COMMANDS, UNTRIED, make_home, prints, put_link, target_of

HERE = Path(__file__).parent
PAIRS = (
    ".memories/first.md:file",
    ".memories/first.md:dangling",
    ".memories/vault.jsonl:file",
    ".memories/vault.jsonl:dangling",
)
WRITING = (
    "add A new fact of the day.",
    "append notes:first",
    "rm notes:first",
    "doctor --fix",
    "vault add",
    "vault compact",
)


def test_links_at_memories_lead_nowhere() -> None:
    words = [word for pair in PAIRS for word in ("--pair", pair)]
    words += [word for command in WRITING for word in ("--command", command)]
    done = subprocess.run(
        [sys.executable, str(HERE / "torture_links.py"), "--all", *words], capture_output=True, text=True
    )
    count = len(PAIRS) * len(WRITING)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [f"{count} of {count} cases; no finding"]), (
        done.stderr
    )


# -- the harness itself


def test_the_matrix_tries_every_command() -> None:
    assert {command[0] for command in COMMANDS} | UNTRIED == set(ALL)


def test_a_link_points_at_a_canary_and_a_change_there_is_seen(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    make_home(home)
    project.mkdir()
    before = prints(home)
    put_link(project, ".memories/indices/index.db", target_of(tmp_path, ".memories/indices/index.db", "file"))
    put_link(project, "memlane.toml", target_of(tmp_path, "memlane.toml", "dangling"))
    assert prints(home) == before
    (project / ".memories/indices/index.db").write_text("changed")
    (project / "memlane.toml").write_text("made")
    after = prints(home)
    assert {name for name in after if before.get(name) != after[name]} == {"canary.db", "missing.txt"}


@pytest.mark.parametrize("name", ["topics/area/part.md", "topics"])
def test_a_link_takes_the_place_of_what_was_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "topics/area").mkdir(parents=True)
    (tmp_path / "topics/area/part.md").write_text("old")
    put_link(tmp_path, name, "/dev/zero")
    assert (tmp_path / name).readlink() == Path("/dev/zero")


def test_a_link_at_the_vault_keeps_no_other_lane_from_its_care(tmp_path: Path) -> None:
    """Damage stays where it is: the vault is reported, and the notes are counted, tidied and forgotten as ever."""
    (tmp_path / "project").mkdir()
    (tmp_path / "outside").write_text("not ours")
    with Bank.init(tmp_path / "project") as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
        (bank.root / "vault.jsonl").symlink_to(tmp_path / "outside")
        assert (bank.removed(), bank.review().steps, bank.stats()["count"]) == ([], (), 1)
        assert bank.forget("notes:deploys").ids == ("notes:deploys",)
        assert [problem.path.name for problem in bank.problems()] == ["vault.jsonl"]
    assert (tmp_path / "outside").read_text() == "not ours"
