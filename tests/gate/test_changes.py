"""What makes a text that is like an older one a fact of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane.gate.changes import renews, repeats, what_is_new
from memlane.gate.likeness import overlap, ratio, tokens


def alike(old: str, new: str) -> bool:
    return overlap(tokens(new), tokens(old)) >= 0.60 or ratio(new, old) >= 0.70


ROWS = [
    line.split("\t")
    for line in (Path(__file__).parents[2] / "bench/changed_facts.tsv").read_text().splitlines()
    if not line.startswith("#") and alike(*line.split("\t")[1:])
]


@pytest.mark.parametrize(("kind", "old", "new"), [row for row in ROWS if row[0] != "said again"])
def test_a_changed_fact_is_new(kind: str, old: str, new: str) -> None:
    assert what_is_new(new, old)


def test_most_of_what_is_said_again_is_not_new() -> None:
    again = [(old, new) for kind, old, new in ROWS if kind == "said again"]
    assert sum(not what_is_new(new, old) for old, new in again) >= 0.8 * len(again)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("The API server port is 8080", "The API server port is 9090", "9090"),
        ("We keep logs for 30 days", "We keep logs for thirty days", ""),
        ("Use Python 3.11", "Use Python 3.12", "3.12"),
        ("The freeze starts on March 3rd", "The freeze starts on April 3", "April"),
        ("Force pushes are allowed", "Force pushes are not allowed", "not"),
        ("Force pushes aren't allowed", "Force pushes are allowed", "aren't"),
        ("Only admins may deploy", "Admins may deploy", "Only"),
        ("Settings are read from config/app.yaml", "Settings are read from etc/app.yaml", "etc/app.yaml"),
        ("Requests time out after 30 s", "Requests time out after 30 ms", "ms"),
        ("The user prefers tabs over spaces", "The user prefers spaces over tabs", "spaces"),
        ("The user prefers dark mode.", "the  user PREFERS dark mode", ""),
        ("Do not commit secrets to the repository", "Don't commit secrets to the repo", ""),
        ("Der Server läuft auf Port 80", "Der Server läuft auf Port 81", "81"),
        ("デプロイは火曜日です", "デプロイは水曜日です", "デプロイは水曜日です"),
        ("Deploys go out on Tuesdays.", "Deploys go out on Tuesdays. The runbook is in the wiki.", "runbook"),
    ],
)
def test_the_first_thing_that_is_new_is_named(old: str, new: str, what: str) -> None:
    assert what_is_new(new, old) == what


def test_a_long_text_takes_no_longer_than_a_moment() -> None:
    text = " ".join(f"word{number}" for number in range(20_000))
    assert what_is_new(text, f"{text} more") == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API port is 8080.", "The API port is 9090."),
        ("Backups of the orders are kept for 1 day.", "Turns out the backups of the orders are kept for 2 weeks."),
        ("Deploys go out on Tuesdays.", "Deploys go out on Thursdays."),
        ("Retries are enabled for payments.", "Retries are not enabled for payments."),
        ("Use uv, never pip.", "Use uv, never pip, for installing Python packages."),
    ],
)
def test_another_value_the_opposite_and_a_fuller_text_can_stand_in_the_place_of_the_old_one(old: str, new: str) -> None:
    assert what_is_new(new, old)
    assert renews(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API port is 8080.", "The admin port is 8080."),
        ("SQLite does not support DROP CONSTRAINT.", "SQLite does not support RIGHT JOIN."),
        ("Step 1 of the importer reads the file.", "Step 2 of the importer reads the file."),
        ("`npm run build` fails; `npm run compile` works.", "`npm run lint` fails; `npm run check` works."),
    ],
)
def test_what_may_be_true_of_two_things_stays_beside_it(old: str, new: str) -> None:
    assert not renews(new, old)
    assert not repeats(new, old)


def test_in_a_long_text_a_word_for_another_is_a_repetition_of_what_nobody_wants() -> None:
    old = "Backups of the orders table are kept for 1 day, because the disk of the old server is small."
    assert repeats(old.replace("kept", "retained"), old)
    assert not repeats(old.replace("1 day", "2 days"), old)
    assert not repeats(old.replace("is small", "is not small"), old)
