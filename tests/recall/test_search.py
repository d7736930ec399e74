"""Search over the whole bank: words, vectors, links, filters, recency; and an index that follows the files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, InvalidInput
from memlane.core.dates import iso, utc_now
from memlane.index.chunks import LARGE, chunks
from memlane.index.encoders import open_encoder
from memlane.index.links import links_in
from memlane.index.words import query_terms, terms
from samples import LANES, draft, words

HERE = Path(__file__).parent.parent


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    bank.add(
        "Plan to refactor [[src/auth.py]] to use JWT.\n\n## Goals\n- Remove session-based auth",
        title="Auth refactor plan", tags=["refactor", "auth"], type="plan", created_at="2024-01-10",
    )  # fmt: skip
    bank.add(
        "We deploy on Tuesdays, never before a holiday.", title="Deploy day", tags=["ops"], created_at="2024-02-01"
    )
    bank.add("The cat likes tuna and sleeps all day.", title="Pets", created_at="2024-03-01")
    return bank


def ids(hits: list[object]) -> list[str]:
    return [hit.memory.id for hit in hits]  # type: ignore[attr-defined]


# -- finding


def test_a_memory_is_found_by_a_word(bank: Bank) -> None:
    """S003-24"""
    assert ids(bank.search("tuna"))[0] == "notes:pets"


def test_a_memory_is_found_without_a_common_word(bank: Bank) -> None:
    """S003-25"""
    assert ids(bank.search("kitten food"))[0] == "notes:pets"


def test_a_hit_by_words_and_meaning_beats_a_hit_by_one(tmp_path: Path) -> None:
    """S003-26"""
    bank = Bank.init(tmp_path)
    for title, text in {
        "both": "The database backup runs at night.",
        "meaning": "A copy of all tables is stored every evening.",
        "words": "Backup singers like the night train database song festival.",
    }.items():
        bank.add(text, title=title, created_at="2024-01-01")
    assert ids(bank.search("nightly database backup"))[0] == "notes:both"


def test_the_limit_is_five_and_is_kept(tmp_path: Path) -> None:
    """S003-27"""
    bank = Bank.init(tmp_path)
    for number in range(8):
        bank.add(f"deploy note {words(number)}", title=f"n{number}")
    assert (len(bank.search("deploy")), len(bank.search("deploy", 3)), len(bank.search("deploy", 0))) == (5, 3, 0)


def test_filters_apply_before_the_cut(tmp_path: Path) -> None:
    """S003-28: tags are any-of, type is equality, both combine."""
    bank = Bank.init(tmp_path)
    for number in range(20):
        bank.add(f"deploy deploy {words(number)}", title=f"n{number}")
    bank.add("we deploy rarely", title="wanted", tags=["ops", "x"], type="fact")
    bank.add("deploy plan", title="plan", tags=["ops"], type="plan")
    assert ids(bank.search("deploy", 1, tags=["nothing", "x"])) == ["notes:wanted"]
    assert set(ids(bank.search("deploy", tags=["ops"]))) == {"notes:wanted", "notes:plan"}
    assert ids(bank.search("deploy", tags=["ops"], type="plan")) == ["notes:plan"]
    assert ids(bank.search("deploy", lane="vault")) == []


def test_dates_filter_too(bank: Bank) -> None:
    assert ids(bank.search("deploy auth tuna", since="2024-01-15", until="2024-02-01")) == ["notes:deploy-day"]


def test_a_hit_has_its_best_piece_and_heading(bank: Bank) -> None:
    """S003-29, S003-30: the text before the first heading counts too."""
    hit = bank.search("JWT refactor")[0]
    assert (hit.memory.id, hit.memory.type, hit.memory.tags) == (
        "notes:auth-refactor-plan",
        "plan",
        ("refactor", "auth"),
    )
    assert hit.content.startswith("Plan to refactor")
    assert hit.header_path == "Goals"
    assert hit.to_dict()["memory"]["path"] == str(hit.memory.path)


def test_nested_headings_are_joined(tmp_path: Path) -> None:
    """S003-30"""
    bank = Bank.init(tmp_path)
    bank.add(f"# One\n{words(1, 30)}\n## Two\n{words(2, 30)}\n### Three\nzebra {words(3, 30)}\n", title="x")
    assert bank.search("zebra")[0].header_path == "One > Two > Three"


def test_recent_memories_score_higher_by_the_factor(tmp_path: Path) -> None:
    """S003-31, S003-32: within the days, inclusive; the factor as configured."""
    Bank.init(tmp_path)
    bank = Bank.open(tmp_path, memory__recency_boost_days=3, memory__recency_boost_factor=2.0)
    for days in (1, 3, 10):
        bank.add(f"deploy on {words(days)}", title=f"d{days}", created_at=iso(utc_now() - timedelta(days=days)))
    factors = {hit.memory.title: hit.why["recency"] for hit in bank.search("deploy")}
    assert factors == {"d1": 2.0, "d3": 2.0, "d10": 1.0}
    for hit in bank.search("deploy"):
        assert hit.score == pytest.approx(hit.why["base"] * hit.why["recency"], abs=1e-3)


def test_a_new_memory_may_overtake_any_number_of_older_ones(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    for number in range(60):
        bank.add(f"The deploy script needs key {number}.", created_at=utc_now() - timedelta(days=30))
    new = bank.add("The deploy went well.", title="new")
    bank.close()
    for factor, first in ((1.0, False), (30.0, True)):
        with Bank.open(tmp_path, memory__recency_boost_factor=factor) as bank:
            [hit] = bank.search("deploy script key", limit=1)
            assert (hit.memory.id == new.id) is first


def test_the_window_of_recency_ends_with_its_last_day(tmp_path: Path) -> None:
    """S003-31: the seventh day counts to its end, the eighth does not."""
    bank = Bank.init(tmp_path)
    for name, age in {"in": timedelta(days=8, minutes=-10), "out": timedelta(days=8, minutes=10)}.items():
        bank.add("The deploy of today.", title=name, created_at=iso(utc_now() - age))
    assert {hit.memory.title: hit.why["recency"] for hit in bank.search("deploy")} == {"in": 1.2, "out": 1.0}


def test_what_is_deleted_is_nowhere(bank: Bank) -> None:
    """S003-21: not in search, stats or linked results."""
    bank.notes.create_memory("gone", "About wombats, see [[src/wombat.py]].", ["wombat"])
    before = bank.notes.stats()
    assert ids(bank.search("wombats"))[0] == "notes:gone"
    assert [link.memory.id for link in bank.linked("src/wombat.py")] == ["notes:gone"]
    assert bank.notes.delete_memory("gone")["status"] == "deleted"
    after = bank.notes.stats()
    assert "notes:gone" not in ids(bank.search("wombats"))
    assert bank.linked("src/wombat.py") == []
    assert (before["count"] - after["count"], "wombat" in before["tags"], "wombat" in after["tags"]) == (1, True, False)


def test_a_boosted_memory_overtakes_from_beyond_the_limit(tmp_path: Path) -> None:
    """S003-32"""
    bank = Bank.init(tmp_path)
    for number in range(6):
        bank.add(f"the deploy {words(number)}", title=f"old{number}", created_at="2020-01-01")
    bank.add(f"the deploy {words(99)}", title="new")
    assert ids(bank.search("deploy", 1)) == ["notes:new"]


@pytest.mark.parametrize("query", ["", "   ", '""'])
def test_an_empty_query_finds_nothing(bank: Bank, query: str) -> None:
    """S003-33"""
    assert bank.search(query) == []


def test_quoted_phrases_must_occur_and_minus_words_must_not(bank: Bank) -> None:
    assert ids(bank.search('"never before"')) == ["notes:deploy-day"]
    assert ids(bank.search('"before never"')) == []
    assert "notes:deploy-day" not in ids(bank.search("day -deploy"))


def test_results_are_the_same_every_time(bank: Bank, tmp_path: Path) -> None:
    first = [hit.to_dict() for hit in bank.search("auth deploy day")]
    assert first == [hit.to_dict() for hit in Bank.open(tmp_path).search("auth deploy day")]


@pytest.mark.parametrize("lane", LANES)
def test_every_lane_is_in_one_index(tmp_path: Path, lane: str) -> None:
    bank = Bank.init(tmp_path)
    put = {name: bank.lane(name).put(draft(name, number)) for number, name in enumerate(LANES)}
    assert ids(bank.search(words(LANES.index(lane)).split()[0]))[0] == put[lane].id


def test_archived_memories_are_out_unless_asked_for(bank: Bank) -> None:
    bank.update("deploy-day", status="archived")
    assert "notes:deploy-day" not in ids(bank.search("deploy"))
    assert ids(bank.search("deploy", archived=True))[0] == "notes:deploy-day"
    assert ids(bank.search("deploy", status="archived")) == ["notes:deploy-day"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("数据库连接池的大小是十", "连接池"),
        ("数据库连接池的大小是十", "库"),
        ("ระบบสำรองข้อมูลทุกคืน", "ข้อมูล"),
        ("데이터베이스를 백업한다", "데이터베이스"),
        ("データベースのバックアップ", "バックアップ"),
        ("Das Café in Zürich", "cafe zurich"),
        ("call getUserName() first", "user name"),
        ("set max_retry_count to 3", "retry count"),
        ("see src/auth/login.py", "login.py"),
        ("see src/auth/login.py", "src/auth/login.py"),
        ("fixed in v2.3.1", "v2.3.1"),
        ("Straße und Fußgänger", "STRASSE"),
    ],
)
def test_any_language_is_found_by_what_people_type(tmp_path: Path, text: str, query: str) -> None:
    bank = Bank.init(tmp_path)
    bank.add(text, title="wanted note")
    for number in range(5):
        bank.add(words(number), title=f"other {number}")
    assert ids(bank.search(query))[0] == "notes:wanted-note"


# -- links


def test_a_link_makes_a_ghost_and_an_edge(bank: Bank) -> None:
    """S003-34, S003-39, S003-43"""
    graph = bank.graph()
    assert {"id": "ghost:src/auth.py", "title": "src/auth.py", "is_ghost": True} in graph["nodes"]
    edge = {"source": "notes:auth-refactor-plan", "target": "ghost:src/auth.py", "edge_type": "refactors"}
    assert [{key: found[key] for key in edge} for found in graph["edges"] if found["edge_type"] != "HAS_TAG"] == [edge]
    assert "ghost:src/auth.py" not in ids(bank.search("src/auth.py"))


def test_linked_memories_are_exactly_those_that_link(bank: Bank) -> None:
    """S003-35, S003-36"""
    [link] = bank.linked("src/auth.py", "refactor plans")
    assert link.to_dict().keys() == {"id", "score", "content", "anchor_context", "edge_type", "file_path"}
    assert link.memory.id == "notes:auth-refactor-plan"
    assert bank.linked("src/other.py") == []


def test_linked_memories_are_ranked_by_the_query(tmp_path: Path) -> None:
    """S003-37"""
    bank = Bank.init(tmp_path)
    bank.add("Lunch menu, see also [[x.py]].", title="lunch")
    bank.add("Database pooling is set in [[x.py]].", title="pool")
    assert [link.memory.title for link in bank.linked("x.py", "database pooling")] == ["pool", "lunch"]
    assert len(bank.linked("x.py", "database", 1)) == 1


def test_the_context_is_a_hundred_characters_on_each_side() -> None:
    """S003-38"""
    text = "a" * 300 + " [[x.py]] " + "b" * 300
    [(_, _, context)] = links_in(text)
    assert context == "a" * 99 + " [[x.py]] " + "b" * 99


@pytest.mark.parametrize(
    ("text", "node", "edge"),
    [
        ("see [[x.py]]", "ghost:x.py", "related_to"),
        ("we should split [[x.py]]", "ghost:x.py", "plans"),
        ("willing to keep [[x.py]]", "ghost:x.py", "related_to"),
        ("please note [[x.py]]", "ghost:x.py", "mentions"),
        ("a bug in [[x.py]]", "ghost:x.py", "debugs"),
        ("rewrite [[x.py]]", "ghost:x.py", "refactors"),
        ("this supersedes [[memory:old]]", "memory:old", "SUPERSEDES"),
        ("it contradicts [[memory:old]]", "memory:old", "CONTRADICTS"),
        ("like [[memory:old]]", "memory:old", "RELATED_TO"),
        ("[[x.py|the file]]", "ghost:x.py", "related_to"),
        ("[[x.py|type:plans]]", "ghost:x.py", "plans"),
        ("[[./x.py]]", "ghost:./x.py", "related_to"),
    ],
)
def test_the_words_around_a_link_give_its_type(text: str, node: str, edge: str) -> None:
    """S003-39, S003-40, S003-41"""
    assert [(found, kind) for found, kind, _ in links_in(text)] == [(node, edge)]


@pytest.mark.parametrize("text", ["[x.py]", "`[[x.py]]`", "```\n[[x.py]]\n```", "[[ ]]", "[[]]", "[[a\nb]]"])
def test_other_brackets_are_no_links(text: str) -> None:
    """S003-41"""
    assert list(links_in(text)) == []


def test_a_link_that_is_removed_is_gone(bank: Bank) -> None:
    """S003-42"""
    bank.add("see [[a.py]] and [[b.py]]", title="two")
    assert len(bank.linked("a.py")) == len(bank.linked("b.py")) == 1
    bank.update("two", "see [[b.py]]")
    assert (len(bank.linked("a.py")), len(bank.linked("b.py"))) == (0, 1)


# -- merge suggestions


def test_near_identical_journals_are_one_cluster(tmp_path: Path) -> None:
    """S003-50, S003-51, S003-52: the defaults of the seed."""
    bank = Bank.init(tmp_path)
    bank.add("The login page times out after one hour of idling.", title="a")
    bank.add("The login page times out after one hour of idling!", title="b")
    bank.add("Cats sleep most of the day in warm places.", title="c")
    bank.add("The login page times out after one hour of idling;", title="p", type="plan")
    [cluster] = bank.suggest_merges()
    shape = cluster.to_dict()
    assert (shape["cluster_id"], shape["memory_count"], shape["reason"]) == (0, 2, "High vector similarity (> 0.85)")
    assert [memory["id"] for memory in shape["memories"]] == ["notes:a", "notes:b"]
    assert 0.85 < shape["score"] <= 1.0
    assert len(bank.suggest_merges(type=None)[0].memories) == 3


def test_clusters_are_sorted_and_cut_and_change_nothing(tmp_path: Path) -> None:
    """S003-53"""
    bank = Bank.init(tmp_path)
    for title, text in {
        "login": "The login page times out after one hour of idling.",
        "lunch": "Lunch is served in the garden when the weather is fine.",
        "tax": "The tax return has to be filed before the end of May.",
    }.items():
        for twin in ("", " Really."):
            bank.add(text + twin, title=f"{title} {len(twin)}")
    before = {name: data for name, data in tree(tmp_path).items() if "indices" not in name}
    scores = [cluster.score for cluster in bank.suggest_merges(limit=2)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 2
    assert {name: data for name, data in tree(tmp_path).items() if "indices" not in name} == before
    with pytest.raises(InvalidInput):
        bank.suggest_merges(threshold=85)


# -- an index that follows


def test_changes_through_the_bank_are_found_at_once(bank: Bank) -> None:
    """S003-19, S003-21, S003-48, S003-56"""
    bank.search("x")
    bank.update("pets", "The dog likes bones.")
    assert ids(bank.search("bones"))[0] == "notes:pets"
    assert "notes:pets" not in ids(bank.search("tuna"))
    bank.append("pets", "And a parrot.")
    assert ids(bank.search("parrot"))[0] == "notes:pets"
    bank.delete("pets")
    assert "notes:pets" not in ids(bank.search("parrot bones"))
    bank.restore("pets")
    assert ids(bank.search("parrot"))[0] == "notes:pets"
    bank.notes.merge_memories(["pets.md", "deploy-day.md"], "both.md", "One about armadillos.")
    assert ids(bank.search("armadillos"))[0] == "notes:both"
    assert "notes:pets" not in ids(bank.search("parrot"))


def test_changes_by_hand_are_found_by_the_next_call(bank: Bank) -> None:
    """S003-57: edits, new files, renames and deletions."""
    bank.search("x")
    with open(bank.root / "pets.md", "a") as file:
        file.write("\nIt also likes walnuts.\n")
    assert ids(bank.search("walnuts"))[0] == "notes:pets"
    (bank.root / "sub").mkdir()
    (bank.root / "sub/new.md").write_text("about pelicans")
    assert ids(bank.search("pelicans"))[0] == "notes:sub/new"
    (bank.root / "sub/new.md").rename(bank.root / "moved.md")
    assert ids(bank.search("pelicans"))[0] == "notes:moved"
    (bank.root / "moved.md").unlink()
    assert "notes:moved" not in ids(bank.search("pelicans"))


def test_a_large_bank_sees_what_was_written_a_moment_ago(bank: Bank) -> None:
    """S003-57: at once, also where listing every folder takes its time."""
    for number in range(600):
        folder = bank.root / f"f{number % 7}"
        folder.mkdir(exist_ok=True)
        (folder / f"n{number}.md").write_text(f"Note {number} about herons.\n")
    bank.search("herons")
    for number in range(5):
        (bank.root / f"f{number}/new.md").write_text(f"About kestrel{number}.\n")
        assert ids(bank.search(f"kestrel{number}"))[0] == f"notes:f{number}/new"
        with open(bank.root / "f0/n0.md", "a") as file:
            file.write(f"And puffin{number}.\n")
        assert ids(bank.search(f"puffin{number}"))[0] == "notes:f0/n0"
    (bank.root / "new/deep").mkdir(parents=True)
    assert bank.search("wagtail")[0].relevance < 0.11  # birds, but not this one
    (bank.root / "new/deep/x.md").write_text("About wagtails.\n")
    assert ids(bank.search("wagtails"))[0] == "notes:new/deep/x"
    (bank.root / "vault.jsonl").write_text('{"id": "a1b2c3d4e5f6", "text": "Ospreys nest here."}\n')
    assert ids(bank.search("ospreys"))[0] == "vault:a1b2c3d4e5f6"


def test_another_process_is_seen(bank: Bank, tmp_path: Path) -> None:
    bank.search("x")
    other = Bank.open(tmp_path)
    other.search("x")
    other.add("about flamingos", title="f")
    assert ids(bank.search("flamingos"))[0] == "notes:f"


def test_a_deleted_index_is_made_anew_with_the_same_results(bank: Bank, tmp_path: Path) -> None:
    """S003-55"""
    before = [hit.to_dict() for hit in bank.search("auth deploy tuna")]
    bank.close()
    shutil.rmtree(bank.root / "indices")
    assert [hit.to_dict() for hit in Bank.open(tmp_path).search("auth deploy tuna")] == before


@pytest.mark.parametrize("damage", [b"not a database at all, but long enough to look like one" * 100, b""])
def test_a_damaged_index_is_made_anew(bank: Bank, tmp_path: Path, damage: bytes) -> None:
    bank.search("x")
    bank.close()
    for path in (bank.root / "indices").iterdir():
        path.write_bytes(damage)
    assert ids(Bank.open(tmp_path).search("tuna"))[0] == "notes:pets"


def test_an_index_of_another_version_is_made_anew_without_a_word(
    bank: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank.search("x")
    bank.close()
    db = sqlite3.connect(bank.root / "indices/index.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert ids(Bank.open(tmp_path).search("tuna"))[0] == "notes:pets"
    assert capsys.readouterr().err == ""


def test_the_index_lies_under_indices(bank: Bank) -> None:
    """S003-05: the folder is the contract; inside it is one SQLite file, and `graph` exports the graph."""
    bank.search("x")
    assert {name.split("-")[0] for name in tree(bank.root / "indices")} == {".gitignore", "index.db"}
    assert bank.graph()["nodes"]


def test_git_does_not_see_the_index(bank: Bank, tmp_path: Path) -> None:
    bank.search("x")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    status = ["git", "status", "--short", "--untracked-files=all"]
    seen = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "pets.md" in seen
    assert "indices" not in seen


def test_the_seeds_usage_patterns_run(tmp_path: Path) -> None:
    """S003-59: a journal, a plan, a fact, and retrieval by search and by link."""
    bank = Bank.init(tmp_path)
    session = "## Session Notes\n\n- Investigated auth bug in [[src/auth.py]]\n- Root cause: expiry not checked"
    plan = (
        "## Database Migration Plan\n\nMigrate from SQLite to PostgreSQL.\n\n"
        "### Affected Files\n- [[src/db/connection.py]]\n- [[src/db/models.py]]"
    )
    limits = "## API Rate Limits\n\n- Free tier: 100 req/min\n\nImplemented in [[src/middleware/rate_limit.py]]"
    for name, content, tags, kind in (
        ("session-2025-01-10.md", session, ["session", "auth", "bugfix"], "journal"),
        ("database-migration-plan.md", plan, ["migration", "database", "plan"], "plan"),
        ("api-rate-limits.md", limits, ["api", "limits", "reference"], "fact"),
    ):
        assert bank.notes.create_memory(name, content, tags, kind)["status"] == "created"
    assert ids(bank.search("authentication handling", tags=["auth"], limit=5)) == ["notes:session-2025-01-10"]
    assert [link.memory.id for link in bank.linked("src/db/models.py", "recent changes and plans")] == [
        "notes:database-migration-plan"
    ]


def test_a_thousand_memories_are_searched(tmp_path: Path) -> None:
    """S003-60: how fast is bench/search.py's business; here, that all of them are there."""
    bank = Bank.init(tmp_path)
    for number in range(1000):
        (bank.root / f"n{number}.md").write_text(words(number))
    assert ids(bank.search(words(777), 1)) == ["notes:n777"]
    assert sum(1 for _ in bank.index.every_memory()) == 1000


def test_the_index_is_not_memory(bank: Bank) -> None:
    """S003-54"""
    bank.search("x")
    assert bank.stats()["count"] == 3
    assert bank.problems() == []


def test_an_index_that_is_not_complete_says_so_and_goes_on(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    for number in range(3):
        (bank.root / f"n{number}.md").write_text(f"about pelicans {number}")
    assert (bank.search("pelicans", wait=0), bank.index.complete) == ([], False)
    assert (len(bank.search("pelicans")), bank.index.complete) == (3, True)


def test_many_changes_do_not_grow_the_index_for_ever(bank: Bank) -> None:
    bank.search("x")
    for number in range(1300):
        (bank.root / "pets.md").write_text(f"The cat likes tuna number {number}.")
        bank.index.note(bank.notes, str(bank.root / "pets.md"))
    assert bank.index.columns().used < 1200
    assert ids(bank.search("tuna"))[0] == "notes:pets"
    assert ids(Bank.open(bank.config.project).search("auth"))[0] == "notes:auth-refactor-plan"


def test_damage_in_the_middle_of_the_index_is_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = Bank.init(tmp_path)
    for number in range(300):
        (bank.root / f"n{number}.md").write_text(f"{words(number)} pelican")
    assert len(bank.search("pelican")) == 5
    bank.index._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    bank.close()
    path = bank.root / "indices/index.db"
    data = bytearray(path.read_bytes())
    for at in range(8192, len(data), 997):
        data[at] ^= 0xFF
    path.write_bytes(data)
    assert len(Bank.open(tmp_path).search("pelican")) == 5
    assert "made anew" in capsys.readouterr().err


def test_a_name_that_is_no_text_stops_nobody(bank: Bank) -> None:
    with open(os.fsencode(bank.root) + b"/bad\xff.md", "w") as file:
        file.write("about tuna")
    assert ids(bank.search("tuna"))[0] == "notes:pets"
    assert [problem.why for problem in bank.problems()] == ["has a name that is not UTF-8 and is not read; rename it"]


def test_a_write_is_acknowledged_when_the_index_is_locked(bank: Bank) -> None:
    bank.search("x")
    other = sqlite3.connect(bank.root / "indices/index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    memory = bank.add("about flamingos", title="f")
    assert memory.path.exists()
    other.execute("ROLLBACK")
    other.close()
    assert ids(bank.search("flamingos"))[0] == "notes:f"


def test_a_bank_that_can_only_be_read_is_searched_too(bank: Bank, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code = (
        "import os, sys; from pathlib import Path; from memlane import Bank\n"
        "import memlane.recall.search, memlane.recall.graph; from memlane.config import trust, user_state\n"
        "os.environ['XDG_STATE_HOME'] = str(Path(sys.argv[1], 'state'))\n"
        "trust.record(user_state(), Path(sys.argv[1], 'memlane.toml'))\n"
        "os.chmod(user_state(), 0o755); os.chmod(user_state() / 'trust.json', 0o644)\n"
        "warm = Bank.open(sys.argv[1]); warm.search('tuna'); warm.close()\n"
        "import shutil; shutil.rmtree(warm.root / 'indices'); os.chmod(warm.root, 0o555)\n"
        "os.chdir('/')\n"
        "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
        "print(Bank.open(sys.argv[1]).search('tuna')[0].memory.id)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(tmp_path, Path(folder, "bank"))
        for place in (Path(folder), *Path(folder).rglob("*")):
            place.chmod(0o755)
        arguments = [sys.executable, "-c", code, str(Path(folder, "bank"))]
        result = subprocess.run(arguments, capture_output=True, text=True)
        Path(folder, "bank/.memories").chmod(0o755)
    assert (result.stdout, "in memory" in result.stderr) == ("notes:pets\n", True), result.stderr


def test_an_open_bank_and_a_fresh_one_rank_alike(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    bank.search("x")
    for number in range(120):
        bank.add(f"{words(number % 40)} {words(number)}", title=f"n{number}", created_at="2024-01-01")
    for number in range(0, 40, 7):
        query = words(number, 3)
        assert ids(bank.search(query)) == ids(Bank.open(tmp_path).search(query))


@pytest.mark.parametrize(
    "call",
    [
        lambda bank: bank.search(None),
        lambda bank: bank.search("x", "5"),
        lambda bank: bank.search("x", 2.5),
        lambda bank: bank.search("x", type=["a"]),
        lambda bank: bank.search("x", type="\ud800"),
        lambda bank: bank.search("x", lane="nope"),
        lambda bank: bank.linked(None),
        lambda bank: bank.suggest_merges("x"),
    ],
)
def test_wrong_arguments_are_a_clear_error(bank: Bank, call: object) -> None:
    with pytest.raises(InvalidInput):
        call(bank)  # type: ignore[operator]


def test_the_last_day_there_is_can_be_asked_for(bank: Bank) -> None:
    assert len(bank.search("tuna", until="9999-12-31")) == len(bank.search("tuna"))


def test_another_encoder_embeds_everything_anew(bank: Bank, tmp_path: Path) -> None:
    bank.search("x")
    other = Bank.open(tmp_path, search__encoder="hash")
    assert ids(other.search("tuna"))[0] == "notes:pets"
    assert other.index.columns().rows.shape[1] == 64
    assert ids(bank.search("kitten food"))[0] == "notes:pets"
    assert ids(Bank.open(tmp_path, search__encoder="none").search("tuna")) == ["notes:pets"]


def test_an_unknown_encoder_is_a_clear_error(bank: Bank, tmp_path: Path) -> None:
    from memlane import ConfigError

    with pytest.raises(ConfigError, match="no encoder"):
        Bank.open(tmp_path, search__encoder="magic").search("x")


def rows(bank: Bank) -> list[tuple[object, ...]]:
    """What the index knows, without the numbers it gave."""
    bank.index.refresh(force=True)
    query = "SELECT m.id, c.header, c.text, c.length FROM chunks c JOIN memories m ON m.n = c.memory"
    return sorted(bank.index._db.execute(query))


def test_writers_and_readers_at_once_leave_a_whole_index(tmp_path: Path) -> None:
    """Four writers and four readers: no error, no lost memory, and an index equal to one made anew."""
    Bank.init(tmp_path)
    code = (
        "import sys; from memlane import Bank; from samples import words\n"
        "role, start = sys.argv[2], int(sys.argv[3]); bank = Bank.open(sys.argv[1])\n"
        "for n in range(start, start + 20):\n"
        "    if role == 'write':\n"
        "        id = bank.add(f'{words(n)} deploy', title=f'note {n}', thread=f't{n % 3}').id\n"
        "        if n % 4 == 1: bank.append(id, words(f'more {n}'))\n"
        "        if n % 8 == 3: bank.delete(id)\n"
        "        if n % 5 == 0: assert any(h.memory.id == id for h in bank.search(words(n), 3)) or n % 8 == 3\n"
        "    else: bank.search('deploy ' + words(n))\n"
    )
    jobs = [("write", start) for start in range(0, 80, 20)] + [("read", start) for start in range(0, 80, 20)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), role, str(start)],
            cwd=HERE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        for role, start in jobs
    ]  # fmt: skip
    assert [process.communicate()[1] for process in running] == [""] * 8
    bank = Bank.open(tmp_path)
    found = rows(bank)
    assert len({row[0] for row in found}) == 70
    bank.close()
    shutil.rmtree(bank.root / "indices")
    assert rows(Bank.open(tmp_path)) == found


# -- pieces and words


def test_pieces_add_up_to_the_text() -> None:
    text = f"{words(1, 60)}\n\n# One\n{words(2, 300)}\n\n## Two\nshort\n## Three\n{words(3, 80)}\n```\n# code\n```\n"
    found = chunks(text)
    assert "".join(piece.text for piece in found) == text
    assert max(len(piece.text) for piece in found) <= LARGE
    assert [piece.header_path for piece in found][-1] == "One > Two + Three"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The deployments were deployed", ["deploy", "deploy"]),
        ("src/auth.py", ["src", "auth", "py", "srcauthpi"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("don't", []),
        ("C++", ["c", "c++"]),
    ],
)
def test_terms(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_a_query_of_stop_words_keeps_them() -> None:
    assert query_terms("who are they") == ["who", "are", "they"]


def test_embedding_anew_keeps_nobody_waiting(bank: Bank, tmp_path: Path) -> None:
    """The vectors are worked out before the transaction; what is added meanwhile is not missed."""
    bank.search("x")
    other = Bank.open(tmp_path, search__encoder="hash")
    encoder = other.index._encoder = open_encoder("hash")
    encode = encoder.encode_texts
    added = []

    def slowly(texts: list[str]) -> object:
        if not added:
            added.append(bank.add("about flamingos", title="f").id)
            assert ids(bank.search("flamingos"))[0] == "notes:f"
        return encode(texts)

    encoder.encode_texts = slowly  # type: ignore[method-assign, assignment]
    assert ids(other.search("flamingos"))[0] == "notes:f"


def test_the_headings_of_short_sections_read_as_one_path() -> None:
    text = "# Guide\n\n## Install\n\n### Windows\n\nx\n\n### macOS\n\ny\n\n## Use\n\nz\n\n# Notes\n\nend\n"
    assert [piece.header_path for piece in chunks(text)] == ["Guide > Install > Windows + macOS + Use + Notes"]
