"""`memlane edit`: nothing is lost, nothing refused is left behind."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commands import CANARY, MEMLANE, Run
from conftest import tree
from memlane import Bank
from memlane.core.errors import Conflict, InvalidInput
from memlane.exchange import editing

Editor = Callable[[str], None]


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Editor:
    """Sets $EDITOR to a program that runs this Python on the file `path`, and the place of temporary files."""
    place = tmp_path_factory.mktemp("editor")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("VISUAL", raising=False)

    def use(code: str) -> None:
        script = tmp_path_factory.mktemp("script") / "edit.py"
        script.write_text(f"import os, sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n{code}\n")
        monkeypatch.setenv("EDITOR", f'"{sys.executable}" "{script}"')

    return use


def left_over() -> list[str]:
    return os.listdir(os.environ["TMPDIR"])


def replacing(old: str, new: str) -> str:
    return f"path.write_text(path.read_text().replace({old!r}, {new!r}))"


@pytest.fixture
def note(run: Run, bank: Bank) -> str:
    return run("add", "Deploys go out on Tuesdays.", "--title", "Deploy day", "-t", "release").out.strip()


def test_a_note_is_edited_whole(run: Run, bank: Bank, note: str, editor: Editor) -> None:
    editor(replacing("Tuesdays", "Fridays") + "\n" + replacing('["release"]', '["release", "ops"]'))
    result = run("edit", note)
    assert (result.code, result.out) == (0, "notes:deploy-day\n")
    memory = bank.get(note)
    assert (memory.text, memory.tags) == ("Deploys go out on Fridays.\n", ("release", "ops"))
    assert left_over() == []


def test_the_file_that_the_editor_sees_is_private(run: Run, note: str, editor: Editor, tmp_path: Path) -> None:
    editor("print(oct(path.parent.stat().st_mode & 0o777), file=open('mode', 'w'))")
    run("edit", note)
    assert (tmp_path / "mode").read_text() == "0o700\n"


def test_a_vault_record_is_edited_by_its_text(run: Run, bank: Bank, editor: Editor) -> None:
    id = run("vault", "add", "Projects: dashboard", "--tier", "register", "--topic", "now").out.strip()
    editor(replacing("dashboard", "search"))
    assert run("edit", id, "--json").json["text"] == "Projects: search"
    assert [record.version for record in bank.vault.history(id.removeprefix("vault:"))] == [1, 2]


def test_a_topics_entry_is_edited_by_its_text(run: Run, bank: Bank, editor: Editor) -> None:
    ids = [run("topics", "store", "a/b", "--title", name, "--problem", f"{name}!").out.strip() for name in ("x", "y")]
    editor(replacing("x!", "z!"))
    assert run("edit", ids[0]).code == 0
    assert [bank.get(id).fields["problem"] for id in ids] == ["z!", "y!"]


def test_an_edited_record_stays_valid(run: Run, bank: Bank, editor: Editor) -> None:
    """Its hash follows its content."""
    record = bank.records.create("We use tabs here.", subject="Style", keywords=["style"])
    editor(replacing("tabs", "spaces"))
    assert run("edit", f"records:{record.id}").code == 0
    assert (bank.get(f"records:{record.id}").text, bank.records.validate()) == ("We use spaces here.\n", [])


def test_an_edited_layer_is_stamped(run: Run, bank: Bank, editor: Editor) -> None:
    bank.layers.create({"layer": "shared-project", "project_name": "api", "file_type": "notes", "content": "# Old"})
    path = bank.root / "layers/projects/api/notes.md"
    path.write_text("<!-- Last Updated: 2020-01-01 -->\n\n# Old\n")
    editor(replacing("Old", "New"))
    assert run("edit", "layers:shared-project/api/notes").code == 0
    assert "2020" not in path.read_text()
    assert path.read_text().endswith("\n\n# New\n")


def test_what_is_not_changed_is_not_written(run: Run, note: str, editor: Editor, tmp_path: Path) -> None:
    before = tree(tmp_path)
    editor("")
    result = run("edit", note)
    assert (result.code, result.out, result.err) == (0, "", "nothing changed\n")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("code", "exit_code", "says"),
    [
        (replacing("Tuesdays", CANARY), 4, "secret"),
        (replacing("Deploys", "x"), 0, ""),
        (replacing('tags: ["release"]', "tags: ["), 2, "not valid YAML"),
        (replacing("journal", "poem"), 2, "unknown type"),
        ("path.write_text('')", 2, "empty"),
        ("path.write_bytes(b'\\xff')", 2, "not UTF-8"),
        ("path.unlink()", 2, "left no file"),
        ("sys.exit(3)", 1, "code 3"),
    ],
)
def test_only_a_good_text_is_stored(
    run: Run,
    note: str,
    editor: Editor,
    tmp_path: Path,
    code: str,
    exit_code: int,
    says: str,
) -> None:
    before = tree(tmp_path)
    editor(code)
    result = run("edit", note)
    assert result.code == exit_code
    assert says in result.err
    assert ("Nothing was changed" in result.err) == (tree(tmp_path) == before) == (exit_code != 0)
    assert CANARY not in result.out + result.err
    assert left_over() == []


def test_a_damaged_record_can_be_mended(run: Run, bank: Bank, editor: Editor) -> None:
    record = bank.records.create("We use tabs here.", subject="Style", keywords=["style"])
    whole = Path(record.path).read_text()
    Path(record.path).write_text(whole.replace("subject: Style\n", ""))
    editor(replacing("keywords:", "subject: Style\nkeywords:"))
    assert run("edit", f"records:{record.id}").code == 0
    assert bank.records.validate() == []


def test_somebody_elses_change_is_not_overwritten(run: Run, bank: Bank, note: str, editor: Editor) -> None:
    path = bank.get(note).path
    editor(replacing("Tuesdays", "Fridays") + f"\nwith open({str(path)!r}, 'a') as file: file.write('theirs')")
    result = run("edit", note)
    assert result.code == 5
    assert bank.get(note).text == "Deploys go out on Tuesdays.\ntheirs"
    assert "Deploys go out on Fridays." in result.out  # what was typed is not lost


@pytest.mark.parametrize("lane", ["vault", "topics"])
def test_a_conflict_is_seen_where_memories_share_a_file(bank: Bank, lane: str) -> None:
    memory = bank.add("We ship on Tuesdays.", lane=lane)
    opened = editing.opened(bank, memory.id)
    bank.update(memory.id, "We ship on Fridays.")
    with pytest.raises(Conflict):
        editing.save(bank, opened, "We ship on Mondays.")
    assert "Fridays" in bank.get(memory.id).text


def test_a_note_that_vanished_is_a_conflict(bank: Bank, note: str) -> None:
    opened = editing.opened(bank, note)
    bank.delete(note)
    with pytest.raises(Conflict):
        editing.save(bank, opened, "---\n---\nx")


def test_a_passage_is_changed_without_an_editor(run: Run, bank: Bank, note: str) -> None:
    result = run("update", note, "--old", "Tuesdays", "--new", "Fridays")
    assert (result.code, result.out) == (0, "notes:deploy-day\n")
    memory = bank.get(note)
    assert (memory.text, memory.tags) == ("Deploys go out on Fridays.\n", ("release",))


def test_a_passage_is_looked_for_in_the_text_alone(run: Run, bank: Bank) -> None:
    id = bank.add("Our release is on Tuesday.", title="Release", tags=["release"]).id
    assert run("update", id, "--old", "release", "--new", "rollout").code == 0
    memory = bank.get(id)
    assert (memory.text, memory.title, memory.tags) == ("Our rollout is on Tuesday.", "Release", ("release",))


@pytest.mark.parametrize("lane", ["notes", "records", "layers"])
def test_a_passage_before_the_text_is_not_changed(bank: Bank, lane: str) -> None:
    fields = {"project": "api", "file_type": "known_issues"} if lane == "layers" else {}
    memory = bank.add("Quokkas & llamas.", lane=lane, **fields)
    before = Path(memory.file).read_bytes()
    old = "Last Updated" if lane == "layers" else "e"
    with pytest.raises(InvalidInput) as caught:
        bank.edit(memory.id, old, "z")
    assert (str(caught.value), f"`memlane update {memory.id}`" in caught.value.hint) == (
        "The passage is not in the text.",
        True,
    )
    assert Path(memory.file).read_bytes() == before


def test_a_passage_is_found_whatever_its_line_ends_are(bank: Bank) -> None:
    path = bank.root / "crlf.md"
    path.write_bytes(b"One.\r\nTwo.\r\nThree.\r\n")
    bank.edit("notes:crlf", "One.\nTwo.", "1.\n2.")
    assert path.read_bytes() == b"1.\r\n2.\r\nThree.\r\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--old", "Mondays", "--new", "x"], "The passage is not there."),
        (["--old", "o", "--new", "x"], "times."),
        (["--old", "Tuesdays"], "--old and --new belong together"),
        (["--old", "Tuesdays", "--new", "x", "--title", "y"], "--old and --new belong together"),
        (["--old", "Tuesdays", "--new", CANARY], "Not stored"),
    ],
)
def test_a_passage_that_cannot_be_changed_changes_nothing(
    run: Run, note: str, tmp_path: Path, given: list[str], why: str
) -> None:
    before = tree(tmp_path)
    result = run("update", note, *given)
    assert result.code in (2, 4)
    assert why in result.err
    assert tree(tmp_path) == before


def test_passages_are_changed_at_once_and_none_is_lost(bank: Bank, note: str) -> None:
    bank.update(note, "a0 b0 c0")

    def count(letter: str) -> None:
        for number in range(10):
            Bank.open(bank.root.parent).edit(note, f"{letter}{number}", f"{letter}{number + 1}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(count, "abc"))
    assert bank.get(note).text == "a10 b10 c10"


@pytest.mark.parametrize("value", ["", "'unclosed", "/no/such/editor"])
def test_without_an_editor_it_says_what_to_set(
    run: Run, note: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", value)
    result = run("edit", note)
    assert result.code == 1
    assert "EDITOR" in result.err


def test_on_a_terminal_a_refused_text_can_be_edited_again(
    bank: Bank, note: str, editor: Editor, tmp_path: Path
) -> None:
    """The second time, the editor gets what was typed, and mends it."""
    good, bad = replacing("SECRET", "Fridays"), replacing("Tuesdays", f"SECRET {CANARY}")
    editor(f"mended = {CANARY!r} in path.read_text()\n"
           f"path.write_text(path.read_text().replace({' ' + CANARY!r}, ''))\n"
           f"if mended: {good}\nelse: {bad}")  # fmt: skip
    ours, theirs = pty.openpty()
    process = subprocess.Popen([MEMLANE, "edit", note], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    said = b""
    while b"Edit again?" not in said:
        said += os.read(ours, 1024)
    os.write(ours, b"\n")
    while process.poll() is None:
        try:
            said += os.read(ours, 1024)
        except OSError:  # the other end is closed
            break
    assert process.wait() == 0
    os.close(ours)
    assert CANARY.encode() not in said
    assert bank.get(note).text == "Deploys go out on Fridays.\n"
    assert left_over() == []


def test_whoever_edits_a_memory_has_looked_at_the_code(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    code = tmp_path / "src/auth.py"
    code.write_text("def login():\n    pass\n")
    id = bank.add("See `src/auth.py:login`.", title="Login").id
    code.write_text("def login():\n    return 1\n")
    assert [verdict.verdict for verdict in bank.fresh([id])] == ["drifted"]
    opened = editing.opened(bank, id)
    editing.save(bank, opened, opened.text.replace("See", "Read"))
    assert [verdict.verdict for verdict in bank.fresh([id])] == ["fresh"]


def test_ctrl_c_in_the_editor_is_the_editors(bank: Bank, tmp_path: Path) -> None:
    bank.add("text\n", title="a")
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\ntrap "echo interrupted >> \\"$1\\"" INT\nkill -INT 0\nexit 0\n')
    script.chmod(0o755)
    result = subprocess.run(
        [MEMLANE, "edit", "a"],
        cwd=tmp_path,
        env={**os.environ, "EDITOR": str(script), "VISUAL": ""},
        capture_output=True,
        start_new_session=True,
    )
    assert result.returncode == 0
    assert bank.get("a").text == "text\ninterrupted\n"


def test_a_memory_is_changed_without_an_editor(run: Run, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "false")  # which would fail
    id = run("add", "Deploys go out on Tuesdays.", "--title", "Day", "--tag", "ops").out.strip()
    assert run("edit", id, "Deploys go out on Wednesdays.").code == 0
    assert run("edit", id, "--old", "Wednesdays", "--new", "Thursdays").code == 0
    assert run("edit", id, "--append", "-", stdin="Not before holidays.").code == 0
    assert run("edit", id, "--tag", "release", "--json").json["tags"] == ["release"]
    assert (bank.get(id).text, bank.get(id).title) == ("Deploys go out on Thursdays.\n\nNot before holidays.\n", "Day")
    assert run("edit", id, "more", "--append", "--tag", "x").code == 2
    assert run("edit", id, "--new", "").code == 2


@pytest.mark.parametrize("text", ["", "  \n"])
@pytest.mark.parametrize("command", ["edit", "update"])
def test_no_text_does_not_empty_a_memory(bank: Bank, run: Run, command: str, text: str) -> None:
    """Such as a variable that a script has not set."""
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    done = run(command, "deploy-day", text)
    assert (done.code, done.err) == (
        2,
        "error: There is no text: nothing was changed.\nnext: `memlane rm` deletes a memory.\n",
    )
    assert bank.get("notes:deploy-day").text == "Deploys go out on Tuesdays."
