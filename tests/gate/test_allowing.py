"""Who lets a finding pass: a person at a terminal, and nobody in the text itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from commands import CANARY, Run
from conftest import trusted
from memlane import Bank, NoteLane, Refused, gate
from memlane.config import allowing
from memlane.core.model import Draft
from memlane.core.text import first_line
from memlane.gate.fingerprints import BITS, fingerprint, is_fingerprint, salt_of
from memlane.gate.secrets import RULES, scan
from terminals import on_terminal

MARKED = f"{CANARY}  # memlane:allow because I say so"
WRITES = (
    ["add", MARKED], ["add", MARKED, "--lane", "vault"], ["add", MARKED, "--lane", "topics"],
    ["add", MARKED, "--lane", "records"], ["add", f"{CANARY} gitleaks:allow of a test"],
    ["add", f"{CANARY} # pragma: allowlist secret - a test"], ["update", "deploy-day", MARKED],
    ["append", "deploy-day", MARKED], ["edit", "deploy-day", MARKED], ["gate", "test", MARKED],
    ["edit", "deploy-day", "--old", "Tuesdays", "--new", MARKED], ["vault", "add", MARKED],
    ["topics", "store", "ops/x", MARKED], ["layers", "create", MARKED, "--project", "p", "--type", "known_issues"],
)  # fmt: skip


def test_a_mark_counts_only_with_a_reason_and_for_its_line() -> None:
    assert scan(f"{CANARY}  # memlane:allow revoked in 2023", marks=True) == []
    assert scan(f"{CANARY}  # pragma: allowlist secret - a test value", marks=True) == []
    assert len(scan(f"{CANARY}  # memlane:allow", marks=True)) == 1
    assert len(scan(f"memlane:allow for this line\n{CANARY}", marks=True)) == 1


@pytest.mark.parametrize("call", WRITES, ids=" ".join)
def test_no_mark_in_a_text_lets_a_program_store_it(run: Run, bank: Bank, call: list[str]) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    assert run(*call).code == 4
    assert not any(CANARY.encode() in path.read_bytes() for path in bank.root.rglob("*") if path.is_file())


def test_a_mark_counts_in_a_file_that_a_person_edits(run: Run, bank: Bank, tmp_path: Path) -> None:
    """By hand, or with `memlane edit` at a terminal; audit and prompts let the line pass, too."""
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho '{MARKED}' >> \"$1\"\n")
    editor.chmod(0o755)
    env = {"VISUAL": str(editor)}
    assert "updated" in on_terminal("edit", "deploy-day", cwd=tmp_path, env=env)
    assert run("doctor", "--only", "secrets").code == 0
    assert CANARY in run("get", "deploy-day").out


def test_an_editor_without_a_terminal_is_a_program(run: Run, bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    (tmp_path / "editor").write_text(f"#!/bin/sh\necho '{MARKED}' >> \"$1\"\n")
    (tmp_path / "editor").chmod(0o755)
    os.environ["VISUAL"] = str(tmp_path / "editor")
    try:
        assert run("edit", "deploy-day").code == 4
    finally:
        del os.environ["VISUAL"]


def test_a_mark_is_no_part_of_a_title(run: Run, bank: Bank) -> None:
    assert first_line("Latency by region # memlane:allow numbers of a test") == "Latency by region"
    assert first_line("<!-- memlane:allow numbers of a test -->\nLatency") == "Latency"
    memory = bank.add("Latency by region: see below (memlane:allow numbers of a test)")
    assert (memory.id, memory.title) == ("notes:latency-by-region-see-below", "Latency by region: see below")


# -- fingerprints


def test_a_fingerprint_lets_one_value_pass_and_no_other() -> None:
    name = fingerprint("github-token", CANARY, "7f3a")
    assert re.fullmatch(r"github-token@7f3a-[0-9a-f]{5}", name)
    assert is_fingerprint(name)
    assert scan(CANARY, allow={name}) == []
    assert len(scan(CANARY.replace("4", "5"), allow={name})) == 1
    assert len(scan(CANARY, allow={name.replace("github-token", "ssn")})) == 1


def test_a_fingerprint_is_another_one_in_another_folder() -> None:
    salts = {salt_of(f"/home/{name}/api") for name in ("ann", "bob", "cy")}
    assert len(salts) == 3
    assert len({fingerprint("ssn", "123-45-" + "6789", salt)[-5:] for salt in salts}) == 3


def test_a_fingerprint_fits_many_numbers_of_a_small_space() -> None:
    """Whoever tries all of a billion numbers learns that it is one of about a thousand."""
    assert 500 < 10**9 / 2**BITS < 2000


def test_no_fingerprint_looks_like_a_secret_itself() -> None:
    for rule in RULES:
        name = f"{rule.id}@7f3a-9c21b"
        for text in (
            f"a.md:3:4: password ({name})",
            f"a.md:3:4: GitHub token ({name})",
            f'fingerprint = "{name}"',
            f'{{"fingerprint": "{name}"}}',
        ):
            assert scan(text) == [], text


def test_fingerprints_are_worked_out_when_somebody_asks() -> None:
    """Capture and import refuse many texts, and show none of their fingerprints."""
    before = fingerprint.cache_info().misses
    with pytest.raises(Refused) as caught:
        gate.admit(gate.common(gate.Guard(salt="abcd")), Draft(f"one {CANARY} two"), None)
    assert fingerprint.cache_info().misses == before
    assert caught.value.fingerprints == (fingerprint("github-token", CANARY, "abcd"),)


# -- the command


def test_a_refusal_names_the_command_that_allows_it(run: Run, bank: Bank, tmp_path: Path) -> None:
    name = fingerprint("github-token", CANARY, salt_of(tmp_path))
    command = f'`memlane gate allow {name} --reason "…"`'
    assert command in run("add", f"key {CANARY}").err
    assert run("gate", "test", f"key {CANARY}", "--json").json["fingerprints"] == [name]
    assert f"({name})" in _leaked(run, bank).out


def _leaked(run: Run, bank: Bank) -> object:
    (bank.root / "pulled.md").write_text(f"key {CANARY}\n")
    return run("doctor", "--only", "secrets")


def test_a_person_allows_a_finding_for_everybody_who_trusts_the_project(run: Run, bank: Bank, tmp_path: Path) -> None:
    name = run("gate", "test", f"key {CANARY}", "--json").json["fingerprints"][0]
    shown = on_terminal("gate", "allow", name, "--reason", "revoked in 2020", cwd=tmp_path, typed=b"y\n")
    assert f"allowed in {tmp_path}/memlane.toml" in shown
    assert (
        (tmp_path / "memlane.toml")
        .read_text()
        .endswith(f'\n[[allow]]\nfingerprint = "{name}"\nreason = "revoked in 2020"\n')
    )
    assert run("add", f"key {CANARY}").code == 0
    assert CANARY in run("search", "key", "--json").out
    assert run("doctor", "--only", "secrets").code == 0


def test_no_stays_no(run: Run, bank: Bank, tmp_path: Path) -> None:
    before = (tmp_path / "memlane.toml").read_text()
    assert "nothing changed" in on_terminal(
        "gate", "allow", "github-token@7f3a-9c21b", "--reason", "x", cwd=tmp_path, typed=b"n\n"
    )
    assert (tmp_path / "memlane.toml").read_text() == before


def test_a_program_cannot_allow_anything(run: Run, bank: Bank, tmp_path: Path) -> None:
    before = (tmp_path / "memlane.toml").read_text()
    result = run("gate", "allow", "github-token@7f3a-9c21b", "--reason", "x", stdin="y\ny\n")
    assert (result.code, "Only a person can allow that" in result.err) == (4, True)
    assert (tmp_path / "memlane.toml").read_text() == before


def test_what_is_allowed_in_a_project_counts_when_it_is_trusted(run: Run, bank: Bank, tmp_path: Path) -> None:
    name = fingerprint("github-token", CANARY, "abcd")  # of somebody else's folder
    with open(tmp_path / "memlane.toml", "a") as file:
        file.write(f'[[allow]]\nfingerprint = "{name}"\nreason = "revoked"\n')
    assert run("get", "x").code == 3
    (bank.root / "pulled.md").write_text(f"key {CANARY}\n")
    assert CANARY not in run("get", "pulled").out
    trusted(tmp_path / "memlane.toml")
    assert CANARY in run("get", "pulled").out


def test_an_allowance_can_be_the_users_own(bank: Bank, home: Path) -> None:
    name = "github-token@7f3a-9c21b"
    assert allowing.allow(bank.config, [name], "revoked", user=True) == home / ".config/memlane/config.toml"
    assert Bank.open(bank.config.project).config.allow == (name,)


def test_an_entry_of_an_earlier_day_is_named_with_the_next_step(run: Run, bank: Bank, tmp_path: Path) -> None:
    with open(tmp_path / "memlane.toml", "a") as file:
        file.write('[[allow]]\nfingerprint = "github-token:1f0c2a9be4d7"\nreason = "revoked"\n')
    trusted(tmp_path / "memlane.toml")
    assert "[[allow]] github-token:1f0c2a9be4d7 is of an earlier memlane" in run("check-config").err
    assert "[[allow]] github-token:1f0c2a9be4d7" in run("doctor").out


def test_a_lane_alone_honours_no_mark(tmp_path: Path) -> None:
    assert "error" in NoteLane(tmp_path).create_memory("a.md", MARKED, [])
