"""`memlane review`: one plan over the whole bank; what is shown is what is done, and a person decides the rest."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import CANARY, Run
from conftest import tree
from memlane import Bank
from memlane.care.review import KINDS, Item
from memlane.core.progress import listener
from rotten import entries, note, plant, register, state
from samples import draft, tries, words

PLANTED = [  # kind, action, id, other
    ("prune", "delete", "vault:aaaaaaaaaaaa", "vault:bbbbbbbbbbbb"),
    ("prune", "archive", "topics:auth/oauth2/2025-01-02-entry-2", "topics:auth/oauth2/2025-01-01-entry-1"),
    ("prune", "archive", "topics:auth/saml/2025-01-02-entry-2", "topics:auth/saml/2025-01-01-entry-1"),
    ("prune", "archive", "layers:shared-project/api/known_issues", ""),
    ("prune", "archive", "layers:skill-specific/review/api/review_history", ""),
    ("duplicate", "delete", "notes:port-2", "notes:port"),
    ("duplicate", "look at", "topics:ops/backup/2025-01-02-backups", "notes:backup"),
    ("superseded", "archive", "notes:plan-a", "notes:plan-b"),
    ("superseded", "look at", "notes:deploy", "notes:deploy-now"),
    ("superseded", "look at", "notes:port", "notes:claim"),
    ("link", "look at", "notes:orphan", ""),
    ("stale", "look at", "layers:shared-project/api/common_patterns", ""),
    ("size", "look at", "layers:shared-project/api/common_patterns", ""),
    ("size", "look at", "notes:long", ""),
    ("register", "look at", "vault:cccccccccccc", ""),
    ("empty", "delete", "notes:empty", ""),
    ("suspicious", "look at", "notes:evil", ""),
]


@pytest.fixture
def rotten(bank: Bank) -> Bank:
    plant(bank)
    return bank


def rows(bank: Bank, **chosen: Any) -> list[tuple[str, str, str, str]]:
    """Kind, action, id and what else it speaks of."""
    steps = [step for step in bank.review(**chosen).steps if isinstance(step, Item)]
    return [(step.kind, step.action, step.id, " ".join(step.others)) for step in steps]


# -- what is found


def test_a_long_vault_is_compared_once(bank: Bank) -> None:
    rows_of = [{"id": f"{at:012x}", "text": words(at % 290)} for at in range(310)]
    bank.vault.path.write_text("".join(json.dumps(row) + "\n" for row in rows_of))
    told: set[str] = set()
    token = listener.set(lambda what, _, __: told.add(what))
    try:
        first = rows(bank, only=["prune"])
        assert "comparing" in told
        told.clear()
        assert rows(bank, only=["prune"]) == first
    finally:
        listener.reset(token)
    assert ("prune", "look at", "vault:000000000132", "vault:000000000010") in first
    assert "comparing" not in told


def test_texts_of_one_form_about_two_things_are_no_duplicates(bank: Bank) -> None:
    for name in ("opera", "vivaldi", "brave"):
        note(bank, name, f"# {name}\n\nThis command is an alias of chromium; its pages are at https://{name}.com/.\n")
    assert rows(bank, only=["duplicate"]) == []
    note(bank, "browser", "# browser\n\nThis command is an alias of chromium; its pages are at https://brave.com/.\n")
    assert rows(bank, only=["duplicate"]) == [("duplicate", "look at", "notes:browser", "notes:brave")]


def test_a_note_that_has_a_name_is_no_empty_one(run: Run, bank: Bank) -> None:
    (bank.root / "tags.auth.md").write_text("---\ntitle: Authentication\n---\n")
    (bank.root / "tags.db.md").write_text("---\ntags: [db]\n---\n")
    note(bank, "linked", "\n")
    note(bank, "links", "See [[memory:linked]].\n")
    plan = bank.review(only=["empty"])
    assert (plan.steps, plan.remarks) == ((), ("notes with a name and no text: 3, such as notes:linked",))


def test_many_remarks_are_counted(run: Run, bank: Bank) -> None:
    note(bank, "images", "".join(f"[[images/{number}.png]]\n" for number in range(8)))
    assert run("review", "--only", "link").err.splitlines()[-2:] == [
        "and 3 more notes: --json shows all",
        "nothing to do",
    ]
    assert len(run("review", "--json").json["remarks"]) == 8


def test_rot_of_every_kind_is_found(rotten: Bank) -> None:
    assert rows(rotten) == PLANTED
    assert rotten.review().remarks == ("notes:orphan links to src/gone.py, a file that is not there",)


def test_records_beyond_the_retention_are_found_when_it_is_switched_on(rotten: Bank) -> None:
    limited = Bank.open(rotten.config.project, capture__keep_count=2)
    [oldest] = [memory.id for memory in rotten.list(lane="records")[2:]]
    assert rows(limited, only=["retention"]) == [("retention", "archive", oldest, "")]
    assert rows(rotten, only=["retention"]) == []


def test_memories_are_found_whose_code_has_changed(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "auth.py").write_text("def login(): return 1\n")
    memory = bank.add("login is in [[auth.py]]", title="login")
    assert rows(bank) == []
    (tmp_path / "auth.py").write_text("def login(): return 2\n")
    assert rows(Bank.open(tmp_path)) == [("drifted", "look at", memory.id, "")]


def test_a_sound_bank_needs_nothing(run: Run, bank: Bank) -> None:
    for name in ("notes", "vault", "topics", "records", "layers"):
        for number in range(3):
            bank.lane(name).put(draft(name, number, words(f"{name} {number}")))
    shown = run("review", "--check")
    assert (shown.code, shown.out, shown.err) == (0, "", "nothing to do\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("This replaces [[memory:old]].", "archive"),
        ("It supersedes the older plan [[memory:old]].", "archive"),
        ("See [[memory:old|type:SUPERSEDES]].", "archive"),
        ("This does not replace [[memory:old]].", "look at"),
        ("We might have replaced [[memory:old]] then.", "look at"),
        ("Deprecated? See [[memory:old]] on it.", "look at"),
        ("This conflicts with [[memory:old]].", "look at"),
        ("This extends [[memory:old]].", ""),
        ("`replaces [[memory:old]]` is how to write it.", ""),
    ],
)
def test_words_around_a_link_say_what_is_replaced(bank: Bank, text: str, found: str) -> None:
    note(bank, "old", "Sessions live in Redis.\n", "2025-01-01")
    note(bank, "new", f"{text}\n", "2025-02-01")
    wanted = [("superseded", found, "notes:old", "notes:new")] if found else []
    assert rows(bank, only=["superseded"]) == wanted


def test_what_says_that_it_was_replaced_is(bank: Bank) -> None:
    note(bank, "old", "Replaced by [[memory:new]].\n", "2025-01-01")
    note(bank, "new", "Sessions live in Postgres.\n", "2025-02-01")
    assert rows(bank, only=["superseded"]) == [("superseded", "archive", "notes:old", "notes:new")]


def test_an_older_memory_does_not_replace_a_newer_one(bank: Bank) -> None:
    note(bank, "old", "This replaces [[memory:new]].\n", "2025-01-01")
    note(bank, "new", "Sessions live in Postgres.\n", "2025-02-01")
    assert rows(bank, only=["superseded"]) == []


def test_near_duplicates_are_found_across_lanes_and_scripts(bank: Bank) -> None:
    note(bank, "fact", "The API listens on port 8080 in production.\n", "2025-01-01")
    bank.add("In production, the API listens on port 8080 behind nginx.", lane="vault", created_at="2025-02-01")
    note(bank, "ja", "毎晩二時にレプリカからバックアップを取り、三十日のあいだ保存する。\n", "2025-01-01")
    note(bank, "ja-too", "毎晩二時にレプリカからバックアップを取り、六十日のあいだ保存する。\n", "2025-02-01")
    [vault] = bank.list(lane="vault")
    assert rows(bank, only=["duplicate"]) == [
        ("duplicate", "look at", "notes:fact", vault.id),
        ("duplicate", "look at", "notes:ja", "notes:ja-too"),
    ]


@pytest.mark.parametrize("twin", ["linked", "tagged", "named"])
def test_a_twin_that_says_more_is_for_a_person_to_decide(bank: Bank, twin: str) -> None:
    note(bank, "a", "The staging server answers on port 8443.\n")
    name = "b" if twin == "named" else "a-2"
    note(bank, name, "The staging server answers on port 8443.\n", "2025-02-01")
    if twin == "linked":
        for target in ("a", "a-2"):
            note(bank, f"to-{target}", f"[[memory:{target}]] {words(target)}\n")
    if twin == "tagged":
        bank.update("notes:a-2", tags=["port"])
    assert [row[1:3] for row in rows(bank, only=["duplicate"])] == [("look at", f"notes:{name}")]


def test_a_thousand_near_duplicates_are_compared_with_one_only(bank: Bank) -> None:
    for number in range(1000):
        note(bank, f"n{number:04}", f"The nightly job of the replica has finished well, run {number}.\n")
    assert {row[3] for row in rows(bank, only=["duplicate"])} == {"notes:n0000"}
    assert len(rows(bank, only=["duplicate"])) == 999


def test_a_record_said_twice_was_said_twice(bank: Bank) -> None:
    for day in (1, 2):
        bank.records.create("run all tests", subject="s", keywords=["t"], occurred_at=f"2025-01-0{day}T00:00:00Z")
    assert rows(bank) == []


def test_archived_notes_are_left_in_peace(bank: Bank) -> None:
    note(bank, "a", "The staging server answers on port 8443.\n")
    note(bank, "a-2", "The staging server answers on port 8443.\n")
    bank.update("notes:a-2", status="archived")
    assert rows(bank) == []


# -- what is shown


def test_a_plan_changes_nothing_and_is_always_the_same(run: Run, rotten: Bank, tmp_path: Path) -> None:
    before = tree(tmp_path)
    first = run("review", "--json")
    assert run("review", "--json").out == first.out
    assert run("review", "--show").code == 0
    assert tree(tmp_path) == before
    assert first.json["applied"] is False
    assert set(first.json["steps"][0]) == {
        "id", "action", "reason", "title", "kind", "others", "safe", "command", "options",
    }  # fmt: skip


def test_every_command_that_is_shown_works(run: Run, rotten: Bank) -> None:
    for step in run("review", "--json").json["steps"]:
        done = run(*shlex.split(step["command"])[1:], "--json")
        assert done.code == 0, (step["command"], done.err)
        if step["safe"]:
            assert [one["id"] for one in done.json["steps"]] == [step["id"]]
        else:
            assert [memory["id"] for memory in done.json[0]["memories"]] == [step["id"], *step["others"]]
    assert [row for row in rows(rotten) if row[1] != "look at"] == []


def test_a_command_names_the_bank_it_was_asked_about(run: Run, rotten: Bank, tmp_path: Path) -> None:
    [step] = run("--bank", tmp_path, "review", "--only", "empty", "--json").json["steps"]
    assert step["command"] == f"memlane --bank {tmp_path} review --apply --only empty notes:empty"


def test_both_sides_are_shown(run: Run, rotten: Bank) -> None:
    shown = run("review", "--show", "--only", "superseded", "notes:port")
    assert "== notes:port\t2025-01-10T10:00:00Z" in shown.out
    assert "This contradicts [[memory:port]]: the proxy is gone." in shown.out
    assert shown.err.splitlines()[0] == "next: memlane rm notes:port"


def test_the_plan_is_narrowed_by_kind_lane_id_and_number(run: Run, rotten: Bank) -> None:
    assert rows(rotten, only=["empty", "link"]) == [PLANTED[10], PLANTED[15]]
    assert rows(rotten, lanes=["topics"]) == [PLANTED[1], PLANTED[2], PLANTED[6]]
    assert rows(rotten, items=["notes:port"]) == [PLANTED[9]]
    assert rows(rotten, items=["2", "17"]) == [PLANTED[1], PLANTED[16]]
    assert run("review", "--only", "everything").code == 2
    assert run("review", "99").code == 3
    assert run("review", "--apply", "--check").code == 2


def test_a_script_can_ask_whether_there_is_something_to_do(run: Run, rotten: Bank) -> None:
    assert run("review").code == 0
    assert run("review", "--check").code == 6
    assert run("review", "--check", "--only", "retention").code == 0


def test_the_help_names_all_kinds(run: Run) -> None:
    assert f"Kinds: {', '.join(KINDS)}." in " ".join(run("review", "--help").out.split())


def test_a_secret_is_not_echoed(run: Run, bank: Bank) -> None:
    for name in ("a", "b"):
        note(bank, name, f"# key {CANARY}\nThe text of both is the same {CANARY}.\n")
    shown = run("review"), run("review", "--json")
    assert [CANARY in result.out + result.err for result in shown] == [False, False]


# -- what is done


def test_only_what_needs_no_decision_is_applied(run: Run, rotten: Bank) -> None:
    done = run("review", "--apply", "--json").json
    assert [(step["kind"], step["action"], step["id"]) for step in done["steps"]] == [
        row[:3] for row in PLANTED if row[1] != "look at"
    ]
    left = [row for row in PLANTED if row[1] == "look at"]
    assert rows(rotten) == left
    assert run("review", "--apply", "--json").json["steps"] == []
    assert rotten.get("notes:plan-a").status == "archived"
    assert rotten.get("notes:port").text == "The staging server answers on port 8443 behind the proxy.\n"


def test_what_needs_a_decision_is_not_applied_by_name_either(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    done = run("review", "--apply", "notes:deploy", "--json")
    assert (done.code, done.json["steps"]) == (0, [])
    assert state(rotten) == before


def test_what_has_changed_since_the_plan_is_judged_again(rotten: Bank) -> None:
    plan = rotten.review(only=["duplicate", "empty"])
    note(rotten, "port-2", "Another server answers on port 9443.\n")
    note(rotten, "empty", "It has a text by now.\n")
    done = rotten.apply(plan)
    assert done.steps == ()
    assert done.remarks == (
        "notes:port-2: is no longer as the plan saw it",
        "notes:empty: is no longer as the plan saw it",
    )


def test_a_plan_of_prune_can_be_applied_too(rotten: Bank) -> None:
    from memlane.care.prune import plan

    before = state(rotten)
    assert len(rotten.apply(plan(rotten)).steps) == 7
    rotten.undo()
    assert state(rotten) == before


def test_an_open_index_follows(bank: Bank) -> None:
    note(bank, "port", "The staging server answers on port 8443.\n")
    note(bank, "port-2", "The staging server answers on port 8443.\n")
    assert len(bank.search("staging")) == 2
    bank.apply(bank.review())
    assert [hit.memory.id for hit in bank.search("staging")] == ["notes:port"]
    bank.undo()
    assert len(bank.search("staging")) == 2


# -- any bank

TEXTS = st.sampled_from(
    [
        "", " \n", "one\n", "The staging server answers on port 8443.\n", "# Title of it\ntext a b c\n",
        "This replaces [[memory:n0]].\n", "Superseded by [[memory:n1]].\n", "See [[memory:gone]].\n", "\ufeffbom\r\n",
    ]
)  # fmt: skip


@settings(max_examples=tries(12, 120))
@given(
    notes=st.lists(st.tuples(st.sampled_from(["n0", "n1", "n1-2", "sub/n1", "sub/n1-2"]), TEXTS, st.integers(1, 28))),
    bare=st.lists(st.tuples(st.sampled_from(["b0", "b0-2"]), TEXTS), max_size=2),
    registers=st.lists(st.tuples(st.sampled_from(["t", "u", None]), st.integers(0, 9), st.integers(1, 28)), max_size=5),
    counts=st.dictionaries(st.sampled_from(["auth/a", "auth/b", "db/a"]), st.integers(0, 14), max_size=3),
    indexed=st.booleans(),
    reviews=st.integers(0, 14),
    records=st.integers(0, 4),
)
def test_what_is_applied_to_any_bank_is_undone(
    tmp_path_factory: pytest.TempPathFactory,
    notes: list[tuple[str, str, int]],
    bare: list[tuple[str, str]],
    registers: list[tuple[str | None, int, int]],
    counts: dict[str, int],
    indexed: bool,
    reviews: int,
    records: int,
) -> None:
    """Random bank, review --apply, undo: every file as it was, every record of the vault, nothing held back."""
    folder = tmp_path_factory.mktemp("bank")
    Bank.init(folder)
    bank = Bank.open(folder, capture__keep_count=2)
    for name, text, day in notes:
        note(bank, name, text, f"2025-01-{day:02}")
    for name, text in bare:
        (bank.root / f"{name}.md").write_bytes(text.encode())
    lines = [
        register(f"{number:012x}", topic, words(seed), f"2025-01-{day:02}")
        for number, (topic, seed, day) in enumerate(registers)
    ]
    if lines:
        bank.vault.path.write_text("".join(lines))
    for name, count in counts.items():
        path = bank.root / f"topics/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entries(count))
    if indexed and counts:
        bank.topics.reindex()
    if reviews:
        text = "".join(f"## Review {n}\nFine.\n\n" for n in range(reviews))
        path = bank.root / "layers/skills/review/api/review_history.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"<!-- Last Updated: 2025-01-01 -->\n\n{text}")
    for number in range(records):
        bank.records.create(
            f"this was said {number} times", subject="s", keywords=["k"], occurred_at=f"2025-01-0{number + 1}T00:00:00Z"
        )
    before, history = state(bank), bank.vault.path.read_bytes() if lines else b""
    done = bank.apply(bank.review())
    assert [step for step in bank.review().steps if isinstance(step, Item) and step.safe] == []
    if done.steps:
        undone = bank.undo()
        assert undone.conflicts == ()
    assert state(bank) == before
    assert not lines or bank.vault.path.read_bytes().startswith(history)


def test_similar_memories_are_listed_when_asked_for(run: Run, bank: Bank) -> None:
    for number in (1, 2):
        bank.add(f"The staging server answers on port 8443, says Ann ({number}).", type="fact")
    [cluster] = run("review", "--only", "similar", "--threshold", "0.7", "--json").json
    assert len(cluster["memories"]) == 2
    assert run("review", "--only", "similar", "--type", "plan", "--json").json == []


@pytest.mark.parametrize(
    "options",
    [
        ["--accept"],
        ["--accept", "--all", "notes:a"],
        ["--accept", "notes:a", "--apply"],
        ["--all"],
        ["--only", "link", "--all"],
        ["--only", "stale", "--all", "notes:a"],
        ["--only", "drifted", "--all", "--lane", "notes"],
        ["--only", "similar", "--only", "link"],
        ["--only", "similar", "--apply"],
        ["--threshold", "0.5"],
    ],
)
def test_what_does_not_go_together_is_a_usage_error(run: Run, bank: Bank, options: list[str]) -> None:
    assert run("review", *options).code == 2
