"""Links that lead nowhere: to a memory that does not exist, or to a file that is not in the project. Reads only."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from typing import TYPE_CHECKING

from memlane.index.links import Targets
from memlane.lanes.answers import Sign

if TYPE_CHECKING:
    from memlane.bank import Bank

_FILE_NAME = re.compile(r"[^\n<>|*?\"]+\.[A-Za-z]\w{0,7}")
_PLACE_IN_FILE = re.compile(r"[#^].*|:\d+(?:[:-]\d+)?$")
Linking = Iterable[tuple[str, str, Collection[str]]]  # ids, files, and the nodes of `links_in` that they link to


def to_no_memory(bank: Bank, linking: Linking, targets: Targets, command: Callable[..., str]) -> Iterator[Sign]:
    """Links to memories that are not among the targets, each with the command that restores its own, if one can."""
    removed: set[str] | None = None
    for id, file, nodes in linking:
        for node in nodes:
            kind, _, name = node.partition(":")
            if kind == "memory" and targets.find(node, id) is None:
                if removed is None:  # rarely needed
                    removed = {deleted.id for deleted in bank.removed()}
                back = next((id for id in (name, f"notes:{name}") if id in removed), None)
                fix = command("restore", back) if back else f"Correct the link in {file}"
                yield id, f"links to {node}, which is {'deleted' if back else 'no memory'}", fix


def to_no_file(bank: Bank, linking: Linking, known: Callable[[Collection[str]], Set[str]]) -> Iterator[Sign]:
    """Links to files that are neither in the project nor in the bank; `known` says which names the bank knows."""
    project = bank.config.code
    if not project:
        return  # the memories of a bank for all projects speak of files of any project
    missing = []
    for id, file, nodes in linking:
        for node in nodes:
            kind, _, target = node.partition(":")
            if kind != "ghost":
                continue
            name = _PLACE_IN_FILE.sub("", target).strip()
            if "://" in name or not _FILE_NAME.fullmatch(name):
                continue
            base = os.path.basename(name)
            folders = (project, bank.root, os.path.dirname(file))
            if not any(os.path.lexists(os.path.join(at, name)) for at in folders):
                missing.append((id, file, name, {name, base, f"{base}.md"}))
    there = known({name for *_, names in missing for name in names}) if missing else set[str]()
    for id, file, name, names in missing:
        if there.isdisjoint(names):
            yield id, f"links to {name}, a file that is not there", f"Correct the link in {file}"
