"""What says nearly the same is looked for again only where something has changed, with the answer of a look at all."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from memlane import Bank
from memlane.care.review import alike, plan
from samples import tries


def _texts(known: dict[int, list[int]]) -> alike.Texts:
    words = [word for own in known.values() for word in own]
    return alike.texts([*known], [0] * len(known), [len(own) for own in known.values()], words)


@pytest.mark.parametrize("seed", range(tries(3, 12)))
def test_matches_that_were_kept_are_those_of_all_texts_compared_anew(seed: int, monkeypatch: pytest.MonkeyPatch):
    dice = random.Random(seed)
    known: dict[int, list[int]] = {}
    kept = alike.packed(_texts({}), alike.Matches(np.zeros(0, "<i8"), np.zeros(0, "<f8")))
    few = 0
    for turn in range(60):
        for _ in range(30 if turn == 0 else dice.randint(0, 4)):
            if known and dice.random() < 0.4:
                known.pop(dice.choice([*known]))
            known[dice.randrange(1 << 40)] = dice.sample(range(14), dice.randint(3, 9))
        texts, before = alike.unpacked(kept)
        stays = [key in known for key in texts.keys.tolist()]
        new = _texts({key: words for key, words in known.items() if key not in texts.keys})
        of = before.of.tolist()
        places = {old: now for now, old in enumerate(np.flatnonzero(stays).tolist())}
        of = [places.get(at, alike.APART) if at >= 0 else at for at, stay in zip(of, stays, strict=True) if stay]
        texts = texts.chosen(np.array(stays, bool)).joined(new)
        count, more = len(texts.keys), len(new.keys)
        before = alike.Matches(
            np.array([*of, *[alike.APART] * more], "<i8"),
            np.concatenate([before.share[np.array(stays, bool)], np.zeros(more)]),
        )
        compared = np.array([key % 11 != turn % 13 for key in texts.keys.tolist()], bool)
        rank = np.argsort(np.argsort(texts.keys))
        keys = texts.keys.tolist()
        odd = {(one, two) for one in range(count) for two in range(count) if (keys[one] ^ keys[two]) % 7 == 0}
        nothing = alike.Matches(np.full(count, alike.APART), np.zeros(count))
        monkeypatch.setattr(alike, "MOST", -1)
        anew = alike.matched(texts, nothing, compared, rank, lambda one, two: (one, two) in odd)  # noqa: B023
        monkeypatch.setattr(alike, "MOST", 1000)
        again = alike.matched(texts, before, compared, rank, lambda one, two: (one, two) in odd)  # noqa: B023
        assert again.of.tolist() == anew.of.tolist()
        assert again.share.tolist() == anew.share.tolist()
        few += int((again.of >= 0).sum())
        kept = alike.packed(texts, again)
    assert few


def _one_by_one(known: dict[int, list[int]]) -> tuple[list[int], list[float]]:
    """The matches of texts in this order, each compared with all before it that have none."""
    of: list[int] = []
    shares: list[float] = []
    keys = sorted(known, key=lambda key: (len(known[key]), key))
    found: dict[int, tuple[int, float]] = {}
    for at, key in enumerate(keys):
        own, best = {*known[key]}, (alike.NONE, 0.0)
        for other in keys[:at]:
            share = len(own.intersection(known[other])) / len(own.union(known[other]))
            if found[other][0] == alike.NONE and share >= (0.7 if len(own) <= 30 else 0.8) and share > best[1]:
                best = other, share
        found[key] = best
    for key in known:
        other, share = found[key]
        of.append(other if other == alike.NONE else [*known].index(other))
        shares.append(share)
    return of, shares


@pytest.mark.parametrize(("count", "vocabulary", "size"), [(700, 60, 30), (500, 200, 80)])
def test_texts_made_of_few_words_have_the_matches_of_a_comparison_one_by_one(count: int, vocabulary: int, size: int):
    dice = random.Random(count)
    known: dict[int, list[int]] = {}
    for key in range(count):
        if key and dice.random() < 0.2:  # like another one, more or less
            words = {*known[dice.randrange(key)]}
            words -= {*dice.sample(sorted(words), len(words) // dice.randint(5, 12))}
        else:
            words = {*dice.choices(range(vocabulary), k=dice.randint(size // 2, size))}
        known[key] = sorted(words)
    texts = _texts(known)
    nothing = alike.Matches(np.full(count, alike.APART), np.zeros(count))
    found = alike.matched(texts, nothing, np.ones(count, bool), np.arange(count), lambda *_: False)
    assert (found.of.tolist(), found.share.tolist()) == _one_by_one(known)
    assert (found.of >= 0).sum() > count // 20


def test_what_was_kept_is_not_used_when_it_was_cut_off():
    texts = _texts({1: [1, 2, 3]})
    data = alike.packed(texts, alike.Matches(np.array([alike.NONE]), np.zeros(1)))
    assert alike.unpacked(data)[0].keys.tolist() == [1]
    assert [len(alike.unpacked(part)[0].keys) for part in (data[:-1], data[:7], b"", None)] == [0, 0, 0, 0]


def test_a_change_to_one_note_changes_what_is_said_of_its_like(tmp_path: Path):
    with Bank.init(tmp_path) as bank:
        for name, end in (("one", "Friday"), ("two", "Friday evening"), ("three", "Friday at night")):
            text = f"The release train of the payment service leaves the main station every {end}"
            (bank.root / f"{name}.md").write_text(text)
        assert [(step.id, step.others) for step in plan(bank, only=["duplicate"]).steps] == [
            ("notes:three", ("notes:one",)),
            ("notes:two", ("notes:one",)),
        ]
        (bank.root / "one.md").write_text("Something else, which nobody has ever said in this place before")
        assert [(step.id, step.others) for step in plan(bank, only=["duplicate"]).steps] == [
            ("notes:two", ("notes:three",))
        ]
        (bank.root / "two.md").unlink()
        assert plan(bank, only=["duplicate"]).steps == ()
