"""What indexing remembers of words takes little memory, however long these are."""

from __future__ import annotations

from memlane.index.words import Remembered


def test_long_words_are_not_remembered_and_of_short_ones_only_so_many() -> None:
    asked: list[str] = []

    def halves(word: str) -> tuple[str, ...]:
        asked.append(word)
        return word[: len(word) // 2], word[len(word) // 2 :]

    remembered = Remembered(halves, 2)
    blob = "x" * 101
    assert [remembered[word] for word in ("ab", blob, "ab", blob, "cd")] == [
        ("a", "b"),
        ("x" * 50, "x" * 51),
        ("a", "b"),
        ("x" * 50, "x" * 51),
        ("c", "d"),
    ]
    assert asked == ["ab", blob, blob, "cd"]
    assert remembered == {"ab": ("a", "b"), "cd": ("c", "d")}
    assert remembered["ef"] == ("e", "f")
    assert remembered == {"ef": ("e", "f")}
