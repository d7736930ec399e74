"""How near a copy of something forgotten must be to be held back, and how often an unrelated text is.

    python bench/forgetting.py [--data FOLDER] [--forget 100]

Without FOLDER (or the variable MEMLANE_DATA) the texts are the pages of this project; else FOLDER holds notes-*.tar.gz.
A third of the pages is in a bank, and some of its texts are forgotten, one at a time. Then changed copies of them are
asked about, under other names; and texts of the other pages, which are called unrelated unless they repeat a whole
line. Prints Markdown; the same texts and changes in every run, but the keys are random.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from memlane import Memory
from memlane.disk.forgotten import SHORT, ForgottenTexts, Gone

ROOT = Path(__file__).parents[1]
LARGEST = 1000  # memories in the bank
_SYLLABLES = "ba ce di fo gu ha ji lo mu na pe ro sa ti vo wu".split()


def pages(data: Path | None) -> Iterator[tuple[str, str]]:
    """(name, text) of every page."""
    if data is None:
        for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
            if path.name not in ("cli.md", "mcp.md"):  # generated, and full of lines that repeat
                yield str(path), path.read_text()
        return
    for archive in sorted(data.glob("notes-*.tar.gz")):
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.name.endswith(".md") else None
                if file:
                    yield f"{archive.name}/{member.name}", file.read().decode(errors="replace")


def texts(data: Path | None) -> dict[str, list[str]]:
    """The texts of each page, as somebody would remember them: a paragraph, or the whole page where it has a few."""
    found: dict[str, list[str]] = {}
    for name, page in pages(data):
        parts = [part.strip() for part in re.split(r"\n\s*\n", page) if re.search(r"[a-z]{3}.* .* .* ", part)]
        prose = [part for part in parts if not part.startswith(("|", "```", "#", "<")) and len(part.split()) >= 8]
        long = "\n\n".join(prose[:4])
        found[name] = [*prose, long] if len(prose) > 1 else prose
    return {name: parts for name, parts in found.items() if parts}


def reworded(share: float) -> Callable[[str, random.Random], str]:
    """Another word in place of this share of the words, anywhere."""

    def change(text: str, dice: random.Random) -> str:
        pieces = re.split(r"(\s+)", text)
        places = [at for at, piece in enumerate(pieces) if piece.strip()]
        for at in dice.sample(places, max(1, round(share * len(places)))) if share else ():
            pieces[at] = "".join(dice.choice(_SYLLABLES) for _ in range(3))
        return "".join(pieces)

    return change


def in_other_lines(text: str, dice: random.Random) -> str:
    words = text.split()
    return "\n".join(" ".join(words[at : at + 7]) for at in range(0, len(words), 7))


def amid_other_text(text: str, dice: random.Random) -> str:
    around = [" ".join("".join(dice.choice(_SYLLABLES) for _ in range(3)) for _ in range(30)) for _ in range(2)]
    return f"{around[0]}. {text.replace(chr(10), ' ')} {around[1]}."


def half_of_it(text: str, dice: random.Random) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


CHANGES: dict[str, Callable[[str, random.Random], str]] = {
    "unchanged": reworded(0),
    "in other lines": in_other_lines,
    "amid other text": amid_other_text,
    "one word of 20 changed": reworded(0.05),
    "one word of 10 changed": reworded(0.1),
    "2 words of 10 changed": reworded(0.2),
    "3 words of 10 changed": reworded(0.3),
    "4 words of 10 changed": reworded(0.4),
    "5 words of 10 changed": reworded(0.5),
    "7 words of 10 changed": reworded(0.7),
    "its first half": half_of_it,
}


def lines_of(text: str) -> set[str]:
    return {" ".join(line.lower().split()) for line in text.splitlines() if len(line.split()) >= 4}


def main() -> None:
    parser = argparse.ArgumentParser(description="How near a copy must be to be held back after `memlane forget`.")
    parser.add_argument("--data", type=Path, default=os.environ.get("MEMLANE_DATA"))
    parser.add_argument("--forget", type=int, default=100)
    chosen = parser.parse_args()
    dice = random.Random(1)
    found = texts(Path(chosen.data) if chosen.data else None)
    names = sorted(found)
    dice.shuffle(names)
    stays = set(names[::3])
    bank = list(dict.fromkeys(text for name in names if name in stays for text in found[name]))
    new = list(dict.fromkeys(text for name in names if name not in stays for text in found[name]))
    dice.shuffle(bank)
    bank = bank[:LARGEST]
    short = [text for text in bank if len(text.split()) <= SHORT][: chosen.forget // 2]
    long = [text for text in bank if len(text.split()) > SHORT][: chosen.forget // 2]
    gone = [*short, *long]
    rest = [Memory(f"notes:{at}", "notes", text, "", "") for at, text in enumerate(bank) if text not in set(gone)]
    print(f"| copy | up to {SHORT} words ({len(short)}) | longer ({len(long)}) |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        alone: dict[str, ForgottenTexts] = {}
        for number, text in enumerate(gone):
            alone[text] = ForgottenTexts(Path(place) / f"{number}.jsonl")
            alone[text].remember([Gone("notes:gone", (text,))], rest)
        for what, change in CHANGES.items():
            held = [
                statistics.mean(alone[text].day(change(text, dice), "notes:new") is not None for text in group)
                for group in (short, long)
            ]
            print(f"| {what} | {' | '.join(f'{share:.0%}' for share in held)} |")
        lines = set().union(*map(lines_of, gone))
        unrelated = [text for text in new if not lines & lines_of(text)]
        asked = dice.sample(unrelated, min(1000, len(unrelated)))
        held_back = {text: sum(one.day(text, "notes:new") is not None for one in alone.values()) for text in asked}
    by_one = 1000 * sum(held_back.values()) / len(asked) / len(gone)
    by_all = 1000 * sum(map(bool, held_back.values())) / len(asked)
    print(
        f"\nOf 1,000 unrelated texts {by_one:.2f} are held back after one text was forgotten, and {by_all:.0f} after "
        f"all {len(gone)} ({len(asked)} texts asked about, {len(rest)} in the bank)."
    )


if __name__ == "__main__":
    main()
