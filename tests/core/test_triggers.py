"""When a memory applies: what a `when` means for a tool call."""

from __future__ import annotations

import pytest

from memlane.core import triggers


@pytest.mark.parametrize(
    ("when", "path", "applies"),
    [
        ("src/api/**", "src/api/users.py", True),
        ("src/api/**", "src/api/v2/users.py", True),
        ("src/api/**", "src/apix/users.py", False),
        ("src/api", "src/api/users.py", True),
        ("src/api/", "src/api/users.py", True),
        ("./src/*.py", "src/main.py", True),
        ("src/*.py", "src/api/main.py", False),
        ("*.sql", "db/migrations/1.sql", True),
        ("**/migrations/*.py", "app/migrations/0001.py", True),
        ("**/migrations/*.py", "migrations/0001.py", True),
        ("pyproject.toml", "packages/core/pyproject.toml", True),
        ("changing `src/auth.py`", "src/auth.py", True),
        ("when you edit auth.py", "src/auth.py", True),
        ("adding an endpoint", "src/api/users.py", False),
        ("**", "src/api/users.py", False),
        ("e.g. tests", "tests/e.g", False),
    ],
)
def test_a_path_pattern_means_an_edit_of_such_a_file(when: str, path: str, applies: bool) -> None:
    assert triggers.fits(when, path=path) is applies


@pytest.mark.parametrize(
    ("when", "command", "applies"),
    [
        ("git commit", "git commit -m x", True),
        ("git commit", "git add -A && git -C sub commit --amend", True),
        ("git commit", "git -c user.name=x commit", True),
        ("git commit", "git log commit", False),
        ("git commit", "echo git commit", False),
        ("committing", "cd api; git commit", True),
        ("before committing", "git commit", True),
        ("pushing to main", "git push origin main", True),
        ("committing", "echo committing", False),
        ("npm publish", "sudo CI=1 npm publish --tag next", True),
        ("make release", "make -j4 release", True),
        ("docker compose up", "docker compose -f dev.yml up -d", True),
        ("terraform apply", "terraform plan | tee out", False),
        ("adding an endpoint", "adding", False),
        ("pytest", "/usr/bin/pytest -q", True),
    ],
)
def test_a_command_means_a_command_line_that_runs_it(when: str, command: str, applies: bool) -> None:
    assert triggers.fits(when, command=command) is applies


def test_triggers_are_a_text_or_a_list_of_texts_and_few() -> None:
    assert triggers.of({"when": " committing \n now "}) == ("committing now",)
    assert triggers.of({"when": ["a", None, 3, "a", "b", ["c"]]}) == ("a", "b")
    assert [triggers.of(fields) for fields in ({}, {"when": {"a": 1}}, {"when": ""}, None)] == [()] * 4
    assert len(triggers.of({"when": [str(number) for number in range(100)]})) == triggers.MOST
    assert len(triggers.of({"when": "x" * 1000})[0]) == triggers.LONGEST


@pytest.mark.parametrize("pattern", ["**/" * 60 + "x", "*a" * 90 + "/b", "a/" * 90, "?" * 199 + "/"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Each part of a path is compared with each part of the pattern, once."""
    assert triggers.fits(pattern, path="a/" * 400 + "a" * 200) in (True, False)
