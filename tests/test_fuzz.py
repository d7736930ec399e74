"""No text crashes a parser, and none keeps it busy: what takes four times the text takes about four times the time.

MEMLANE_FUZZ=1 looks for new examples (`make fuzz`). The parsers and the hostile texts are those of hostile_texts.py.
"""

from __future__ import annotations

import base64
import json
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from conftest import trusted
from hostile_texts import HOSTILE, PARSERS, cpu
from memlane import Bank, ConfigError, InvalidInput, Refused
from memlane.care.fresh import symbols
from memlane.core.front_matter import FrontMatterError, edit_front
from memlane.core.toml import load_toml
from memlane.gate.secrets import check_pii
from memlane.surfaces.clients import toml
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.mcp.tools import _listed

EXAMPLES = 3000 if "MEMLANE_FUZZ" in os.environ else 40

# Pieces that mean something to one parser or another; the rest is any text.
PIECES = st.sampled_from(
    [
        *(make(24) for make in HOSTILE.values()),
        "---\n", "---", "...\n", "\n", "\r\n", " ", "\t", "# ", "## ", "### ", "- `a.md` - b", "```\n", "~~~\n", "`",
        "title: a\n", "tags: [a, b]\n", "created_at: 2025-01-10\n", "? ", "&a ", "*a ", "!!int ", "<<: ", "| ", "> ",
        "## 2025-01-10 - Title\n", "**Problem:** ", "**Solution:** ", "*Last Updated: 2025-01-10*\n",
        "## Issue #1 - 2020-01-01\n", "**Status**: Resolved\n", "[[a]]", "[[a|b]]", "[[src/a.py:main]]", "[[", "]]",
        '{"id":"a","text":"b","version":1}\n', '{"type":"assistant","message":{"content":"a\\nb"}}\n', '"', "'", "\\",
        '{"role":"assistant","content":"x"}', "{", "}", "[", "]", ",", ":", "null", "1e999", "-0", "\\ud800", "\\u0000",
        '"key":', '{"id":"a","target":"b","blob":"c","at":"d"}\n', "[memory]\n", "enabled = true\n", "a.b = 1\n", '"""',
        "<!-- memlane:start -->\n", "<!-- memlane:end -->\n", "<<<<<<< a\n", "=======\n", ">>>>>>> b\n",
        "password = ", "token: ", "Bearer ", "eyJhbGciOiJub25lIn0.", "4111 1111 1111 1111", "def main():\n",
        "func main() {\n", "class A {", "=> ", "`${", "/*", "*/", "//", '"phrase"', " -word", "last week ",
        "topic:a ", "\ufeff", "\u2028",
        "\x85", "\ud800", "\0", "é", "e\u0301", "記憶", "👩‍👩‍👧",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=25).map("".join),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map("".join),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps),
)


@settings(max_examples=EXAMPLES)
@given(text=TEXTS)
def test_no_text_crashes_a_parser(text: str) -> None:
    """`cpu` raises what is no error of memlane's own. A text takes longer to make than to read: all read the same."""
    for name, parser in PARSERS.items():
        note(name)
        cpu(parser, text)


@cache
def hostile() -> dict[str, tuple[str, str]]:
    return {what: (make(8_000), make(2_000)) for what, make in HOSTILE.items()}


@pytest.mark.parametrize("name", PARSERS)
def test_hostile_texts_take_time_in_proportion(name: str) -> None:
    """Growth, not seconds: 8,000 characters against 2,000. What takes less than 5 ms is beyond suspicion."""
    parser = PARSERS[name]
    slow = {}
    for what, (large, small) in hostile().items():
        if cpu(parser, large) > 0.005:
            ratios = (cpu(parser, large, times) / max(cpu(parser, small, times), 0.0005) for times in (1, 3, 9))
            if all(ratio > 8 for ratio in ratios):
                slow[what] = cpu(parser, large)
    assert slow == {}


# -- what was found


@pytest.mark.parametrize("front", ["~", "null", "{a: 1}"])
def test_front_matter_that_cannot_be_edited_says_so(front: str) -> None:
    with pytest.raises(FrontMatterError, match="cannot be edited key by key"):
        edit_front(f"---\n{front}\n---\nbody\n", {"tags": ["a"], "title": "b"})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("a = " + "[" * 5000, "it is nested too deeply"),
        ("a" + ".a" * 5000 + " = 1", "a line has more than 1,000 dots"),
        ("#" * 300_000, "it is larger than 256 KiB"),
    ],
)
def test_toml_that_is_made_to_hurt_is_an_error(source: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        load_toml(source)
    with pytest.raises(Damaged):
        toml.value(source)
    (tmp_path / "memlane.toml").write_text(source)
    trusted(tmp_path / "memlane.toml")
    with pytest.raises(ConfigError):
        Bank.open(tmp_path)


def test_many_tables_are_read_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's head is judged by what stands since the last one, not by all the text above it."""
    read: list[int] = []

    def counted(source: str) -> object:
        read.append(len(source))
        return load_toml(source)

    monkeypatch.setattr(toml, "load_toml", counted)
    text = "".join(f"[a.b{n}]\nx = 1\n" for n in range(500)) + "[mcp_servers.memlane]\n"
    toml.drop(text, ["mcp_servers", "memlane"])
    assert sum(read) < 6 * len(text)


def test_a_token_with_a_deep_header_is_no_crash() -> None:
    head = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 2500).decode().rstrip("=")
    assert check_pii(f"{head}.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXRoYXQtaXMtbm9uZQ") == []


def test_deep_lists_as_arguments_are_words() -> None:
    deep = "[" * 5000
    assert _listed(deep) == [deep]


def test_a_deep_payload_is_refused_by_the_hook() -> None:
    from memlane.surfaces.hook import _request

    with pytest.raises(InvalidInput, match="not JSON"):
        _request(["claude-code"], b"[" * 50_000)


def test_empty_lines_before_code_are_looked_at_once() -> None:
    found = symbols.find(".js", "\n" * 20_000 + "function main() {\n  return 1\n}\n", "main")
    assert found == "function main() {\n  return 1\n}"


def test_a_hostile_text_is_stored_or_refused_whole(tmp_path: Path) -> None:
    """What a parser survives, a bank does: every text is stored and read back, or refused by name."""
    with Bank.init(tmp_path) as bank:
        for what, make in HOSTILE.items():
            text = make(3000)
            try:
                memory = bank.add(text, title=what)
            except (Refused, InvalidInput):
                continue
            assert bank.get(memory.id).text.strip() == bank.check(text).text.strip(), what
        assert bank.problems() == []
        bank.search("a")
