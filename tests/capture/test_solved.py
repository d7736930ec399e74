"""Whether something that was said tells that open work is done."""

from __future__ import annotations

import pytest

from memlane.capture.solved import is_about, leaves_open, says_solved


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("UNRESOLVED: the login test is flaky on CI.", "Fixed the flaky login test by waiting for the server."),
        ("The export of invoices to PDF is not yet done.", "The export of invoices to PDF is implemented."),
        ("UNRESOLVED: `parse_date` fails before 1970.", "`parse_date` was fixed: years before 1970 are handled."),
        ("Migration of user tables to Postgres is pending.", "The migration of the user tables to Postgres is done."),
        ("TODO: the nightly sync hangs on large folders", "The nightly sync no longer hangs on large folders."),
    ],
)
def test_what_says_that_work_is_done(work: str, said: str) -> None:
    assert says_solved(said)
    assert is_about(said, work)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("TODO next week: move the invoices job to the queue", True),
        ("TODO for next time: rotate the signing keys", True),
        ("One more thing for tomorrow: the retry of the mailer is still missing", True),
        ("still missing: a rate limit on the login endpoint", True),
        ("Remind me to rotate the signing keys in March.", True),
        ("we still need to add an index to orders.customer_id", True),
        ("Noch offen: das Rate-Limit am Login", True),
        ("todo items are not rendered", False),
        ("Add a todo list to the page.", False),
        ("What is still missing?", False),
        ("Always remind me to run the tests.", False),
        ("Fix the login page, a button is missing.", False),
    ],
)
def test_what_the_user_leaves_for_later(said: str, left: bool) -> None:
    assert leaves_open(said) is left


@pytest.mark.parametrize(
    "said",
    [
        "The cache is not fixed yet.",
        "The migration must be done before June.",
        "Once this is resolved, the cache can go.",
        "The first part is done, the second still fails.",
        "The build isn't fixed.",
        "Ask before you close the ticket.",
    ],
)
def test_what_does_not(said: str) -> None:
    assert not says_solved(said)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("TODO: add tests for the importer", "Fixed the importer; the tests of the parser are slow."),
        ("UNRESOLVED: the login test is flaky on CI.", "Fixed the flaky checkout of the repository."),
        ("Pending: caching", "Caching of the images is done."),
    ],
)
def test_other_work_is_not_meant(work: str, said: str) -> None:
    assert not is_about(said, work)
