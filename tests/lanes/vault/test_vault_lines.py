"""A line as a vault writes it is read by a shorter way, and as any other line is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memlane.lanes.vault.record import Record, fresh, read_line, render_line

WORDS = st.sampled_from(["", "Shared", "canon", "2025-01-01T10:00:00Z", "é\n"])
ANYTHING = st.none() | st.booleans() | st.integers(0, 2) | WORDS | st.lists(st.text(max_size=2), max_size=2)
KEYS = "created_at updated_at tier topic_id source scope category tags deleted_at x".split()
LINES = st.fixed_dictionaries(
    {"id": st.just("a1") | ANYTHING, "version": st.just(1) | ANYTHING, "text": st.just("Tea.") | ANYTHING},
    optional=dict.fromkeys(KEYS, ANYTHING),
)


@given(LINES)
def test_a_line_is_read_alike_with_and_without_a_space_before_it(values: dict[str, Any]) -> None:
    """The shorter way is for lines that begin with a brace."""
    line = json.dumps(values, ensure_ascii=False).encode()
    assert repr(read_line(line)) == repr(read_line(b" " + line))


def test_every_line_that_is_written_is_read_back() -> None:
    plain = Record("a1", "Tea.", created_at="2025-01-01T10:00:00Z", source="manual", tags=["x"])
    register = Record("a2", "Oslo.", tier="register", topic_id="place", created_at="2025-01-01T10:00:00Z", version=3)
    titled = Record("a3", "A.", created_at="2025-01-01T10:00:00Z", extra={"title": "B"})
    for record in (plain, register, titled):
        assert read_line(render_line(record).encode()) == record


LABELS = st.sampled_from(["shared", "Shared", "É", "a b", 'a"b', "x,y", "", "tab\t"])


@given(
    st.builds(
        Record,
        id=LABELS,
        text=LABELS | st.text(max_size=5),
        scope=LABELS,
        category=LABELS,
        tier=st.sampled_from(["canon", "Canon", "register"]),
        topic_id=st.none() | LABELS,
        tags=st.lists(LABELS, max_size=3),
        created_at=LABELS,
        updated_at=st.none() | LABELS,
        source=st.none() | LABELS,
        deleted_at=st.none() | LABELS,
        version=st.integers(0, 11),
        extra=st.sampled_from([{}, {"title": "T"}]),
    )
)
def test_a_new_record_that_is_read_without_json_is_the_same(record: Record) -> None:
    line = render_line(record).encode("utf-8", "surrogatepass")
    row = fresh(line)
    assert row is None or row.record() == read_line(line)


def test_the_line_of_a_new_record_is_read_without_json() -> None:
    record = Record("a1", "Tea, no milk.", created_at="2025-01-01T10:00:00Z", source="manual", tags=["x", "y,z"])
    row = fresh(render_line(record).encode())
    assert row
    assert row.record() == record
