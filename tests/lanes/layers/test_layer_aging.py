"""Lifecycle: the Last Updated line, staleness, size limits and pruning, as text in and text out."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.lanes.layers import aging
from memlane.lanes.layers.aging import Action, prune

TODAY = date(2026, 2, 10)


def review(number: int, day: str = "2026-01-01") -> str:
    return f"## Review #{number} - {day}\n\nFound {number} issues.\n\n"


def session(number: int, name: str = "Test Session") -> str:
    return f"## {name} #{number} - 2025-11-{number:02} 14:30\n\n- Results: {number} passed\n\n"


def issue(title: str, status: str) -> str:
    return f"### {title}\n**Status**: {status}\n\n"


def numbers(text: str, noun: str = "Review") -> list[int]:
    return [int(found) for found in re.findall(rf"^## {noun} #(\d+)", text, re.MULTILINE)]


# -- the Last Updated line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- Last Updated: 2026-02-10 -->\n\nText", date(2026, 2, 10)),
        ("\ufeff<!-- Last Updated: 2026-02-10 -->\r\n\r\nText", date(2026, 2, 10)),
        ("<!-- Last Updated: 2026-02-10 -->", date(2026, 2, 10)),
        ("<!-- Last Updated: 2026-02-31 -->\n", None),
        ("# Title\n<!-- Last Updated: 2026-02-10 -->\n", None),
        ("**Last Updated**: 2026-02-10\n", None),
        ("<!-- last updated: 2026-02-10 -->\n", None),
        ("<!-- Last Updated: 10.2.2026 -->\n", None),
        ("", None),
    ],
)
def test_the_date_is_on_the_first_line_in_one_form(text: str, expected: date | None) -> None:
    """S004-11, S004-13"""
    assert aging.updated_on(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- Last Updated: 2020-01-01 -->\n\nA", "<!-- Last Updated: 2026-02-10 -->\n\nA"),
        ("<!-- Last Updated: 2020-01-01 -->\nA", "<!-- Last Updated: 2026-02-10 -->\nA"),
        ("A\r\nB", "<!-- Last Updated: 2026-02-10 -->\r\n\r\nA\r\nB"),
        ("\ufeffA", "\ufeff<!-- Last Updated: 2026-02-10 -->\n\nA"),
        ("\n\n<!-- Last Updated: 2020-01-01 -->\n\nA", "<!-- Last Updated: 2026-02-10 -->\n\nA"),
    ],
)
def test_stamping_changes_the_date_and_nothing_else(text: str, expected: str) -> None:
    """S004-18: never two timestamp lines, and line ends and byte order mark stay."""
    assert aging.stamped(text, TODAY) == expected


# -- staleness and size


@pytest.mark.parametrize(
    ("days", "expected"),
    [(-5, "fresh"), (0, "fresh"), (30, "fresh"), (31, "aging"), (90, "aging"), (91, "stale"), (3650, "stale")],
)
def test_staleness_follows_the_days(days: int, expected: str) -> None:
    """S004-12 and R-26: day 90 is aging, and a date in the future is fresh."""
    assert aging.staleness(TODAY - timedelta(days), TODAY) == expected


@pytest.mark.parametrize(
    ("file_type", "lines", "expected"),
    [
        ("known_issues", 500, None),
        ("known_issues", 501, "501 lines, over 500: Split into focused sub-files."),
        ("project_overview", 200, None),
        ("project_overview", 201, "201 lines, over 200: Move detailed sections to separate files."),
        ("review_history", 300, None),
        ("review_history", 301, "301 lines, over 300: Archive older entries."),
        ("review_history_archive", 9999, None),
    ],
)
def test_size_limits_warn_above_their_number(file_type: str, lines: int, expected: str | None) -> None:
    """S004-19, S004-20, S004-21"""
    assert aging.size_warning(file_type, lines) == expected


# -- reviews


def test_ten_reviews_are_not_pruned() -> None:
    """S004-41"""
    text = "".join(map(review, range(1, 11)))
    assert prune("review_history", text, TODAY) == (text, (), (), ())


def test_reviews_beyond_ten_are_archived_oldest_first() -> None:
    """S004-42"""
    result = prune("review_history", "# History\n\n" + "".join(map(review, range(1, 14))), TODAY)
    assert result.text == "# History\n\n" + "".join(map(review, range(4, 14)))
    assert result.archived == (review(1), review(2), review(3))
    assert result.actions == (
        Action("archived", "3 reviews beyond the 10 most recent moved to review_history_archive"),
    )


def test_a_file_written_newest_first_keeps_the_newest_and_its_other_sections() -> None:
    """S004-45"""
    dated = [review(number, f"2025-01-{number:02}") for number in range(12, 0, -1)]
    head, tail = "# Reviews\n\nIntro.\n\n", "## Summary Statistics\n\n- 12 reviews\n\n## Goals\n\nLess.\n"
    result = prune("review_history", head + "".join(dated) + tail, TODAY)
    assert result.text == head + "".join(dated[:10]) + tail
    assert result.archived == (dated[11], dated[10])


LATER = [f"Review #{number} - 2025-12-{number}" for number in range(10, 20)]


@pytest.mark.parametrize(
    ("titles", "oldest"),
    [
        ([f"Review {number}" for number in (2, 1, *range(3, 12))], "Review 1"),
        ([f"Review: {letter}" for letter in "bacdefghijk"], "Review: b"),
        ([*LATER, "Review #20 - 2025-01-01"], "Review #20 - 2025-01-01"),
        ([*reversed(LATER), "Review"], "Review #10 - 2025-12-10"),
        (["Review #1 - 2025-01-01 18:00", "Review #2 - 2025-01-01 09:00", *LATER[1:]], "Review #2 - 2025-01-01 09:00"),
    ],
)
def test_age_is_by_date_then_number_then_place(titles: list[str], oldest: str) -> None:
    """S004-45 and R-28: an undated entry at the end is the one just appended."""
    result = prune("review_history", "".join(f"## {title}\n" for title in titles), TODAY)
    assert result.archived == (f"## {oldest}\n",)


def test_a_heading_inside_code_is_not_an_entry() -> None:
    """S004-45: fenced code is opaque."""
    fenced = "## Review #1 - 2026-01-01\n\n```\n## Review #99 - 2020-01-01\n```\n\n"
    text = fenced + "".join(map(review, range(2, 11)))
    assert prune("review_history", text, TODAY) == (text, (), (), ())


@pytest.mark.parametrize(
    ("file_type", "other", "entry", "kept"),
    [
        ("review_history", "Code Review rules", "Review", 10),
        ("review_history", "The last Review #1 - 2020-01-01", "Review", 10),
        ("test_results_history", "Last Session", "Session", 15),
        ("test_results_history", "My Test Session notes", "Test Session", 15),
    ],
)
def test_a_heading_that_only_has_the_word_is_no_entry(file_type: str, other: str, entry: str, kept: int) -> None:
    """S004-45: an entry's heading begins with it."""
    text = f"## {other}\n\nKeep me.\n\n" + "".join(f"## {entry} {number}\n\nText.\n\n" for number in range(kept))
    assert prune(file_type, text, TODAY) == (text, (), (), ())


def test_reviewer_is_not_a_review() -> None:
    """S004-41"""
    text = "## Reviewers\n\nAda\n\n" + "".join(map(review, range(1, 11)))
    assert prune("review_history", text, TODAY).text == text


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["## Review", "## Review #{}", "## Review #{} - 2025-01-{:02}", "## Goals", "# Part", "### x"]
            ),
            st.sampled_from(["", "text\n", "```\n## Review #7\n```\n", "~~~\n# no\n", "tail without newline", "\r\n"]),
        ),
        max_size=40,
    )
)
def test_pruning_reviews_loses_no_section(pieces: list[tuple[str, str]]) -> None:
    """S004-42: every section is in the file or in the archive, and neither gains one."""
    text = ""
    for number, (title, content) in enumerate(pieces, 1):
        text += ("\n" if text and not text.endswith("\n") else "") + title.format(number, number % 28 + 1)
        text += "\n" + content
    result = prune("review_history", text, TODAY)
    archive = aging.with_archived("", result.archived)
    before = {part.text.strip() for part in aging.sections(text, 2)}
    after = [part.text.strip() for whole in (result.text, *result.archived) for part in aging.sections(whole, 2)]
    assert (set(after), len(after)) == (before, len(aging.sections(text, 2)))
    assert all(part.strip() in archive for part in result.archived)
    assert prune("review_history", result.text, TODAY).text == result.text


def test_a_section_is_not_archived_twice() -> None:
    """S004-44: after a kill between archive and main file the same sections come again."""
    archive = "<!-- Last Updated: 2026-01-01 -->\n\n" + review(1) + review(2).rstrip()
    assert aging.with_archived(archive, [review(1), review(2), review(3)]) == archive + "\n" + review(3)


def test_sections_that_are_alike_are_all_archived() -> None:
    """S004-42: only what the archive held before is left out, once each."""
    same = "## Review\n\nNothing.\n\n"
    assert aging.with_archived("", [same] * 5) == same * 5
    assert aging.with_archived(same * 2, [same] * 5) == same * 5


# -- issues


def test_the_seeds_three_issues() -> None:
    """S004-46, S004-47, S004-48: removed after 36 days, kept in progress, tagged after 118."""
    text = (
        "# Known Issues\n\n## High\n\n"
        + issue("N+1 Query in Order History", "Resolved (2026-01-05)")
        + issue("Missing CancellationToken", "In Progress")
        + issue("Old Singleton Issue", "Investigating (2025-10-15)")
    )
    result = prune("known_issues", text, TODAY)
    assert result.text == (
        "# Known Issues\n\n## High\n\n"
        + issue("Missing CancellationToken", "In Progress")
        + issue("Old Singleton Issue [VERIFY STATUS]", "Investigating (2025-10-15)")
    )
    assert result.actions == (
        Action("removed", "resolved 30 or more days ago: N+1 Query in Order History"),
        Action("flagged", "no status update for 90 or more days: Old Singleton Issue"),
    )
    assert result.removed == (issue("N+1 Query in Order History", "Resolved (2026-01-05)"),)


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ("Resolved (2026-01-11)", False),  # 30 days
        ("Resolved (2026-01-12)", True),  # 29 days
        ("✅ Resolved 2026-01-05", False),
        ("✅ FIXED (2026-01-05)", False),
        ("✅ (2026-01-05)", False),
        ("**Resolved** 2026-01-05", False),
        ("fixed on 2026-01-05", False),
        ("✅ Mostly resolved (2026-01-05)", True),
        ("Partially resolved (2026-01-05)", True),
        ("Not resolved (2026-01-05)", True),
        ("Unresolved (2026-01-05)", True),
        ("Resolved", True),
        ("Resolved (2026-02-31)", True),
        ("Resolved (2027-01-01)", True),
        ("🔄 In Progress - since 2020-01-01", True),
        ("In Progress, resolved in part 2020-01-01", True),
        ("⚠️ 2020-01-01", True),
    ],
)
def test_only_what_was_resolved_thirty_days_ago_is_removed(status: str, kept: bool) -> None:
    """S004-46, S004-47, S004-49"""
    text = issue("It", status)
    assert prune("known_issues", text, TODAY).text == (text if kept else "")


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ("**Resolved**: 2026-01-05\n", False),
        ("Found: 2025-12-01\n**Resolved**: 2026-02-01\n", True),
        ("Noted 2026-01-05\n", False),
        ("a\nb\nc\nNoted 2026-01-05\n", True),
        ("a\nb\nc\nd\n**Resolved**: 2026-01-05\n", False),
    ],
)
def test_the_date_may_stand_near_the_status(after: str, kept: bool) -> None:
    """S004-46"""
    text = f"### It\n**Status**: ✅ FIXED\n{after}"
    assert (prune("known_issues", text, TODAY).text == text) is kept


@pytest.mark.parametrize(
    ("title", "status", "tagged"),
    [
        ("It", "Investigating (2025-11-12)", True),  # 90 days
        ("It", "Investigating (2025-11-13)", False),
        ("It", "⚠️ Ongoing - since 2025-01-01, seen again 2026-01-01", False),
        ("It", "In Progress (2020-01-01)", False),
        ("It [VERIFY STATUS]", "Investigating (2020-01-01)", False),
        ("It", "Investigating", False),
    ],
)
def test_ninety_days_without_an_update_are_tagged_once(title: str, status: str, tagged: bool) -> None:
    """S004-48"""
    expected = issue(title + " [VERIFY STATUS]" * tagged, status)
    once = prune("known_issues", issue(title, status), TODAY).text
    assert [once, prune("known_issues", once, TODAY).text] == [expected, expected]


def test_groups_and_issues_without_status_survive() -> None:
    """S004-50"""
    gone = issue("Gone", "Resolved (2025-01-01)")
    text = "# Issues\n\n## Critical\n\n" + gone + "## Low\n\n### No status\n\nText 2020-01-01.\n\n---\n"
    assert prune("known_issues", text, TODAY).text == text.replace(gone, "")


def test_an_issue_with_an_open_part_is_not_removed() -> None:
    """S004-46: a status inside code does not count, and all parts must be resolved."""
    open_part = "### A\n**Status**: Resolved (2025-01-01)\n#### Part\n**Status**: Open\n"
    in_code = "### B\n```\n**Status**: Resolved (2025-01-01)\n```\n"
    assert prune("known_issues", open_part + in_code, TODAY).removed == ()


def test_the_tag_keeps_the_line_end() -> None:
    """S004-48"""
    text = "### It\r\n**Status**: Open (2020-01-01)\r\n"
    assert prune("known_issues", text, TODAY).text == text.replace("### It", "### It [VERIFY STATUS]")


# -- sessions


def test_fifteen_sessions_are_not_pruned() -> None:
    """S004-51"""
    text = "".join(map(session, range(1, 16)))
    assert prune("test_results_history", text, TODAY) == (text, (), (), ())


def test_the_sixteenth_session_is_folded_into_a_summary_at_the_bottom() -> None:
    """S004-51: newest first as real files are, and other sections stay."""
    newest_first = [session(number) for number in range(16, 0, -1)]
    result = prune("test_results_history", "".join(newest_first) + "## Trends\n\nUp.\n", TODAY)
    assert result.text == (
        "".join(newest_first[:15])
        + "## Trends\n\nUp.\n\n## Historical Summary\n\n**Sessions summarised**: 1\n\n"
        + "- Test Session #1 - 2025-11-01 14:30: Results: 1 passed\n"
    )
    assert result.archived == (session(1),)


def test_repeated_pruning_keeps_one_summary() -> None:
    """S004-52: both kinds of heading count, and what a person wrote into the summary stays."""
    text = "".join(session(number, "Session" if number % 2 else "Test Session") for number in range(1, 17))
    text = prune("test_results_history", text, TODAY).text.replace("- Session #1", "Flaky week.\n\n- Session #1")
    text = prune("test_results_history", text + session(17) + session(18), TODAY).text
    assert numbers(text, "(?:Test )?Session") == list(range(4, 19))
    assert text.partition("## Historical Summary")[2] == (
        "\n\n**Sessions summarised**: 3\n\nFlaky week.\n\n"
        "- Session #1 - 2025-11-01 14:30: Results: 1 passed\n"
        "- Test Session #2 - 2025-11-02 14:30: Results: 2 passed\n"
        "- Session #3 - 2025-11-03 14:30: Results: 3 passed\n"
    )


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_summary_counts_every_folded_session(first: int, more: int) -> None:
    """S004-52"""
    text = ""
    for number in range(1, first + more + 1):
        text += f"## Session {number}\n{number} passed\n"
        if number in (first, first + more):
            text = prune("test_results_history", text, TODAY).text
    folded = max(first + more - 15, 0)
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        f"- Session {number}: {number} passed" for number in range(1, folded + 1)
    ]
    assert ("Historical Summary" in text, f"summarised**: {folded}\n" in text) == (folded > 0, folded > 0)


# -- quality

OVERVIEW = {
    "language and version": "## Language\n- Python 3.12\n\n",
    "framework and version": "## Framework\n- FastAPI 0.104\n\n",
    "architecture pattern": "## Architecture\n- Layered: `app/routes`, `app/services`\n\n",
    "key conventions": "## Conventions\n- Names in snake_case, see `CONTRIBUTING.md`\n\n",
    "testing approach": "## Testing\n- pytest, fixtures in `tests/conftest.py`\n",
}


def test_a_complete_overview() -> None:
    """S004-56"""
    result = aging.quality("project_overview", "".join(OVERVIEW.values()), TODAY, 0, [])
    assert result["checks"] == {"completeness": True, "specificity": True, "growthRate": "unknown"}


@pytest.mark.parametrize("topic", OVERVIEW)
def test_an_overview_that_lacks_a_topic(topic: str) -> None:
    """S004-56"""
    text = "".join(section for name, section in OVERVIEW.items() if name != topic)
    result = aging.quality("project_overview", text, TODAY, 0, [])
    assert result["checks"]["completeness"] is False
    assert result["details"]["completeness"] == {"score": 0.8, "missing": [topic]}
    assert f"Add the {topic}." in result["suggestions"]


def test_a_language_needs_its_version() -> None:
    """S004-56"""
    text = "".join(OVERVIEW.values()).replace("Python 3.12", "Python")
    assert aging.quality("project_overview", text, TODAY, 0, [])["details"]["completeness"]["missing"] == [
        "language and version"
    ]


def test_a_gap_is_to_be_investigated_from_the_third_invocation() -> None:
    """S004-56 and R-33"""
    result = aging.quality("project_overview", "", TODAY, 3, [])
    assert result["suggestions"][0] == "Investigate and add the language and version."


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Uses custom auth", False),
        ("Has N+1 queries", False),
        ("Tests use fixtures", False),
        ("Custom JWT auth in `app/auth/middleware.py`, 15min expiry", True),
        ("N+1 in `OrdersController.cs:GetHistory()`, loads reviews in loop", True),
        ("Shared fixtures in `tests/conftest.py`: `sample_user`, `mock_db`", True),
        ("Auth is in app/auth.py", True),
    ],
)
def test_specific_claims_name_what_they_mean(claim: str, expected: bool) -> None:
    """S004-57: the table of quality_guidance.md."""
    checks = aging.quality("common_patterns", f"# Patterns\n\n- {claim}\n", TODAY, 0, [])["checks"]
    assert checks["specificity"] is expected


@pytest.mark.parametrize(("vague", "expected"), [(3, True), (4, False)])
def test_three_claims_in_ten_may_be_unspecific(vague: int, expected: bool) -> None:
    """S004-57"""
    text = "- vague\n" * vague + "- in `a.py`\n" * (10 - vague)
    assert aging.quality("common_patterns", text, TODAY, 0, [])["checks"]["specificity"] is expected


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], "unknown"),
        ([9, 9, 9, 9], "unknown"),
        ([9] * 5, "stagnant"),
        ([1, 9, 9, 9, 9, 9], "stagnant"),
        ([9, 9, 9, 9, 10], "healthy"),
    ],
)
def test_growth_is_judged_over_five_invocations(history: list[int], expected: str) -> None:
    """S004-55"""
    assert aging.growth_rate(history) == expected


def test_suggestions_say_what_to_do() -> None:
    """S004-55"""
    text = "- There are various things in /home/ada/x.py\n" * 4 + "```\n" + "code\n" * 20 + "```\n"
    assert aging.quality("common_patterns", text, TODAY, 5, [26] * 5)["suggestions"] == [
        "Replace vague words (various, several, there are …) by what exactly is meant.",
        "Use paths relative to the repository, not absolute ones.",
        "Store where the code is, not the code itself.",
        "It has not grown in 5 invocations: look at other parts of the project.",
        "It is stale: verify it against the project, then update it.",
        "Spot-check a file path, a convention and a known issue against the project.",
    ]
