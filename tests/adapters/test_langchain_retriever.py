"""A retriever of LangChain's on a bank: LangChain's own conformance suite, and what it does not ask about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed: its retriever is not tried")
pytest.importorskip("langchain_tests", reason="langchain-tests is not installed: its suite is not run")

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

from memlane import Bank, InvalidInput
from memlane.adapters.langchain import MemlaneRetriever

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["ops"], extra={"team": "shop"})
        bank.add("A deploy is rolled back with make rollback.", title="Rollback", tags=["ops"])
        bank.add("Deploys are announced in the channel.", title="Announcing", tags=["people"])
        yield bank


class TestLangChainsOwnSuite(RetrieversIntegrationTests):
    """langchain-tests makes a retriever from a constructor and its arguments; the bank is a fixture's."""

    @pytest.fixture(autouse=True)
    def _with_a_bank(self, bank: Bank) -> None:
        self.bank = bank

    @property
    def retriever_constructor(self) -> Any:
        return MemlaneRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"bank": self.bank, "k": 2}

    @property
    def retriever_query_example(self) -> str:
        return "how are deploys done?"


def test_a_document_is_the_best_passage_and_all_that_is_known_of_the_memory(bank: Bank) -> None:
    [hit] = bank.search("on which day do we deploy?", limit=1)
    [found] = MemlaneRetriever(bank=bank, k=1).invoke("on which day do we deploy?")
    known = hit.memory.to_dict()
    del known["text"]
    assert found == Document(
        id="notes:deploy-day",
        page_content="Deploys go out on Tuesdays.",
        metadata={**known, "score": hit.score, "relevance": hit.relevance, "header_path": hit.header_path},
    )


def test_filters_are_those_of_search_and_a_call_may_give_others(bank: Bank) -> None:
    retriever = MemlaneRetriever(bank=bank, filters={"tags": ["ops"]})

    def ids(**given: Any) -> set[str | None]:
        return {document.id for document in retriever.invoke("deploys", **given)}

    assert ids() == {"notes:deploy-day", "notes:rollback"}
    assert ids(tags=["people"]) == {"notes:announcing"}
    assert ids(where={"team": "shop"}) == {"notes:deploy-day"}
    assert len(ids(k=1)) == 1
    with pytest.raises(InvalidInput):
        ids(lane="no such lane")


def test_nothing_is_found_in_an_empty_bank(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Bank.init(tmp_path_factory.mktemp("empty")) as bank:
        assert MemlaneRetriever(bank=bank).invoke("anything") == []


def test_it_is_awaited_and_part_of_a_chain(bank: Bank) -> None:
    chain = MemlaneRetriever(bank=bank, k=1) | RunnableLambda(lambda documents: documents[0].page_content)
    assert asyncio.run(chain.ainvoke("on which day do we deploy?")) == "Deploys go out on Tuesdays."
    assert chain.batch(["on which day do we deploy?", "how do we roll back?"]) == [
        "Deploys go out on Tuesdays.",
        "A deploy is rolled back with make rollback.",
    ]


def test_a_secret_that_somebody_else_wrote_is_not_handed_out(bank: Bank) -> None:
    path = bank.get("notes:rollback").path
    path.write_text(f"{path.read_text()}\nThe token is {TOKEN}\n")
    assert TOKEN not in str(MemlaneRetriever(bank=bank).invoke("rollback token"))
