"""Forgotten stays forgotten when a word differs: every way in which a text could come back is asked about first."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import Run
from conftest import trusted
from memlane import Bank, InvalidInput, Memory, config
from memlane.capture.messages import capture
from memlane.care.forget import forget, plan
from memlane.disk import journal as journals
from memlane.disk import tombstones
from memlane.disk.forgotten import ForgottenTexts, Gone
from memlane.exchange import export
from memlane.exchange.imports import import_from
from memlane.history import sessions
from memlane.history.undo import undo
from memlane.lanes import NAMES
from memlane.recall.blocks import Block
from repositories import git, save
from samples import transcript, words

TEXT = "The door code of the office in Leipzig is K4821, and Ann changes it every spring."
CHANGED = TEXT.replace("every spring", "each autumn")
OTHER = "Deploys go out on Tuesdays, after the tests have run on both machines."
FIELDS: dict[str, dict[str, Any]] = {
    "notes": {"title": "Door", "tags": ["pinned"]},
    "vault": {},
    "topics": {"title": "Door", "topic": "office", "subtopic": "doors"},
    "records": {"title": "Door"},
    "layers": {"project": "api", "file_type": "common_patterns"},
}


def add(bank: Bank, lane: str, text: str = TEXT) -> Memory:
    return bank.add(text, lane=lane, created_at="2025-01-10T10:00:00Z", **FIELDS[lane])


def shown(bank: Bank) -> str:
    """All that a bank tells anybody who does not ask for one memory by its id."""
    parts = [memory.text for memory in (*bank.list(), *bank.memories())]
    parts += [hit.memory.text for hit in bank.search("door code of the office in Leipzig")]
    parts += [bank.snapshot(), bank.context("What is the door code of the office?")]
    parts += export.lines(bank.memories())
    parts += [record.text for record in (*bank.vault.recall_memories(), *bank.vault.search_memories("door code"))]
    parts += [record.content for record in (*bank.records.list(), *bank.records.find("door"))]
    parts += [entry.content for entry in (*bank.topics.search("door"), *bank.topics.load("office/doors"))]
    parts += [str(bank.topics.embed("office/doors")), json.dumps(bank.layers.search("code"))]
    parts += [entry.content for entry in bank.layers.get_shared_project_memory("api")]
    return "\n".join(map(str, parts))


def assert_held(bank: Bank, count: int = 1) -> None:
    """It is there, nobody is shown it, and `problems` says what to do."""
    assert "K4821" not in shown(bank)
    whys = [problem.why for problem in bank.problems() if "says what was forgotten" in problem.why]
    assert len(whys) == count
    for why in whys:
        id = why.split(" says ")[0]
        assert why.endswith(f"`memlane restore {id}` keeps it, `memlane forget {id}` removes it again")


@pytest.fixture
def kept(tmp_path: Path) -> Bank:
    """A bank with another memory."""
    (tmp_path / "project").mkdir()
    bank = Bank.init(tmp_path / "project")
    bank.add(OTHER, title="Deploys")
    return bank


# -- capture and import


@pytest.mark.parametrize("lane", NAMES)
def test_a_message_like_it_is_not_captured(kept: Bank, tmp_path: Path, lane: str) -> None:
    forget(kept, [add(kept, lane).id])
    for number, said in enumerate(
        [
            TEXT,
            f"{TEXT}\nTell nobody.",
            CHANGED,
            TEXT.upper(),
            TEXT.replace(" ", "\n"),
            TEXT.replace("door", "do\u200bor"),
            f"I have looked it up for you. {CHANGED} That is all that I know about it.",
        ]
    ):
        done = capture(kept, transcript(tmp_path / f"session{number}.jsonl", said))
        assert (done.captured, done.refused) == (0, 0), said
    assert "K4821" not in shown(kept)


@pytest.mark.parametrize("lane", NAMES)
def test_an_import_says_that_it_is_held_back(kept: Bank, tmp_path: Path, lane: str) -> None:
    forget(kept, [add(kept, lane).id])
    (tmp_path / "in").mkdir()
    for text in (TEXT, f"{TEXT} Always.", f"# Doors\n\n{CHANGED}\n"):
        (tmp_path / "in/new-name.md").write_text(text)
        for into in (None, "vault", "records"):
            (outcome,) = import_from(kept, tmp_path / "in", lane=into)
            assert outcome.status == "same", (text, into)
            assert outcome.why.startswith("held back: like what was forgotten here on ")
    assert "K4821" not in shown(kept)


@pytest.mark.parametrize("lane", NAMES)
@pytest.mark.parametrize("update", [False, True])
def test_an_export_from_before_does_not_bring_it_back(kept: Bank, tmp_path: Path, lane: str, update: bool) -> None:
    id = add(kept, lane).id
    (tmp_path / "bank.jsonl").write_text(
        "\n".join(export.lines(kept.memories())).replace("every spring", "each autumn")
    )
    forget(kept, [id])
    done = import_from(kept, tmp_path / "bank.jsonl", update=update)
    assert [outcome.status for outcome in done] == ["same", "same"]
    assert "K4821" not in shown(kept)


# -- files: an editor, cp, another name, another lane


def returned(bank: Bank, lane: str, change: Callable[[str], str]) -> Memory:
    """Forget a memory; then its file is back with a change, as an editor that still had it open would save it."""
    memory = add(bank, lane)
    before = memory.path.read_text()
    forget(bank, [memory.id])
    memory.path.parent.mkdir(parents=True, exist_ok=True)
    memory.path.write_text(change(before))
    return memory


@pytest.mark.parametrize("lane", NAMES)
def test_a_file_that_comes_back_is_held_back(kept: Bank, lane: str) -> None:
    memory = returned(kept, lane, lambda text: text)
    assert_held(kept)
    before = memory.path.read_text()
    for old, new in (
        ("every spring", "each autumn"),
        ("K4821,", "K4821, they say,"),
        ("Ann changes it every spring.", "Ann changes it every spring. Or Bob does."),
    ):
        memory.path.write_text(before.replace(old, new))
        assert_held(kept)


def test_other_line_breaks_another_name_and_an_added_line_make_no_difference(kept: Bank) -> None:
    forget(kept, [add(kept, "notes").id])
    (kept.root / "renamed.md").write_text(f"---\ntitle: Keys\n---\n{CHANGED.replace(' of ', chr(10) + 'of ')}\n")
    (kept.root / "longer.md").write_text(f"{words('before', 60)}\n\n{TEXT}\n\n{words('after', 60)}\n")
    assert_held(kept, 2)


@pytest.mark.parametrize("lane", NAMES)
def test_it_is_held_back_in_any_lane(kept: Bank, tmp_path: Path, lane: str) -> None:
    """The files of another bank's memories are copied here, one after the other."""
    forget(kept, [add(kept, lane).id])
    (tmp_path / "second").mkdir()
    with Bank.init(tmp_path / "second") as second:
        paths = [add(second, other, CHANGED).path for other in NAMES]
    for count, path in enumerate(paths, 1):
        target = kept.root / path.relative_to(second.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        assert_held(kept, count)


def test_a_long_text_is_known_by_its_shingles(kept: Bank) -> None:
    long = "\n".join(words(number, 20) for number in range(40))
    forget(kept, [kept.add(long, title="Long").id])
    changed = " ".join("otherwise" if number % 15 == 7 else word for number, word in enumerate(long.split()))
    (kept.root / "copy.md").write_text(changed)
    (kept.root / "unlike.md").write_text("\n".join(words(("new", number), 20) for number in range(40)))
    assert {memory.id for memory in kept.list()} == {"notes:unlike", "notes:deploys"}


# -- restore, undo, and deciding


def test_what_lies_in_the_trash_and_is_like_it_comes_back_held(kept: Bank) -> None:
    twin = kept.add(CHANGED, title="Twin")
    kept.delete(twin.id)
    forget(kept, [add(kept, "notes").id])
    assert "it is held back" in kept.restore(twin.id).remarks[-1]
    assert_held(kept)
    assert kept.restore(twin.id).remarks[0].startswith("like what was forgotten on ")
    assert "K4821" in shown(kept)


def test_undo_brings_it_back_held(kept: Bank) -> None:
    twin = kept.add(CHANGED, title="Twin")
    with journals.change("review") as journal:
        journal.begin(twin.id, "delete")
        kept.delete(twin.id)
    forget(kept, [add(kept, "vault").id])
    undo(kept)
    assert "K4821" not in shown(kept)


@pytest.mark.parametrize("lane", NAMES)
def test_restore_keeps_it_even_when_it_is_edited_later(kept: Bank, lane: str) -> None:
    memory = returned(kept, lane, lambda text: text.replace("every", "each"))
    (held,) = [item for item in _all(kept, lane) if "K4821" in item.text]
    kept.restore(held.id)
    assert "K4821" in shown(kept)
    memory.path.write_text(memory.path.read_text().replace("each spring", "each summer"))
    assert "each summer" in shown(kept)
    assert kept.problems() == []


@pytest.mark.parametrize("lane", NAMES)
def test_forget_removes_it_again(kept: Bank, lane: str) -> None:
    returned(kept, lane, lambda text: text.replace("every", "each"))
    (held,) = [item for item in _all(kept, lane) if "K4821" in item.text]
    forget(kept, [held.id])
    assert kept.problems() == []
    assert [item for item in _all(kept, lane) if "K4821" in item.text] == []


def _all(bank: Bank, lane: str) -> list[Memory]:
    from memlane.lanes import scan

    return [item for item in scan(bank.lane(lane)) if isinstance(item, Memory)]


@pytest.mark.parametrize("lane", NAMES)
def test_adding_it_on_purpose_works_and_says_so(kept: Bank, lane: str) -> None:
    forget(kept, [add(kept, lane).id])
    again = add(kept, lane, CHANGED)
    assert [remark for remark in again.remarks if remark.startswith("like what was forgotten on ")]
    assert "K4821" in shown(kept)
    forget(kept, [again.id])
    assert "K4821" not in shown(kept)


@pytest.mark.parametrize("lane", ["notes", "vault", "topics", "records"])
def test_a_title_that_says_it_is_on_purpose_as_well(kept: Bank, lane: str) -> None:
    forget(kept, [add(kept, lane).id])
    titled = kept.add("It is written on the board.", lane=lane, **{**FIELDS[lane], "title": TEXT})
    renamed = kept.update(kept.add("Nobody has seen it.", lane=lane, **FIELDS[lane]).id, title=CHANGED)
    assert {titled.id, renamed.id} <= {memory.id for memory in kept.list()}
    assert ["like what was forgotten on" in " ".join(one.remarks) for one in (titled, renamed)] == [True, True]


@pytest.mark.parametrize("lane", NAMES)
def test_nothing_is_added_to_what_is_held_back(kept: Bank, lane: str) -> None:
    memory = returned(kept, lane, lambda text: text)
    (held,) = [item for item in _all(kept, lane) if "K4821" in item.text]
    before = memory.path.read_bytes()
    with pytest.raises(InvalidInput, match="and is held back: nothing was written"):
        kept.append(held.id, "One more line.")
    assert memory.path.read_bytes() == before
    assert "K4821" not in shown(kept)


@pytest.mark.parametrize("lane", ["notes", "layers"])
def test_nor_by_the_verbs_of_a_lane(kept: Bank, lane: str) -> None:
    returned(kept, lane, lambda text: text)
    (held,) = [item for item in _all(kept, lane) if "K4821" in item.text]
    if lane == "notes":
        assert "held back" in kept.notes.append_memory(held.native_id, "One more line.")["error"]
    else:
        with pytest.raises(InvalidInput, match="held back"):
            kept.layers.append(held.native_id, "One more line.")
    assert "K4821" not in shown(kept)


def test_memories_that_were_there_stay_and_so_does_what_is_unlike(kept: Bank) -> None:
    twin = kept.add(CHANGED, title="Twin")
    forget(kept, [add(kept, "vault").id])
    kept.add("The window of the office in Leipzig is open, and Bob closes it at night.", title="Window")
    (kept.root / "door.md").write_text("Doors are painted green.\n")
    assert {memory.id for memory in kept.list()} == {twin.id, "notes:deploys", "notes:window", "notes:door"}
    assert kept.problems() == []


# -- git


def _edit(lane: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with Bank.open(folder) as bank:
            (memory,) = [item for item in _all(bank, lane) if "K4821" in item.text]
            bank.update(memory.id, text=memory.text.replace(old, new))

    return change


def _rename(folder: Path) -> None:
    git(folder, "mv", ".memories/door.md", ".memories/gate.md")


def _append(lane: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with Bank.open(folder) as bank:
            (memory,) = [item for item in _all(bank, lane) if "K4821" in item.text]
            bank.append(memory.id, "Ask at the desk if it fails.")

    return change


@pytest.mark.parametrize(
    ("lane", "change"),
    [
        *((lane, _edit(lane, "every spring", "each autumn")) for lane in NAMES),
        *((lane, _append(lane)) for lane in ("notes", "vault", "topics", "layers")),
        ("notes", _rename),
    ],
)
def test_no_merge_brings_it_back(repo: Path, lane: str, change: Callable[[Path], None]) -> None:
    """A branch changed it, while it was forgotten on main."""
    with Bank.open(repo) as bank:
        id = add(bank, lane).id
    save(repo)
    git(repo, "checkout", "-q", "-b", "side")
    change(repo)
    save(repo)
    git(repo, "checkout", "-q", "main")
    with Bank.open(repo) as bank:
        forget(bank, [id])
    save(repo)
    try:
        git(repo, "merge", "-q", "--no-edit", "side")
    except AssertionError:
        git(repo, "status")  # a conflict leaves the file in the tree
    with Bank.open(repo) as bank:
        assert "K4821" not in shown(bank)


def test_a_checkout_and_the_past_do_not_bring_it_back(repo: Path) -> None:
    with Bank.open(repo) as bank:
        id = add(bank, "notes").id
        then = save(repo)
        forget(bank, [id])
        save(repo)
        with bank.as_of(then) as past:
            assert past.list() == []
    git(repo, "checkout", "-q", then, "--", ".memories/door.md")
    with Bank.open(repo) as bank:
        assert_held(bank)


@pytest.mark.parametrize("lane", NAMES)
def test_the_log_does_not_tell_its_title(repo: Path, run: Run, lane: str) -> None:
    """The title of a text without one is its beginning, and so is its id."""
    with Bank.open(repo) as bank:
        id = bank.add(TEXT, lane=lane, **{**FIELDS[lane], "title": None if lane == "notes" else "Door K4821"}).id
        save(repo)
        forget(bank, [id])
        save(repo)
    assert "K4821" not in run("--bank", repo, "history").out
    assert "K4821" not in run("--bank", repo, "history", "--json").out


# -- where it is remembered


@pytest.mark.parametrize("first", [False, True])
def test_the_bank_has_no_hash_of_it(kept: Bank, first: bool) -> None:
    """Not even one that an earlier `rm` wrote; that of another deletion stays."""
    other = kept.add("Something else was deleted before.", title="Else")
    kept.delete(other.id)
    before = (kept.root / tombstones.FILE).read_bytes()
    memory = add(kept, "notes")
    if first:
        kept.delete(memory.id)
    forget(kept, [memory.id])
    assert (kept.root / tombstones.FILE).read_bytes() == before
    assert kept.tombstones.deleted(other.text)


def test_it_is_remembered_for_the_user_alone_and_without_words(kept: Bank) -> None:
    os.umask(os.umask(0o022))
    forget(kept, [add(kept, "notes").id])
    folder = config.user_state() / "forgotten"
    (file,) = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)
    text = file.read_text().lower()
    assert not [word for word in TEXT.lower().split() if len(word) > 4 and word in text.replace(str(kept.root), "")]
    key = json.loads(file.read_text().splitlines()[0])["key"]
    assert not [path for path in kept.root.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_a_project_that_was_moved_still_knows_it(kept: Bank, tmp_path: Path) -> None:
    forget(kept, [add(kept, "notes").id])
    kept.close()
    (tmp_path / "project").rename(tmp_path / "moved")
    (tmp_path / "moved/.memories/back.md").write_text(TEXT)
    trusted(tmp_path / "moved/memlane.toml")
    with Bank.open(tmp_path / "moved") as bank:
        assert_held(bank)
        forget(bank, [bank.add("The wifi of the guests is called heron, says the sheet.").id])
    assert len(list((config.user_state() / "forgotten").iterdir())) == 1


def test_another_folder_in_the_old_place_takes_nothing_over(kept: Bank, tmp_path: Path) -> None:
    forget(kept, [add(kept, "notes").id])
    kept.close()
    (tmp_path / "project").rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()
    with Bank.init(tmp_path / "other") as other:
        assert add(other, "notes").remarks == ()


def test_another_bank_knows_nothing_of_it(kept: Bank, tmp_path: Path) -> None:
    forget(kept, [add(kept, "notes").id])
    (tmp_path / "second").mkdir()
    with Bank.init(tmp_path / "second") as second:
        assert add(second, "notes").remarks == ()


def test_nothing_is_read_or_made_before_the_first_forget(kept: Bank) -> None:
    kept.delete(add(kept, "notes").id)
    assert kept.problems() == []
    assert not (config.user_state() / "forgotten").exists()


def test_a_damaged_line_is_named_and_the_others_count(kept: Bank) -> None:
    forget(kept, [add(kept, "notes").id])
    path = Path(kept.tombstones.private.path or "")
    path.write_text(path.read_text() + "{oops\n")
    assert kept.tombstones.forgotten(CHANGED)
    assert [(problem.path, problem.line) for problem in kept.problems()] == [(path, 3)]


def test_a_link_in_the_state_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine\n")
    folder = tmp_path / "forgotten"
    folder.mkdir()
    (folder / "x.jsonl").symlink_to(tmp_path / "mine")
    texts = ForgottenTexts(folder / "x.jsonl", bank="b")
    with pytest.raises(Exception, match="cannot be read"):
        texts.remember([Gone("notes:x", (TEXT,))], [])
    assert (tmp_path / "mine").read_text() == "mine\n"


# -- what forget leaves


def test_a_session_that_was_shown_it_is_cleaned_and_not_called_left(kept: Bank) -> None:
    memory = kept.add("notes:a-rather-long-name-of-it", title="A rather long name of it")
    other = kept.get("notes:deploys")
    said = "Is this the rather long name of it, notes:a-rather-long-name-of-it?"
    sessions.note(kept.config, "prompt", "s", prompt=said, block=Block.of("", [memory, other]))
    assert [left.where for left in plan(kept, [memory.id]).left] == ["backups"]
    forget(kept, [memory.id])
    (event,) = sessions.session(kept, "s").events
    assert (event.prompt, event.given) == ("", (sessions.Item("notes:deploys"),))


def test_no_folder_keeps_the_name_of_a_layer(kept: Bank) -> None:
    memory = kept.add(TEXT, lane="layers", project="secret-name", file_type="common_patterns")
    kept.delete(memory.id)
    kept.restore(memory.id)
    forget(kept, [memory.id])
    assert [path for path in kept.root.rglob("*") if "secret-name" in path.name] == []


# -- the command line


def test_the_two_commands_decide(run: Run, bank: Bank, tmp_path: Path) -> None:
    file = tmp_path / ".memories/door.md"
    for command, left in (("restore", ["notes:door"]), ("forget", [])):
        run("add", TEXT, "--title", "Door")
        before = file.read_text()
        assert run("forget", "notes:door", "--yes").code == 0
        file.write_text(before.replace("every", "each"))
        assert run("list").out == ""
        assert run("doctor", "--only", "damage").code == 6
        assert "`memlane forget notes:door` removes it again" in run("get", "notes:door").err
        assert run(command, "notes:door", *(["--yes"] if command == "forget" else [])).code == 0
        assert [line.split("\t")[0] for line in run("list").out.splitlines()] == left
        assert run("doctor", "--only", "damage").code == 0
        if left:
            run("forget", "notes:door", "--yes")


def test_a_line_of_few_words_is_known_beside_a_telling_one_alone(tmp_path: Path) -> None:
    texts = ForgottenTexts(tmp_path / "state/forgotten/of")
    other = Memory("notes:shop", "notes", "Buy milk!", "Shop", "shop.md")
    texts.remember([Gone("notes:door", (f"{TEXT}\n\n- call Bob\n- buy milk",))], [other])

    def gone(text: str) -> list[str]:
        is_gone = texts.other_lines_of(text, "notes:copy", "")
        return [line for line in text.splitlines() if is_gone(line)]

    assert gone(f"{TEXT}\nCall Bob.\nbuy milk\n---\nCall Eve.") == ["Call Bob."]
    assert gone("Call Bob.\nbuy milk") == []


def test_what_an_older_memlane_forgot_is_still_known(tmp_path: Path) -> None:
    texts = ForgottenTexts(tmp_path / "state/forgotten/of")
    texts.remember([Gone("notes:door", (f"{TEXT}\n\n- call Bob",))], [])
    path = tmp_path / "state/forgotten/of"
    head, line = map(json.loads, path.read_text().splitlines())
    del line["beside"], line["seals"]
    path.write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")
    text = f"{TEXT}\n- call Bob"
    assert ForgottenTexts(path).day(text) == line["day"]
    assert not ForgottenTexts(path).other_lines_of(text, "", "")("- call Bob")
