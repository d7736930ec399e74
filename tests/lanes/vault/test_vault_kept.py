"""A long vault opens at once, for what is known of its beginning is kept: the answers are those of its lines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from memlane import Bank
from memlane.care.forget import forget
from memlane.core.errors import MemlaneError, Refused
from memlane.core.model import Memory, Problem
from memlane.gate.lookalikes import Lookalikes
from memlane.index.seal import beside
from memlane.lanes.vault import kept, log
from memlane.lanes.vault.record import Record, read_line, render_line
from memlane.lanes.vault.store import MemoryVault
from samples import tries, words
from vault_samples import parsed

WORDS = "amber basil cedar delta ember fjord grove heron inlet jetty kelp lotus maple nettle opal".split()
SCOPES = ("shared", "orion")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vault is a long one, and a few lines are many."""
    monkeypatch.setattr(log, "LONG", 1)
    monkeypatch.setattr(log, "MANY", 3)


def opened(folder: Path, *, keeps: bool = True, **options: Any) -> MemoryVault:
    place = folder / "state" / "kept.vault"
    return MemoryVault(
        folder / "vault.jsonl", max_active=1000, kept_at=(lambda: place) if keeps else lambda: None, **options
    )


def text(dice: random.Random) -> str:
    chosen = dice.choices(WORDS, k=dice.randint(2, 6)) + [f"n{dice.randint(0, 99)}" for _ in range(dice.randint(0, 3))]
    return " ".join(chosen * (10 if dice.random() < 0.1 else 1))


def answers(vault: MemoryVault, asked: list[tuple[str, str]]) -> list[Any]:
    """All that can be asked of a vault, and what its gate says to these texts."""
    found: list[Any] = []
    for new, scope in asked:
        with vault.log.reading() as known:
            rules = vault.similarity_threshold, vault.token_overlap_threshold
            try:
                found.append(known.lookalikes_in(scope, rules).find(new))
            except log.Damaged:
                known.without_columns()
                found.append(known.lookalikes_in(scope, rules).find(new))
        found += vault.search_memories(new, scope)
    items = parsed(vault)
    found += [item.id for item in items if isinstance(item, Memory)]
    found += [(item.line, item.why) for item in items if isinstance(item, Problem)]
    found += [vault.vault_stats(), vault.recall_memories(), sorted(vault.removed(), key=lambda gone: gone.id)]
    for options in ({}, {"scope": "orion"}, {"tags": [WORDS[0], WORDS[1]]}, {"category": "Bio", "scope": SCOPES}):
        found += [vault.recall_memories(limit=limit, **options) for limit in (1, 4, None)]
    found += [vault.search_memories(asked[0][0], limit=limit) for limit in (1, 4)]
    return found


def change(vault: MemoryVault, dice: random.Random) -> None:
    """Something that a person or a program does to a vault, or to its file."""
    ids = [record.id for record in vault.recall_memories()] or ["none"]
    gone = [removed.id.removeprefix("vault:") for removed in vault.removed()] or ["none"]
    lines = vault.path.read_bytes().splitlines(keepends=True) if vault.path.exists() else []
    common = ["add"] * 6 + "delete recover text scope tags register junk twin".split()
    what = dice.choice(common * 3 + ["edit", "cut", "torn", "compact"])
    try:
        match what:
            case "add":
                vault.add_memory(text(dice), dice.choice(SCOPES), "other")
            case "register":
                vault.update_by_topic(dice.choice("abc"), dice.choice(SCOPES), text(dice))
            case "text":
                vault.update_memory(dice.choice(ids), text=text(dice))
            case "scope":
                vault.revise(dice.choice(ids), {"scope": dice.choice(SCOPES)})
            case "tags":
                vault.update_memory(dice.choice(ids), tags=[dice.choice(WORDS)])
            case "delete":
                vault.delete_memory(dice.choice(ids))
            case "recover":
                vault.recover(dice.choice(gone))
            case "compact":
                vault.compact()
            case "edit" if lines:
                at = dice.randrange(len(lines))
                lines[at] = lines[at].replace(dice.choice(WORDS).encode(), dice.choice(WORDS).encode())
                vault.path.write_bytes(b"".join(lines))
            case "cut" if lines:
                vault.path.write_bytes(b"".join(lines[: dice.randrange(len(lines))]))
            case "torn":
                vault.path.write_bytes(b"".join(lines)[: -dice.randint(1, 9)])
            case "junk":
                vault.path.write_bytes(b"".join([*lines, b"no record\n", b"\n", b"\xef\xbb\xbf{}\n"]))
            case "twin" if lines:
                vault.path.write_bytes(b"".join([*lines, dice.choice(lines)]))
    except MemlaneError:
        pass


def damage(place: Path, dice: random.Random) -> None:
    data = bytearray(place.read_bytes())
    if dice.random() < 0.5:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        place.write_bytes(data)
    else:
        place.write_bytes(data[: dice.randrange(len(data))])


@pytest.mark.parametrize("seed", range(tries(3, 9)))
def test_what_is_kept_changes_no_answer(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """S002-38, S002-39: the near-duplicate is the same one, whatever was kept, edited, cut off or damaged."""
    monkeypatch.setattr(log, "MANY", 3 + seed % 3 * 4)
    dice = random.Random(seed)
    place = tmp_path / "state" / "kept.vault"
    used = 0
    (tmp_path / "vault.jsonl").write_text("".join(render_line(Record(str(n), text(dice))) + "\n" for n in range(30)))
    for _ in range(40):
        change(opened(tmp_path), dice)
        if place.exists() and dice.random() < 0.15:
            damage(place, dice)
        asked = [(text(dice), scope) for scope in SCOPES]
        with_it = opened(tmp_path)
        assert answers(with_it, asked) == answers(opened(tmp_path, keeps=False), asked)
        used += with_it.log.known.kept is not None
    assert used


@pytest.mark.parametrize("seed", range(tries(1, 3)))
def test_a_vault_that_stays_open_answers_as_one_that_is_opened_anew(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    stays = opened(tmp_path)
    for _ in range(40):
        change(stays if dice.random() < 0.8 else opened(tmp_path), dice)
        asked = [(text(dice), scope) for scope in SCOPES]
        with stays.log.changing():  # compares all of the file
            pass
        assert answers(stays, asked) == answers(opened(tmp_path, keeps=False), asked)


@pytest.mark.parametrize(
    "ask",
    [
        lambda vault: vault.get_memory("000000000007"),
        lambda vault: vault.recall_memories(limit=2),
        lambda vault: vault.recall_memories(category="bio", tags=["even"], limit=2),
        lambda vault: vault.search_memories("x7 y7"),
        lambda vault: vault.update_memory("000000000007", text="something new about the seventh"),
        lambda vault: vault.vault_stats(),
        lambda vault: list(vault.removed()),
        lambda vault: vault.add_memory("nothing like the others", "shared", "other"),
    ],
)
def test_only_the_lines_that_are_needed_are_parsed(
    tmp_path: Path, ask: Callable[[MemoryVault], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [
        Record(f"{n:012x}", f"w{n} x{n} y{n} z{n}", category="bio" if n % 5 == 0 else "goal", tags=["even"] * (n % 2))
        for n in range(50)
    ]
    (tmp_path / "vault.jsonl").write_text("".join(render_line(record) + "\n" for record in records))
    opened(tmp_path).add_memory("something else entirely", "shared", "other")
    vault = opened(tmp_path)
    parsed: list[bytes] = []

    def counting(line: bytes) -> Record | str:
        parsed.append(line)
        return read_line(line)

    monkeypatch.setattr(kept, "read_line", counting)
    ask(vault)
    assert len(parsed) <= 5


def test_who_only_reads_a_long_vault_is_answered_at_once_the_next_time(tmp_path: Path) -> None:
    lines = [render_line(Record(f"{n:012x}", f"w{n} x{n} y{n} z{n}")) + "\n" for n in range(50)]
    (tmp_path / "vault.jsonl").write_text("".join(lines))
    newest = opened(tmp_path).recall_memories(limit=3)
    vault = opened(tmp_path)
    assert vault.recall_memories(limit=3) == newest
    assert vault.log.known.kept is not None
    with pytest.raises(Refused, match="Duplicate of 000000000007"):
        vault.add_memory("w7 x7 y7 or z7", "shared", "other")


@pytest.mark.parametrize("query", ["kelvin", "istanbul", "caf\u00e9", "quoted", "zebra", "of the", "next"])
def test_a_search_finds_what_stands_in_the_file_in_another_way(tmp_path: Path, query: str) -> None:
    texts = [
        "\u212aelvin scale",
        "the caf\u00e9 here",
        'so "quoted" it is',
        "a line\nnext line",
        "plain words",
        "KELVIN",
    ]
    lines = [render_line(Record(str(place), text)) for place, text in enumerate(texts)]
    lines.append(render_line(Record("escaped", "zebra")).replace("zebra", "\\u007aebra"))
    (tmp_path / "vault.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    opened(tmp_path).add_memory("something else entirely", "shared", "other")
    vault = opened(tmp_path)
    assert vault.search_memories(query) == opened(tmp_path, keeps=False).search_memories(query)
    assert vault.log.known.kept


def test_a_restored_memory_comes_after_the_others(tmp_path: Path) -> None:
    """Of two that are alike, the first is named: deleted and restored, it is the second, kept or not."""
    lines = [render_line(Record(f"{n:012x}", "w x y z")) + "\n" for n in range(9)]
    (tmp_path / "vault.jsonl").write_text("".join(lines))
    opened(tmp_path).add_memory("something else entirely", "shared", "other")
    vault = opened(tmp_path)
    vault.delete_memory("000000000000")
    vault.recover("000000000000")
    for keeps in (True, False):
        with pytest.raises(Refused, match="Duplicate of 000000000001"):
            opened(tmp_path, keeps=keeps).add_memory("w x y z", "shared", "other")


def test_other_thresholds_are_not_answered_from_what_is_kept(tmp_path: Path) -> None:
    """S002-43"""
    vault = opened(tmp_path)
    for number in range(6):
        vault.add_memory(words(number), "shared", "other")
    asked = [(" ".join([*words(0).split()[:2], "one", "two", "three"]), "shared"), (words(1), "shared")]
    for rules in ({"token_overlap_threshold": 0.4}, {"token_overlap_threshold": 0.0}, {"similarity_threshold": 0.2}):
        assert answers(opened(tmp_path, **rules), asked) == answers(opened(tmp_path, keeps=False, **rules), asked)


def test_a_bank_keeps_it_in_the_state_folder_and_forgets_it_with_a_memory(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        for number in range(8):
            added = bank.add(words(number), lane="vault")
        place = beside(bank.index_file, "vault")
        assert place is not None
        assert place.stat().st_mode & 0o077 == 0
        forget(bank, [added.id])
        assert not place.exists()


def test_what_a_refused_add_found_out_is_kept(tmp_path: Path) -> None:
    first = opened(tmp_path, keeps=False)
    for number in range(5):
        first.add_memory(words(number), "shared", "other")
    with pytest.raises(Refused):
        opened(tmp_path).add_memory(words(0), "shared", "other")
    assert (tmp_path / "state" / "kept.vault").exists()


def test_after_an_edit_in_the_middle_only_other_texts_are_looked_at_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [render_line(Record(f"{n:012x}", words(n))) + "\n" for n in range(20)]
    path = tmp_path / "vault.jsonl"
    path.write_text("".join(lines))
    opened(tmp_path).add_memory("something else entirely", "shared", "other")
    rest = path.read_text().splitlines(keepends=True)[20:]
    lines[7] = lines[7].replace(words(7), words(99))
    path.write_text("".join([*lines[10:], *lines[:9], *rest]))  # and one is gone, and they have changed places
    filled: list[str] = []

    def noting(own: Lookalikes, texts: Iterable[tuple[str, str]]) -> None:
        texts = list(texts)
        filled.extend(text for _, text in texts)
        fill(own, texts)

    fill = Lookalikes.fill
    monkeypatch.setattr(Lookalikes, "fill", noting)
    with pytest.raises(Refused, match="Duplicate of 000000000003"):
        opened(tmp_path).add_memory(words(3), "shared", "other")
    with pytest.raises(Refused, match="Duplicate of 000000000007"):
        opened(tmp_path).add_memory(words(99), "shared", "other")
    assert filled == [words(99)]
