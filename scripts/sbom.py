"""Write what memlane brings with it, as a bill of materials: CycloneDX 1.6, JSON. Run by `make sbom`.

    python scripts/sbom.py [FILE] [--extra NAME]

It lists the distributions that memlane needs to run, and what those need in turn, as they are installed in the
environment that runs this: tools for development are left out. The same environment gives the same bytes. Prints to
standard output without FILE.
"""

from __future__ import annotations

import argparse
import json
import uuid
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "memlane"


def needs(found: Distribution, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """The names that a distribution requires here, each with the extras that it asks for."""
    required = map(Requirement, found.requires or ())
    return [
        (canonicalize_name(one.name), frozenset(one.extras))
        for one in required
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def installed(extras: frozenset[str]) -> tuple[dict[str, Distribution], dict[str, set[str]]]:
    """Every distribution below memlane by its name, and which names each one depends on."""
    distributions: dict[str, Distribution] = {}
    edges: dict[str, set[str]] = {}
    waiting, seen = [(ROOT, extras)], set()
    while waiting:
        name, wanted = step = waiting.pop()
        if step in seen:
            continue
        seen.add(step)
        distributions.setdefault(name, distribution(name))
        below = needs(distributions[name], wanted)
        edges.setdefault(name, set()).update(needed for needed, _ in below)
        waiting += below
    return distributions, edges


def licenses(found: Distribution) -> list[dict[str, Any]]:
    """What a distribution says of its licence: an SPDX expression, or else the names that it gives."""
    told = found.metadata
    if expression := told.get("License-Expression"):
        return [{"expression": expression}]
    kinds = [kind.rpartition(" :: ")[2] for kind in told.get_all("Classifier") or () if kind.startswith("License ::")]
    if not kinds and "\n" not in (word := told.get("License") or "\n"):
        kinds = [word]
    return [{"license": {"name": kind}} for kind in kinds]


def component(name: str, found: Distribution) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{found.version}"
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": found.version, "purl": purl}
    named = licenses(found)
    return {**entry, "licenses": named} if named else entry


def bill(extras: frozenset[str] = frozenset()) -> dict[str, Any]:
    distributions, edges = installed(extras)
    components = {name: component(name, found) for name, found in sorted(distributions.items())}
    refs = {name: entry["bom-ref"] for name, entry in components.items()}
    dependencies = [
        {"ref": refs[name], "dependsOn": sorted(refs[needed] for needed in edges[name])} for name in components
    ]
    product = {**components.pop(ROOT), "type": "application"}
    content = json.dumps([product, components, dependencies], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": product},
        "components": list(components.values()),
        "dependencies": dependencies,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the bill of materials of memlane as it is installed here.")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--extra", action="append", default=[], help="with an optional part of memlane")
    chosen = parser.parse_args()
    text = json.dumps(bill(frozenset(chosen.extra)), indent=2) + "\n"
    if chosen.file is None:
        print(text, end="")
        return
    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    chosen.file.write_text(text)
    print(f"{chosen.file}: {len(json.loads(text)['components'])} libraries")


if __name__ == "__main__":
    main()
