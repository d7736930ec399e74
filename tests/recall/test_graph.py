"""Links to memories by any of their names, and merge suggestions at size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hostile_texts import in_proportion
from memlane import Bank
from memlane.index import facts, near
from memlane.index.encoders import Encoder, HashEncoder, open_encoder
from memlane.index.links import links_in
from memlane.recall.blocks import RELEVANT
from memlane.recall.clusters import _joined, _least_cosine, _scale
from memlane.recall.graph import outgoing

# -- inline code


@pytest.mark.parametrize(
    "noise",
    ["`" * 2000 + " y" * 200_000, " ".join("`" * length for length in range(1, 1500)), "` `` " * 100_000],
    ids=["one run", "runs of all lengths", "many runs"],
)
def test_backticks_take_linear_time(noise: str) -> None:
    assert [node for node, _, _ in links_in("see [[a]] " + noise)] == ["ghost:a"]
    assert in_proportion(lambda text: list(links_in(text)), "see [[a]] " + noise)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("``[[a]]`` [[b]]", ["ghost:b"]),
        ("`[[a]]``[[b]]` [[c]]", ["ghost:c"]),  # a longer run inside closes nothing
        ("`` ` [[a]] `` [[b]]", ["ghost:b"]),
        ("``x [[a]]` [[b]]", ["ghost:a", "ghost:b"]),  # runs of two lengths are no pair
        ("``` x [[a]] `[[b]]` [[c]]", ["ghost:a", "ghost:c"]),  # an open run is text
        ("`[[a]]` [[b]] `[[c]]`", ["ghost:b"]),  # a run that closes does not open
    ],
)
def test_a_run_of_backticks_ends_at_the_next_that_is_as_long(text: str, nodes: list[str]) -> None:
    assert [node for node, _, _ in links_in(f"text {text}")] == nodes


# -- links to memories


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    bank.add("I am the target.", title="two")
    for title, link in {"seed": "memory:two", "bare": "two", "full": "notes:two", "file": "src/auth.py"}.items():
        bank.add(f"This is about [[{link}]].", title=title)
    return bank


def linking(bank: Bank, target: str) -> set[str]:
    return {link.memory.native_id for link in bank.linked(target)}


@pytest.mark.parametrize("target", ["two", "notes:two", "memory:two", "ghost:two"])
def test_a_memory_is_linked_by_any_of_its_names(bank: Bank, target: str) -> None:
    assert linking(bank, target) == {"seed", "bare", "full"}


@pytest.mark.parametrize(
    "target",
    ["src/auth.py", "ghost:src/auth.py", "./src/auth.py", "[[src/auth.py]]", "src/auth.py#Login", "src/auth.py:12"],
)
def test_a_file_is_linked_by_any_path_of_it(bank: Bank, target: str) -> None:
    assert linking(bank, target) == {"file"}
    assert linking(bank, f"{bank.config.project}/src/auth.py") == {"file"}


def test_a_file_is_no_memory_of_that_name(bank: Bank) -> None:
    assert linking(bank, "memory:src/auth.py") == linking(bank, "auth.py") == set()


@pytest.mark.parametrize("link", ["docs/x.md#Head", "./docs/x.md", "docs/x.md:12", "docs/x", "{project}/docs/x.md"])
@pytest.mark.parametrize("target", ["docs/x.md", "[[docs/x.md#Head|alias]]", "./docs/x.md", "{project}/docs/x.md"])
def test_a_link_to_a_place_in_a_file_links_to_the_file(bank: Bank, link: str, target: str) -> None:
    project = bank.config.project
    bank.add(f"See [[{link.format(project=project)}]].", title="reader")
    assert linking(bank, target.format(project=project)) == {"reader"}
    assert linking(bank, "docs/x.mdx") == linking(bank, "docs") == set()


@pytest.mark.parametrize("link", ["two", "two.md", "notes:two", "memory:two", ".memories/two.md", "two#Head"])
@pytest.mark.parametrize("target", ["two.md", ".memories/two.md", "{bank}/two.md", "The second one", "notes:two#Head"])
def test_a_memory_is_linked_whatever_its_title_or_path(bank: Bank, link: str, target: str) -> None:
    bank.update("notes:two", title="The second one")
    bank.add(f"See [[{link}]].", title="reader")
    assert linking(bank, target.format(bank=bank.root)) == {"seed", "bare", "full", "reader"}


# -- links as in a vault of Obsidian


@pytest.fixture
def vault(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    for name, text in {
        "Home": "See [[Alpha]], [[projects/Beta]], [[alpha#Goals]], [[Alpha#^block|the first]] and ![[Gamma.md]].",
        "projects/Alpha": "# Goals\n\nNext: [[#Goals]], [[Todo]] and [[../Home]].",
        "projects/Beta": "With [[memory:ALPHA]] and [[Beta#^b1]], [[Missing Note]].",
        "projects/deep/Gamma": "Back to [[./Todo]] and [[/projects/Beta]].",
        "projects/deep/Todo": "Deep.",
        "Todo": "Shallow. [[deep/Todo]]",
        "archive/old/Alpha": "An older one: [[Alpha]].",
    }.items():
        path = bank.root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return bank


@pytest.mark.parametrize(
    ("target", "sources"),
    [
        ("projects/Alpha", {"Home", "projects/Beta"}),
        ("archive/old/Alpha", {"archive/old/Alpha"}),  # the nearest: its own
        ("Beta", {"Home", "projects/Beta", "projects/deep/Gamma"}),
        ("gamma", {"Home"}),
        ("Home", {"projects/Alpha"}),
        ("projects/deep/Todo", {"Todo", "projects/Alpha", "projects/deep/Gamma"}),
        ("notes:Todo", set()),
        ("Missing Note", {"projects/Beta"}),
    ],
)
def test_a_link_means_what_it_means_in_obsidian(vault: Bank, target: str, sources: set[str]) -> None:
    assert linking(vault, target) == sources


def test_the_graph_of_such_a_vault_has_only_real_ghosts(vault: Bank) -> None:
    graph = vault.graph()
    assert [node["id"] for node in graph["nodes"] if node["is_ghost"]] == ["ghost:Missing Note"]
    edges = {
        (edge["source"][6:], edge["target"]) for edge in graph["edges"] if edge["source"] == "notes:projects/Alpha"
    }
    assert edges == {("projects/Alpha", "notes:projects/deep/Todo"), ("projects/Alpha", "notes:Home")}


# -- what a memory is about as a whole


def test_the_file_that_a_record_applies_to_is_a_link(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        record = bank.records.create(
            "All of them extend AppError and carry a code.", subject="Errors", keywords=["errors"],
            applies_to="file:src/auth.ts",
        )  # fmt: skip
        for number in range(20):
            bank.add(f"The deploy of service {number} takes {number} minutes, and auth is fine.")
        [link] = bank.linked("src/auth.ts")
        assert (link.memory.id, link.edge_type, link.anchor_context) == (
            f"records:{record.id}", "applies_to", "applies_to: file:src/auth.ts",
        )  # fmt: skip
        assert {"source": link.memory.id, "target": "ghost:src/auth.ts", "edge_type": "applies_to",
                "edge_context": "applies_to: file:src/auth.ts"} in bank.graph()["edges"]  # fmt: skip
        for prompt in ("What about src/auth.ts?", "Please fix the bug in src/auth.ts: the login fails."):
            assert record.id in str(bank.context(prompt, least=RELEVANT))


def test_a_link_to_a_memory_makes_no_ghost(bank: Bank) -> None:
    graph = bank.graph()
    assert [node["id"] for node in graph["nodes"] if node["is_ghost"]] == ["ghost:src/auth.py"]
    assert {edge["source"] for edge in graph["edges"] if edge["target"] == "notes:two"} == {
        "notes:seed",
        "notes:bare",
        "notes:full",
    }


def test_a_link_to_a_memory_that_is_gone_is_a_ghost(bank: Bank) -> None:
    bank.delete("notes:two")
    ghosts = {node["id"] for node in bank.graph()["nodes"] if node["is_ghost"]}
    assert ghosts == {"memory:two", "ghost:two", "ghost:notes:two", "ghost:src/auth.py"}
    assert linking(bank, "memory:two") == linking(bank, "notes:two") == {"seed", "full"}


def test_an_archived_memory_links_no_more_but_can_be_a_target(bank: Bank) -> None:
    bank.update("notes:bare", status="archived")
    bank.update("notes:two", status="archived")
    assert linking(bank, "two") == {"seed", "full"}


# -- merge suggestions


def test_archived_memories_are_not_to_be_merged(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    for title in "abc":
        bank.add("The login page times out after one hour of idling.", title=title)
    bank.update("notes:b", status="archived")
    [cluster] = bank.suggest_merges()
    assert [memory.id for memory in cluster.memories] == ["notes:a", "notes:c"]


def test_an_empty_bank_has_nothing_to_merge(tmp_path: Path) -> None:
    assert Bank.init(tmp_path).suggest_merges() == []


def unit_rows(count: int, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("threshold", [0, 0.3, 0.587, 0.7, 0.85, 0.95, 1])
@pytest.mark.parametrize("name", ["static", "hash", "none"])
def test_components_are_those_of_all_pairs_over_the_threshold(
    monkeypatch: pytest.MonkeyPatch, name: str, threshold: float
) -> None:
    monkeypatch.setattr("memlane.index.near._AT_ONCE", 700)  # several blocks
    encoder, rows = open_encoder(name), unit_rows(90)
    labels, cosines = np.arange(len(rows)), []
    for found in near.close(np.arange(len(rows)), rows, -1, float(_least_cosine(encoder, threshold))):
        labels = _joined(labels, found["first"], found["second"])
        cosines += found["cosine"].tolist()
    similarities = np.interp(cosines, *_scale(encoder))
    wanted = list(range(len(rows)))
    total: list[float] = []
    for a in range(len(rows)):
        for b in range(a + 1, len(rows)):
            similarity = encoder.similarity(float(rows[a] @ rows[b]))
            if similarity > threshold:
                total.append(similarity)
                old, new = wanted[b], wanted[a]
                wanted = [new if label == old else label for label in wanted]
    together = np.equal.outer(wanted, wanted)
    assert np.array_equal(np.equal.outer(labels, labels), together)
    assert len(similarities) == len(total)
    assert similarities.sum() == pytest.approx(sum(total), abs=1e-4)


@pytest.mark.parametrize("encoder", [open_encoder("static"), HashEncoder()])
@pytest.mark.parametrize("threshold", [0, 0.1, 0.587, 0.85, 0.999])
def test_the_least_cosine_is_strict(encoder: Encoder, threshold: float) -> None:
    least = _least_cosine(encoder, threshold)
    assert encoder.similarity(float(least)) <= threshold < encoder.similarity(float(np.nextafter(least, np.float32(2))))


def test_what_was_compared_is_known_and_only_new_memories_are_compared(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        for number in range(8):
            bank.add(f"The login page times out after one hour of idling. Case {number % 4}.", title=f"n{number}")
        bank.suggest_merges(0.3)
        for change in (
            lambda: bank.update("notes:n1", "Bread is baked at noon in the village."),
            lambda: bank.delete("notes:n2"),
            lambda: bank.add("The login page times out after an hour of idling.", title="new"),
            lambda: bank.update("notes:n3", status="archived"),
        ):
            change()
            for threshold in (0.3, 0.85, 0.95):
                known = bank.suggest_merges(threshold, 50, None)
                assert bank.suggest_merges(threshold, 50, None) == known
                facts.remove(bank.index_file)
                assert bank.suggest_merges(threshold, 50, None) == known


def test_two_thousand_near_twins_are_compared_at_once(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    first = bank.add("The login page times out after one hour of idling.", title="first")
    source = first.path.read_text("utf-8")
    for number in range(1999):
        first.path.with_name(f"twin-{number}.md").write_text(f"{source}\nCase {number}.\n", "utf-8")
    bank.suggest_merges(1)  # indexes
    [cluster] = bank.suggest_merges(0)
    assert len(cluster.memories) == 2000


def test_what_a_memory_links_to_is_listed_once_each_with_the_memory_that_is_meant(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    bank.add("Tests run on every push.", title="Tests")
    said = "Needs [[memory:tests]], see [[src/auth.py]]; again [[memory:tests]], and [[#above]]."
    found = outgoing(bank, bank.add(said, title="Deploy day"))
    assert [(link.target, link.id, link.edge) for link in found] == [
        ("memory:tests", "notes:tests", "DEPENDS_ON"),
        ("src/auth.py", None, "related_to"),
    ]
