"""Which of many memories say the same, without comparing each with each."""

from __future__ import annotations

import random

from memlane import Memory
from memlane.recall.sameness import Alike, says_the_same
from samples import tries

WORDS = "deploys go out on tuesday friday after the review of staging and nobody merges before noon".split()


def memory(text: str) -> Memory:
    return Memory("notes:x", "notes", text, "x", "/x.md")


def variant(dice: random.Random, texts: list[str]) -> str:
    """A new text, or one much like an earlier one: a word more, a word less, another case, no word at all."""
    kind = dice.random()
    if not texts or kind < 0.4:
        return " ".join(dice.choices(WORDS, k=dice.choice([0, 1, 2, 5, 12, 40, 70])))
    words = dice.choice(texts).split()
    for _ in range(dice.randint(0, 3)):
        if dice.random() < 0.5 or not words:
            words.insert(dice.randint(0, len(words)), dice.choice([*WORDS, "…", "extra", "30"]))
        else:
            words.pop(dice.randrange(len(words)))
    return " ".join(words).upper() if kind > 0.9 else " ".join(words)


def test_the_places_to_look_at_have_every_memory_that_says_the_same() -> None:
    dice = random.Random(18)
    for _ in range(tries(12, 40)):
        alike, texts, chosen = Alike(), list[str](), list[Memory]()
        for _ in range(60):
            texts.append(variant(dice, texts))
            new = memory(texts[-1])
            looked_at = [at for at in alike.places(new) if says_the_same(new, chosen[at])]
            assert looked_at == [at for at, other in enumerate(chosen) if says_the_same(new, other)]
            place = looked_at[0] if looked_at and dice.random() < 0.5 else len(chosen)  # the newer one takes its place
            chosen[place : place + 1] = [new]
            alike.put(place, new)


def test_few_of_many_memories_are_looked_at() -> None:
    alike = Alike()
    for number in range(2_000):
        alike.put(number, memory(f"Host {number} keeps its logs for {number + 7} days"))
    looked_at = list(alike.places(memory("Host 77 keeps its logs for 84 days")))
    assert (77 in looked_at, len(looked_at) < 5) == (True, True)
