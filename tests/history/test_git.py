"""A bank in git, with real repositories: branches, work trees and clones come together, and the past can be read."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from test_merge import check_bank, check_merge, files_of, history, work

from commands import Run
from memlane import Bank, NotFound
from memlane.config import user_state
from memlane.core.alternatives import MARK
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.exchange.sharing import join_git, share
from repositories import branches, git, save
from samples import tries

DAYS = ("2025-01-10", "2025-02-10", "2025-03-10")


# -- init --git


def test_init_git_writes_rules_and_drivers_and_is_safe_to_repeat(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    result = run("init", "--git", "--json")
    done = result.json["git"]
    assert done["repository"] == str(tmp_path)
    assert done["rules"] == [str(tmp_path / ".memories" / name) for name in (".gitattributes", ".gitignore")]
    assert done["ignored"] is False
    before = [Path(file).read_text() for file in (*done["rules"], tmp_path / ".git/config")]
    assert run("init", "--git").code == 0
    assert [Path(file).read_text() for file in (*done["rules"], tmp_path / ".git/config")] == before
    assert "merge-driver vault %O %A %B %P || git merge-file" in git(tmp_path, "config", "merge.memlane-vault.driver")
    assert git(tmp_path, "check-attr", "merge", ".memories/topics/archive/a/2024.md").endswith(": memlane-archive")


def test_each_lane_has_its_driver(repo: Path) -> None:
    drivers = {
        "a.md": "note",
        "2025/a.md": "note",
        "vault.jsonl": "vault",
        "topics/index.md": "index",
        "topics/a/b.md": "topic",
        "topics/archive/a/2024.md": "archive",
        "records/a.md": "record",
        "layers/projects/a/b.md": "layer",
        "layers/skills/a/b/c.md": "layer",
    }
    rows = git(repo, "check-attr", "merge", *(f".memories/{path}" for path in drivers)).splitlines()
    assert rows == [f".memories/{path}: merge: memlane-{driver}" for path, driver in drivers.items()]


def test_what_is_derived_or_deleted_is_ignored(repo: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add("text one", title="a")
        bank.add("text two", lane="layers", project="p", file_type="t")
        bank.add("text three", lane="topics", topic="a", title="b")
        bank.topics.load("a")
        bank.search("text")
        bank.delete("notes:a")
    listed = git(repo, "status", "--porcelain", "-uall").splitlines()
    assert [row[3:] for row in listed] == [
        ".memories/layers/projects/p/t.md",
        ".memories/tombstones.jsonl",
        ".memories/topics/a/general.md",
        ".memories/topics/index.md",
    ]


def test_rules_of_others_stay_and_ours_are_replaced(repo: Path) -> None:
    file = repo / ".memories/.gitattributes"
    file.write_text("*.png binary\n" + file.read_text().replace("memlane-vault", "memlane-old") + "*.pdf binary\n")
    join_git(Bank.open(repo).config)
    assert file.read_text().startswith("*.png binary\n# memlane: begin")
    assert file.read_text().endswith("# memlane: end\n*.pdf binary\n")
    assert "memlane-old" not in file.read_text()


def test_a_lane_that_was_adopted_elsewhere_has_its_rules_there(tmp_path: Path) -> None:
    (tmp_path / "data/memory").mkdir(parents=True)
    (tmp_path / "data/memory/vault.jsonl").touch()
    git(tmp_path, "init", "-q")
    Bank.init(tmp_path, git=True).close()
    assert git(tmp_path, "check-attr", "merge", "data/memory/vault.jsonl").endswith(": memlane-vault")


def test_without_a_repository_nothing_is_written_and_the_next_step_is_named(run: Run, tmp_path: Path) -> None:
    assert "`git init`, then `memlane init --git` again" in run("init", "--git").err
    assert run("init", "--git", "--json").json["git"] == {
        "repository": None, "rules": [], "drivers": [], "ignored": False, "private": [], "tracked": [],
    }  # fmt: skip
    assert sorted(os.listdir(tmp_path / ".memories")) == []


def test_a_bank_that_git_ignores_is_noted(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(".memories/\n")
    assert "git ignores the bank's folder" in run("init", "--git").err


# -- merging


def note_of(word: str) -> Callable[[Bank], object]:
    def do(bank: Bank) -> None:
        bank.append("notes:shared", f"Seen by {word}.")
        bank.update("notes:shared", tags=["old", word])
        bank.add(f"Only of {word}", title=word)
        bank.add(f"Projects of {word}", lane="vault", type="project", tier="register", topic_id="projects")
        bank.add(f"Text of {word}", lane="topics", title=f"Of {word}", topic="area", created_at="2025-01-02")

    return do


@pytest.fixture
def shared(repo: Path) -> Path:
    with Bank.open(repo) as bank:
        bank.add("Text.\n", title="Shared", tags=["old"])
    save(repo)
    return repo


def state(folder: Path) -> tuple[object, ...]:
    with Bank.open(folder) as bank:
        note = bank.get("notes:shared")
        notes = sorted(memory.id for memory in bank.memories("notes"))
        active = [memory.text for memory in bank.memories("vault")]
        return note.text, note.tags, notes, active, sorted(memory.title for memory in bank.memories("topics"))


MERGED = (
    "Text.\n\nSeen by one.\n\nSeen by two.",
    ("old", "one", "two"),
    ["notes:one", "notes:shared", "notes:two"],
    ["Projects of two"],
    ["Of one", "Of two"],
)


def test_two_work_trees_merge_each_other_and_are_the_same(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    tip = git(other, "rev-parse", "HEAD")
    git(other, "merge", "-q", "main", "-m", "Merge")
    git(shared, "merge", "-q", tip, "-m", "Merge")
    assert state(shared) == state(other) == MERGED
    assert git(shared, "rev-parse", "HEAD^{tree}") == git(other, "rev-parse", "HEAD^{tree}")
    git(shared, "merge", "-q", "other", "-m", "Merge once more")  # criss-cross: two merge bases
    assert state(shared) == MERGED
    assert Bank.open(shared).problems() == []


def test_rebase_cherry_pick_and_stash_merge_alike(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    git(other, "checkout", "-q", "-b", "rebased")
    git(other, "rebase", "-q", "main")
    assert state(other) == MERGED
    git(other, "checkout", "-q", "--detach", "main")
    git(other, "cherry-pick", "other")
    assert state(other) == MERGED
    git(other, "checkout", "-q", "--detach", "main~1")
    with Bank.open(other) as bank:
        note_of("three")(bank)
    git(other, "add", "-A")
    git(other, "stash", "-q")
    git(other, "checkout", "-q", "--detach", "main")
    git(other, "stash", "pop", "-q")
    assert "Seen by one.\n\nSeen by three." in (other / ".memories/shared.md").read_text()


def test_a_branch_that_was_squashed_and_goes_on_is_merged_without_saying_anything_twice(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    git(shared, "merge", "-q", "--squash", "other")
    save(shared, "Squashed")
    with Bank.open(other) as bank:
        bank.append("notes:shared", "More.")
    save(other)
    git(shared, "merge", "-q", "other", "-m", "Merge")
    assert state(shared)[0] == "Text.\n\nSeen by one.\n\nSeen by two.\n\nMore."


def _squashed(shared: Path) -> Path:
    """A branch that was squashed into main, changed a note and an entry before that, and changes both again."""
    with Bank.open(shared) as bank:
        entry = bank.add("First.", lane="topics", title="Entry", topic="area", created_at="2025-01-02").id
    save(shared)

    def change(word: str) -> Callable[[Bank], object]:
        return lambda bank: (
            bank.update("notes:shared", text=f"{word}.\n"), bank.update(entry, text=f"{word}.")
        )  # fmt: skip

    other = branches(shared, lambda bank: bank.add("Something else.", title="Else"), change("Second"))
    git(shared, "merge", "-q", "--squash", "other")
    save(shared, "Squashed")
    with Bank.open(other) as bank:
        change("Third")(bank)
    save(other)
    return other


def _said(folder: Path) -> list[str]:
    with Bank.open(folder) as bank:
        entries = [memory.text.partition("**Problem:** ")[2] for memory in bank.memories("topics")]
        return [bank.get("notes:shared").text.strip(), *entries]


@pytest.mark.parametrize("into", ["main", "branch"])
def test_what_a_branch_changed_again_after_it_was_squashed_does_not_clash_with_what_it_was(
    shared: Path, into: str
) -> None:  # fmt: skip
    other = _squashed(shared)
    folder, merged = (shared, "other") if into == "main" else (other, "main")
    git(folder, "merge", "-q", merged, "-m", "Merge")
    assert _said(folder) == ["Third.", "Third."]


@pytest.mark.parametrize("lane", ["notes", "topics", "vault"])
def test_what_a_branch_made_and_changed_after_it_was_squashed_does_not_stand_beside_what_it_was(
    shared: Path, lane: str
) -> None:  # fmt: skip
    ids = []

    def make(bank: Bank) -> None:
        fields = {"topic": "area", "title": "New", "created_at": "2025-01-02"} if lane == "topics" else {}
        title = {"title": "New"} if lane == "notes" else {}
        ids.append(bank.add("First.", lane=lane, **title, **fields).id)

    other = branches(shared, lambda bank: bank.add("Something else.", title="Else"), make)
    git(shared, "merge", "-q", "--squash", "other")
    save(shared, "Squashed")
    with Bank.open(other) as bank:
        bank.update(ids[0], text="Second.")
    save(other)
    git(shared, "merge", "-q", "other", "-m", "Merge")
    with Bank.open(shared) as bank:
        texts = [memory.text for memory in bank.memories(lane)]
    assert [text.partition("**Problem:** ")[2] or text for text in texts if "First." in text or "Second." in text] == [
        "Second."
    ]


def test_what_main_took_back_after_a_squash_is_merged_as_git_says(shared: Path) -> None:
    with Bank.open(shared) as bank:
        before = bank.get("notes:shared").text
    other = _squashed(shared)
    git(shared, "revert", "--no-edit", "HEAD")
    with Bank.open(shared) as bank:
        assert bank.get("notes:shared").text == before
    git(shared, "merge", "-q", "other", "-m", "Merge")
    assert _said(shared) == _said(other) == ["Third.", "Third."]


def test_what_both_sides_changed_after_a_squash_stays_in_both_versions(shared: Path, run: Run) -> None:
    _squashed(shared)
    with Bank.open(shared) as bank:
        bank.update("notes:shared", text="Another one.\n")
    save(shared)
    git(shared, "merge", "-q", "other", "-m", "Merge")
    text, entry = _said(shared)
    assert [word for word in ("Text.", "Second.", "Third.", "Another one.") if word in text] == [
        "Third.", "Another one."
    ]  # fmt: skip
    assert entry == "Third."
    assert "notes:shared\thas two versions of a text" in run("--bank", shared, "review", "--only", "versions").out


def test_both_versions_of_a_text_are_kept_and_told(shared: Path, run: Run) -> None:
    other = branches(
        shared,
        lambda bank: bank.update("notes:shared", text="One.\n"),
        lambda bank: bank.update("notes:shared", text="Two.\n"),
    )
    git(other, "merge", "-q", "main", "-m", "Merge")
    text = Bank.open(other).get("notes:shared").text
    assert (text.count(MARK), "One." in text, "Two." in text) == (3, True, True)
    result = run("--bank", other, "doctor", "--only", "damage")
    assert (result.code, "has two versions of a text" in result.out) == (6, True)


def test_without_the_driver_git_merges_as_ever(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    for format in ("note", "vault", "topic", "index"):
        git(shared, "config", "--remove-section", f"merge.memlane-{format}")
    git(other, "merge", "-q", "main", ok=False)
    assert "<<<<<<<" in (other / ".memories/shared.md").read_text()
    assert (other / ".memories/one.md").exists()


def test_when_memlane_is_gone_git_merges_as_ever(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    for format in ("note", "vault", "topic", "index"):
        command = git(shared, "config", f"merge.memlane-{format}.driver").partition(" ")[2]
        git(shared, "config", f"merge.memlane-{format}.driver", f"/nowhere/memlane {command}")
    git(other, "merge", "-q", "main", ok=False)
    text = (other / ".memories/shared.md").read_text()
    assert "<<<<<<< ours\n" in text
    assert "Seen by one." in text
    assert "Seen by two." in text


def test_what_is_no_text_is_a_conflict_of_gits_with_all_versions_kept(repo: Path) -> None:
    def bytes_of(data: bytes) -> Callable[[Bank], object]:
        return lambda bank: (bank.root / "odd.md").write_bytes(data)

    other = branches(repo, bytes_of(b"\xff\x00one\n"), bytes_of(b"\xff\x00two\n"))
    git(other, "merge", "-q", "main", ok=False)
    assert git(other, "ls-files", "-u", "--", ".memories/odd.md").count("\n") == 1
    assert (other / ".memories/odd.md").read_bytes() == b"\xff\x00two\n"


def test_a_note_that_was_deleted_and_changed_is_asked_about_and_still_there(shared: Path) -> None:
    other = branches(shared, lambda bank: bank.delete("notes:shared"), lambda bank: bank.append("notes:shared", "New."))
    git(other, "merge", "-q", "main", ok=False)
    assert Bank.open(other).get("notes:shared").text == "Text.\n\nNew."
    git(other, "add", ".memories/shared.md")
    save(other)


def test_both_deleting_a_note_is_no_conflict(shared: Path) -> None:
    other = branches(shared, lambda bank: bank.delete("notes:shared"), lambda bank: bank.delete("notes:shared"))
    git(other, "merge", "-q", "main", "-m", "Merge")
    assert list(Bank.open(other).memories()) == []


def test_three_branches_say_the_same_in_any_order(shared: Path) -> None:
    folders = {}
    for word in ("one", "two", "three"):
        folders[word] = shared.parent / word
        git(shared, "worktree", "add", "-q", "-b", word, str(folders[word]))
        with Bank.open(folders[word]) as bank:
            note_of(word)(bank)
        save(folders[word])
    states = []
    for order in (("one", "two", "three"), ("three", "one", "two")):
        git(shared, "checkout", "-q", "--detach", order[0])
        for word in order[1:]:
            git(shared, "merge", "-q", word, "-m", "Merge")
        text, *rest = state(shared)
        states.append((sorted(str(text).split("\n\n")), *rest))
    assert states[0] == states[1]


@given(history, history, history)
@settings(max_examples=tries(4, 40))
def test_git_brings_branches_with_any_histories_together(before: list, ours: list, theirs: list) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as place:
        repo, other = Path(place, "repo"), Path(place, "other")
        repo.mkdir()
        git(repo, "init", "-q")
        with Bank.init(repo, git=True) as bank:
            share(bank, ["records"])
        work(repo, before, 0)
        save(repo)
        git(repo, "worktree", "add", "-q", "-b", "other", str(other))
        contents = [files_of(repo)]
        for folder, steps, number in ((repo, ours, 1000), (other, theirs, 2000)):
            work(folder, steps, number)
            save(folder)
            contents.append(files_of(folder))
        tips = [git(folder, "rev-parse", "HEAD") for folder in (repo, other)]
        git(repo, "merge", "-q", tips[1], "-m", "Merge")
        git(other, "merge", "-q", tips[0], "-m", "Merge")
        assert files_of(repo) == files_of(other)
        check_merge(*contents, files_of(repo))
        with Bank.open(repo) as bank:
            pasts = [bank.as_of(f"{tips[0]}~1"), bank.as_of(tips[0]), bank.as_of(tips[1])]
            check_bank(pasts, bank)
            for past in pasts:
                past.close()


# -- the past


@pytest.fixture
def old(repo: Path) -> Path:
    """Three commits: a note and a vault record made, changed, deleted."""
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.\n", title="Deploy day")
        bank.add("Entry of January", lane="topics", title="First", topic="area", created_at="2025-01-09")
        made = bank.add("Mission: keep it stable", lane="vault")
        save(repo, "Remember", DAYS[0])
        bank.update("notes:deploy-day", text="Deploys go out on Mondays.\n")
        bank.update(made.id, text="Mission: make it fast")
        save(repo, "Change", DAYS[1])
        bank.delete("notes:deploy-day")
        save(repo, "Delete", DAYS[2])
    return repo


def test_a_memory_as_it_was(old: Path, run: Run) -> None:
    for when, text in {
        "2025-01-10": "Tuesdays",
        "2025-01-10T12:00:00Z": "Tuesdays",
        "2025-02-01": "Tuesdays",
        "2025-02-10T11:00:00-01:00": "Mondays",
        "2025-03-09": "Mondays",
        "HEAD~1": "Mondays",
        "main~2": "Tuesdays",
    }.items():
        result = run("--bank", old, "get", "notes:deploy-day", "--as-of", when)
        assert (result.code, result.out) == (0, f"Deploys go out on {text}.\n")
        assert str(old / ".memories/deploy-day.md") in result.err


def test_list_search_and_raw_as_they_were(old: Path, run: Run) -> None:
    listed = run("--bank", old, "list", "--as-of", "2025-01-31", "--json").json
    assert [(memory["lane"], memory["path"]) for memory in listed if memory["lane"] == "notes"] == [
        ("notes", str(old / ".memories/deploy-day.md"))
    ]
    assert len(listed) == 3
    hits = run("--bank", old, "search", "deploy", "--as-of", "HEAD~2", "--json").json
    assert hits[0]["content"].startswith("Deploys go out on Tuesdays.")
    raw = run("--bank", old, "get", "notes:deploy-day", "--raw", "--as-of", "HEAD~2").out
    assert raw.startswith("---\ntitle: ")
    assert run("--bank", old, "get", "notes:deploy-day").code == 3


def test_the_copy_of_the_past_is_private_and_removed(old: Path) -> None:
    place = user_state() / "scratch"
    with Bank.open(old) as bank, bank.as_of("HEAD~2") as past:
        assert past.search("deploy")[0].memory.id == "notes:deploy-day"
        assert past.vault.build_snapshot().endswith("- Mission: keep it stable\n")
        (copy,) = place.rglob("deploy-day.md")
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in (place, *copy.parents[:2])} == {0o700}
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert os.listdir(place) == []
    with pytest.raises(MemlaneError, match="closed"):
        past.get("notes:deploy-day")
    with pytest.raises(NotFound):
        bank.as_of("2020-01-01")
    assert os.listdir(place) == []


def test_the_past_cannot_be_changed(old: Path) -> None:
    writes: list[Callable[[Bank], object]] = [
        lambda bank: bank.add("text"),
        lambda bank: bank.update("notes:deploy-day", text="text"),
        lambda bank: bank.append("notes:deploy-day", "text"),
        lambda bank: bank.delete("notes:deploy-day"),
        lambda bank: bank.vault.compact(),
        lambda bank: bank.notes.create_memory("a", "b"),
        lambda bank: bank.topics.store("a", "b"),
        lambda bank: bank.layers.prune({}),
    ]
    with Bank.open(old) as bank, bank.as_of("HEAD~2") as past:
        for write in writes:
            with pytest.raises(MemlaneError, match="cannot be changed") as refused:
                write(past)
            assert refused.value.code == "read_only"


def test_a_time_that_cannot_be_found_is_said(old: Path) -> None:
    wrong = {"2024-12-31": NotFound, "no-such-branch": InvalidInput, "--all": InvalidInput, "": InvalidInput}
    for when, error in wrong.items():
        with pytest.raises(error):
            Bank.open(old).as_of(when)


def test_outside_of_git_the_past_is_not_known(run: Run, tmp_path: Path) -> None:
    run("init")
    result = run("list", "--as-of", "2025-01-01")
    assert (result.code, "not in a git repository" in result.err) == (1, True)


def test_what_was_merged_counts_from_its_merge_on(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    with Bank.open(repo) as bank:
        bank.add("text", title="side")
        save(repo, "Side", "2025-02-01")
        git(repo, "checkout", "-q", "main")
        git(repo, "merge", "-q", "--no-ff", "side", "-m", "Merge", date="2025-03-01")
        with bank.as_of("2025-02-15") as before, bank.as_of("2025-03-15") as after:
            assert [list(past.memories()) != [] for past in (before, after)] == [False, True]


# -- the log


def test_the_log_tells_which_commit_did_what(old: Path, run: Run) -> None:
    vault = next(memory.id for memory in Bank.open(old).memories("vault"))
    changes = run("--bank", old, "history", "--json").json
    assert [(change["subject"], change["date"], change["author"]) for change in changes] == [
        ("Delete", "2025-03-10T12:00:00Z", "Ann"),
        ("Change", "2025-02-10T12:00:00Z", "Ann"),
        ("Remember", "2025-01-10T12:00:00Z", "Ann"),
    ]
    kinds = [
        [[memory["id"] for memory in change[kind]] for kind in ("added", "changed", "removed")] for change in changes
    ]
    assert kinds == [
        [[], [], ["notes:deploy-day"]],
        [[], ["notes:deploy-day", vault], []],
        [["notes:deploy-day", "topics:area/general/2025-01-09-first", vault], [], []],
    ]


def test_the_log_of_one_memory(old: Path) -> None:
    bank = Bank.open(old)
    for id in ("notes:deploy-day", "deploy-day"):
        changes = bank.log(id)
        assert [change.subject for change in changes] == ["Delete", "Change", "Remember"]
        assert (changes[0].removed, changes[0].changed) == ((("notes:deploy-day", "Deploy day"),), ())
    assert [change.subject for change in bank.log("deploy-day", limit=1)] == ["Delete"]
    with pytest.raises(NotFound):
        bank.log("notes:never")


def test_the_log_in_a_pipe_is_lines_of_cells(old: Path, run: Run) -> None:
    rows = [row.split("\t") for row in run("--bank", old, "history", "-n", "1").out.splitlines()]
    assert rows[0][1:] == ["2025-03-10", "Ann", "Delete"]
    assert rows[1] == ["-", "notes:deploy-day", "Deploy day"]


def test_of_a_merge_the_log_tells_only_what_neither_side_had(shared: Path) -> None:
    other = branches(shared, note_of("one"), note_of("two"))
    git(other, "merge", "-q", "main", "-m", "Merge")
    change = Bank.open(other).log(limit=1)[0]
    assert change.subject == "Merge"
    assert ([id for id, _ in change.added], [id for id, _ in change.changed]) == ([], ["notes:shared"])


def test_a_bank_that_lies_below_the_top_of_its_repository(tmp_path: Path) -> None:
    (tmp_path / "apps/api").mkdir(parents=True)
    git(tmp_path, "init", "-q")
    with Bank.init(tmp_path / "apps/api", git=True) as bank:
        bank.add("text", title="ümläut")
        first = save(tmp_path)
        bank.update("notes:ümläut", text="other")
        save(tmp_path)
        with bank.as_of(first[:10]) as past:
            assert past.get("notes:ümläut").text == "text"
        assert [len(change.changed) for change in bank.log("notes:ümläut")] == [1, 0]


# -- the driver alone


def test_the_driver_writes_into_ours_and_leaves_it_alone_when_it_cannot(run: Run, tmp_path: Path) -> None:
    for name, text in (("base", "a\n"), ("ours", "a\n\nx\n"), ("theirs", "a\n\ny\n")):
        (tmp_path / name).write_text(text)
    assert run("merge-driver", "note", "base", "ours", "theirs", "a.md", "--json").json == {
        "path": "a.md", "format": "note", "two_versions": False, "secrets": [],
    }  # fmt: skip
    assert (tmp_path / "ours").read_text() == "a\n\nx\n\ny\n"
    (tmp_path / "ours").write_bytes(b"\xff")
    assert run("merge-driver", "note", "base", "ours", "theirs").code == 5
    assert (tmp_path / "ours").read_bytes() == b"\xff"


def test_git_runs_without_what_the_surroundings_or_the_repository_would_make_it_do(
    old: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "gpg.program"):
        git(old, "config", key, str(script))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    with Bank.open(old) as bank, bank.as_of("HEAD~2") as past:
        assert len(bank.log()) == 3
        assert json.loads(json.dumps(past.get("notes:deploy-day").to_dict()))["title"] == "Deploy day"
    assert not trap.exists()


@pytest.mark.parametrize("when", ["1969-12-31", "1901-01-01", "1970-01-01T00:00:05Z", "1972-06-01"])
def test_a_date_before_all_commits_is_no_commits_date(when: str, repo: Path) -> None:
    """git takes small and negative numbers for something else than seconds."""
    with Bank.open(repo) as bank, pytest.raises(NotFound, match="that old"):
        bank.as_of(when)


def test_an_empty_name_is_not_today(repo: Path, run: Run) -> None:
    assert run("--bank", repo, "list", "--as-of", "").code == 2


def test_a_repository_of_another_user_says_how_to_trust_it(repo: Path, run: Run) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="day")
    os.chown(repo / ".git", 12345, 12345)
    for command in (
        ["history"],
        ["list", "--as-of", "HEAD"],
        ["history", "notes:day"],
        ["doctor", "--only", "secrets", "--history"],
    ):
        assert run("--bank", repo, *command).err.splitlines() == [
            "error: git does not trust this repository: it is another user's.",
            f"next: git config --global --add safe.directory {repo}",
        ]


def test_the_history_of_a_bank_with_a_submodule_is_audited(repo: Path, run: Run) -> None:
    with Bank.open(repo) as bank:
        (bank.root / "key.md").write_text("token " + "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5" + "\n")
    commit = save(repo)
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},.memories/other.md")
    git(repo, "commit", "-q", "-m", "A submodule")
    (repo / ".memories/key.md").unlink()
    git(repo, "commit", "-q", "-a", "-m", "Away with it")
    found = run("--bank", repo, "doctor", "--only", "secrets", "--history")
    assert (found.code, found.out.partition(": ")[0]) == (4, f"{commit[:12]}:.memories/key.md:1:7")


def test_a_bank_that_is_a_link_out_of_the_repository_has_no_past(repo: Path, run: Run) -> None:
    (repo / ".memories").rename(repo.parent / "elsewhere")
    (repo / ".memories").symlink_to(repo.parent / "gone")
    result = run("--bank", repo, "list", "--as-of", "HEAD")
    assert (result.code, result.err.splitlines()[0]) == (
        1,
        "error: The bank's folder is not in the bank's git repository.",
    )
