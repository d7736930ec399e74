"""Who may use some scopes learns nothing of the others: every answer is what it would be if they were empty."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memlane import Bank, MemlaneError
from memlane.bank.limited import Limited
from memlane.config.settings import TOOLSETS
from memlane.core.access import Access
from memlane.surfaces.mcp import answers, prompts, resources, toolsets
from memlane.surfaces.mcp.shared_bank import SharedBank

ANN = Access("ann", "remove", ("billing", "shop/*"))
TOOLS = {tool.name: tool for tool in toolsets.tools(TOOLSETS)}
NAMES = (
    "hippogriff-plan", "Hippogriff plan", "hippogrif-plan", "gone", "broken", "scopeless", "deploy-day", "current",
    "notes:hippogriff-plan", "./hippogriff-plan.md", "topics:hippogriff/feeding",
    ".memories/hippogriff-plan.md", "memory://memory/notes:hippogriff-plan", "HIPPOGRIFF-PLAN", "hippogriff…",
    ".trash/gone.md", "../.memories/hippogriff-plan.md", "vault:current", "[[hippogriff-plan]]", "topics/hippogriff",
)  # fmt: skip


def filled(folder: Path, *, others: bool) -> Bank:
    """A bank with memories that ann may see and, with `others`, many that she may not."""
    folder.mkdir()
    bank = Bank.init(folder)
    fixed: dict[str, Any] = {"created_at": "2025-01-15"}
    bank.add("Invoices are kept in Postgres.", title="Invoices", scope="billing", tags=["db"], **fixed)
    bank.add("The cart links to [[invoices]] and [[hippogriff-plan]].", title="Cart", scope="shop/cart", **fixed)
    bank.add("Carts expire after a day.", title="Cart expiry", scope="shop/cart", **fixed)
    bank.add("Refunds take two days.", title="Refunds", scope="billing", **fixed)
    bank.delete("notes:refunds")
    if not others:
        return bank
    plan = "The hippogriff project ships in May. Invoices are kept in Postgres, too."
    bank.add(plan, title="Hippogriff plan", scope="skunk", tags=["hippogriff", "db"], type="plan", **fixed)
    bank.add("Invoices are kept in Postgres!", title="Invoices", scope="skunk", **fixed)
    bank.add("Deploys of the hippogriff.", title="Deploy day", **fixed)
    bank.add("Deploy day for all.", title="Everywhere", scope="global", **fixed)
    bank.add("Gone hippogriff.", title="Gone", scope="skunk", **fixed)
    bank.delete("notes:gone")
    bank.add("Replaces it, hippogriff.", title="New cart", scope="skunk", replaces="notes:cart", **fixed)
    bank.add("Hippogriffs are canon.", lane="vault", tier="canon", scope="skunk")
    bank.add("Now: hippogriff.", lane="vault", tier="register", topic_id="current", scope="skunk")
    bank.add("Feed it.", lane="topics", topic="hippogriff/feeding", problem="It is hungry.", solution="Feed it.")
    bank.add("Said hippogriff.", lane="records", thread="t1")
    bank.add("# Known\n\nhippogriff", lane="layers", layer="shared-project", project="my-api", type="known_issues")
    (bank.root / "broken.md").write_text("---\nscope: [\n---\nhippogriff")
    (bank.root / "scopeless.md").write_text("---\ntitle: x\nscope: skunk\nscope: billing\n---\nhippogriff twice")
    return bank


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"query": "hippogriff invoices postgres deploy"}),
    ("recall", {"query": "what about carts", "budget": 100}),
    ("recall", {"query": "hippogriff", "scopes": ["skunk"]}),
    ("search_memories", {"query": "hippogriff"}),
    ("search_memories", {"query": "hipogriff plan"}),
    ("search_memories", {"query": "invoices", "limit": 50}),
    ("search_memories", {"query": "invoices", "scope": "skunk"}),
    ("search_memories", {"query": "invoices", "scope": "*"}),
    ("search_memories", {"query": "x", "filter_type": "plan"}),
    ("search_memories", {"query": "canon", "lane": "vault"}),
    ("search_linked_memories", {"query": "", "target_document": "hippogriff-plan"}),
    ("search_linked_memories", {"query": "", "target_document": "Hippogriff plan"}),
    ("search_linked_memories", {"query": "", "target_document": "notes:invoices"}),
    ("list_memories", {}),
    ("list_memories", {"deleted": True}),
    ("list_memories", {"lane": "vault"}),
    ("list_memories", {"scope": "skunk"}),
    ("list_memories", {"tag": ["hippogriff"]}),
    ("list_memories", {"type": "plan"}),
    ("get_memory_stats", {}),
    ("suggest_memory_merges", {"threshold": 0.1, "filter_type": None}),
    *(
        (tool, {"filename": name, **more})
        for tool, more in (
            ("read_memory", {}), ("update_memory", {"content": "x"}), ("append_memory", {"content": "x"}),
            ("delete_memory", {}),
        )
        for name in NAMES
    ),
    ("read_memory", {"filename": "cart"}),
    ("read_memory", {"filename": "invoices"}),
    ("edit_memory", {"id": "hippogriff-plan", "old": "May", "new": "June"}),
    ("edit_memory", {"id": "broken", "old": "hippogriff", "new": "x"}),
    ("edit_memory", {"id": "cart", "old": 'scope: "shop/cart"', "new": "scope: skunk"}),
    ("restore_memory", {"id": "gone"}),
    ("restore_memory", {"id": "hippogriff-plan"}),
    ("restore_memory", {"id": "current"}),
    ("get_memory", {"id": "hippogriff-plan"}),
    ("get_memory", {"key": "hippogriff-plan"}),
    ("memory_changes", {}),
    ("merge_memories", {"source_files": ["hippogriff-plan.md"], "target_file": "all.md", "summary_content": "x"}),
    ("put_memory", {"key": "hippogriff-plan", "text": "x"}),
    ("rename_memory", {"id": "hippogriff-plan", "new": "x"}),
    ("remove_memory", {"id": "hippogriff-plan", "expected": ""}),
    ("create_memory", {"filename": "hippogriff-plan.md", "content": "Mine now.", "tags": []}),
    ("create_memory", {"filename": "scopes/billing/hippogriff-plan.md", "content": "Again.", "tags": []}),
    ("create_memory", {"filename": "Broken.md", "content": "Mine as well.", "tags": []}),
    ("create_memory", {"filename": "topics/hippogriff.md", "content": "There.", "tags": []}),
    ("remember", {"text": "The hippogriff project ships in May. Invoices are kept in Postgres, too."}),
    ("remember", {"text": "Deploys of the hippogriff.", "title": "Deploy day"}),
    ("remember", {"text": "Gone hippogriff.", "title": "Gone", "scope": "shop/till"}),
    ("remember", {"text": "Mine.", "scope": "skunk"}),
    ("remember", {"text": "Mine.", "scope": "global"}),
    ("remember", {"text": "Mine.", "scope": "private"}),
    ("remember", {"text": "Mine.", "scope": "user"}),
    ("remember", {"text": "Mine.", "replaces": "notes:hippogriff-plan"}),
    ("remember", {"text": "Hippogriffs are canon.", "tier": "canon"}),
    ("remember", {"text": "---\nscope: skunk\n---\nSmuggled hippogriff."}),
    ("update_memory", {"filename": "cart", "content": "---\nscope: skunk\n---\nSmuggled."}),
    ("update_memory", {"filename": "cart", "content": "\ufeff---\nscope: skunk\n---\nSmuggled."}),
    ("update_memory", {"filename": "cart", "content": "Without any front matter."}),
    ("read_memory", {"filename": "cart"}),
    ("list_memories", {"limit": 100}),
    *((name, {}) for name in ("vault_get_stats", "layers_list", "topics_list", "records_list") if name in TOOLS),
    ("vault_search", {"query": "hippogriff"}),
    ("vault_update_memory", {"id": "current", "text": "Now: another."}),
    ("vault_delete_memory", {"id": "current"}),
    ("layers_update", {"path": "shared-project/my-api/known_issues", "content": "x"}),
    ("topics_search", {"query": "hippogriff"}),
    ("create_entities", {"entities": [{"name": "Hippogriff plan", "entityType": "x", "observations": ["It flies."]}]}),
    ("create_entities", {"entities": [{"name": "Cart", "entityType": "thing", "observations": ["It rolls."]}]}),
    ("create_relations", {"relations": [{"from": "Cart", "to": "Hippogriff plan", "relationType": "pulls"}]}),
    ("add_observations", {"observations": [{"entityName": "Hippogriff plan", "contents": ["It bites."]}]}),
    ("delete_observations", {"deletions": [{"entityName": "Hippogriff plan", "observations": ["It bites."]}]}),
    ("delete_entities", {"entityNames": ["Hippogriff plan", "Deploy day", "invoices"]}),
    ("open_nodes", {"names": ["Hippogriff plan", "Invoices", "Deploy day"]}),
    ("read_graph", {}),
    ("search_nodes", {"query": "hippogriff"}),
]  # fmt: skip


def told(bank: Bank, tool: str, arguments: dict[str, Any], access: Access = ANN) -> str:
    """What a client is told of a call, without what differs from folder to folder and from time to time."""
    try:
        said = answers.answer(bank, TOOLS[tool], TOOLS[tool].checked(arguments), "test", TOOLS, access)
    except Exception as error:
        said = answers.failure(error, tool, TOOLS)
    return plain(bank, f"{said.text}\n{json.dumps(said.data)}")


def plain(bank: Bank, text: str) -> str:
    text = text.replace(str(bank.root.parent), "FOLDER")
    text = re.sub(r"\d{8}_\d{6}", "STAMP", text)
    return re.sub(r"20\d\d-\d\d-\d\d(T[\d:.]+Z?)?", "DAY", text)


@pytest.fixture(scope="module")
def banks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Limited, Limited]:
    """The same memories of ann's in two banks, of which one has others besides."""
    folder = tmp_path_factory.mktemp("scopes")
    alone, crowded = (filled(folder / name, others=name == "crowded") for name in ("alone", "crowded"))
    return Limited(alone.config, ANN), Limited(crowded.config, ANN)


def test_every_answer_is_what_it_would_be_without_the_others(banks: tuple[Limited, Limited]) -> None:
    alone, crowded = banks
    for tool, arguments in CALLS:
        if tool in TOOLS:
            said = told(crowded, tool, arguments)
            assert said == told(alone, tool, arguments), (tool, arguments)
            assert "inside memlane" not in said, (tool, arguments)


def test_resources_prompts_and_completions_know_nothing_of_others(banks: tuple[Limited, Limited]) -> None:
    def every(bank: Bank) -> str:
        page = resources.page(bank, None)
        shown = [resources.read(bank, str(one.uri)).text for one in page.resources]
        for name in ("notes:hippogriff-plan", "vault:x", "broken", "current", "Deploy day"):
            try:
                shown.append(resources.read(bank, f"memory://memory/{name}").text)
            except MemlaneError as error:
                shown.append(f"{error} {error.hint}")
        typed = [prompts.ids(bank, ""), prompts.ids(bank, "hip"), prompts.tags(bank, "hip"), prompts.tags(bank, "")]
        recalled = prompts.TEMPLATES["recall"].text(bank, {"topic": "hippogriff"})
        return plain(
            bank, "\n".join([page.model_dump_json(), *shown, *(one.model_dump_json() for one in typed), recalled])
        )

    alone, crowded = banks
    assert every(crowded) == every(alone)


def test_the_bank_itself_keeps_scopes_apart_and_refuses_what_it_does_not_know(banks: tuple[Limited, Limited]) -> None:
    alone, crowded = banks
    for bank in banks:
        bank.index.ask(lambda: None, force=True)
    assert plain(crowded, json.dumps(crowded.graph())) == plain(alone, json.dumps(alone.graph()))
    assert plain(crowded, json.dumps(crowded.stats())) == plain(alone, json.dumps(alone.stats()))
    assert plain(crowded, crowded.snapshot(recent=20)) == plain(alone, alone.snapshot(recent=20))
    for verb in ("undo", "redo", "history", "changes", "log", "as_of", "forget", "review", "prune", "recover", "lost"):
        with pytest.raises(MemlaneError, match="limited to scopes"):
            getattr(crowded, verb)()


def test_nothing_of_others_is_changed(banks: tuple[Limited, Limited]) -> None:
    for tool, arguments in CALLS:
        if tool in TOOLS:
            told(banks[1], tool, arguments)
    whole = Bank.open(banks[1].root.parent)
    assert "ships in May" in whole.get("notes:hippogriff-plan").text
    assert {memory.scope for memory in whole.list() if memory.id.startswith("notes:scopes/")} == {
        "billing",
        "shop/till",
    }
    assert [memory.text for memory in whole.list(scope="skunk") if "Smuggled" in memory.text] == []


def test_who_may_only_read_writes_nothing_whatever_a_tool_does(tmp_path: Path) -> None:
    bank = filled(tmp_path / "bank", others=False)
    reader = Access("bob", "read")
    for tool, arguments in CALLS:
        if tool in TOOLS and TOOLS[tool].right != "read":
            told(bank, tool, arguments, reader)
    assert sorted(memory.id for memory in bank.list()) == ["notes:cart", "notes:cart-expiry", "notes:invoices"]
    assert bank.get("notes:cart").text.strip().startswith("The cart links")


def test_a_view_of_a_shared_bank_follows_what_others_write(tmp_path: Path) -> None:
    import anyio

    bank = filled(tmp_path / "bank", others=True)
    shared = SharedBank(bank.root.parent)

    async def run() -> list[str]:
        view = shared.seen_by(ANN)
        await view.run(lambda one: one.search("cart"))
        await shared.run(lambda one: one.notes.create_memory("new.md", "Carts roll."), outdates_index=True)
        await shared.run(lambda one: one.update("notes:new", scope="billing"))
        return await view.run(lambda one: [hit.memory.id for hit in one.search("carts roll", 1)])

    assert anyio.run(run) == ["notes:new"]
    assert shared.seen_by(Access("bob", "remove", ANN.scopes)) is shared.seen_by(ANN)
    assert shared.seen_by(Access()) is shared
    shared.close_all()


def test_what_is_forgotten_is_gone_from_the_indices_of_scopes_as_well(tmp_path: Path) -> None:
    bank = filled(tmp_path / "bank", others=False)
    view = Limited(bank.config, ANN)
    view.search("invoices")
    view.graph()
    kept = [view.index_file.path, *(bank.index_file.token_file or tmp_path).parent.glob("*scopes*.facts")]
    assert [b"Invoices" in path.read_bytes() for path in kept] == [True, True]
    view.close()
    bank.forget("notes:invoices")
    assert [path.exists() for path in kept] == [False, False]
    assert [hit.memory.id for hit in view.search("invoices postgres")] == ["notes:cart"]


BY_NAME: list[tuple[str, dict[str, Any]]] = [
    ("read_memory", {"filename": "copy"}),
    ("get_memory", {"id": "copy"}),
    ("append_memory", {"filename": "copy", "content": "More."}),
    ("update_memory", {"filename": "copy", "content": "Other."}),
    ("edit_memory", {"id": "copy", "old": "twelve", "new": "ten"}),
    ("delete_memory", {"filename": "copy"}),
    ("restore_memory", {"id": "copy"}),
    ("list_memories", {}),
]


def test_what_is_like_something_forgotten_in_another_scope_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    alone, crowded = (filled(tmp_path / name, others=False) for name in ("alone", "crowded"))
    text = "The hippogriff weighs twelve hundred pounds and sleeps in the stables of Lindenstrasse."
    crowded.add(text, title="Weight", scope="skunk")
    crowded.forget("notes:weight")
    (crowded.root / "copy.md").write_text(f"---\nscope: billing\n---\n{text}\n")  # as a sync brings it
    views = [Limited(bank.config, ANN) for bank in (alone, crowded)]
    for tool, arguments in BY_NAME:
        said = [told(view, tool, arguments) for view in views]
        assert said[0] == said[1], tool
    with pytest.raises(MemlaneError) as refused:
        views[1].append("notes:copy", "More.")
    assert "forgotten" not in f"{refused.value} {refused.value.hint}"


def test_who_guesses_at_what_was_forgotten_in_another_scope_is_not_told(tmp_path: Path) -> None:
    bank = filled(tmp_path / "bank", others=False)
    text = "The hippogriff weighs twelve hundred pounds and sleeps in the stables of Lindenstrasse."
    bank.add(text, title="Weight", scope="skunk")
    bank.forget("notes:weight")
    view = Limited(bank.config, ANN)
    guesses = [
        view.add(text, title="Guess", scope="billing"),
        view.add("Something else.", title=text, scope="billing"),
        view.update(view.add("A third.", title="Third", scope="billing").id, title=text),
        view.append(view.add("A fourth.", title="Fourth", scope="billing").id, text),
    ]
    assert {guess.id for guess in guesses} <= {memory.id for memory in view.list()}
    assert [remark for guess in guesses for remark in guess.remarks if "forgotten" in remark] == []


def test_a_note_names_its_author_and_so_does_the_journal(tmp_path: Path) -> None:
    bank = filled(tmp_path / "bank", others=False)
    told(
        bank, "remember", {"text": "Bob was here.", "title": "Bob", "extra": {"author": "ann"}}, Access("bob", "write")
    )
    told(bank, "append_memory", {"filename": "cart", "content": "Carts squeak."}, Access("bob", "write"))
    assert bank.get("notes:bob").fields["author"] == "bob"
    assert bank.history("notes:bob")[0].author == "mcp bob"
    assert [change.by for change in bank.changes().changes][-2:] == ["mcp bob", "mcp bob"]
    assert bank.users_word([bank.get("notes:bob")]) == set()
    told(bank, "put_memory", {"key": "bob", "text": "Carol was.", "extra": {"author": "x"}}, Access("carol", "remove"))
    assert bank.get("notes:bob").fields["author"] == "carol"


def test_a_record_of_a_long_vault_that_goes_to_another_scope_is_gone(tmp_path: Path) -> None:
    bank = filled(tmp_path / "bank", others=False)
    made = bank.add("The zanzibar account is closed.", lane="vault", tier="canon", scope="billing")
    line = json.loads((bank.root / "vault.jsonl").read_text())
    others = ({**line, "id": f"{number:012x}", "text": f"Fact {number} of many."} for number in range(1500))
    with (bank.root / "vault.jsonl").open("a") as file:
        file.writelines(json.dumps(other) + "\n" for other in others)
    view = Limited(bank.config, ANN)
    assert [hit.memory.id for hit in view.search("zanzibar", 1)] == [made.id]
    bank.update(made.id, scope="skunk")
    assert made.id not in [hit.memory.id for hit in view.search("zanzibar")]
    assert made.id not in [memory.id for memory in view.list(limit=2000)]
    bank.update(made.id, scope="billing")
    assert [hit.memory.id for hit in view.search("zanzibar", 1)] == [made.id]
