"""Where texts come from: test cases of other scanners, in their own formats, and folders of notes.

PATH is a folder or a file of
- rule YAML with `examples` (kingfisher, noseyparker; needs PyYAML),
- gitleaks' Go rule files (the string literals of `tps` and `fps`),
- JSONL lines {"text": ..., "label": "positive"|"negative", "class": ...},
- text files, each of them one case or one note.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


def named(values: list[str]) -> Iterator[tuple[str, Path]]:
    """`NAME=PATH` pairs whose path is there; the others are said on stderr."""
    for value in values:
        name, _, path = value.rpartition("=")
        if Path(path).exists():
            yield name or Path(path).name, Path(path)
        else:
            print(f"skipped {name or path}: {path} is not there", file=sys.stderr)
