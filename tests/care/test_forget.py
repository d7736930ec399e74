"""`memlane forget`: not a byte of a memory is left in the bank, and what cannot be reached is said."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import MEMLANE, Run
from conftest import tree
from memlane import Bank, InvalidInput, NotFound, config
from memlane.capture.messages import capture
from memlane.care.distilled import store_new
from memlane.care.forget import Forgotten, Left, Piece, forget, forget_captured, plan
from memlane.disk import files
from memlane.disk import journal as journals
from memlane.exchange.export import write_block
from memlane.exchange.sharing import share
from memlane.history import sessions, versions
from memlane.lanes import NAMES
from memlane.recall.blocks import Block
from repositories import git, save
from samples import transcript, words


def _texts(path: Path) -> Iterator[bytes]:
    """Every content that a journal keeps."""
    with closing(sqlite3.connect(path)) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone():
            yield from (zlib.decompress(data) for (data,) in db.execute("SELECT data FROM texts"))


class Canary:
    """Nonsense words that occur nowhere else, assembled at run time: one of them is not ASCII."""

    def __init__(self, seed: str) -> None:
        self.words = [*words(f"canary {seed}", 7).split(), "zür" + "plöxig" + "wattü"]
        self.text = f'{" ".join(self.words[:4])}\n\n{" ".join(self.words[4:])} "quoted"\n'
        self.older = f"Before: {self.text}"
        self.title = f"{self.words[0]} {self.words[7]}"

    def found_in(self, *folders: Path) -> list[str]:
        """Where any of the words stands, in a file's name or in its bytes, in any way of writing it."""
        found = []
        for folder in folders:
            for place, names, rest in os.walk(folder):
                for name in (*names, *rest):
                    path = Path(place, name)
                    data = os.fsencode(name) + b"\n" + (path.read_bytes() if path.is_file() else b"")
                    data += b"\n".join(_texts(path)) if path.suffix == ".db" else b""
                    found += [f"{path}: {word}" for word in self.words if self._is_in(word, data.lower())]
        return found

    @staticmethod
    def _is_in(word: str, data: bytes) -> bool:
        forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD")]
        spelt = [form.encode(code) for form in forms for code in ("utf-8", "utf-16-le", "utf-16-be")]
        spelt += [json.dumps(form)[1:-1].lower().encode() for form in forms]
        return any(bytes in data for bytes in spelt)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def open_bank(folder: Path) -> Iterator[Bank]:
    with Bank.init(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys", tags=["pinned"])
        yield bank


FIELDS: dict[str, dict[str, Any]] = {
    "notes": {"tags": ["pinned"]},
    "vault": {"type": "fact"},
    "topics": {"topic": "auth", "subtopic": "login"},
    "records": {},
    "layers": {"project": "api"},
}


def lived(bank: Bank, lane: str, canary: Canary, folder: Path) -> list[str]:
    """A memory that went through everything a memory can go through. Returns the ids that hold the canary."""
    title = None if lane == "vault" else " ".join(canary.words[:2]) if lane == "layers" else canary.title
    memory = bank.add(canary.older, lane=lane, title=title, **FIELDS[lane])
    bank.delete(memory.id)
    bank.restore(memory.id)
    memory = bank.update(memory.id, text=canary.text)
    memory = bank.append(memory.id, canary.words[5])
    for word in canary.words:
        bank.search(word)
    ids = [memory.id, *MORE[lane](bank, memory.id, canary, folder)]
    for word in canary.words:
        bank.search(word)
    write_block(bank, folder / "AGENTS.md")
    live = [memory.id for memory in bank.list() if memory.id in ids]
    with journals.change("review") as journal:
        for id in live:
            journal.begin(id, "delete")
            bank.delete(id)
    bank.restore(live[0])
    bank.index.refresh(force=True)
    return ids


def _notes(bank: Bank, id: str, canary: Canary, folder: Path) -> list[str]:
    other = bank.add(f"Also {canary.text}", title="Other")
    bank.notes.merge_memories([other.native_id], "merged.md", f"Both say {canary.text}")
    (folder / ".memories/.memlane-999999999-abc.tmp").write_text(canary.text)
    return ["notes:other", "notes:merged"]


def _vault(bank: Bank, id: str, canary: Canary, folder: Path) -> list[str]:
    with open(folder / ".memories/vault.jsonl", "a") as file:
        file.write(f'{{"id":"{id.partition(":")[2]}","text":"{canary.words[0]}\n')
        file.write(json.dumps({"version": "?", "text": canary.text})[:-5] + "\n")
    bank.vault.compact()
    bank.update(id, text=f"Not {canary.text}")
    return []


def _topics(bank: Bank, id: str, canary: Canary, folder: Path) -> list[str]:
    first = bank.add(
        f"An old one. {canary.older}", lane="topics", title=canary.title, created_at="2024-02-03", **FIELDS["topics"]
    )
    for number in range(12):
        bank.add(words(number, 40), lane="topics", title=f"Filler {number}", **FIELDS["topics"])
    assert canary.found_in(folder / ".memories/topics/archive")
    again = bank.add(canary.text, lane="topics", title=canary.title, **FIELDS["topics"])
    return [first.id, again.id]


def _records(bank: Bank, id: str, canary: Canary, folder: Path) -> list[str]:
    (captured,) = capture(bank, transcript(folder.parent / "session.jsonl", f"Said:\n{canary.text}")).ids
    bank.records.archive(id.partition(":")[2])
    return [captured]


def _layers(bank: Bank, id: str, canary: Canary, folder: Path) -> list[str]:
    made = bank.layers.create(
        {"layer": "shared-project", "project_name": "api", "file_type": "review_history", "content": "# Reviews\n"}
    )
    for day in ("2020-01-01", "2020-01-02"):
        bank.layers.append(made["id"], f"\n## {day}: Review\n\n{canary.text}\n")
    known = bank.layers.create(
        {"layer": "shared-project", "project_name": "api", "file_type": "known_issues", "content": canary.text}
    )
    return [f"layers:{made['id']}", f"layers:{known['id']}"]


MORE: dict[str, Callable[[Bank, str, Canary, Path], list[str]]] = {
    "notes": _notes,
    "vault": _vault,
    "topics": _topics,
    "records": _records,
    "layers": _layers,
}


def state() -> Path:
    return config.user_state()


@pytest.mark.parametrize("lane", NAMES)
def test_no_byte_of_it_is_left(open_bank: Bank, folder: Path, lane: str) -> None:
    """Added, updated, deleted, restored, merged, archived, exported, captured, searched, undone: then forgotten."""
    canary, bank = Canary(lane), open_bank
    before = {memory.id for memory in bank.list()}
    ids = lived(bank, lane, canary, folder)
    kept_then = [sessions.Item(id, " ".join(canary.words)) for id in ids]
    sessions.note(bank.config, "prompt", "s", block=Block.of("", [bank.get("notes:deploys")]), captured=kept_then)
    assert canary.found_in(folder / ".memories/indices")
    assert canary.found_in(state() / "sessions")
    done = forget(bank, ids)
    assert done.ids == tuple(ids)
    assert canary.found_in(folder, state()) == []
    assert sessions.shown("s") == ["notes:deploys"]
    kept = {memory.id for memory in bank.list() if "filler" not in memory.id}
    assert kept == before
    assert [problem for problem in bank.problems() if "temporary" not in problem.why] == []
    assert bank.search("Tuesdays")[0].memory.id == "notes:deploys"
    assert canary.found_in(folder, state()) == []


def test_what_a_note_said_before_it_was_moved_goes_too(open_bank: Bank, folder: Path) -> None:
    """And whoever has its earlier name by now keeps every version."""
    canary, bank = Canary("notes"), open_bank
    id = bank.add(canary.text, title="Salary").id
    bank.update(id, text="Wholly different words.")
    (moved,) = share(bank, [id], private=True)
    kept = bank.add("What the next one says.", title="Salary").id
    bank.update(kept, text="And what it says later.")
    forget(bank, [moved.id])
    assert canary.found_in(folder, state()) == []
    shown = [(versions.show(bank, kept, each.version).text or "").strip() for each in bank.history(kept)]
    assert [text.split("\n")[-1] for text in shown] == ["And what it says later.", "What the next one says."]


def test_what_an_entry_said_under_an_earlier_title_goes_too(open_bank: Bank, folder: Path) -> None:
    canary, bank = Canary("topics"), open_bank
    bank.add("A neighbour's words.", lane="topics", title="Neighbour", **FIELDS["topics"])
    id = bank.add(canary.text, lane="topics", title=canary.title, **FIELDS["topics"]).id
    id = bank.update(id, text="Wholly different words.").id
    id = bank.update(id, title="Another title").id
    forget(bank, [id])
    assert canary.found_in(folder, state()) == []
    assert [memory.title for memory in bank.memories("topics") if memory.title == "Neighbour"] == ["Neighbour"]


@pytest.mark.parametrize("lane", NAMES)
def test_it_does_not_come_back_by_itself(open_bank: Bank, folder: Path, lane: str) -> None:
    bank = open_bank
    memory = bank.add(words("gone"), lane=lane, title=None if lane == "vault" else "Gone", **FIELDS[lane])
    forget(bank, [memory.id])
    assert capture(bank, transcript(folder.parent / "session.jsonl", memory.text + "\n.")).captured == 0
    assert capture(bank, transcript(folder.parent / "other.jsonl", memory.text)).captured == 0
    with pytest.raises(NotFound):
        bank.restore(memory.id)
    again = forget(bank, [memory.id])
    assert [piece for piece in again.removed if piece.id] == []


def test_a_dry_run_changes_nothing_and_says_it_all(open_bank: Bank, folder: Path) -> None:
    canary, bank = Canary("dry"), open_bank
    ids = lived(bank, "notes", canary, folder)
    bank.close()
    before = tree(folder)
    planned = plan(bank, ids)
    assert tree(folder) == before
    assert planned == forget(bank, ids)


def test_other_memories_stay_byte_for_byte(open_bank: Bank, folder: Path) -> None:
    bank = open_bank
    for lane in NAMES:
        for number in range(3):
            own = {"project": f"p{number}", "file_type": "common_patterns"} if lane == "layers" else FIELDS[lane]
            title = None if lane == "layers" else f"Title {number}"
            bank.add(words((lane, number)), lane=lane, title=title, **own)
    bank.delete("notes:title-2")
    (folder / ".memories/empty").mkdir()
    before = {path: data for path, data in tree(folder).items() if "/indices/" not in path}
    forget(bank, ["notes:title-1"])
    after = {path: data for path, data in tree(folder).items() if "/indices/" not in path}
    del before[".memories/title-1.md"]
    assert after == before
    assert (folder / ".memories/empty").is_dir()


def test_a_vault_record_goes_and_its_neighbours_lines_stay_as_they_are(open_bank: Bank, folder: Path) -> None:
    bank = open_bank
    one, two = (bank.add(words(seed), lane="vault", type="fact") for seed in ("one", "two"))
    bank.update(one.id, text=words("one again"))
    path = folder / ".memories/vault.jsonl"
    kept = [line for line in path.read_bytes().splitlines() if two.native_id.encode() in line]
    forget(bank, [one.id])
    assert path.read_bytes().splitlines() == kept


def test_an_unknown_id_is_not_found_and_nothing_changes(open_bank: Bank, folder: Path) -> None:
    open_bank.close()
    before = tree(folder)
    for id in ("notes:never", "never", "vault:never", "topics:a/b/c", "layers:no", "records:x", "topics:x"):
        with pytest.raises((NotFound, InvalidInput)):
            forget(open_bank, ["notes:deploys", id])
    assert tree(folder) == before


def test_a_damaged_file_can_be_forgotten(open_bank: Bank, folder: Path) -> None:
    (folder / ".memories/bad.md").write_bytes(b"\xff\xfe secret bytes")
    forget(open_bank, ["notes:bad"])
    assert not (folder / ".memories/bad.md").exists()


def test_what_is_only_in_the_trash_can_be_forgotten(open_bank: Bank, folder: Path) -> None:
    open_bank.delete("notes:deploys")
    assert [piece.what for piece in forget(open_bank, ["deploys"]).removed] == ["journal", "trash"]
    assert open_bank.removed() == []


def test_memories_that_say_the_same_or_name_it_are_told(open_bank: Bank) -> None:
    bank = open_bank
    bank.add("It is so: Deploys go out on Tuesdays. Always.", title="Longer")
    bank.add("See [[memory:deploys]].", title="Link")
    told = {left.where: (left.why, left.command) for left in plan(bank, ["notes:deploys"]).left}
    told.pop("backups")
    assert told == {
        "notes:longer": ("says what notes:deploys says", "memlane forget notes:longer"),
        "notes:link": ("links to notes:deploys", "memlane edit notes:link"),
    }


def test_folders_of_transcripts_are_named(open_bank: Bank, home: Path) -> None:
    (home / ".claude/projects").mkdir(parents=True)
    (home / ".codex/sessions").mkdir(parents=True)
    left = plan(open_bank, ["notes:deploys"]).left
    assert [one.where for one in left] == ["~/.claude/projects, ~/.codex/sessions", "backups"]


def test_text_outside_of_our_block_is_told(open_bank: Bank, folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("Deploys go out on Tuesdays.\n")
    write_block(open_bank, folder / "CLAUDE.md")
    done = forget(open_bank, ["notes:deploys"])
    assert (folder / "CLAUDE.md").read_text().count("Tuesdays") == 1
    assert done.left[0] == Left(str(folder / "CLAUDE.md"), "has it outside of our block; take it out in an editor")


def test_a_short_text_leaves_a_block_too(open_bank: Bank, folder: Path) -> None:
    open_bank.add("Go.", title="Signal", tags=["pinned"])
    write_block(open_bank, folder / "AGENTS.md")
    assert "Signal" in (folder / "AGENTS.md").read_text()
    forget(open_bank, ["notes:signal"])
    assert "Signal" not in (folder / "AGENTS.md").read_text()
    assert "Tuesdays" in (folder / "AGENTS.md").read_text()


def test_what_lies_in_our_own_folder_of_the_machine_is_told(open_bank: Bank) -> None:
    backup = state() / "connect" / "CLAUDE.md"
    backup.parent.mkdir(parents=True)
    backup.write_text("Deploys go out on Tuesdays.\n")
    told = plan(open_bank, ["notes:deploys"]).left
    assert Left(str(backup), "has words of notes:deploys", f"rm {backup}") in told


def test_a_topic_entry_among_namesakes_is_found_by_its_words(open_bank: Bank, folder: Path) -> None:
    bank = open_bank
    ids = [bank.add(words(seed), lane="topics", title="Same", **FIELDS["topics"]).id for seed in "abc"]
    forget(bank, [ids[1]])
    assert [memory.text.count(words(seed)) for seed in "ca" for memory in bank.list(lane="topics")] in (
        [1, 0, 0, 1],
        [0, 1, 1, 0],
    )
    assert words("b") not in (folder / ".memories/topics/auth/login.md").read_text()


# -- git


def test_the_history_is_named_with_the_command_for_it(repo: Path) -> None:
    with Bank.open(repo) as bank:
        note = bank.add(words("note"), title="Plan of it").id
        vault = bank.add(words("vault"), lane="vault", type="fact").id
        topic = bank.add(words("topic"), lane="topics", title="Login", topic="auth").id
        new = bank.add(words("new"), lane="vault", type="fact").id
        (repo / ".memories/vault.jsonl").write_bytes(
            b"".join((repo / ".memories/vault.jsonl").read_bytes().splitlines(True)[:1])
        )
        save(repo)
        bank.close()
        assert [left.where for left in plan(bank, [note]).left] == ["git history", "other clones", "backups"]
        commands = {id: plan(bank, [id]).left[0].command for id in (note, vault, topic)}
        fresh = bank.add(words("fresh"), title="Fresh").id
        assert [left.where for left in plan(bank, [fresh]).left] == ["backups"]
        assert not [text for text in commands.values() for word in words("topic").split() if word in text]
    assert new
    assert commands[note] == "git filter-repo --invert-paths --path .memories/plan-of-it.md"
    assert commands[topic].startswith("git filter-repo --replace-text FILE ")
    assert vault.partition(":")[2] in commands[vault]
    code = re.search(r"--blob-callback (.*)$", commands[vault])
    assert code


def test_the_command_for_the_vault_takes_out_its_lines_alone(repo: Path) -> None:
    """Runs the callback as git-filter-repo would, on the blob."""
    import shlex

    with Bank.open(repo) as bank:
        one, two = (bank.add(words(seed), lane="vault", type="fact") for seed in ("one", "two"))
        bank.update(one.id, text=words("one again"))
        save(repo)
        code = shlex.split(plan(bank, [one.id]).left[0].command)[-1]

    class Blob:
        data = (repo / ".memories/vault.jsonl").read_bytes()

    exec(code, {"blob": Blob})
    assert [json.loads(line)["id"] for line in Blob.data.splitlines()] == [two.native_id]


# -- the command


def test_the_command_prints_what_it_removed_and_what_is_left(run: Run, bank: Bank, tmp_path: Path) -> None:
    id = run("add", "Deploys go out on Tuesdays.", "--title", "Deploys").out.strip()
    file = str(tmp_path / ".memories/deploys.md")
    shown = run("forget", id, "--dry-run")
    assert (shown.code, shown.out.splitlines()[1]) == (0, f"would remove\tfile\t{file}")
    assert Path(file).exists()
    done = run("forget", id, "--yes", "--json")
    assert (done.code, done.json["applied"], done.json["ids"]) == (0, True, [id])
    assert [(piece["id"], piece["what"]) for piece in done.json["removed"]] == [(id, "journal"), (id, "file")]
    assert [left["where"] for left in done.json["left"]] == ["backups"]
    assert not Path(file).exists()
    assert run("forget", "notes:never", "--yes").code == 3


def test_without_a_terminal_it_refuses_unless_told(run: Run, bank: Bank) -> None:
    id = run("add", "Deploys go out on Tuesdays.").out.strip()
    result = run("forget", id)
    assert result.code == 2
    assert "Nothing was changed" in result.err
    assert run("get", id).code == 0


def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    import pty

    with Bank.init(tmp_path) as bank:
        for name in ("one", "two"):
            bank.add(words(name), title=name)
    for name, answer, code in (("one", b"n\n", 130), ("two", b"y\n", 0)):
        parent, child = pty.openpty()
        process = subprocess.Popen([MEMLANE, "forget", f"notes:{name}"], cwd=tmp_path, stdin=child, stderr=child)
        os.close(child)
        os.write(parent, answer)
        assert process.wait(120) == code
        os.close(parent)
    with Bank.open(tmp_path) as bank:
        assert [memory.id for memory in bank.list()] == ["notes:one"]


# -- kill -9


def forgotten_until_killed(folder: Path, ids: list[str], steps: int) -> int:
    """Forget in a process that kills itself when it has changed the disk so often; gives how it ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = iter(range(steps))

    def ticking(verb: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return verb(*args, **options)

        return run

    try:
        for name in ("unlink", "replace", "rename", "link", "fsync", "rmdir"):
            setattr(os, name, ticking(getattr(os, name)))
        forget(Bank.open(folder), ids)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(1)


@pytest.mark.parametrize("lane", NAMES)
def test_whoever_is_killed_at_any_step_finishes_by_calling_again(open_bank: Bank, folder: Path, lane: str) -> None:
    """The process kills itself before its n-th change of the disk, for some n; the next call does the rest."""
    canary = Canary(f"kill {lane}")
    ids = lived(open_bank, lane, canary, folder)
    open_bank.close()
    shutil.copytree(folder, folder.parent / "before", symlinks=True)
    steps = sorted(random.Random(lane).sample(range(45), 4))
    for number in steps:
        shutil.rmtree(folder)
        shutil.copytree(folder.parent / "before", folder, symlinks=True)
        assert forgotten_until_killed(folder, ids, number) in (0, -signal.SIGKILL)
        with Bank.open(folder) as bank:
            forget(bank, ids)
            assert canary.found_in(folder, state()) == []
            assert {memory.id for memory in bank.list() if "filler" not in memory.id} == {"notes:deploys"}
            assert bank.problems() == []


def test_shapes(open_bank: Bank) -> None:
    assert Forgotten(("a",), (Piece("a", "file", "x"),), (Left("git", "why"),)).to_dict() == {
        "ids": ["a"],
        "removed": [{"id": "a", "what": "file", "path": "x"}],
        "left": [{"where": "git", "why": "why", "command": ""}],
    }


def test_a_writers_temporary_file_stays_while_it_lives(open_bank: Bank, folder: Path) -> None:
    path = folder / f".memories/{files.TEMP_PREFIX}{os.getpid()}-ab{files.TEMP_SUFFIX}"
    path.write_text("half")
    old = folder / f".memories/{files.TEMP_PREFIX}{os.getpid()}-cd{files.TEMP_SUFFIX}"
    old.write_text("half")
    os.utime(old, (0, time.time() - 2 * files.LEFT_OVER))
    forget(open_bank, ["notes:deploys"])
    assert (path.exists(), old.exists()) == (True, False)


def test_git_sees_the_deletion_as_any_other(repo: Path) -> None:
    with Bank.open(repo) as bank:
        id = bank.add(words("plan"), title="Plan").id
        save(repo)
        forget(bank, [id])
    assert git(repo, "status", "--porcelain").splitlines() == ["D .memories/plan.md"]


# -- all that was captured


@pytest.fixture
def captured(open_bank: Bank, folder: Path) -> Canary:
    """A session that was captured and distilled, deleted in part, changed, found and handed over."""
    canary = Canary("captured")
    first, second = " ".join(canary.words[:4]), " ".join(canary.words[4:])
    said = [
        ("user", f"Why does {first} fail?"),
        ("assistant", f"It fails because `{canary.words[0]}` does not support {first}.\n\nSee below."),
        ("user", f"From now on we always ask the owner of {second}, because they are on call."),
        ("assistant", f"The owner of {second} is asked now.\nAll of it is done."),
    ]
    times = (f"2026-01-0{day}T10:00:00Z" for day in range(1, 9))
    lines = [{"role": role, "content": text, "timestamp": next(times)} for role, text in said]
    path = folder.parent / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    capture(open_bank, path)
    store_new(open_bank, os.fspath(path), 5, "s1")
    notes = [one for one in open_bank.list(lane="notes") if one.unconfirmed]
    records = open_bank.list(lane="records")
    assert (len(notes) >= 2, len(records)) == (True, 2)
    open_bank.append(notes[0].id, f"And {canary.words[5]}.")
    open_bank.delete(notes[0].id)
    open_bank.delete(records[0].id)
    open_bank.records.archive(records[1].native_id)
    open_bank.search(first)
    sessions.note(open_bank.config, "prompt", "s1", prompt=first, block=Block.of(canary.text, notes))
    path.unlink()
    return canary


def test_nothing_of_what_was_captured_is_left_in_bank_index_state_folder_and_journal(
    open_bank: Bank, folder: Path, captured: Canary
) -> None:
    places = (folder, config.user_state())
    assert captured.found_in(*places)
    assert forget_captured(open_bank, dry_run=True).ids
    done = forget_captured(open_bank)
    assert captured.found_in(*places) == []
    assert len(done.ids) >= 4
    assert [memory.id for memory in open_bank.list()] == ["notes:deploys"]


def test_what_was_written_on_purpose_keeps_its_history_when_all_that_was_captured_is_forgotten(
    open_bank: Bank, captured: Canary
) -> None:
    open_bank.update("notes:deploys", text="Deploys go out on Mondays.")
    forget_captured(open_bank)
    kept = [versions.show(open_bank, "notes:deploys", one.version).text for one in open_bank.history("notes:deploys")]
    told = [(text or "").strip().split("\n")[-1] for text in kept]
    assert told == ["Deploys go out on Mondays.", "Deploys go out on Tuesdays."]


def test_what_was_captured_and_deleted_by_hand_is_wiped_from_the_journal_too(
    open_bank: Bank, folder: Path, captured: Canary
) -> None:
    shutil.rmtree(folder / ".memories/records")
    shutil.rmtree(folder / ".memories/private/distilled")
    forget_captured(open_bank)
    assert captured.found_in(folder, config.user_state()) == []


def test_a_hook_goes_on_where_it_was_after_all_that_was_captured_is_forgotten(open_bank: Bank, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    line = {"role": "assistant", "content": "One thing.\nAnd another.", "timestamp": "2026-01-01T10:00:00Z"}
    later = {**line, "content": "Something else.\nAnd more of it.", "timestamp": "2026-01-02T10:00:00Z"}
    asked = json.dumps({"role": "user", "content": "Go on."}) + "\n"
    path.write_text(json.dumps(line) + "\n" + asked)
    capture(open_bank, path)
    forget_captured(open_bank)
    path.write_text(json.dumps(line) + "\n" + asked + json.dumps(later) + "\n")
    capture(open_bank, path)
    assert [record.content for record in open_bank.records.list()] == [later["content"]]


def test_the_command_forgets_all_that_was_captured_only_with_a_yes(
    open_bank: Bank, captured: Canary, run: Run, folder: Path
) -> None:
    before = tree(folder)
    assert run("--bank", str(folder), "forget", "--captured").code == 2
    assert run("--bank", str(folder), "forget").code == 2
    assert run("--bank", str(folder), "forget", "notes:deploys", "--captured", "--yes").code == 2
    assert tree(folder) == before
    done = run("--bank", str(folder), "forget", "--captured", "--yes")
    assert (done.code, captured.found_in(folder, config.user_state())) == (0, [])
