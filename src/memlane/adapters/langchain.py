"""A retriever of LangChain's on a bank: what a chain asks for is found as `bank.search` finds it.

MemlaneRetriever(bank=bank, k=3, filters={"tags": ["ops"]}).invoke("when do we deploy?")
"""

from __future__ import annotations

from typing import Any

from memlane.adapters import missing
from memlane.bank import Bank

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise missing("langchain", "langchain", "langchain-core") from error


class MemlaneRetriever(BaseRetriever):
    """The best `k` memories for a query, each as a document: its best passage, and in the metadata all that is known.

    `filters` are arguments of `Bank.search`; one call may give others, and another `k`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    bank: Bank
    k: int = 5
    filters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **filters: Any
    ) -> list[Document]:
        hits = self.bank.search(query, limit=self.k if k is None else k, **{**self.filters, **filters})
        return [
            Document(
                id=hit.memory.id,
                page_content=hit.content,
                metadata={
                    **{name: value for name, value in hit.memory.to_dict().items() if name != "text"},
                    "score": hit.score,
                    "relevance": hit.relevance,
                    "header_path": hit.header_path,
                },
            )
            for hit in hits
        ]
