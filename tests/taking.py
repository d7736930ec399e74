"""Making sources in temporary folders, and taking them into a bank."""

from __future__ import annotations

from pathlib import Path

from memlane import Bank
from memlane.exchange.imports import import_from


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def took(bank: Bank, path: Path, **options: object) -> list[tuple[str, str]]:
    return [(one.status, one.id) for one in import_from(bank, path, **options)]  # type: ignore[arg-type]


def statuses(bank: Bank, path: Path, **options: object) -> list[str]:
    return [status for status, _ in took(bank, path, **options)]
