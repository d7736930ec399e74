"""`memlane init`, `memlane check-config`, and `memlane` alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from commands import Run
from memlane import Bank
from memlane.core.dates import iso
from memlane.disk import journal
from memlane.history import sessions
from memlane.recall.blocks import Block
from samples import LANES, draft


def test_memlane_alone_says_where_you_are_and_what_to_do(run: Run) -> None:
    assert "memlane init" in run().out
    run("init")
    assert "nothing remembered yet" in run().out


def test_memlane_alone_counts_without_reading(run: Run, bank: Bank) -> None:
    for lane in LANES:
        bank.add(draft(lane, 1).text, lane=lane, **draft(lane, 1).fields)
    first, second, health, *rest = run().out.splitlines()
    assert health == "Health: not indexed yet, which the next search does; `memlane doctor` looks closer."
    assert second == "Your own bank is not read here: there is none; `memlane init --user` makes one."
    assert first == f"Bank {bank.root}: 1 note, 1 vault line, 1 topic file, 1 record, 1 layer file."
    assert [line.split("  ")[1] for line in rest if line] == [
        'memlane add "…" --tag x',
        'memlane search "…"',
        "memlane list -n 10",
        "memlane ui",
    ]


def test_memlane_alone_tells_of_the_last_session_and_of_what_waits(run: Run, bank: Bank) -> None:
    day = bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    bank.add("The pool is limited to 10.", title="Pool", tags=["unconfirmed"])
    block = Block.of("- Deploys go out on Tuesdays.", [day], tokens=9)
    with journal.acting("hook", "codex"):
        sessions.note(bank.config, "prompt", "5c1d9a40-aa", prompt="When do deploys go out?", block=block)
        sessions.note(bank.config, "prompt", "5c1d9a40-aa", prompt="And?", failed="the time was up")
    bank.search("deploys")
    bank.judge(day.id, "wrong")
    at = iso(sessions.session(bank, "5c1d").started)
    assert run().out.splitlines()[2:] == [
        f"Last session: codex, {at}: memory for 1 of 2 prompts; 1 failed.",
        "It was told: Deploy day.",
        "Waiting for you: 1 learned from sessions, 1 judged wrong.",
        "Health: indexed; failed hooks in the last session: 1; `memlane doctor` looks closer.",
        "",
        "  memlane log --sessions 5c1d9a40    see what it was told, and why",
        "  memlane review --only unconfirmed  decide on what was learned from sessions",
        "  memlane review --only wrong        mend what you judged wrong",
        '  memlane add "…" --tag x            remember something',
        '  memlane search "…"                 find it again',
        "  memlane list -n 10                 see the latest",
        "  memlane ui                         see it all in a browser",
    ]


def test_memlane_alone_loads_the_rules_once_and_blanks_a_secret_every_time(tmp_path: Path) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    code = (
        "import os, sys\nsys.argv = ['memlane']\n"
        "os._exit = lambda code: (print('memlane.gate.secrets' in sys.modules, file=sys.stderr), sys.exit(code))\n"
        "from memlane.__main__ import script\nscript()"
    )
    for folder, again in ((tmp_path / "project", "False"), (tmp_path / token, "True")):
        folder.mkdir()
        with Bank.init(folder) as bank:
            bank.search("nothing")
        for loaded in ("True", again):
            done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
            assert (done.stdout.startswith("Bank "), done.stderr.split()[-1]) == (True, loaded)
            assert token not in done.stdout


def test_memlane_alone_loads_nothing_that_a_search_needs(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.")
    bank.search("deploys")
    code = (
        "import sys\nfrom memlane.surfaces.cli.welcome import welcome\nwelcome(None, {})\n"
        "print([name for name in ('numpy', 'memlane.index.store', 'memlane.recall.search') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_init_prints_the_folder_and_is_safe_to_repeat(run: Run, tmp_path: Path) -> None:
    first = run("init")
    assert (first.code, first.out) == (0, f"{tmp_path / '.memories'}\n")
    assert run("init").out == first.out


def test_init_says_what_it_adopted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data/memory").mkdir(parents=True)
    (tmp_path / "data/memory/vault.jsonl").touch()
    assert "adopted data/memory/vault.jsonl as the vault lane" in run("init").err
    assert run("init", "--json").json["adopted"] == {"vault": "data/memory/vault.jsonl"}


def test_init_honours_the_named_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert run("--bank", "other", "init").out == f"{tmp_path / 'other/.memories'}\n"
    assert run("--bank", "nosuch", "list").code == 1


def test_init_says_when_it_hides_a_bank_above(run: Run, bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert f"the bank of {tmp_path} is not seen from here any more" in run("init", "sub").err


def test_check_config_tells_whether_memory_is_enabled(run: Run, tmp_path: Path) -> None:
    """S003-58"""
    assert "memory is not enabled" in run("check-config").err
    run("init")
    result = run("check-config", "--json").json
    assert result["settings"]["memory.enabled"] == {
        "value": True,
        "source": str(tmp_path / "memlane.toml"),
        "what": "whether there is a memory here",
    }
    assert "memory is enabled" in run("check-config").err


def test_the_users_own_bank_says_when_an_earlier_one_is_used(run: Run, home: Path) -> None:
    earlier = home / ".local/share/mcp-markdown-ragdocs/memories"
    earlier.mkdir(parents=True)
    result = run("init", "--user")
    assert result.out == f"{earlier}\n"
    assert result.err.splitlines()[0] == f"your earlier bank is used where it is: {earlier}"


def test_init_user_in_a_project_names_the_users_own_bank(run: Run, home: Path) -> None:
    run("init")
    assert run("init", "--user").out == f"{home / '.local/share/memlane/bank'}\n"


def test_whoever_makes_a_bank_in_an_obsidian_vault_is_told_how_its_notes_come_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "Elephants.md").write_text("Elephants never forget.")
    assert "this is an Obsidian vault, whose notes are not read here; `memlane import .`" in run("init").err
    assert run("import", ".").code == 0
    assert "Elephants" in run("list").out
