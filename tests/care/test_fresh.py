"""Freshness by evidence: a memory that names code is held against that code as it was when it was written."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from commands import Run
from conftest import tree, trusted
from memlane import Bank, Memory, NotFound
from memlane.care.fresh import verdicts as fresh
from memlane.care.fresh.code import Code, blob_of
from memlane.care.fresh.mentions import MOST, Mention, mentions
from memlane.disk import anchors

AUTH = "LIMIT = 3\n\ndef login(user):\n    return check(user)\n\ndef logout():\n    pass\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "src/auth.py", AUTH)
    Bank.init(tmp_path).close()
    return tmp_path


@pytest.fixture
def bank(project: Path) -> Bank:
    return Bank.open(project)


def write(project: Path, path: str, text: str | bytes) -> None:
    place = project / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())


def git(project: Path, *args: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *args], cwd=project, check=True, capture_output=True)


def commit(project: Path) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "a step", "--allow-empty")


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "-q")
    commit(project)
    return project


def verdicts(bank: Bank) -> dict[str, str]:
    return {verdict.id: verdict.verdict for verdict in bank.fresh()}


def memory(text: str, scope: str | None = None) -> Memory:
    return Memory("notes:x", "notes", text, "", "x.md", scope=scope)


# -- what a memory names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [[src/auth.py]]", [("src/auth.py", "")]),
        ("see [[src/auth.py#login|the login]]", [("src/auth.py", "login")]),
        ("`src/auth.py:login` is slow", [("src/auth.py", "login")]),
        ("it is src/auth.py::Auth.login, they say", [("src/auth.py", "Auth.login")]),
        ("test_auth.py::TestLogin::test_one fails", [("test_auth.py", "TestLogin.test_one")]),
        ("src/auth.py:login() returns", [("src/auth.py", "login")]),
        ("at src/x.ts:12.", [("src/x.ts", "")]),
        ("at src/x.ts:12:7 and src/x.ts#L3-L9", [("src/x.ts", "")]),
        ("(./src/auth.py)", [("src/auth.py", "")]),
        ("见src/auth.py文件", [("src/auth.py", "")]),
        ("`Makefile` and `auth.py`", [("Makefile", ""), ("auth.py", "")]),
        ("`src/app/(group)/[id].tsx`", [("src/app/(group)/[id].tsx", "")]),
        ("README.md and/or e.g. 1.5 TCP/IP", []),
        ("https://example.org/src/auth.py and /etc/passwd.txt", []),
        ("../other/auth.py, src/../../x.py, ~/a/b.py", []),
        ("```\nsrc/auth.py:login\n```", []),
        ("[[memory:auth]] and .git/config.x", []),
        ("[[src/auth.py]], mostly `src/auth.py:login`", [("src/auth.py", "login")]),
    ],
)
def test_the_code_that_a_text_names(text: str, expected: list[tuple[str, str]]) -> None:
    found = mentions(memory(text))
    assert [mention for mention in found if mention not in [("[id].tsx", ""), ("src/app/", "")]] == expected


def test_the_scope_of_a_record_names_a_file() -> None:
    assert mentions(memory("It is slow", "file:src/auth.py")) == (Mention("src/auth.py"),)


def test_a_memory_names_a_bounded_number_of_files() -> None:
    assert len(mentions(memory(" ".join(f"src/a{n}.py" for n in range(1000))))) == MOST


# -- verdicts


def test_a_memory_is_anchored_when_it_is_written(bank: Bank, project: Path) -> None:
    bank.add("The login is in `src/auth.py:login`.", title="auth")
    found, damaged = anchors.load(str(project / ".memories/anchors.jsonl"))
    (anchor,) = found["notes:auth"].values()
    assert (anchor.target, anchor.symbol, anchor.blob, damaged) == ("src/auth.py", "login", blob_of(AUTH.encode()), 0)


def test_an_unrelated_edit_in_the_same_file_keeps_a_symbol_fresh(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:login`.", title="symbol")
    bank.add("See `src/auth.py`.", title="file")
    write(project, "src/auth.py", AUTH.replace("pass", "return 1"))
    assert verdicts(bank) == {"notes:symbol": "fresh", "notes:file": "drifted"}


def test_a_changed_symbol_has_drifted_and_the_diff_says_what(bank: Bank, repository: Path) -> None:
    bank.add("See `src/auth.py:login`.", title="auth")
    write(repository, "src/auth.py", AUTH.replace("check(user)", "check(user, 2)"))
    (verdict,) = bank.fresh()
    (finding,) = verdict.findings
    assert verdict.verdict == "drifted"
    assert finding.why == f"src/auth.py:login changed since {finding.since}"
    assert finding.diff == "@@ -1,2 +1,2 @@\n def login(user):\n-    return check(user)\n+    return check(user, 2)"


def test_a_diff_shows_no_secret(bank: Bank, repository: Path) -> None:
    secret = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    bank.add("See `src/auth.py`.", title="auth")
    write(repository, "src/auth.py", AUTH + f'TOKEN = "{secret}"\n')
    (verdict,) = bank.fresh()
    assert "TOKEN" in verdict.findings[0].diff
    assert secret not in json.dumps(verdict.to_dict())


def test_without_git_a_change_is_told_without_a_diff(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    write(project, "src/auth.py", "other = 1\n")
    (verdict,) = bank.fresh()
    assert (verdict.verdict, verdict.findings[0].diff) == ("drifted", "")


def test_a_revert_makes_it_fresh_again(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:login` and `src/auth.py:LIMIT`.", title="auth")
    write(project, "src/auth.py", AUTH.replace("3", "4"))
    assert verdicts(bank) == {"notes:auth": "drifted"}
    write(project, "src/auth.py", AUTH)
    assert verdicts(bank) == {"notes:auth": "fresh"}


def test_a_deleted_file_orphans_and_the_worst_finding_counts(bank: Bank, project: Path) -> None:
    write(project, "src/other.py", "x = 1\n")
    bank.add("See `src/auth.py` and `src/other.py`.", title="both")
    (project / "src/auth.py").unlink()
    (verdict,) = bank.fresh()
    assert verdict.verdict == "orphaned"
    assert [(f.target, f.verdict, f.why) for f in verdict.findings] == [
        ("src/auth.py", "orphaned", "src/auth.py is gone"),
        ("src/other.py", "fresh", ""),
    ]


def test_a_removed_symbol_orphans(bank: Bank, repository: Path) -> None:
    bank.add("See `src/auth.py:logout`.", title="auth")
    write(repository, "src/auth.py", AUTH.partition("\ndef logout")[0])
    (verdict,) = bank.fresh()
    assert (verdict.verdict, verdict.why) == ("orphaned", "logout is gone from src/auth.py")


@pytest.mark.parametrize("how", ["staged", "committed", "untracked", "twice"])
def test_a_rename_in_git_has_moved(bank: Bank, repository: Path, how: str) -> None:
    bank.add("See `src/auth.py` and `src/auth.py`.", title="file")
    bank.add("See `src/auth.py:login`.", title="symbol")
    if how == "untracked":
        os.rename(repository / "src/auth.py", repository / "src/access.py")
    else:
        git(repository, "mv", "src/auth.py", "src/middle.py" if how == "twice" else "src/access.py")
        if how != "staged":
            commit(repository)
        if how == "twice":
            git(repository, "mv", "src/middle.py", "src/access.py")
            commit(repository)
    assert [(v.id, v.verdict, v.findings[0].now) for v in bank.fresh()] == [
        ("notes:file", "moved", "src/access.py"),
        ("notes:symbol", "moved", "src/access.py"),
    ]
    assert bank.accept("notes:file").verdict == "fresh"
    assert bank.accept("notes:symbol").verdict == "fresh"
    write(repository, "src/access.py", AUTH.replace("check(user)", "None"))
    assert verdicts(bank) == {"notes:file": "drifted", "notes:symbol": "drifted"}


def test_a_rename_with_an_edit_has_moved_and_says_that_it_changed(bank: Bank, repository: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    git(repository, "mv", "src/auth.py", "src/access.py")
    write(repository, "src/access.py", AUTH + "\n# more\n")
    commit(repository)
    (verdict,) = bank.fresh()
    since = verdict.findings[0].since
    assert (verdict.verdict, verdict.why) == (
        "moved",
        f"src/auth.py is in src/access.py now, and changed since {since}",
    )
    assert "+# more" in verdict.findings[0].diff


def test_a_symbol_that_went_to_another_file_has_moved(bank: Bank, repository: Path) -> None:
    bank.add("See `src/auth.py:login`.", title="auth")
    write(repository, "src/auth.py", "x = 1\n")
    write(repository, "src/login.py", AUTH)
    (verdict,) = bank.fresh()
    assert (verdict.verdict, verdict.findings[0].now) == ("moved", "src/login.py")


def test_a_project_below_the_top_of_the_repository_has_its_own_paths(tmp_path: Path) -> None:
    project = tmp_path / "packages/api"
    write(project, "src/auth.py", AUTH)
    git(tmp_path, "init", "-q")
    with Bank.init(project) as bank:
        commit(tmp_path)
        bank.add("See `src/auth.py`.", title="auth")
        git(project, "mv", "src/auth.py", "src/access.py")
        commit(tmp_path)
        (verdict,) = bank.fresh()
        assert (verdict.verdict, verdict.findings[0].now) == ("moved", "src/access.py")


# -- what is no file of the project


@pytest.mark.parametrize("target", [".memories/auth.md", "link.py", "folder", "src/nothing.py", "pipe.py"])
def test_only_files_of_the_project_are_watched(bank: Bank, project: Path, target: str, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("x = 1\n")
    (project / "link.py").symlink_to(outside)
    (project / "folder").mkdir()
    os.mkfifo(project / "pipe.py")
    bank.add(f"See [[{target}]].", title="auth")
    assert bank.fresh() == []
    assert not (project / ".memories/anchors.jsonl").exists()


def test_a_file_that_became_a_link_out_of_the_project_is_gone(bank: Bank, project: Path, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    bank.add("See `src/auth.py`.", title="auth")
    outside = tmp_path_factory.mktemp("outside") / "auth.py"
    outside.write_text("secret = 1\n")
    (project / "src/auth.py").unlink()
    (project / "src/auth.py").symlink_to(outside)
    assert verdicts(bank) == {"notes:auth": "orphaned"}


def test_binary_and_huge_files(bank: Bank, project: Path) -> None:
    write(project, "logo.png", b"\x89PNG\0\r\n\xff")
    write(project, "huge.py", b"#" * (11 * 1024 * 1024))
    bank.add("See `logo.png` and `huge.py:login`.", title="both")
    (verdict,) = bank.fresh()
    assert [finding.target for finding in verdict.findings] == ["logo.png"]
    write(project, "logo.png", b"#" * (11 * 1024 * 1024))
    (verdict,) = bank.fresh()
    assert (verdict.verdict, verdict.why.startswith("logo.png cannot be read: The file has 11,534,336")) == (
        "drifted",
        True,
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_has_drifted(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    (project / "src/auth.py").chmod(0)
    assert verdicts(bank) == {"notes:auth": "drifted"}


def test_line_ends_make_no_difference(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:login`, `src/auth.py`.", title="symbol")
    bank.add("See [[src/auth.py]].", title="file")
    write(project, "src/auth.py", AUTH.replace("\n", "\r\n"))
    assert verdicts(bank) == {"notes:symbol": "fresh", "notes:file": "fresh"}


def test_a_symbol_that_is_not_there_stands_for_its_file(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:nowhere`.", title="auth")
    assert verdicts(bank) == {"notes:auth": "fresh"}
    write(project, "src/auth.py", AUTH + "\n")
    assert verdicts(bank) == {"notes:auth": "drifted"}


def test_a_file_that_somebody_is_editing_has_drifted_for_the_moment(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:login`.", title="auth")
    write(project, "src/auth.py", AUTH + "def half(:\n")
    (verdict,) = bank.fresh()
    assert (verdict.verdict, "does not parse" in verdict.why) == ("drifted", True)


def test_a_bank_that_several_projects_share_has_no_verdicts(home: Path, tmp_path: Path) -> None:
    write(tmp_path, "src/auth.py", AUTH)
    write(tmp_path, "memlane.toml", '[memory]\nenabled = true\nstorage_strategy = "user"\n')
    trusted(tmp_path / "memlane.toml")
    with Bank.open(tmp_path) as bank:
        bank.add("See `src/auth.py`.", title="auth")
        assert (bank.fresh(), bank.watch) == ([], None)


# -- anchoring


def test_what_came_by_hand_is_anchored_when_it_is_first_seen(bank: Bank, project: Path) -> None:
    write(project, ".memories/auth.md", "See `src/auth.py`.\n")
    assert verdicts(bank) == {"notes:auth": "fresh"}
    write(project, "src/auth.py", "x = 1\n")
    assert verdicts(bank) == {"notes:auth": "drifted"}


def test_a_file_that_comes_later_is_anchored_then(bank: Bank, project: Path) -> None:
    bank.add("It will be in `src/plan.py`.", title="plan")
    assert verdicts(bank) == {}
    write(project, "src/plan.py", "x = 1\n")
    assert verdicts(bank) == {"notes:plan": "fresh"}


def test_what_is_written_anew_is_fresh_although_somebody_elses_clock_was_ahead(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    path = project / ".memories/anchors.jsonl"
    path.write_text(re.sub(r'"at":"20\d\d', '"at":"2098', path.read_text()))
    write(project, "src/auth.py", "x = 1\n")
    assert verdicts(bank) == {"notes:auth": "drifted"}
    bank.update("notes:auth", text="See `src/auth.py`, which is short now.")
    assert verdicts(bank) == {"notes:auth": "fresh"}


def test_reading_resets_nothing(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`, the login.", title="auth")
    write(project, "src/auth.py", "x = 1\n")
    before = (project / ".memories/anchors.jsonl").read_bytes()
    for _ in range(2):
        bank.get("notes:auth")
        bank.search("login")
        bank.context("login")
        assert verdicts(bank) == {"notes:auth": "drifted"}
    bank.update("notes:auth", tags=["x"])
    assert verdicts(bank) == {"notes:auth": "drifted"}
    assert (project / ".memories/anchors.jsonl").read_bytes() == before


@pytest.mark.parametrize("verb", ["update", "append"])
def test_writing_the_text_anew_anchors_it_anew(bank: Bank, project: Path, verb: str) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    write(project, "src/auth.py", "x = 1\n")
    getattr(bank, verb)("notes:auth", "Still in `src/auth.py`.")
    assert verdicts(bank) == {"notes:auth": "fresh"}


def test_what_a_memory_no_longer_names_does_not_count(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    (project / ".memories/auth.md").write_text("Nothing to see.\n")
    (project / "src/auth.py").unlink()
    assert (verdicts(bank), bank.outdated(bank.get("notes:auth"))) == ({}, "")


def test_accepting_anchors_to_what_is_there(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py:login`.", title="auth")
    write(project, "src/auth.py", AUTH.replace("check(user)", "None"))
    assert bank.accept("auth").verdict == "fresh"
    assert verdicts(bank) == {"notes:auth": "fresh"}


def test_accepting_that_something_is_gone_ends_the_watch(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    (project / "src/auth.py").unlink()
    assert bank.accept("notes:auth").verdict == "fresh"
    assert verdicts(bank) == {}
    write(project, "src/auth.py", "x = 1\n")
    assert verdicts(bank) == {"notes:auth": "fresh"}


def test_accepting_what_speaks_of_no_code_is_an_error(bank: Bank) -> None:
    bank.add("Nothing at all.", title="plain")
    with pytest.raises(NotFound, match="speaks of no code"):
        bank.accept("notes:plain")


@pytest.mark.parametrize(
    ("lane", "text", "options"),
    [
        ("vault", "The login is in src/auth.py:login and nowhere else.", {"scope": "shared", "type": "fact"}),
        (
            "records",
            "The login is slow and somebody should look.",
            {"scope": "file:src/auth.py", "title": "slow login"},
        ),
        ("topics", "It is in `src/auth.py:login`.", {"title": "login", "scope": "auth/login"}),
        ("layers", "# Profile\n\nUsers come in by src/auth.py:login\n", {"project": "api", "type": "known_issues"}),
    ],
)
def test_every_lane_is_anchored(bank: Bank, project: Path, lane: str, text: str, options: dict[str, str]) -> None:
    stored = bank.add(text, lane=lane, **options)
    assert verdicts(bank) == {stored.id: "fresh"}
    write(project, "src/auth.py", AUTH.replace("check(user)", "None"))
    assert verdicts(bank) == {stored.id: "drifted"}


def test_a_write_is_acknowledged_even_when_it_cannot_be_anchored(bank: Bank, project: Path) -> None:
    (project / ".memories").mkdir(exist_ok=True)
    (project / ".memories/anchors.jsonl").mkdir()
    stored = bank.add("See `src/auth.py`.", title="auth")
    assert bank.get("notes:auth").text == "See `src/auth.py`."
    assert stored.remarks[0].startswith("the code that it names was not anchored: anchors.jsonl cannot be written")


def test_the_tools_for_notes_anchor_what_they_write(bank: Bank, project: Path) -> None:
    from memlane.surfaces.mcp import notes

    notes.create_memory.run(bank, "auth.md", "See `src/auth.py`.", [], "fact")
    write(project, "src/auth.py", "x = 1\n")
    assert verdicts(bank) == {"notes:auth": "drifted"}
    notes.append_memory.run(bank, "auth.md", "Still true.")
    assert verdicts(bank) == {"notes:auth": "fresh"}


# -- the sidecar


def lines(project: Path) -> list[bytes]:
    return (project / ".memories/anchors.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("kind", ["pipe", "huge", "folder"])
def test_anchors_that_cannot_be_read_hide_no_memory(run: Run, bank: Bank, project: Path, kind: str) -> None:
    """A cloned file must not switch off what sessions are told; what is wrong with it is said."""
    bank.add("The deploys of `src/auth.py` go out on Tuesdays.", title="Deploys")
    path = project / ".memories/anchors.jsonl"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(3 * 2**30)
    else:
        path.mkdir()
    for command in (("search", "deploys"), ("context", "deploys"), ("get", "notes:deploys")):
        result = run("--bank", project, *command)
        assert (result.code, "Tuesdays" in result.out or "notes:deploys" in result.out) == (0, True), (command, result)
    assert [problem.path for problem in bank.problems()] == [path]
    assert "anchors.jsonl" in run("--bank", project, "doctor").err + run("--bank", project, "doctor").out


def test_damaged_lines_hide_no_other(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="one")
    path = project / ".memories/anchors.jsonl"
    path.write_bytes(b'<<<<<<< ours\n[1]\n{"id":"x"}\n' + path.read_bytes() + b'{"id":"notes:torn","tar')
    bank.add("See `src/auth.py`, too.", title="two")
    report = fresh.report(bank)
    assert [verdict.id for verdict in report.verdicts] == ["notes:one", "notes:two"]
    assert report.remarks == ("4 damaged lines of anchors.jsonl are passed over",)
    assert report.anchored == 0


def test_a_line_with_something_else_than_text_is_damaged(run: Run, bank: Bank, project: Path) -> None:
    memory = bank.add("See `src/auth.py`.", title="one")
    path = project / ".memories/anchors.jsonl"
    line = json.loads(path.read_text())
    for name in line:
        path.write_text(json.dumps({**line, name: 5}) + "\n" + json.dumps({**line, name: ["x"]}) + "\n")
        assert run("get", memory.id).code == run("search", "auth").code == 0
        assert fresh.report(Bank.open(project)).remarks == ("2 damaged lines of anchors.jsonl are passed over",)


def test_an_anchor_from_the_end_of_time_can_be_accepted(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="one")
    path = project / ".memories/anchors.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), "at": "9999-12-31T23:59:59.999999Z"}) + "\n")
    write(project, "src/auth.py", "x = 1\n")
    assert bank.accept("notes:one").verdict == "fresh"


def test_the_newest_line_counts_in_any_order(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    write(project, "src/auth.py", "x = 1\n")
    bank.accept("notes:auth")
    (project / ".memories/anchors.jsonl").write_bytes(b"".join(reversed(lines(project))))
    assert verdicts(Bank.open(project)) == {"notes:auth": "fresh"}


def test_anchors_of_two_branches_merge(repository: Path) -> None:
    with Bank.init(repository, git=True) as bank:
        bank.add("See `src/auth.py`.", title="auth")
        commit(repository)
        git(repository, "branch", "other")
        bank.add("See `src/auth.py:login`.", title="here")
        commit(repository)
        here = lines(repository)
        git(repository, "checkout", "-q", "other")
        bank.add("See `src/auth.py:logout`.", title="there")
        commit(repository)
        there = lines(repository)
        git(repository, "merge", "-q", "-", "-m", "both")
        assert sorted(lines(repository)) == sorted({*here, *there})
        assert verdicts(bank) == {"notes:auth": "fresh", "notes:here": "fresh", "notes:there": "fresh"}


def test_without_the_sidecar_everything_is_anchored_anew(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    write(project, "src/auth.py", "x = 1\n")
    (project / ".memories/anchors.jsonl").unlink()
    report = fresh.report(bank)
    assert ([v.verdict for v in report.verdicts], report.anchored, len(report.remarks)) == (["fresh"], 1, 1)


def test_compaction_keeps_what_counts(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="one")
    bank.add("See `src/auth.py`, too.", title="two")
    write(project, "src/auth.py", "x = 1\n")
    bank.accept("notes:one")
    path = str(project / ".memories/anchors.jsonl")
    before, _ = anchors.load(path)
    anchors.compact(path)
    assert (anchors.load(path)[0], len(lines(project))) == (before, 2)
    anchors.compact(path, drop=["notes:two"])
    assert list(anchors.load(path)[0]) == ["notes:one"]
    anchors.compact(str(project / "none.jsonl"))


def test_a_deleted_memory_has_no_verdict_and_keeps_its_anchors(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    bank.delete("notes:auth")
    write(project, "src/auth.py", "x = 1\n")
    assert verdicts(bank) == {}
    bank.restore("notes:auth")
    assert verdicts(bank) == {"notes:auth": "drifted"}


def test_the_caches_can_be_deleted_or_damaged(bank: Bank, project: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    write(project, "src/auth.py", "x = 1\n")
    expected = bank.fresh()
    for name in ("code.json", "mentions.json"):
        cache = project / ".memories/indices" / name
        for damage in (b"", b"[]", b'{"version":1,"about":"","files":[]}', b'{"version":1,"about":"","files":{"a":1}}'):
            cache.write_bytes(damage)
            assert Bank.open(project).fresh() == expected
        cache.unlink()
    assert Bank.open(project).fresh() == expected


def test_nothing_is_read_again_when_nothing_changed(bank: Bank, project: Path) -> None:
    os.utime(project / "src/auth.py", (1_700_000_000, 1_700_000_000))
    bank.add("See `src/auth.py:login`.", title="auth")
    bank.fresh()
    with Bank.open(project) as again:
        before = tree(project)
        again.fresh()
        assert again.watch is not None
        assert (again.watch.code.read, tree(project)) == (0, before)


def test_a_file_that_has_just_changed_is_read_again(project: Path) -> None:
    """Two edits within one tick of the clock and of the same size look alike."""
    code = Code(project)
    info = (project / "src/auth.py").stat()
    first = code.blob("src/auth.py")
    write(project, "src/auth.py", AUTH.replace("3", "4"))
    os.utime(project / "src/auth.py", ns=(info.st_atime_ns, info.st_mtime_ns))
    assert code.blob("src/auth.py") != first


# -- ranking, blocks, the command line


def test_drifted_memories_rank_a_little_lower_and_orphaned_ones_more(bank: Bank, project: Path) -> None:
    for name in ("a", "b", "c"):
        write(project, f"src/{name}.py", "x = 1\n")
        bank.add(f"The cache of the shop is in `src/{name}.py`.", title=name, created_at="2024-01-01")
    assert [hit.why["freshness"] for hit in bank.search("cache of the shop")] == [1.0, 1.0, 1.0]
    write(project, "src/b.py", "x = 2\n")
    (project / "src/a.py").unlink()
    hits = bank.search("cache of the shop")
    assert [(hit.memory.id, hit.why["freshness"]) for hit in hits] == [
        ("notes:c", 1.0),
        ("notes:b", fresh.FACTORS["drifted"]),
        ("notes:a", fresh.FACTORS["orphaned"]),
    ]
    assert [hit.memory.id for hit in bank.search("cache of the shop", limit=1)] == ["notes:c"]


def test_blocks_mark_what_is_not_fresh(bank: Bank, project: Path) -> None:
    bank.add("The cache of the shop is in `src/auth.py:login`.", title="cache", tags=["pinned"])
    write(project, "src/auth.py", AUTH.replace("check(user)", "None"))
    (verdict,) = bank.fresh()
    mark = f"⚠ drifted: src/auth.py:login changed since {verdict.findings[0].since}"
    assert f"login`. {mark} · [notes:cache]\n" in bank.context("cache of the shop")
    assert f"login`. {mark} · [notes:cache]\n" in bank.snapshot()
    bank.update("notes:cache", tags=[])
    assert f" · {mark}\n" in bank.context("cache of the shop")


def test_a_look_knows_what_the_last_report_found_moved(bank: Bank, repository: Path) -> None:
    bank.add("See `src/auth.py`.", title="auth")
    git(repository, "mv", "src/auth.py", "src/access.py")
    stored = bank.get("notes:auth")
    assert Bank.open(repository).outdated(stored) == "orphaned: src/auth.py is gone"
    bank.fresh()
    assert Bank.open(repository).outdated(stored) == "moved: src/auth.py is in src/access.py now"


def test_the_command_says_what_became_of_the_code(run: Run, project: Path) -> None:
    run("add", "See `src/auth.py`.", "--title", "auth")
    assert run("review", "--only", "drifted", "--show") == (0, "", "1 fresh\n")
    assert run("review", "--only", "drifted", "--all").out == "notes:auth\tfresh\tsrc/auth.py\n"
    write(project, "src/auth.py", "x = 1\n")
    result = run("review", "--only", "drifted", "--show", "--check")
    since = run("review", "--only", "drifted", "--show", "--json").json["verdicts"][0]["findings"][0]["since"]
    why = f"src/auth.py changed since {since}"
    assert (result.code, result.out) == (6, f"notes:auth\tdrifted\t{why}\n")
    assert f"⚠ drifted: {why}\n" in run("get", "notes:auth").err
    assert run("review", "--accept", "notes:auth").out == "notes:auth\tfresh\tsrc/auth.py\n"
    assert run("review", "--only", "drifted", "--show", "--check").code == 0


def test_the_json_of_the_command_has_one_shape(run: Run, project: Path) -> None:
    run("add", "See `src/auth.py:login`.", "--title", "auth")
    run("add", "Nothing at all.", "--title", "plain")
    found = run("review", "--only", "drifted", "--show", "--json").json
    since = found["verdicts"][0]["findings"][0]["since"]
    finding = {"target": "src/auth.py", "symbol": "login", "verdict": "fresh", "since": since}
    assert found == {
        "verdicts": [
            {"id": "notes:auth", "verdict": "fresh", "findings": [{**finding, "why": "", "now": "", "diff": ""}]}
        ],
        "counts": {"fresh": 1, "moved": 0, "drifted": 0, "orphaned": 0, "unanchored": 1},
        "anchored": 0,
        "remarks": [],
    }


def test_accepting_everything(run: Run, project: Path) -> None:
    run("add", "See `src/auth.py`.", "--title", "one")
    run("add", "See `src/auth.py`, too.", "--title", "two")
    write(project, "src/auth.py", "x = 1\n")
    assert run("review", "--accept", "--all").err == "2 fresh\n"
    assert run("review", "--accept").code == 2
    assert run("review", "--only", "drifted", "--show", "notes:nothing").code == 3


def test_what_the_lanes_own_verbs_write_is_anchored_anew(run: Run, bank: Bank, project: Path) -> None:
    """By the command line and by the tools of an agent: whoever writes a memory anew has looked at the code."""
    from memlane.disk import journal
    from memlane.surfaces.mcp import layers, notes, records, topics, vault

    text = "The login has no limit: `src/auth.py:login`."
    file = {"layer": "shared-project", "file_type": "common_patterns"}
    record = vault.add_memory.run(bank, text, "shared", "project")["id"]
    bulk = vault.bulk_add.run(bank, [{"text": "Sessions end with `src/auth.py:logout`, always."}])["stored"][0]["id"]
    file_id = layers.create.run(bank, content=text, project_name="api", **file)["id"]
    entry = topics.store.run(bank, "auth/login", text)["entry"]["id"]
    message = records.create.run(bank, text, "Login", ["login"])["id"]
    one, two = (bank.add(text, title=title) for title in ("One", "Two"))
    with journal.change("merge_memories"):  # as the server does it for every call
        notes.merge_memories.run(bank, ["one.md", "two.md"], "both.md", text)
    ids = {f"vault:{record}", f"vault:{bulk}", f"layers:{file_id}", entry, f"records:{message}", "notes:both"}
    assert {one.id, two.id} | ids == set(bank.watch.anchors() if bank.watch else ())
    write(project, "src/auth.py", AUTH.replace("check(user)", "check(user, 3)").replace("pass", "return None"))
    assert set(verdicts(bank).values()) == {"drifted"}
    new = "The login takes three attempts: `src/auth.py:login`."
    vault.update_memory.run(bank, record, new)
    layers.update.run(bank, file_id, new)
    assert run("vault", "update", bulk, "Sessions end with `src/auth.py:logout`, which returns.").code == 0
    fresh_now = {id for id, verdict in verdicts(bank).items() if verdict == "fresh"}
    assert fresh_now == {f"vault:{record}", f"vault:{bulk}", f"layers:{file_id}"}
    write(project, "src/auth.py", AUTH)
    layers.append.run(bank, file_id, "So it is.")
    assert run("layers", "append", file_id, "Indeed.").code == 0
    assert verdicts(bank)[f"layers:{file_id}"] == "fresh"
    merged = next(change.id for change in bank.journal.changes() if "merge" in change.verb)
    assert set(bank.undo(merged).restored) == {"one.md", "two.md", "both.md"}
