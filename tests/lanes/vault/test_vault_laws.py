"""Laws of the vault that hold for any input."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memlane.lanes.vault.record import Record, parse_line, render_line
from memlane.lanes.vault.store import MemoryVault
from samples import tries

plain = st.text(st.characters(codec="utf-8"), max_size=30)
some = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | plain, lambda inner: st.lists(inner, max_size=3))
records = st.builds(
    Record,
    id=some,
    text=some,
    scope=some.map(str.lower),
    category=some,
    tier=some.map(str.lower),
    topic_id=st.none() | some,
    tags=st.lists(plain, max_size=3),
    created_at=plain,
    updated_at=st.none() | some,
    source=st.none() | plain,
    deleted_at=st.none() | some,
    version=st.integers(1, 10**6),
    extra=st.dictionaries(plain.filter(lambda key: key not in Record.__slots__), json_values, max_size=3),
)


@given(records)
def test_a_rendered_record_is_parsed_back(record: Record) -> None:
    line = render_line(record)
    assert "\n" not in line
    assert parse_line(line) == record


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=5))
@settings(max_examples=tries(25, 250))
def test_no_damage_hides_a_record(tmp_path: Path, damage: list[bytes]) -> None:
    path = tmp_path / "vault.jsonl"
    good = render_line(Record("good", "a good line")).encode()
    path.write_bytes(b"\n".join([*damage, good, *damage, b""]))
    vault = MemoryVault(path)
    assert [record.id for record in vault.recall_memories()] == ["good"]
    vault.compact()
    assert [record.id for record in vault.recall_memories()] == ["good"]
    for leftover in tmp_path.iterdir():
        leftover.unlink()
