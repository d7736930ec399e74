"""A text that says the same over and over is judged once, and what was found is found at every place."""

from __future__ import annotations

from memlane.gate.secrets import scan
from memlane.gate.secrets.repeats import Repeats

VALUE = "kT7" + "pQ9z" + "Lm4x"


def test_a_place_is_known_only_where_all_of_the_text_around_it_is_the_same() -> None:
    text = "0123456789\n" * 100
    repeats: Repeats[str] = Repeats(text[:550] + "x" + text[551:], back=40, ahead=80)
    repeats.note(33, "too near to the beginning")
    repeats.note(110, "found")
    places = (33, 55, 220, 462, 473, 583, 594, 1012, 1023)
    assert [repeats.at(place) for place in places] == [
        None, "found", "found", "found", None, None, "found", "found", None,
    ]  # fmt: skip


def test_no_more_than_a_thousand_places_are_kept() -> None:
    text = "".join(f"{number:08} and some more of it\n" for number in range(2000)) * 2
    repeats: Repeats[int] = Repeats(text, back=10, ahead=20)
    for number in range(1, 1002):
        repeats.note(29 * number + 8, number)
    assert [repeats.at(58000 + 29 * number + 8) for number in (1, 1000, 1001)] == [None, None, 1001]


def test_every_line_of_a_text_that_repeats_itself_has_its_finding() -> None:
    text = f"login of the db, password: {VALUE}\n" * 200
    assert [(found.line, found.column) for found in scan(text)] == [(line, 28) for line in range(1, 201)]


def test_a_line_that_differs_among_the_same_ones_is_judged_by_itself() -> None:
    lines = ["the password: ask the others for it", *["password: <yours>"] * 300]
    lines[150] = f"password: {VALUE}"
    assert [(found.line, found.column) for found in scan("\n".join(lines))] == [(151, 11)]


def test_keys_after_the_same_words_are_all_found() -> None:
    text = f"the stripe secret key {VALUE * 2} is in use\n" * 200
    assert [found.line for found in scan(text)] == list(range(1, 201))
