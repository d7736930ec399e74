"""How results are printed: colours, tables, and nothing that steers a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import terminals
from commands import MEMLANE, Run
from memlane import Bank
from memlane.core.errors import StorageError
from memlane.recall.snippets import marked
from memlane.surfaces.cli.output import MANY, PAGE, complain, print_rows, width, wrapped

SET_BY_OTHERS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")  # the last by pytest, for its own processes


def on_terminal(*args: str, cwd: Path, env: Mapping[str, str] | None = None, columns: int = 80) -> str:
    """What a command shows on a terminal of this width."""
    return terminals.on_terminal(*args, cwd=cwd, env={**dict.fromkeys(SET_BY_OTHERS), **(env or {})}, columns=columns)


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_on_a_terminal(bank: Bank, tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    bank.add("text", title="a")
    for command in (["list"], ["get", "gone"]):
        assert ("\x1b[" in on_terminal(*command, cwd=tmp_path, env=environment)) == coloured


@pytest.mark.parametrize(("environment", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_colour_in_a_pipe(bank: Bank, tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    keep = {name: value for name, value in os.environ.items() if name not in SET_BY_OTHERS}
    result = subprocess.run([MEMLANE, "get", "x"], cwd=tmp_path, env={**keep, **environment}, capture_output=True)
    assert (b"\x1b[" in result.stderr) == coloured


def test_no_colour_in_a_pipe(bank: Bank, tmp_path: Path) -> None:
    command = [MEMLANE, "get", "gone"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "TERM": "xterm"})
    assert "\x1b" not in result.stderr + result.stdout


@pytest.mark.parametrize(
    "command",
    [
        "list", "search zebra", "get evil", "context zebra --budget 1 --explain", "context", "export",
        "export --format markdown", "doctor", "doctor --only format", "doctor --only damage", "review", "links",
    ],
)  # fmt: skip
def test_what_others_wrote_cannot_steer_the_terminal(bank: Bank, tmp_path: Path, command: str) -> None:
    """A clone may bring files with any name and any title."""
    front = '---\ntitle: "evil\\e]0;title\\a"\ntags: ["a\\e[5m", pinned]\nscope: "b\\e[5m"\n---\n'
    (bank.root / "evil.md").write_text(f"{front}zebra \x1b[5m [[memory:none\x1b[5m]]\n")
    (bank.root / "a\x1b[5m\nforged.md").write_bytes(b"zebra \xff")
    shown = on_terminal(*command.split(), cwd=tmp_path, env={"NO_COLOR": "1"})
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert not any(line.startswith("forged") for line in shown.splitlines())


def test_a_row_is_one_line_of_visible_characters(run: Run, bank: Bank) -> None:
    (bank.root / "odd.md").write_text('---\ntitle: "a\\n\\tb\\e]0;x"\n---\n')
    assert run("list").out == "notes:odd\t\ta b\\u001b]0;x\n"


def test_wide_characters_stand_in_their_columns(bank: Bank, tmp_path: Path) -> None:
    for name in ("记忆", "plain", "e\u0301"):
        (bank.root / f"{name}.md").write_text(f"---\ncreated_at: 2025-01-01\n---\n# {name}\n")
    lines = on_terminal("list", cwd=tmp_path, env={"NO_COLOR": "1"}).splitlines()
    assert len(lines) == 3
    assert {width(line.partition("2025-01-01")[0]) for line in lines} == {len("notes:plain") + 2}


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ｆ", 2), ("a\u200db", 2), ("", 0)]
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("command", ["list", "review", "search deploys", "search 部署"])
def test_tables_fit_the_terminal(bank: Bank, tmp_path: Path, command: str, columns: int) -> None:
    """But what somebody may want to copy is not broken: a command, an id."""
    bank.add("Deploys go out on Tuesdays. See [[memory:gone]], and the calendar of the team. " * 3, title="Deploy day")
    bank.add("部署在星期二进行，而不是在星期五，因为那时值班工程师只有一个人。" * 4, title="部署在星期二进行" * 4)
    bank.add("Sessions live in Redis, see [[memory:cache]].", title="Sessions live in Redis and nowhere else " * 2)
    shown = on_terminal(*command.split(), cwd=tmp_path, env={"NO_COLOR": "1"}, columns=columns).splitlines()
    assert shown
    tables = [line for line in shown if not line.lstrip().startswith(("memlane ", "nothing was changed", "to be dec"))]
    assert [line for line in tables if width(line) > columns and " " in line.strip()] == []


def test_a_long_cell_does_not_push_the_others_aside(bank: Bank, tmp_path: Path) -> None:
    for name in ("short", "a-name-that-is-longer-than-half-of-the-width-of-a-terminal"):
        (bank.root / f"{name}.md").write_text(f"---\ncreated_at: 2025-01-01\ntitle: {name[:9]}\n---\ntext\n")
    assert on_terminal("list", cwd=tmp_path, env={"NO_COLOR": "1"}).splitlines() == [
        "notes:a-name-that-is-longer-than-half-of-the-width-of-a-terminal  2025-01-01",
        "    a-name-th",
        "notes:short  2025-01-01  short",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("日本語の記憶です", ["日本語の", "記憶です"]),
        ("a-word-longer-than-that is whole", ["a-word-longer-than-that", "is whole"]),
        ("memlane review --show", ["memlane review --show"]),
        ("", [""]),
    ],
)
def test_text_is_wrapped_between_words(text: str, lines: list[str]) -> None:
    assert wrapped(text, 9) == lines


@pytest.mark.parametrize(
    ("environment", "found"), [({}, "\x1b[1mDeploys\x1b[0m go out"), ({"NO_COLOR": "1"}, "Deploys go out")]
)
def test_the_found_words_are_marked_on_a_terminal(
    bank: Bank, tmp_path: Path, environment: dict[str, str], found: str
) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Day")
    assert (
        on_terminal("search", "deploying", cwd=tmp_path, env=environment).splitlines()[1] == f"    {found} on Tuesdays."
    )


def test_a_search_in_a_pipe_has_the_snippet_as_a_column(run: Run, bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Day")
    bank.add("Deploys are boring.")
    snippets = {line.split("\t")[0]: line.split("\t")[3] for line in run("search", "deploying").out.splitlines()}
    assert snippets == {"notes:day": "Deploys go out on Tuesdays.", "notes:deploys-are-boring": ""}


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("We deploy, deployed and deploys.", "deploying", ["deploy", "deployed", "deploys"]),
        ("see src/auth.py there", "auth", ["src/auth.py"]),
        ("连接池限制为十个连接", "连接", ["连接", "连接"]),
        ("Größe", "grosse", ["Größe"]),
        ("nothing here", "zebra", []),
    ],
)
def test_words_are_found_in_any_form(text: str, query: str, words: list[str]) -> None:
    pieces = list(marked(text, query))
    assert [piece for piece, found in pieces if found] == words
    assert "".join(piece for piece, _ in pieces) == text


def test_a_list_blanks_the_piece_of_a_secret_that_a_title_was_cut_in(bank: Bank, tmp_path: Path, run: Run) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    said = "The key of the build machine is, as far as we know today, "
    (bank.root / "pulled.md").write_text(f"---\ncreated_at: 2025-01-15\n---\n\n{said}{token}\n")
    assert bank.notes.fetch("pulled").title == f"{said}{token}"[:77] + "..."
    assert run("list").out == f"notes:pulled\t2025-01-15\t{said}[REDACTED:github-token]...\n"
    assert token[:8] not in on_terminal("list", cwd=tmp_path, columns=200)


def test_a_long_list_blanks_a_secret_every_time_and_looks_at_the_other_lines_once(
    bank: Bank, tmp_path: Path, run: Run
) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    for number in range(MANY):
        (bank.root / f"n{number:03}.md").write_text(f"---\ncreated_at: 2025-01-15\n---\n\nNote {number}\n")
    expected = "".join(f"notes:n{number:03}\t2025-01-15\tNote {number}\n" for number in range(MANY))
    code = "import sys; from memlane.surfaces.cli import app; app(['list'], standalone_mode=False)\n"
    code += "print('memlane.gate.secrets' in sys.modules, file=sys.stderr)"
    for loaded in ("True\n", "False\n"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (expected, loaded)
    (bank.root / "n100.md").write_text(f"---\ncreated_at: 2025-01-15\n---\n\nkey {token}\n")
    for _ in range(2):
        assert run("list").out == f"{expected}notes:n100\t2025-01-15\tkey [REDACTED:github-token]\n"


def test_a_search_that_prints_what_was_printed_before_loads_no_rules_and_still_blanks_a_secret(
    bank: Bank, tmp_path: Path, run: Run
) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    (bank.root / "day.md").write_text("Deploys need a token.\n")
    code = "import sys; from memlane.surfaces.cli import app; app(['search', 'deploys'], standalone_mode=False)\n"
    code += "print('memlane.gate.secrets' in sys.modules, file=sys.stderr)"
    for loaded in ("True", "False"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert (done.stdout.split("\t")[0], done.stderr.split()[-1]) == ("notes:day", loaded)
    (bank.root / "key.md").write_text(f"Deploys have the key {token}\n")
    for _ in range(2):
        found = run("search", "deploys key").out
        assert (token in found, "[REDACTED:github-token]" in found) == (False, True)


def test_numbered_rows_blank_a_secret_every_time_and_keep_their_numbers(bank: Bank, run: Run) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    for number in range(MANY):
        (bank.root / f"n{number:03}.md").write_text("")
    (bank.root / f"{token}.md").write_text("")
    once, again = (run("review", "--only", "empty").out for _ in range(2))
    assert (once, token in once, once.count("[REDACTED:github-token]")) == (again, False, 1)
    assert [line.partition("\t")[0] for line in once.splitlines()] == [str(at) for at in range(1, MANY + 2)]


def test_rows_are_printed_a_page_at_a_time_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def rows() -> Iterator[tuple[str, str]]:
        for number in range(2 * PAGE + 1):
            if number % PAGE == 0:
                seen.append(capsys.readouterr().out.count("\n"))
            yield f"notes:{number}", "a title"

    print_rows(rows())
    assert (seen, capsys.readouterr().out) == ([0, PAGE, PAGE], f"notes:{2 * PAGE}\ta title\n")


def test_a_next_step_of_several_lines_can_be_copied_and_none_passes_for_one_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    complain(StorageError("No\nerror: rights.", hint="Run this:\n\ncreate schema a;\nerror: \x1b[31mforged\n"))
    assert capsys.readouterr().err == (
        "error: No\\u000aerror: rights.\nnext: Run this:\n\n    create schema a;\n    error: \\u001b[31mforged\n"
    )
