"""`memlane distil`, and `capture` and `distil` of a whole folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank

LESSON = "The importer fails because SQLite does not support DROP CONSTRAINT; the table must be rebuilt."


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    said = [("user", "Drop it."), ("assistant", LESSON)]
    lines = ({"role": role, "content": text, "timestamp": "2026-01-01T00:00:00Z"} for role, text in said)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_candidates_are_printed_with_where_they_were_said_and_nothing_is_stored(
    tmp_path: Path, run: Run, talk: Path
) -> None:
    Bank.init(tmp_path).close()
    before = tree(tmp_path)
    result = run("distil", "talk.jsonl")
    kind, confidence, where, text = result.out.rstrip("\n").split("\t")
    assert (kind, where, text) == ("lesson", "talk.jsonl:2", LESSON)
    assert 0.5 <= float(confidence) <= 1
    assert result.err == "1 candidate; nothing was stored\n"
    assert tree(tmp_path) == before


def test_json_is_one_candidate_a_line(run: Run, talk: Path) -> None:
    told = run("distil", "talk.jsonl", "talk.jsonl", "--json").out.splitlines()
    assert len(told) == 2
    one = json.loads(told[0])
    assert one.pop("confidence") >= 0.5
    assert one == {
        "transcript": "talk.jsonl",
        "text": LESSON,
        "type": "lesson",
        "session": "",
        "date": "2026-01-01",
        "lines": [2],
        "uuids": [],
        "files": [],
    }


def test_explain_says_which_signs_spoke_for_a_candidate(run: Run, talk: Path) -> None:
    [told] = run("distil", "talk.jsonl", "--json", "--explain").out.splitlines()
    assert json.loads(told)["rule"] == "assistant"
    assert "incapable:other +" in run("distil", "talk.jsonl", "--explain").out


def test_a_folder_stands_for_its_transcripts_and_other_files_in_it_are_passed_over(
    tmp_path: Path, run: Run, talk: Path
) -> None:
    deep = tmp_path / "all" / "deep"
    deep.mkdir(parents=True)
    talk.rename(deep / "b.jsonl")
    (tmp_path / "all" / "settings.json").write_text('{"theme": "dark"}')
    (tmp_path / "all" / "read.me").write_text("no transcript")
    result = run("distil", "all")
    assert (result.code, result.out.count("\n")) == (0, 1)
    assert result.err == (
        "note: settings.json is not a transcript that memlane can read.\n1 candidate; nothing was stored\n"
    )
    (tmp_path / "none").mkdir()
    result = run("distil", "none")
    assert (result.code, result.err.splitlines()[0]) == (2, "error: There are no transcripts in none.")


def test_capture_takes_a_folder(tmp_path: Path, run: Run) -> None:
    Bank.init(tmp_path).close()
    (tmp_path / "all").mkdir()
    for name in "ab":
        line = {
            "role": "assistant",
            "content": f"Answer {name}.\nIt has two lines.",
            "timestamp": "2026-01-01T00:00:00Z",
        }
        (tmp_path / "all" / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "all" / "settings.json").write_text('{"theme": "dark"}')
    result = run("capture", "all")
    assert (result.code, [line.split("\t")[-1] for line in result.out.splitlines()]) == (0, ["Answer a.", "Answer b."])
    assert result.err == "note: settings.json is not a transcript that memlane can read.\n2 captured\n"
