"""Measure the secret and PII scanner: recall on public test cases, false alarms on notes, speed.

    python bench/gate.py --positives kingfisher=PATH noseyparker=PATH --notes tldr=PATH dendron=PATH --json figures.json

    python bench/gate.py passwords
    python bench/gate.py names
    python bench/gate.py duplicates --sts sts-train.csv sts-dev.csv

    python bench/gate.py instructions --attacks NAME=PATH --notes tldr=PATH dendron=PATH

    python bench/gate.py fingerprints

    python bench/gate.py outgoing

    python bench/gate.py disguises

    python bench/gate.py fuzz --lines 1000000

The first form reads the cases where they are; none are kept here. PATH is a folder or a file of
- rule YAML with `examples` (kingfisher, noseyparker; needs PyYAML),
- gitleaks' Go rule files (the string literals of `tps` and `fps`),
- JSONL lines {"text": ..., "label": "positive"|"negative", "class": ...},
- text files: each file of `--positives` is one case, each file of `--notes` is one note.
Prints Markdown. File names and classes are printed, values never.

`passwords` puts generated values into the contexts of bench/credentials.tsv and asks how many are found, and how many
are gone after redaction, so that no four characters in a row are left. `names` asks of each name there whether it makes
a credential of the values after it. What the scanner was not written with is unseen.

`duplicates` asks what a vault takes for a repetition: pairs of bench/changed_facts.tsv, and of the STS benchmark where
its files are given. A pair counts as refused when the newer text would be refused because of the older one: by
likeness alone, and in a bank, where a text that says something new is stored.

`instructions` asks what is marked as instructions to a model: attacks of bench/instructions.tsv by language and kind,
attacks of other sets where they are given (in the formats above), and paragraphs of harmless notes that are marked
wrongly.

The fourth says what it costs to reverse a fingerprint of `[[allow]]`. The fifth, what it costs to blank secrets in
what a bank of invented notes shows: each verb with the gate as it is and with gate.secrets = "off", side by side.

The sixth writes made-up tokens in many disguises and counts those that are found. The seventh makes lines of every
rule's own pattern, cuts, damages and encodes them, and scans them: none may raise, and none may take long.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
import time
from base64 import b32encode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from memlane.gate.secrets import RULES, redact, scan

TEXT = {".md", ".txt", ".markdown", ".rst", ".org"}


class Case(NamedTuple):
    """One text that should (or, when not `positive`, should not) be found."""

    text: str
    positive: bool
    group: str
    file: str


def read_cases(path: Path) -> Iterator[Case]:
    """Every case below a path, in whatever of the known formats its files are."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not file.is_file():
            continue
        if file.suffix in (".yml", ".yaml"):
            yield from _yaml_cases(file)
        elif file.suffix == ".go":
            yield from _go_cases(file)
        elif file.suffix == ".jsonl":
            yield from _jsonl_cases(file)
        elif file.suffix in TEXT:
            yield Case(file.read_text(errors="replace"), True, file.parent.name, file.name)


def _yaml_cases(file: Path) -> Iterator[Case]:
    import yaml

    try:
        rules = (yaml.safe_load(file.read_text(errors="replace")) or {}).get("rules", [])
    except (yaml.YAMLError, AttributeError):
        print(f"not read: {file.name} is no rule file", file=sys.stderr)
        return
    for rule in rules:
        if not isinstance(rule, dict):
            continue
        for key, positive in (("examples", True), ("negative_examples", False)):
            for text in rule.get(key) or []:
                yield Case(str(text), positive, str(rule.get("name") or rule.get("id")), file.name)


def _go_cases(file: Path) -> Iterator[Case]:
    """The plain string literals of `tps` and `fps`; those that the Go code builds at run time are out of reach."""
    source = file.read_text(errors="replace")
    for name, positive in (("tps", True), ("fps", False)):
        for block in re.findall(rf"\b{name}\s*:?=\s*\[\]string\{{(.*?)\n\t\}}", source, re.DOTALL):
            lines = "\n".join(line for line in block.split("\n") if not re.search(r"utils\.|secrets\.|\+", line))
            for raw, plain in re.findall(r"`([^`]+)`|\"((?:[^\"\\\n]|\\.)+)\"", lines):
                yield Case(raw or plain.encode().decode("unicode_escape"), positive, file.stem, file.name)


def _jsonl_cases(file: Path) -> Iterator[Case]:
    for line in file.read_text(errors="replace").splitlines():
        if line.strip():
            row: dict[str, Any] = json.loads(line)
            yield Case(row["text"], row.get("label", "positive") != "negative", str(row.get("class", "")), file.name)


def recall(cases: Iterable[Case]) -> dict[str, Any]:
    """Found and all, by class; and which negatives raised an alarm."""
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    false_alarms = [0, 0]
    in_order = 0
    for case in cases:
        hit = bool(scan(case.text))
        if case.positive:
            total[case.group] += 1
            found[case.group] += hit
            in_order += not hit and bool(re.search("abcdefgh|0123456789|1234567890", case.text.lower()))
        else:
            false_alarms[0] += hit
            false_alarms[1] += 1
    return {
        "found": found.total(),
        "positives": total.total(),
        "missed_in_order": in_order,
        "false_alarms": false_alarms[0],
        "negatives": false_alarms[1],
        "classes": {group: [found[group], total[group]] for group in sorted(total)},
    }


def alarms(path: Path) -> dict[str, Any]:
    """What the scanner says of a folder of notes, and how long it takes."""
    files = [f for f in sorted(path.rglob("*")) if f.suffix in TEXT and f.is_file()]
    texts = [(str(f.relative_to(path)), f.read_text(errors="replace")) for f in files]
    began = time.process_time()
    results = [(name, scan(text)) for name, text in texts]
    spent = time.process_time() - began
    kilobytes = sum(len(text.encode()) for _, text in texts) / 1024
    hits = [f"{name}:{f.line}:{f.column} {f.rule}" for name, findings in results for f in findings]
    flagged = sum(bool(findings) for _, findings in results)
    return {
        "notes": len(files),
        "flagged": flagged,
        "per_1000": round(1000 * flagged / max(len(files), 1), 2),
        "kilobytes": round(kilobytes, 1),
        "ms_per_kb": round(1000 * spent / max(kilobytes, 1e-9), 4),
        "findings": hits,
    }


def named(values: list[str]) -> Iterator[tuple[str, Path]]:
    """`NAME=PATH` pairs whose path is there; the others are said on stderr."""
    for value in values:
        name, _, path = value.rpartition("=")
        if Path(path).exists():
            yield name or Path(path).name, Path(path)
        else:
            print(f"skipped {name or path}: {path} is not there", file=sys.stderr)


def report(sets: dict[str, dict[str, Any]], notes: dict[str, dict[str, Any]], by_class: bool) -> None:
    """Print the figures as Markdown."""
    if sets:
        print(
            "| positives | found | of | recall | missed, in order | false alarms on its negatives |\n"
            "|---|---:|---:|---:|---:|---:|"
        )
        for name, figures in sets.items():
            share = 100 * figures["found"] / max(figures["positives"], 1)
            print(
                f"| {name} | {figures['found']} | {figures['positives']} | {share:.1f} % "
                f"| {figures['missed_in_order']} | {figures['false_alarms']} of {figures['negatives']} |"
            )
    if by_class:
        for name, figures in sets.items():
            print(f"\n| {name}: class | found | of |\n|---|---:|---:|")
            for group, (found, total) in figures["classes"].items():
                print(f"| {group} | {found} | {total} |")
    if notes:
        print("\n| notes | files | with an alarm | per 1,000 | ms CPU per KB |\n|---|---:|---:|---:|---:|")
        files = sum(figures["notes"] for figures in notes.values())
        flagged = sum(figures["flagged"] for figures in notes.values())
        kilobytes = sum(figures["kilobytes"] for figures in notes.values())
        spent = sum(figures["kilobytes"] * figures["ms_per_kb"] for figures in notes.values())
        rows = [(name, f["notes"], f["flagged"], f["per_1000"], f["ms_per_kb"]) for name, f in notes.items()]
        rows.append(("all", files, flagged, 1000 * flagged / max(files, 1), spent / max(kilobytes, 1)))
        for name, count, alarmed, share, speed in rows:
            print(f"| {name} | {count} | {alarmed} | {share:.2f} | {speed:.3f} |")
        for name, figures in notes.items():
            for line in figures["findings"]:
                print(f"- {name}/{line}")


# -- passwords and names

CREDENTIALS = Path(__file__).with_name("credentials.tsv")
# The share of a kind of value that must be found is another for each: people choose words, generators signs.
_LETTERS = string.ascii_letters + string.digits
_PHRASE = "orange window planet silver garden forest rocket butter castle dragon engine marble pepper violin".split()
VALUES: dict[str, Callable[[random.Random], str]] = {
    "16 of all signs": lambda r: "".join(r.choices(_LETTERS + string.punctuation, k=16)),
    "16 with !@#$%^&*-_": lambda r: "".join(r.choices(_LETTERS + "!@#$%^&*-_", k=16)),
    "20 letters and digits": lambda r: "".join(r.choices(_LETTERS, k=20)),
    "sk_ and 32 hex": lambda r: "sk_" + "".join(r.choices("0123456789abcdef", k=32)),
    "a word, digits, a sign": lambda r: f"{r.choice(_PHRASE).title()}{r.randint(10, 9999)}{r.choice('!#$?')}",
    "four words": lambda r: "-".join(r.choices(_PHRASE, k=4)),
}


def credentials(kind: str) -> Iterator[tuple[str, bool]]:
    """The texts of one kind in bench/credentials.tsv, and whether each is unseen."""
    unseen = False
    for line in CREDENTIALS.read_text().splitlines():
        if line.startswith("#"):
            unseen = line == "# unseen"
        elif line.startswith(f"{kind}\t"):
            yield line.partition("\t")[2], unseen


def is_gone(value: str, text: str) -> bool:
    """Whether no four characters of a value are left in a text."""
    return not any(value[at : at + 4] in text for at in range(len(value) - 3))


def passwords(times: int, seed: int) -> int:
    chance = random.Random(seed)
    print("| context | " + " | ".join(VALUES) + " |\n|---|" + "---:|" * len(VALUES))
    sums: dict[bool, list[list[int]]] = {False: [], True: []}
    for context, unseen in credentials("context"):
        row = []
        for make in VALUES.values():
            found = whole = 0
            for _ in range(times):
                value = make(chance)
                text = context.replace("\\n", "\n").replace("{}", value)
                findings = scan(text)
                found += bool(findings)
                whole += bool(findings) and is_gone(value, redact(text, findings))
            row.append((100 * found // times, 100 * whole // times))
        sums[unseen].append([whole for _, whole in row])
        mark = " (unseen)" if unseen else ""
        shown = context.replace("|", "\\|")
        print(f"| `{shown}`{mark} | " + " | ".join(f"{f} / {w}" for f, w in row) + " |")
    for unseen, rows in sums.items():
        means = [sum(column) / len(column) for column in zip(*rows, strict=True)]
        print(
            f"| **{'unseen' if unseen else 'seen'}, whole** | " + " | ".join(f"**{mean:.0f}**" for mean in means) + " |"
        )
    return 0


def names() -> int:
    """How many names alarm with a password, a random key and a hash after them, and how many without reason."""
    values = ("Kx9#mQ2v" + "Lp7z", "q8ZtR4wXn2LkV7" + "bYs5HdGf3J", "3f786850e387550fdab836" + "ed7e6dc881de23001b")
    print("| names | of | all three values found | none found |\n|---|---:|---:|---:|")
    for kind in ("credential", "other"):
        for unseen in (False, True):
            rows = [name for name, new in credentials(kind) if new == unseen]
            hits = [[bool(scan(f"{name}={value}")) for value in values] for name in rows]
            print(f"| {kind}{', unseen' if unseen else ''} | {len(rows)} | {sum(map(all, hits))} "
                  f"| {sum(not any(hit) for hit in hits)} |")  # fmt: skip
            wanted = kind == "credential"
            odd = [name for name, hit in zip(rows, hits, strict=True) if not all(found == wanted for found in hit)]
            if odd:
                print(f"<!-- {', '.join(odd)} -->")
    return 0


# -- what is a duplicate

PAIRS = Path(__file__).with_name("changed_facts.tsv")
Pair = tuple[str, str]  # old and new


def fact_pairs() -> dict[str, list[Pair]]:
    """The pairs of bench/changed_facts.tsv by kind; those that the rule was not written with are unseen."""
    groups: dict[str, list[Pair]] = {}
    unseen = ""
    for line in PAIRS.read_text().splitlines():
        if line.startswith("#"):
            unseen = ", unseen" if line == "# unseen" else unseen
            continue
        kind, old, new = line.split("\t")
        groups.setdefault(f"{kind}{unseen}", []).append((old, new))
    return dict(sorted(groups.items()))


def sts_pairs(paths: list[str]) -> dict[str, list[Pair]]:
    """Pairs of the STS benchmark by how alike people found them, 0 to 5; MSRpar are sentences of news."""
    groups: dict[str, list[Pair]] = {}
    for path in paths:
        for line in Path(path).read_text().splitlines():
            _, source, _, _, score, old, new, *_ = line.split("\t")
            if (value := float(score)) >= 4 and source == "MSRpar":
                groups.setdefault("STS-B, news said again (4 to 5)", []).append((old, new))
            for least, most, what in ((0, 1, "unrelated"), (2, 3, "something else"), (5, 5, "the same")):
                if least <= value <= most:
                    groups.setdefault(f"STS-B, {what} ({least} to {most})", []).append((old, new))
    return dict(sorted(groups.items()))


def duplicates(paths: list[str]) -> int:
    from memlane.gate.changes import what_is_new
    from memlane.gate.likeness import overlap, ratio, tokens

    print("| pairs | of | refused by likeness alone | refused in a bank |\n|---|---:|---:|---:|")
    for name, pairs in (fact_pairs() | sts_pairs(paths)).items():
        alike = [(o, n) for o, n in pairs if overlap(tokens(n), tokens(o)) >= 0.60 or ratio(n, o) >= 0.70]
        refused = sum(not what_is_new(new, old) for old, new in alike)
        shares = (f"{number} = {100 * number / len(pairs):.0f} %" for number in (len(alike), refused))
        print(f"| {name} | {len(pairs)} | {' | '.join(shares)} |")
    return 0


# -- what reads like instructions to a model

ATTACKS = Path(__file__).with_name("instructions.tsv")


def attacks() -> Iterator[tuple[bool, str, str, str]]:
    """The attacks of bench/instructions.tsv: whether the rules were written without it, kind, language and text."""
    unseen = False
    for line in ATTACKS.read_text().splitlines():
        if line.startswith("#"):
            unseen = unseen or line == "# unseen"
            continue
        kind, language, text = line.split("\t")
        yield unseen, kind, language, text.replace("\\n", "\n")


def paragraphs(path: Path) -> Iterator[tuple[str, str]]:
    """The paragraphs of the notes below a path, each with the name of its file."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.suffix in TEXT and file.is_file():
            for paragraph in re.split(r"\n\s*\n", file.read_text(errors="replace")):
                if len(paragraph.strip()) >= 20:
                    yield file.name, paragraph.strip()


def instructions(others: list[str], folders: list[str]) -> int:
    from memlane.core.instructions import suspicious

    found: dict[str, Counter[str]] = {"language": Counter(), "kind": Counter(), "all": Counter()}
    total: dict[str, Counter[str]] = {"language": Counter(), "kind": Counter(), "all": Counter()}
    for unseen, kind, language, text in attacks():
        marked = bool(suspicious(text))
        for by, name in (("language", language), ("kind", kind), ("all", "all")):
            found[by][f"{name}, {unseen}"] += marked
            total[by][f"{name}, {unseen}"] += 1
    print("| attacks | unseen, marked | of | seen, marked | of |\n|---|---:|---:|---:|---:|")
    for by, counts in total.items():
        for name in sorted({name.partition(",")[0] for name in counts}):
            cells = [number[by][f"{name}, {unseen}"] for unseen in (True, False) for number in (found, total)]
            print(f"| {name} | {' | '.join(map(str, cells))} |")
    for name, path in named(others):
        cases = [case for case in read_cases(path) if case.positive]
        print(f"| {name} | {sum(bool(suspicious(case.text)) for case in cases)} | {len(cases)} | | |")
    if folders:
        print("\n| notes | paragraphs | marked | per 1,000 | ms CPU per KB |\n|---|---:|---:|---:|---:|")
    lines = []
    for name, path in named(folders):
        texts = list(paragraphs(path))
        began = time.process_time()
        marks = [(file, signs) for file, text in texts if (signs := suspicious(text))]
        spent = 1000 * (time.process_time() - began)
        kilobytes = sum(len(text.encode()) for _, text in texts) / 1024
        share = 1000 * len(marks) / max(len(texts), 1)
        print(f"| {name} | {len(texts)} | {len(marks)} | {share:.2f} | {spent / max(kilobytes, 1e-9):.3f} |")
        lines += [f"- {name}/{file}: {', '.join(signs)}" for file, signs in marks]
    print("\n".join(lines))
    return 0


# -- what allowing and showing cost

SPACES = {
    "US social security number": 10**9,
    "payment card, its bank known": 10**9,
    "telephone number of a country": 10**10,
    "a million common passwords": 10**6,
}


def fingerprints() -> int:
    from memlane.gate.fingerprints import BITS, fingerprint

    began = time.process_time()
    for number in range(20):
        fingerprint("ssn", f"{number:09}", "7f3a")
    each = (time.process_time() - began) / 20
    print(f"One fingerprint takes {each * 1000:.0f} ms of one core and 16 MiB, and has {BITS} bits.\n")
    print("| values | to try all | of these have the fingerprint |\n|---|---:|---:|")
    for name, size in SPACES.items():
        days = size * each / 86400
        shown = f"{days / 365:,.1f} core-years" if days > 365 else f"{days * 24:,.0f} core-hours"
        print(f"| {name} | {shown} | about {max(1, round(size / 2**BITS)):,} |")
    return 0


def outgoing(count: int = 1000) -> int:
    """Ratios alone mean something: the two settings take turns in one process."""
    import statistics
    import tempfile

    from memlane import Bank

    dice = random.Random(1)
    words = [
        f"{a}{b}{c}" for a in ("ba", "ce", "di", "fo") for b in ("gu", "ha", "ji", "lo") for c in ("mu", "na", "pe")
    ]
    with tempfile.TemporaryDirectory() as folder:
        Bank.init(folder)
        for number in range(count):
            text = "\n".join(" ".join(dice.choices(words, k=20)) for _ in range(10))
            Path(folder, ".memories", f"n{number}.md").write_text(f"---\ntags: [{words[number % 48]}]\n---\n{text}\n")
        banks = {mode: Bank.open(folder, gate__secrets=mode) for mode in ("off", "refuse")}
        verbs: dict[str, Callable[[Bank], object]] = {
            "search, 5 hits": lambda bank: bank.search(" ".join(dice.choices(words, k=4))),
            "context of a prompt": lambda bank: bank.context(" ".join(dice.choices(words, k=4)), 800),
            "get": lambda bank: bank.get(f"n{dice.randrange(count)}"),
            "list of 20": lambda bank: bank.list(limit=20),
            f"list of all {count:,}": lambda bank: bank.list(),
            "all, brief": lambda bank: bank.list(brief=True),
        }
        print(
            f"{count:,} notes of 200 words.\n\n| verb | gate.secrets = off | as it is | ratio |\n|---|---:|---:|---:|"
        )
        for name, verb in verbs.items():
            times: dict[str, list[float]] = {mode: [] for mode in banks}
            for turn in range(24 if "all" not in name else 6):
                for mode, bank in banks.items():
                    began = time.process_time()
                    verb(bank)
                    if turn > 1:
                        times[mode].append(time.process_time() - began)
            off, now = (statistics.median(spent) for spent in times.values())
            print(f"| {name} | {off * 1000:.1f} ms | {now * 1000:.1f} ms | {now / off:.2f} |")
    return 0


# -- disguises

BASE62 = string.digits + string.ascii_letters
# Token kinds by prefix and how many characters follow it. They are put together, so that no scanner finds them here.
KINDS = (("gh" + "p_", 36), ("sk-" + "ant-api03-", 93), ("AI" + "za", 35), ("gl" + "pat-", 20), ("sk_" + "live_", 24),
         ("np" + "m_", 36), ("hv" + "s.", 90), ("dckr" + "_pat_", 27), ("lin" + "_api_", 40),
         ("xai" + "-", 80))  # fmt: skip
FRAMES = ("{}", "token: {}", "The key of the build is {}, do not share.", "export TOKEN={}", "`{}`", '{{"k": "{}"}}')


def between(sign: str, step: int) -> Callable[[str], str]:
    return lambda text: sign.join(text[at : at + step] for at in range(0, len(text), step))


def each(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(char)) for char in text)


def swapped(plain: str, other: str) -> Callable[[str], str]:
    return lambda text: text.translate(str.maketrans(plain, other))


def parts(form: str, *cuts: int) -> Callable[[str], str]:
    return lambda text: form.format(*(text[a:b] for a, b in pairwise((0, *cuts, len(text)))))


# The reader of disguises was written with these in view,
SEEN: dict[str, Callable[[str], str]] = {
    "zero-width space": between("\u200b", 5),
    "variation selector": between("\ufe0f", 5),
    "supplementary selector": between("\U000e0100", 5),
    "tag character": between("\U000e0041", 5),
    "terminal colours": between("\x1b[31m", 9),
    "no-break space": between("\xa0", 12),
    "Cyrillic letters": swapped("aceopxsjKMTBH", "асеорхѕјКМТВН"),
    "full width": lambda text: "".join(chr(ord(char) + 0xFEE0) for char in text),
    "mathematical": lambda text: "".join(
        chr(ord(c) + (0x1D3BF if c.isupper() else 0x1D3B9 if c.islower() else 0x1D79E)) if c.isalnum() else c
        for c in text
    ),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base32": lambda text: b32encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "percent": each("%{:02X}"),
    "JSON escapes": each("\\u{:04x}"),
    "HTML entities": each("&#{};"),
    "two lines": parts("{}\n{}", 15),
    "continued line": parts("{}\\\n  {}", 12),
    "put together": parts('{}" + "{}', 9),
    "named entities": lambda text: text.replace("_", "&lowbar;").replace("-", "&hyphen;").replace(".", "&period;"),
    "quoted-printable": lambda text: "=\n".join(re.findall(".{1,17}", text)),
    "combining ring": between("\u030a", 1),
    "Greek letters": swapped("AEHIKMNOPTXZov", "ΑΕΗΙΚΜΝΟΡΤΧΖον"),
    "percent, every other": lambda text: "".join(f"%{ord(c):02x}" if i % 2 else c for i, c in enumerate(text)),
    "PHP, three parts": parts("{}' . '{}' . '{}", 4, 16),
    "Python, two strings": parts("{}'\n        '{}", 11),
}
# and not with these.
UNSEEN: dict[str, Callable[[str], str]] = {
    "Mongolian vowel separator": between("\u180e", 3),
    "Hangul filler": between("\u3164", 6),
    "invisible times": between("\u2062", 4),
    "right-to-left marks": between("\u200f", 8),
    "cursor movements": between("\x1b[1C\x1b[1D", 11),
    "thin spaces": between("\u2009", 13),
    "Cherokee letters": swapped("ABCDEGHJKLMPRSTVWZ", "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ"),
    "small capitals": swapped("abcdegjkmnoprstuvwz", "ᴀʙᴄᴅᴇɢᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡᴢ"),
    "monospace letters": lambda text: "".join(
        chr(ord(c) + (0x1D62F if c.isupper() else 0x1D629 if c.islower() else 0x1D7C6)) if c.isalnum() else c
        for c in text
    ),
    "Devanagari digits": swapped(string.digits, "०१२३४५६७८९"),
    "base64 of JSON": lambda text: b64encode(json.dumps({"user": "ci", "value": text}).encode()).decode(),
    "base64 in lines of 48": lambda text: "\n".join(
        re.findall(".{1,48}", b64encode((". " * 20 + text).encode()).decode())
    ),
    "base64 of base64": lambda text: b64encode(b64encode(text.encode())).decode(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "octal escapes": each("\\{:03o}"),
    "four lines, indented": lambda text: "\n      ".join(re.findall(".{1,24}", text)),
    "lines of a comment": parts("{}\n// {}", 14),
    "joined list": parts('{}", "{}', 10),
    "reversed": lambda text: text[::-1],
    "a blank inside": parts("{} {}", 14),
}


def disguises() -> int:
    rng = random.Random(11)
    tokens = [head + "".join(rng.choices(BASE62, k=size - 2)) + "7a" for head, size in KINDS for _ in range(5)]
    print("| disguise | found | of |\n|---|---:|---:|")
    for name, group in (("", SEEN), (", unseen", UNSEEN)):
        total = 0
        for disguise, hide in group.items():
            found = sum(bool(scan(frame.format(hide(token)))) for token in tokens for frame in FRAMES)
            total += found
            print(f"| {disguise}{name} | {found} | {len(tokens) * len(FRAMES)} |")
        of = len(group) * len(tokens) * len(FRAMES)
        print(f"| **all{name}** | {total} = {100 * total / of:.1f} % | {of} |")
    return 0


# -- fuzzing

LIMIT = 5  # milliseconds of CPU time for a KB, and for a line that is shorter


def made(pattern: Any, rng: random.Random) -> str:
    """A text that a parsed pattern may match; what stands around it is left out."""
    text = ""
    for kind, value in pattern:
        name = str(kind)
        if name == "LITERAL":
            text += chr(value)
        elif name == "IN":
            text += rng.choice(_members(value))
        elif name in ("ANY", "NOT_LITERAL"):
            text += rng.choice(BASE62 + " =:/")
        elif name == "CATEGORY":
            text += rng.choice(_members([(kind, value)]))
        elif name.endswith("_REPEAT"):
            least, most, inner = value
            for _ in range(rng.randint(least, max(least, min(most, least + 8)))):
                text += made(inner, rng)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            text += made(value[-1] if name == "SUBPATTERN" else value, rng)
        elif name == "BRANCH":
            text += made(rng.choice(value[1]), rng)
    return text


def _members(items: Any) -> str:
    chars = ""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            chars += chr(value)
        elif name == "RANGE":
            chars += "".join(map(chr, range(value[0], min(value[1], 0x2FFF) + 1)))
        elif name == "CATEGORY":
            chars += {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " \n"}.get(str(value), BASE62 + "_")
    if items and str(items[0][0]) == "NEGATE":
        chars = "".join(char for char in string.printable[:95] if char not in chars)
    return chars or "x"


PIECES = (
    "password=", "token: ", "Bearer ", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END", "eyJhbGciOiJIUzI1NiJ9.",
    "LS0tLS1CRUdJTi", "://u:p@h/", "%", "%4", "\\u00", "&#", "&#x", '" + "', "\\\n", "\n", "\n    ", "\u200b", "\ufe0f",
    "а", "１", "\xa0", "\x1b[", "\ud800", "\0", "=", "==", '"', "'", "`", "|", "| password |\n|--|\n|", "cpf 1",
    "SIN 1", "IBAN DE", "4111 1111 ", "é", "İ", "ß",
)  # fmt: skip


def fuzzed(rng: random.Random, pattern: Any) -> str:
    """A line of one rule's making, cut, damaged, encoded, with others' pieces around it."""
    text = made(pattern, rng)
    for _ in range(rng.randrange(4)):
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        match rng.randrange(7):
            case 0:
                text = text[:at]
            case 1:
                text = text[at:]
            case 2:
                text = text[:at] + text[to:]
            case 3:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 4:
                text = text[:at] + "".join(rng.choices(string.printable + "éа１\u200b", k=rng.randrange(9))) + text[at:]
            case 5:
                code = rng.choice((b64encode, b32encode))(text.encode(errors="replace")).decode()
                text = code[: rng.randrange(len(code) + 1)]
            case 6:
                text = rng.choice((*SEEN.values(), *UNSEEN.values()))(text[:200].encode(errors="replace").decode())
    return rng.choice((*PIECES, "", "")) + text + rng.choice((*PIECES, "", ""))


def fuzz(lines: int, seed: int) -> int:
    """Print what raised and how slow the slowest was; 1 when a line raised or was too slow."""
    from re import _parser  # type: ignore[attr-defined]

    rng = random.Random(seed)
    rules = [
        (rule, _parser.parse(rule.regex), re.compile(rule.regex, re.IGNORECASE if rule.ignore_case else 0))
        for rule in RULES
    ]
    raised: Counter[str] = Counter()
    slow: list[tuple[float, str]] = []
    found = 0
    for number in range(lines):
        rule, parsed, compiled = rules[number % len(rules)]
        line = fuzzed(rng, parsed)
        try:
            began = time.process_time()
            findings = scan(line, email=True, phone=True)
            spent = 1000 * (time.process_time() - began)
            found += bool(findings)
            raised.update(f.rule for f in findings if f.rule == "unjudged")
            redact(line, findings)
            for match in compiled.finditer(line):
                for proof in filter(None, (rule.check, rule.proof)):
                    proof(match[rule.group])  # scan would count it as a finding
        except Exception as error:
            raised[f"{rule.id}: {type(error).__name__}"] += 1
        else:
            if spent > LIMIT * max(1, len(line) / 1024):
                slow.append((spent, rule.id))
    worst = max(slow, default=(0.0, ""))
    print(
        f"{lines:,} lines of {len(rules)} rules: {found:,} with findings, {raised.total():,} raised, {len(slow):,} slow"
    )
    for what, count in raised.most_common():
        print(f"- raised {count:,} times in {what}")
    if slow:
        print(f"- the slowest took {worst[0]:.1f} ms ({worst[1]})")
    return 1 if raised or len(slow) > lines // 1000 else 0  # a busy machine makes a few lines slow


def main(argv: list[str] | None = None) -> int:
    """Run the measurement; 0 for all but fuzzing, because a figure is no verdict."""
    argv = sys.argv[1:] if argv is None else argv
    if argv in (["fingerprints"], ["outgoing"]):
        return fingerprints() if argv == ["fingerprints"] else outgoing()
    if argv[:1] == ["disguises"]:
        return disguises()
    if argv[:1] == ["fuzz"]:
        parser = argparse.ArgumentParser(prog="gate.py fuzz")
        parser.add_argument("--lines", type=int, default=100_000, help="how many")
        parser.add_argument("--seed", type=int, default=1, help="another seed makes other lines")
        args = parser.parse_args(argv[1:])
        return fuzz(args.lines, args.seed)
    if argv[:1] == ["duplicates"]:
        parser = argparse.ArgumentParser(prog="gate.py duplicates")
        parser.add_argument("--sts", nargs="*", default=[], metavar="FILE", help="files of the STS benchmark")
        return duplicates(parser.parse_args(argv[1:]).sts)
    if argv[:1] == ["instructions"]:
        parser = argparse.ArgumentParser(prog="gate.py instructions")
        parser.add_argument("--attacks", nargs="*", default=[], metavar="NAME=PATH", help="attacks of other sets")
        parser.add_argument("--notes", nargs="*", default=[], metavar="NAME=PATH", help="folders of harmless notes")
        args = parser.parse_args(argv[1:])
        return instructions(args.attacks, args.notes)
    if argv[:1] == ["passwords"]:
        parser = argparse.ArgumentParser(prog="gate.py passwords")
        parser.add_argument("--times", type=int, default=100, help="values of each kind in each context")
        parser.add_argument("--seed", type=int, default=1)
        args = parser.parse_args(argv[1:])
        return passwords(args.times, args.seed)
    if argv == ["names"]:
        return names()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positives", nargs="*", default=[], metavar="NAME=PATH", help="test cases of other scanners")
    parser.add_argument("--notes", nargs="*", default=[], metavar="NAME=PATH", help="folders of harmless notes")
    parser.add_argument("--classes", action="store_true", help="also print recall by class")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    args = parser.parse_args(argv)
    sets = {name: recall(read_cases(path)) for name, path in named(args.positives)}
    notes = {name: alarms(path) for name, path in named(args.notes)}
    report(sets, notes, args.classes)
    if args.json:
        Path(args.json).write_text(json.dumps({"positives": sets, "notes": notes}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
