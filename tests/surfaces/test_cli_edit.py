"""`memlane edit` and `memlane history`: nothing is lost, nothing refused is left behind."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import CANARY, MEMLANE, Run
from conftest import tree
from memlane import Bank
from memlane.core.errors import Conflict
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


# -- edit


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


# -- history


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(folder: Path, subject: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", subject)
    return git(folder, "rev-parse", "HEAD").strip()


def test_the_history_of_a_vault_record(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "Projects: dashboard", "--tier", "register", "--topic", "now").out.strip()
    run("vault", "update", id, "Projects: search")
    run("update", id, "--tag", "x")
    run("rm", id)
    run("restore", id)
    run("promote", id, "We build a search.")
    run("rm", id)
    rows = run("history", id, "--json").json
    assert [(row["version"], row["what"]) for row in rows] == [
        ("7", "deleted"),
        ("6", "promoted to canon"),
        ("5", "restored"),
        ("4", "deleted"),
        ("3", "changed tags"),
        ("2", "changed text"),
        ("1", "added"),
    ]
    assert run("history", id, "--show", "1").out == "Projects: dashboard\n"
    assert run("history", id.removeprefix("vault:")).code == 0
    assert run("history", id, "--show", "9").code == 3


def test_the_history_of_a_note_is_that_of_its_file(run: Run, bank: Bank, note: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    first = committed(tmp_path, "First: ünïcode\n\nand more")
    git(tmp_path, "mv", ".memories/deploy-day.md", ".memories/release-day.md")
    second = committed(tmp_path, "Rename")
    bank.update("notes:release-day", "Deploys go out on Fridays.\n")
    third = committed(tmp_path, "Change")
    rows = run("history", "notes:release-day", "--json").json
    assert [(row["version"], row["author"], row["what"], row["path"]) for row in rows] == [
        (third, "Ann", "Change", ".memories/release-day.md"),
        (second, "Ann", "Rename", ".memories/release-day.md"),
        (first, "Ann", "First: ünïcode", ".memories/deploy-day.md"),
    ]
    assert run("history", "release-day", "--show", first[:8]).out.endswith("\nDeploys go out on Tuesdays.\n")
    assert run("history", "notes:deploy-day").out.count("\n") == 2  # where it is gone from, too
    assert run("history", "release-day", "--show", "HEAD").code == 3
    assert run("history", "release-day", "--show", "--output=x").code == 3


def test_git_settings_start_no_other_program(run: Run, note: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    committed(tmp_path, "one")
    for key in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external"):
        git(tmp_path, "config", key, f"touch {tmp_path}/started; false")
    git(tmp_path, "config", "log.showSignature", "true")
    assert run("history", note).code == 0
    assert not (tmp_path / "started").exists()


def test_another_repository_in_the_environment_is_not_meant(
    run: Run,
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    git(tmp_path, "init", "-q")
    committed(tmp_path, "one")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert run("history", note).code == 0


def test_without_git_there_is_no_history_of_a_file(run: Run, note: str, tmp_path: Path) -> None:
    result = run("history", note)
    assert (result.code, "in no git repository" in result.err) == (3, True)
    git(tmp_path, "init", "-q")
    result = run("history", note)
    assert (result.code, "git knows no version" in result.err) == (3, True)
    assert run("history", "nope").code == 3
    assert run("history", "notes:../x").code == 2


def test_the_history_of_a_file_is_not_that_of_others_that_its_name_would_match(
    run: Run, bank: Bank, tmp_path: Path
) -> None:
    (bank.root / "[ab].md").write_text("Brackets.\n")
    (bank.root / "a.md").write_text("A letter.\n")
    git(tmp_path, "init", "-q")
    committed(tmp_path, "both")
    (bank.root / "a.md").write_text("Another letter.\n")
    committed(tmp_path, "only the letter")
    assert [version["what"] for version in run("history", "notes:[ab]", "--json").json] == ["both"]


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
