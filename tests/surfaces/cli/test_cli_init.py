"""`memlane init`, `memlane check-config`, and `memlane` alone."""

from __future__ import annotations

from pathlib import Path

from commands import Run
from memlane import Bank
from samples import LANES, draft


def test_memlane_alone_says_where_you_are_and_what_to_do(run: Run) -> None:
    assert "memlane init" in run().out
    run("init")
    assert "nothing remembered yet" in run().out


def test_memlane_alone_counts_without_reading(run: Run, bank: Bank) -> None:
    for lane in LANES:
        bank.add(draft(lane, 1).text, lane=lane, **draft(lane, 1).fields)
    first, second, *rest = run().out.splitlines()
    assert second == "Your own bank is not read here: there is none; `memlane init --user` makes one."
    assert first == f"Bank {bank.root}: 1 note, 1 vault line, 1 topic file, 1 record, 1 layer file."
    assert [line.split("  ")[1] for line in rest if line] == [
        'memlane add "…" --tag x',
        'memlane search "…"',
        "memlane list -n 10",
    ]


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
