"""memlane as a provider of the Agent Memory Benchmark (github.com/vectorize-io/agent-memory-benchmark).

    pip install memlane && git clone https://github.com/vectorize-io/agent-memory-benchmark
    PYTHONPATH=agent-memory-benchmark/src python bench/amb.py run --memory memlane …

Every document is a note with its date; a user's documents are found by a filter, before the best are chosen. The
benchmark has a model answer from what was found, and another judge the answer; this part needs neither.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from memory_bench.memory import REGISTRY
from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document

from memlane import Bank
from memlane.core.dates import moment
from memlane.core.model import Draft
from memlane.gate.outgoing import cleaned


class MemlaneProvider(MemoryProvider):  # type: ignore[misc]  # the benchmark is not installed where types are checked
    """A bank in the folder that the benchmark keeps for a run."""

    name = "memlane"
    description = "Plain files in a folder, found by words and vectors. No model, no server."
    kind = "local"

    def prepare(self, store_dir: Path, unit_ids: set[str] | None = None) -> None:
        folder = store_dir / "memlane"
        folder.mkdir(parents=True, exist_ok=True)
        self._bank = Bank.init(folder)

    def cleanup(self) -> None:
        self._bank.close()

    def ingest(self, documents: list[Any]) -> None:
        guard = self._bank.guard
        for document in documents:
            name = hashlib.sha256(f"{document.user_id}\0{document.id}".encode()).hexdigest()[:16]
            fields = {"filename": f"documents/{name}", "document": document.id, "user": document.user_id or ""}
            text = cleaned(document.content, guard)
            self._bank.notes.put(Draft(text, created_at=moment(document.timestamp), fields=fields))
        self._bank.index.refresh(force=True)

    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Any], dict[str, Any] | None]:
        hits = self._bank.search(query, k, where=None if user_id is None else {"user": user_id})
        found = [
            Document(hit.memory.fields["document"], hit.memory.text, user_id=hit.memory.fields["user"] or None)
            for hit in hits
        ]
        return found, {"hits": [{"id": hit.memory.id, "score": hit.score} for hit in hits]}


REGISTRY[MemlaneProvider.name] = MemlaneProvider

if __name__ == "__main__":
    from memory_bench.cli import app

    app()
