"""Merging what earlier merges left in versions: the result is whole, the same for all, and nobody's text is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import reduce
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import Run
from memlane import Bank
from memlane.core.alternatives import MARK, broken, read, written
from memlane.core.front_matter import find_front, load_front
from memlane.core.three_way import merged, merged_cleanly
from memlane.history.merge import merge
from memlane.lanes.merging import document as note
from memlane.lanes.records.record import content_hash
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.merging import topic
from samples import tries

HEAD = re.compile(r"\*\*Version ([0-9]+) of ([0-9]+)\*\* <!-- memlane:versions -->")
END = (f"{MARK} end -->", f"{MARK} end again -->")
Item = str | list[str]  # a line, or the versions of something


def items_of(text: str) -> list[Item]:
    """A text as a person reads it. Fails where versions are not 1 of n to n of n, or stand in one another."""
    items: list[Item] = []
    inside: list[list[str]] = []
    size = 0
    for line in text.split("\n"):
        if head := HEAD.fullmatch(line):
            inside.append([])
            size = int(head[2]) if len(inside) == 1 else size
            assert (int(head[1]), int(head[2])) == (len(inside), size), text
        elif line in END:
            assert len(inside) == size > 1, text
            versions = ["\n".join(lines).strip("\n") for lines in inside]
            assert len({*versions, ""}) == size + 1, text
            items.append(versions)
            inside = []
        else:
            assert MARK not in line, text
            (inside[-1] if inside else items).append(line)
    assert not inside, text
    return items


def text_with(items: list[Item], end: str = END[0]) -> str:
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines += item.split("\n")
        else:
            for number, version in enumerate(item, 1):
                lines += [f"**Version {number} of {len(item)}** {MARK} -->", "", *version.split("\n"), ""]
            lines.append(end)
    return "\n".join(lines)


def versions(*texts: str, end: str = END[0]) -> str:
    return text_with([[*texts]], end) + "\n"


def both_ways(base: str, ours: str, theirs: str) -> str:
    text = merged(base, ours, theirs)
    assert text == merged(base, theirs, ours)
    return text


PQ = versions("P", "Q")
older = f"{MARK}: two branches changed this entry; keep one of the two and delete this line -->"


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        (PQ, "P\n", PQ, "P\n"),  # settled, and the other left it alone
        (PQ, "new\n", PQ, "new\n"),
        (PQ, "P\n", "P\n", "P\n"),
        (PQ, "P\n", "S\n", versions("P", "S")),  # settled, and the other wrote something else
        (PQ, "P\n", "Q\n", versions("P", "Q", end=END[1])),  # settled in two ways: undecided again
        (versions("P", "Q", end=END[1]), "P\n", "Q\n", PQ),
        (PQ, "S\n", "T\n", versions("S", "T")),
        (PQ, "P\n", versions("P", "Q", "R"), versions("P", "R")),  # settled between two; the third is new
        (PQ, versions("P", "Q", "R"), versions("P", "Q", "S"), versions("P", "Q", "R", "S")),
        (PQ, versions("P", "Q2"), "S\n", versions("P", "Q2", "S")),  # one version was changed inside the marks
        (PQ, "", "S\n", "S\n"),  # a change beats a deletion
        (PQ, "", PQ, ""),
        ("b\n", PQ, "R\n", versions("P", "Q", "R")),
        ("b\n", PQ, "P\n", PQ),
        ("b\n", PQ, versions("Q", "R"), versions("P", "Q", "R")),
        ("", PQ, versions("Q", "R"), versions("P", "Q", "R")),
        ("a\n", f"a\n\n{PQ}", f"a\n\n{versions('Q', 'R')}", f"a\n\n{versions('P', 'Q', 'R')}"),  # both new here
        ("a\n", f"a\n\n{PQ}", "a\n\nP\n", f"a\n\n{PQ}"),
        (f"a\n\n{PQ}\nc\n", "a\n\nP\n\nc\n", f"A\n\n{PQ}\nC\n", "A\n\nP\n\nC\n"),  # changes around it
        (f"a\n\n{PQ}\nc\n", "A\n\nP\n\nc\n", "a\n\nS\n\nC\n", f"A\n\n{versions('P', 'S')}\nC\n"),
        (f"a\n{PQ}c\n", "A\nP\nc\n", "a\nS\nc\n", versions("A\nP", "a\nS") + "c\n"),  # no empty line between them
        (f"{PQ}\nx\n\n{versions('X', 'Y')}", f"P\n\nx\n\n{versions('X', 'Y')}", f"{PQ}\nx\n\nY\n", "P\n\nx\n\nY\n"),
        (f"{PQ}\nx\n", "P\n\nx\n", f"{PQ}\nnew\n\nx\n", "P\n\nnew\n\nx\n"),
        (PQ.replace("\n", "\r\n"), "P\r\n", "S\r\n", versions("P", "S").replace("\n", "\r\n")),
    ],
)
def test_versions_are_merged_as_one_value(base: str, ours: str, theirs: str, expected: str) -> None:
    assert both_ways(base, ours, theirs) == expected


def test_what_was_settled_on_one_side_is_no_clash() -> None:
    assert merged_cleanly(PQ, "P\n", PQ) == "P\n"
    assert merged_cleanly(f"{PQ}\nx\n", "P\n\nx\n", f"{PQ}\ny\n") == "P\n\ny\n"
    assert merged_cleanly(PQ, "P\n", "S\n") is None


def test_a_block_that_an_older_merge_left_inside_another_becomes_versions_of_it() -> None:
    nested = text_with([["P", "x\n\n" + versions("Q", "R").strip("\n") + "\n\ny"]]) + "\n"
    assert both_ways("b\n", nested, "S\n") == versions("P", "S", "x\n\nQ\n\ny", "x\n\nR\n\ny")


@pytest.mark.parametrize(
    "damaged",
    [
        PQ.replace(f"{END[0]}\n", ""),
        PQ.replace(f"**Version 1 of 2** {MARK} -->\n", ""),
        PQ.replace(f"**Version 2 of 2** {MARK} -->\n", ""),
        PQ.replace("1 of 2", "1 of 3"),
        f"P\n{END[0]}\n{PQ}",
        f"**Version 1 of 2** {MARK} -->\n\n{PQ}",
        f"{older}\nP\nQ\n",
    ],
)
def test_a_damaged_block_is_named_and_its_lines_are_lines(damaged: str, tmp_path: Path) -> None:
    assert broken(damaged)
    assert "\n".join(written(read(damaged.split("\n")))) == damaged
    assert both_ways(damaged + "\nend\n", damaged + "\nnew\n", "begin\n\n" + damaged + "\nend\n") == (
        "begin\n\n" + damaged + "\nnew\n"
    )
    clash = both_ways("b\n", damaged, "S\n")
    assert {"P", "Q", "S"} <= set(clash.split("\n"))
    assert ["S" in item for item in items_of(clash.replace(older, "")) if isinstance(item, list)] == [True]
    bank = Bank.init(tmp_path)
    (bank.root / "a.md").write_text(damaged)
    assert [problem.why for problem in bank.problems()] == [
        "has memlane:versions lines that do not belong together; keep what is right and delete those lines"
    ]
    assert {"P", "Q"} <= set(bank.get("notes:a").text.split("\n"))


@pytest.mark.parametrize(
    "made",
    [
        f"**Version 1 of 2** {MARK} -->\n" * 10_000,
        f"**Version 1 of 2** {MARK} -->\n" * 5_000 + f"{END[0]}\n" * 5_000,
        f"**Version 1 of 2** {MARK} -->\na\n**Version 2 of 2** {MARK} -->\nb\n" * 2_500 + f"{END[0]}\n" * 2_500,
        text_with([["a", "line\n" * 5_000 + versions(*map(str, range(5_000)))]]),
    ],
)
def test_marks_that_were_made_to_keep_a_reader_busy_do_not(made: str) -> None:
    text = both_ways(f"{made}\nx\n", f"{made}\nx\nmine\n", f"yours\n{made}\nx\n")
    lost = {line for line in made.split("\n") if MARK not in line} - set(text.split("\n"))
    assert (text[:6], text[-5:], lost) == ("yours\n", "mine\n", set())


@pytest.mark.parametrize(("count", "word"), [(2, "two"), (3, "three"), (5, "5")])
def test_a_memory_in_versions_says_how_many(count: int, word: str, tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    (bank.root / "a.md").write_text(versions(*"PQRST"[:count]))
    why = f"has {word} versions of a text, of different branches or members; keep what is right and delete the"
    assert [problem.why for problem in bank.problems()] == [f"{why} memlane:versions lines"]
    bank.update("notes:a", text="P")
    assert bank.problems() == []


def test_a_review_lists_what_is_in_versions_until_it_is_settled(run: Run) -> None:
    run("init")
    run("add", versions("P", "Q"), "--title", "Day")
    listed = run("review", "--only", "versions")
    assert listed.out == (
        "1\tversions\tlook at\tnotes:day\thas two versions of a text, of different branches or members; "
        "keep what is right and delete the memlane:versions lines\tmemlane review --show --only versions notes:day\n"
    )
    assert run("review", "--show", "--only", "versions", "notes:day").err == "next: memlane edit notes:day\n"
    run("edit", "notes:day", "P")
    assert run("review", "--only", "versions").out == ""


# -- the order of merges does not matter

VERSIONS = ["P", "Q", "two\nlines"]
side_of_a_clash = st.one_of(
    st.sampled_from(VERSIONS[:2]).map(lambda text: f"{text}\n"),  # settled
    st.sampled_from(["S", "T", "U\n\nV"]).map(lambda text: f"{text}\n"),  # written anew
    st.sampled_from("XY").map(lambda text: versions("P", text)),  # a version was changed inside the marks
    st.sampled_from("GH").map(lambda text: merged("b\n", versions("P", "Q"), f"{text}\n")),  # merged with another
    st.sampled_from(["", PQ]),  # deleted, left alone
)


@given(st.sampled_from([PQ, versions("P", "Q", end=END[1])]), st.lists(side_of_a_clash, min_size=3, max_size=4))
@example(
    versions("P", "Q", end=END[1]), ["P\n", versions("G", "P", "Q"), ""]
)  # a text alone does not say that it clashed again
def test_any_number_of_sides_of_a_clash_come_together_in_any_order(base: str, sides: list[str]) -> None:
    sides = [side.replace(END[0], base.split("\n")[-2]) for side in sides]
    results = {reduce(lambda one, two: whole(base, one, two), order) for order in permutations(sides)}
    assert len(results) == 1
    items_of(results.pop())


def whole(base: str, ours: str, theirs: str) -> str:
    """As git does it, which asks nobody where only one side changed something."""
    return ours if theirs in (base, ours) else theirs if ours == base else merged(base, ours, theirs)


def test_a_field_that_several_sides_settled_comes_together_in_any_order() -> None:
    start, *firsts = (page(title=title) for title in ("b", "P", "Q"))
    base = note(start, *firsts)
    sides = [page(title=title) for title in "PQST"]
    for count in (2, 3, 4):
        results = {reduce(lambda one, two: whole_note(base, one, two), order) for order in permutations(sides, count)}
        by_titles = {}
        for result in results:
            values = load_front(result.split("---")[1])
            titles = frozenset([values["title"], *values["conflicts"]["title"]])
            assert len(titles) == count
            by_titles.setdefault(titles, set()).add(result)
        assert {len(found) for found in by_titles.values()} == {1}


def whole_note(base: str, ours: str, theirs: str) -> str:
    return ours if theirs in (base, ours) else theirs if ours == base else note(base, ours, theirs)


def page(body: str = "Text.\n", **front: Any) -> str:
    rows = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
    return f"---\n{rows}---\n\n{body}"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"title": "P"}, {"title": "Q", "conflicts": {"title": ["P"]}}, {"title": "P"}),  # settled
        ({"title": "new"}, {"title": "Q", "conflicts": {"title": ["P"]}}, {"title": "new"}),
        ({"title": "P"}, {"title": "S"}, {"title": "S", "conflicts": {"title": ["P"]}}),
        ({"title": "P"}, {"title": "Q"}, {"title": "Q", "conflicts": {"title": ["P", "Q"]}}),  # undecided again
        (
            {"title": "P"},
            {"title": "R", "conflicts": {"title": ["P", "Q"]}},
            {"title": "R", "conflicts": {"title": ["P"]}},
        ),
        ({"title": "P"}, {"title": "Q", "conflicts": {"title": ["P"]}, "type": "x"}, {"title": "P", "type": "x"}),
    ],
)
def test_values_that_clashed_are_merged_as_one(
    ours: dict[str, Any], theirs: dict[str, Any], expected: dict[str, Any]
) -> None:
    base = page(title="Q", conflicts={"title": ["P"]})
    text = note(base, page(**ours), page(**theirs))
    assert text == note(base, page(**theirs), page(**ours))
    assert load_front(text.split("---")[1]) == expected


def test_an_entry_that_three_sides_changed_has_three_versions() -> None:
    old, one, two, three = (f"## 2025-01-01: A\n**Problem:** {text}\n---\n" for text in ("old", "one", "two", "three"))
    texts = {topic(old, topic(old, x, y), z) for x, y, z in permutations((one, two, three))}
    body = versions("**Problem:** one", "**Problem:** three", "**Problem:** two")
    assert texts == {f"## 2025-01-01: A\n{body}---\n"}


# -- five clones, any sequence of writing, settling and merging


class Commit:
    """What a clone has, and where it came from."""

    def __init__(self, data: str, *parents: Commit) -> None:
        self.data = data
        self.before: frozenset[Commit] = frozenset({self}).union(*(parent.before for parent in parents))


def together(one: Commit, two: Commit, merge: Callable[[str, str, str], str]) -> Commit:
    """As git does it: from the last that both have in common, or from those, merged."""
    if one in two.before or two in one.before:
        return two if one in two.before else one
    common = one.before & two.before
    last = [commit for commit in common if not any(commit in other.before - {other} for other in common)]
    last.sort(key=lambda commit: (len(commit.before), commit.data))
    base = reduce(lambda x, y: together(x, y, merge), last)
    return Commit(merge(base.data, one.data, two.data), one, two)


WRITE = ["settle", "settle", "rewrite", "rewrite", "version", "delete", "above", "below", "line", "field", "unfield"]
steps = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(WRITE + ["pull"] * 8), st.integers(0, 11)), min_size=5, max_size=30
)


def changed(body: str, verb: str, number: int, word: str) -> str:
    """A body after a person's change to one line or clash of it."""
    items = items_of(body)
    filled = [at for at, item in enumerate(items) if item]
    if not filled:
        return f"{word}\n"
    at = filled[number % len(filled)]
    clashes = [place for place in filled if isinstance(items[place], list)]
    if clashes and verb in ("settle", "version"):
        at = clashes[number % len(clashes)]
    item = items[at]
    if isinstance(item, list) and verb == "settle":
        items[at] = item[number % len(item)]
    elif isinstance(item, list) and verb == "version":
        items[at] = [*item[1:], word]
    elif verb == "delete":
        del items[at]
    elif verb == "above":
        items[at:at] = [word, ""]
    elif verb == "below":
        items[at + 1 : at + 1] = ["", word]
    elif verb == "line" and isinstance(item, str):
        items[at] = f"{item}\n{word}"
    else:
        items[at] = word
    return text_with(items, END[1] if END[1] in body else END[0])


def changed_vault(data: str, verb: str, number: int, word: str) -> str:
    """A vault with one more line. The clock is wrong at times."""
    rows = [json.loads(row) for row in data.splitlines()]
    ids = sorted({row["id"] for row in rows})
    latest = max((row for row in rows if row["id"] == ids[number % len(ids)]), key=lambda row: row["version"])
    at = f"2025-01-01T00:{number:02}:{int(word[1:]) if number % 3 else 0:02}Z"
    new = {**latest, "version": latest["version"] + 1, "updated_at": at, "text": word, "deleted_at": None}
    if verb in ("above", "below"):
        new = {"id": word, "version": 1, "created_at": at, "text": word}
    elif verb == "delete":
        new |= {"text": latest["text"], "deleted_at": at}
    return data + json.dumps(new, separators=(",", ":")) + "\n"


def changed_file(format: str, data: str, verb: str, number: int, word: str) -> str:
    if format == "vault":
        return changed_vault(data, verb, number, word)
    if format == "topic":
        raw = text_of.split(data).raws[0].rstrip("\n")
        top, body = raw.removesuffix("---").split("\n", 1)
        return f"{top}\n{changed(body, verb, number, word).strip(chr(10))}\n---\n"
    front = find_front(data)
    values = load_front(data[front.start : front.end]) if front else {}
    body = data[front.body :] if front else data
    if format == "layer":
        body = data.split("\n\n", 1)[1]
        return f"<!-- Last Updated: 2025-01-{number + 10} -->\n\n{changed(body, verb, number, word)}"
    if verb == "field":
        values["title"] = word
    elif verb == "unfield":
        values.pop("conflicts", None)
    else:
        body = changed(body, verb, number, word)
    if "content_hash" in values:
        values["content_hash"] = content_hash(body)
    return page(body, **values)


TEXT = "Deploys go out on Mondays.\n"
STARTS = {
    "note": page(TEXT, title="Deploys", tags=["a"]),
    "record": page(TEXT, id="x", title="D", content_hash=content_hash(TEXT)),
    "layer": "<!-- Last Updated: 2025-01-01 -->\n\nDeploys go out on Mondays.\n\nMore.\n",
    "topic": "## 2025-01-01: Deploys\n**Context:** c\n**Problem:** Deploys go out on Mondays.\n---\n",
    "vault": json.dumps(
        {"id": "a", "version": 1, "created_at": "2025-01-01T00:00:00Z", "text": "Mondays"}, separators=(",", ":")
    )
    + "\n",
}


def unmarked(text: str) -> set[str]:
    """Versions that also stand outside of the marks."""
    items = items_of(text)
    outside = "\n".join(["", *(item if isinstance(item, str) else MARK for item in items), ""])
    return {version for item in items if isinstance(item, list) for version in item if f"\n{version}\n" in outside}


def words_in(text: str) -> set[str]:
    return set(re.findall(r"\bw[0-9]+\b", text))


@pytest.mark.parametrize("format", list(STARTS))
@given(steps)
@settings(max_examples=tries(20, 200))
def test_clones_that_write_settle_and_merge_in_any_sequence_end_up_the_same(
    format: str, steps: list[tuple[int, str, int]]
) -> None:
    def merge_checked(base: str, ours: str, theirs: str) -> str:
        sides = [side.encode() for side in (base, ours, theirs)]
        text = merge(format, *sides).decode()
        assert text == merge(format, sides[0], sides[2], sides[1]).decode()
        assert unmarked(text) <= unmarked(ours) | unmarked(theirs)
        new = (words_in(ours) | words_in(theirs)) - words_in(base)
        assert new <= words_in(text)
        assert merge(format, sides[1], text.encode(), sides[1]).decode() == text
        return text

    clones = [Commit(STARTS[format])] * 5
    for count, (number, verb, choice) in enumerate(steps):
        if verb == "pull":
            clones[number] = together(clones[number], clones[choice % 5], merge_checked)
        else:
            text = changed_file(format, clones[number].data, verb, choice, f"w{count}")
            clones[number] = Commit(text, clones[number])
    for _ in range(2):
        for number in range(5):
            for other in range(number + 1, number + 5):
                clones[number] = together(clones[number], clones[other % 5], merge_checked)
    assert len({clone.data for clone in clones}) == 1


@given(st.lists(st.tuples(st.sampled_from(["rewrite", "delete", "above"]), st.integers(0, 11)), min_size=3, max_size=4))
@settings(max_examples=tries(20, 200))
def test_any_number_of_sides_of_a_vault_come_together_in_any_order(steps: list[tuple[str, int]]) -> None:
    base = STARTS["vault"]
    sides = [changed_vault(base, *step, f"w{number}") for number, step in enumerate(steps)]

    def both(one: str, two: str) -> str:
        return merge("vault", base.encode(), one.encode(), two.encode()).decode()

    assert len({reduce(both, order) for order in permutations(sides)}) == 1
