"""Layers pass the gate: secrets are refused, and changes are remarked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conftest import tree
from layer_samples import PROFILE, STAMP, entry, memories
from layer_samples import clock as clock
from layer_samples import store as store
from memlane.core.errors import Refused
from memlane.core.model import Draft, Memory
from memlane.lanes.layers.store import MemoryStore

SECRET = "AKIA" + "Q3EGRIBPZ7VSVGX2"


@pytest.mark.parametrize(
    "call",
    [
        lambda store, text: store.create(entry("agent/a/new", text)),
        lambda store, text: store.upsert("agent/a/new", text),
        lambda store, text: store.update(PROFILE, text),
        lambda store, text: store.append(PROFILE, text),
        lambda store, text: store.put(Draft(text, fields={"project": "p", "file_type": "x"})),
        lambda store, text: store.revise(PROFILE, {"text": text}),
        lambda store, text: store.extend(PROFILE, text),
    ],
)
def test_a_secret_is_refused_and_leaves_no_trace(store: MemoryStore, call: Callable[..., Any]) -> None:
    """S004-60: every way of writing passes the gate."""
    store.create(entry(PROFILE))
    before = tree(store.root)
    with pytest.raises(Refused) as caught:
        call(store, f"aws_access_key_id = {SECRET}")
    assert SECRET not in str(caught.value) + caught.value.hint
    assert tree(store.root) == before


def test_what_the_gate_returns_is_stored(store: MemoryStore) -> None:
    """S004-60: invisible characters are taken out."""
    store.create(entry(PROFILE, "a\u200bb"))
    assert memories(store) == {"projects/my-api/project_profile.md": (STAMP + "ab").encode()}


REMARK = "1 invisible or control characters were removed"


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.put(Draft("a\u200bb", fields={"project": "p", "file_type": "x"})),
        lambda store: store.revise(PROFILE, {"text": "a\u200bb"}),
        lambda store: store.extend(PROFILE, "a\u200bb"),
    ],
)
def test_what_the_gate_changed_is_remarked(store: MemoryStore, call: Callable[..., Memory]) -> None:
    """S004-60"""
    store.create(entry(PROFILE))
    assert call(store).remarks == (REMARK,)


def test_what_the_gate_changed_is_a_warning_of_update_and_append(store: MemoryStore) -> None:
    """S004-22, S004-26: the seed's answers have room for it, beside the size."""
    store.create(entry(PROFILE))
    assert store.update(PROFILE, "a\u200bb")["warning"] == REMARK
    assert store.append(PROFILE, "a\u200bb")["warning"] == REMARK
    assert store.update(PROFILE, "\u200bx\n" * 500)["warning"] == (
        "500 invisible or control characters were removed; 502 lines, over 500: Split into focused sub-files."
    )
