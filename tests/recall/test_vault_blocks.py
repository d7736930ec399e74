"""Prompt blocks from the vault, and the profiles that say what an agent sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Run
from conftest import trusted
from memlane import Bank
from memlane.config import Profile, load_profile
from memlane.core.errors import ConfigError
from memlane.lanes.vault.store import MemoryVault
from memlane.recall.vault_blocks import build_memory_block, build_snapshot_block, memory_block, snapshot_block


@pytest.fixture
def vault(tmp_path: Path) -> MemoryVault:
    vault = MemoryVault(tmp_path / "vault.jsonl")
    vault.add_memory("Deploys happen on Friday", "shared", "constraint", ["ops", "rule"])
    vault.add_memory("Friday: finish the dashboard", "shared", "project", tier="register", topic_id="current_projects")
    vault.add_memory("Orion prefers terse answers", "orion", "preference")
    vault.add_memory("Elysia paints on Friday nights", "elysia", "bio")
    vault.add_memory("A thought about lunch boxes", "shared", "other", tier="register")
    return vault


# -- the snapshot


def test_a_snapshot_covers_several_scopes(vault: MemoryVault) -> None:
    """S002-52"""
    assert build_snapshot_block(vault, ["shared", "orion"]) == (
        "## Memory Snapshot\n\n"
        "### Canon\n\n- Deploys happen on Friday\n- Orion prefers terse answers\n\n"
        "### Active Registers\n\n- **current_projects**: Friday: finish the dashboard\n"
    )


def test_a_snapshot_of_one_scope(vault: MemoryVault) -> None:
    """S002-52"""
    assert (
        build_snapshot_block(vault, "elysia") == "## Memory Snapshot\n\n### Canon\n\n- Elysia paints on Friday nights\n"
    )


# -- the memory block


def test_a_block_for_a_query_has_canon_first(vault: MemoryVault) -> None:
    """S002-53"""
    assert build_memory_block(vault, "shared", query="friday dashboard") == (
        "## Long-Term Memory Context\n\n"
        "### Canon\n\n#### constraint\n\n- Deploys happen on Friday [ops, rule] (scope: shared)\n\n"
        "### Registers\n\n#### project\n\n"
        "- **current_projects**: Friday: finish the dashboard (scope: shared)\n"
    )


def test_a_block_for_an_unrelated_query_is_empty(vault: MemoryVault) -> None:
    """S002-53"""
    assert build_memory_block(vault, ["shared", "orion", "elysia"], query="submarine") == ""


def test_a_block_without_query_has_the_newest(vault: MemoryVault) -> None:
    """S002-54"""
    block = build_memory_block(vault, ["shared", "orion", "elysia"], max_items=2)
    assert [line for line in block.splitlines() if line.startswith("- ")] == [
        "- Elysia paints on Friday nights (scope: elysia)",
        "- A thought about lunch boxes (scope: shared)",
    ]


@pytest.mark.parametrize("query", [None, "friday"])
def test_no_items_make_no_block(vault: MemoryVault, query: str | None) -> None:
    """S002-54"""
    assert build_memory_block(vault, ["shared"], max_items=0, query=query) == ""
    assert build_memory_block(vault, [], query=query) == ""


@pytest.mark.parametrize("query", [None, "friday orion elysia paints terse"])
@pytest.mark.parametrize(("agent", "other"), [("orion", "Elysia paints"), ("elysia", "Orion prefers")])
def test_an_agent_sees_shared_and_its_own(vault: MemoryVault, agent: str, other: str, query: str | None) -> None:
    """S002-55"""
    block = build_memory_block(vault, ["shared", agent], query=query)
    assert f"(scope: {agent})" in block
    assert "(scope: shared)" in block
    assert other not in block
    assert other not in build_snapshot_block(vault, ["shared", agent])


def test_labels_cannot_break_out_of_their_line(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    path.write_text('{"id":"a","text":"one\\n## two\\u200b","category":"x\\n## y","tags":["t\\n- u"]}\n')
    assert build_memory_block(MemoryVault(path), "shared") == (
        "## Long-Term Memory Context\n\n### Canon\n\n#### x ## y\n\n- one\n  ## two [t - u] (scope: shared)\n"
    )


def test_a_topic_cannot_break_out_of_its_line(tmp_path: Path) -> None:
    """The snapshot and the block show a topic and a text in the same way."""
    path = tmp_path / "vault.jsonl"
    path.write_text('{"id":"a","text":"one\\r## two","tier":"register","topic_id":"t\\n## Canon"}\n')
    bullet = "- **t ## Canon**: one\n  ## two"
    assert build_snapshot_block(MemoryVault(path), "shared").endswith(f"\n{bullet}\n")
    assert build_memory_block(MemoryVault(path), "shared").endswith(f"\n{bullet} (scope: shared)\n")


# -- profiles


def test_a_profile_is_read_from_yaml(tmp_path: Path) -> None:
    """S002-61"""
    path = tmp_path / "orion.yaml"
    path.write_text("name: Orion\nmemory:\n  enabled: true\n  scopes: [shared, orion]\n  max_items: 5\n")
    assert load_profile(path) == Profile(enabled=True, scopes=("shared", "orion"), max_items=5)
    path.write_text("memory:\n  similarity_threshold: 0.85\n  scopes: orion\n")
    assert load_profile(str(path)) == Profile(scopes=("orion",), similarity_threshold=0.85)


@pytest.mark.parametrize("content", ["", "name: Orion\n", "memory:\n"])
def test_a_profile_without_memory_has_the_defaults(tmp_path: Path, content: str) -> None:
    """S002-61"""
    path = tmp_path / "profile.yaml"
    path.write_text(content)
    assert load_profile(path) == Profile(True, (), 20, 0.70)


def test_a_profile_decides_what_is_injected(vault: MemoryVault) -> None:
    """S002-61"""
    orion = Profile(scopes=("shared", "orion"), max_items=1)
    assert memory_block(vault, orion, "dashboard") == build_memory_block(vault, orion.scopes, 1, "dashboard")
    assert snapshot_block(vault, orion) == build_snapshot_block(vault, orion.scopes)
    off = Profile(enabled=False, scopes=("shared",))
    assert (memory_block(vault, off, "friday"), memory_block(vault, off), snapshot_block(vault, off)) == ("", "", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("memory: 5", "`memory` has a key that is not known."),
        ("memory: {colour: red}", "`memory` has a key that is not known."),
        ("memory: {enabled: maybe}", "profile.enabled must be true or false."),
        ("memory: {max_items: -1}", "profile.max_items must be a whole number, at least 0."),
        ("memory: {max_items: true}", "profile.max_items must be a whole number, at least 0."),
        ("memory: {scopes: [1]}", "profile.scopes must be a list of text."),
        (
            "memory: {similarity_threshold: 1.5}",
            "profile.similarity_threshold must be a number, at least 0, at most 1.",
        ),
    ],
)
def test_a_wrong_profile_says_what_is_allowed(tmp_path: Path, content: str, message: str) -> None:
    """S002-61"""
    path = tmp_path / "profile.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as error:
        load_profile(path)
    assert str(error.value) == f"{path}: {message}"
    assert error.value.hint


@pytest.mark.parametrize("content", [b"memory: [", b"\xff\xfe", b"memory: !!python/object/apply:os.getcwd []"])
def test_a_profile_that_is_no_yaml(tmp_path: Path, content: bytes) -> None:
    """S002-61"""
    path = tmp_path / "profile.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is not a YAML profile"):
        load_profile(path)


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    """S002-61"""
    with pytest.raises(ConfigError, match="cannot be read"):
        load_profile(tmp_path / "nobody.yaml")


def test_the_banks_profile_is_its_table_or_the_file_it_names(tmp_path: Path) -> None:
    """S002-61: from memlane.toml and from a YAML profile."""
    (tmp_path / "memlane.toml").write_text(
        '[memory]\nenabled = true\n[profile]\nscopes = ["shared", "orion"]\nmax_items = 3\nsimilarity_threshold = 0.9\n'
    )
    trusted(tmp_path / "memlane.toml")
    bank = Bank.open(tmp_path)
    assert bank.profile == Profile(scopes=("shared", "orion"), max_items=3, similarity_threshold=0.9)
    assert bank.vault.similarity_threshold == 0.9
    (tmp_path / "agent.yaml").write_text("memory:\n  enabled: false\n")
    assert Bank.open(tmp_path, profile__file="agent.yaml").profile == Profile(enabled=False)


def test_check_config_shows_the_profile_in_force(run: Run, tmp_path: Path) -> None:
    """The values of the YAML file that is named, not those that it replaces."""
    run("init")
    path = tmp_path / "agent.yaml"
    path.write_text("name: reviewer\nmemory:\n  scopes: [shared, reviews]\n  max_items: 2\n")
    flags = ("--set", "profile.file=agent.yaml", "--set", "profile.similarity_threshold=0.9")
    rows = [line.split("\t") for line in run(*flags, "check-config").out.splitlines() if line.startswith("profile.")]
    assert {key: (json.loads(value), source) for key, value, source in rows} == {
        "profile.enabled": (True, "default"),
        "profile.scopes": (["shared", "reviews"], str(path)),
        "profile.max_items": (2, str(path)),
        "profile.similarity_threshold": (0.7, "default"),
        "profile.file": ("agent.yaml", "flag"),
    }
    shown = run(*flags, "check-config", "--json").json["settings"]
    assert (shown["profile.scopes"]["value"], shown["profile.scopes"]["source"]) == (["shared", "reviews"], str(path))
