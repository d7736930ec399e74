"""Filters on the fields of a memory: where={"user.level": {"$gte": 3}, "topic": "x"}. No I/O.

A key is the name of a field; a dot leads into a mapping. Its value is one to be equal to, or operators and their
values. A list in a field stands for each of its items, and for itself as a whole. Numbers are compared with numbers,
text with text; a date is the text that a file has for it. A field that is not there is equal to None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from memlane.core.errors import InvalidInput
from memlane.core.model import plain
from memlane.core.values import NamedTuple

Value = int | float | str | bytes  # a field's as it is compared; bytes are the JSON of what is no number and no text
_RANGES: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS = ("$eq", "$ne", *_RANGES, "$in", "$exists")
NULL = b"null"
_INTEGERS = range(-(2**63), 2**63)  # what a column of the index can hold
# What every memory has is no field, and is asked for in another way.
_FILTERS = {
    name: f"Use the filter {name}." for name in ("type", "status", "tags", "scope", "project", "thread", "lane")
}
_FILTERS |= {"created_at": "Use the filters since and until.", "title": "Search for its words."}


class Condition(NamedTuple):
    """What one operator asks of one field: one of these values; of `$exists`, whether it is there."""

    key: str
    operator: str
    values: tuple[Value, ...]

    def fits(self, found: list[Value]) -> bool:
        """Whether these values of the field will do."""
        if self.operator == "$exists":
            return bool(found) is bool(self.values)
        if self.operator in _RANGES:
            compare, [bound] = _RANGES[self.operator], self.values
            return any(
                is_text(value) is is_text(bound) and compare(value, bound) for value in found if comparable(value)
            )
        same = any(value in self.values for value in found or [NULL])
        return same is not (self.operator == "$ne")


Where = tuple[Condition, ...]


def where_given(where: Mapping[str, Any] | None) -> Where:
    """The conditions that a caller gave. Raises InvalidInput."""
    if where is None:
        return ()
    if not isinstance(where, Mapping) or not all(isinstance(key, str) and key for key in where):
        raise InvalidInput("where is not a mapping from names to values.", hint='Give where={"topic": "x"}.')
    for key in where:
        if key.startswith("$"):
            hint = 'An operator stands below a field: {"level": {"$gte": 3}}. All conditions must hold; there is no or.'
            raise InvalidInput("where has an operator in the place of a field.", hint=hint)
        if instead := _FILTERS.get(key):
            raise InvalidInput(f"{key} is not a field that where knows.", hint=instead)
    return tuple(_conditions("", where))


def _conditions(before: str, where: Mapping[str, Any]) -> Iterator[Condition]:
    for name, wanted in where.items():
        key = f"{before}{name}"
        if not isinstance(wanted, Mapping) or not wanted:
            yield Condition(key, "$eq", (_value(wanted),))
        elif any(str(inner).startswith("$") for inner in wanted):
            yield from (_condition(key, str(operator), value) for operator, value in wanted.items())
        else:
            yield from _conditions(f"{key}.", {str(inner): value for inner, value in wanted.items()})


def _condition(key: str, operator: str, value: Any) -> Condition:
    if operator not in OPERATORS:
        raise InvalidInput("where has an operator that there is not.", hint=f"Use one of: {', '.join(OPERATORS)}.")
    if operator == "$exists":
        if not isinstance(value, bool):
            raise InvalidInput("$exists is not True or False.", hint='Give {"$exists": True}.')
        return Condition(key, operator, (NULL,) if value else ())
    if operator == "$in":
        if not isinstance(value, list | tuple | set | frozenset):
            raise InvalidInput("$in is not a list.", hint='Give {"$in": ["x", "y"]}.')
        return Condition(key, operator, tuple(map(_value, value)))
    wanted = _value(value)
    if operator in _RANGES and not comparable(wanted):
        raise InvalidInput(f"{operator} compares numbers, text and dates.", hint='Give a value such as {"$gte": 3}.')
    return Condition(key, operator, (wanted,))


def fits_where(where: Where, fields: Mapping[str, Any]) -> bool:
    """Whether the fields of a memory meet all conditions."""
    found: dict[str, list[Value]] = {}
    for key, value in values_of(fields):
        found.setdefault(key, []).append(value)
    return all(condition.fits(found.get(condition.key, [])) for condition in where)


def values_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Every value that the fields of a memory have, under its dotted key; the same one may come twice."""
    for key, value in plain(fields).items():
        yield from _values(key, value)


def _values(key: str, value: Any) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _values(f"{key}.{name}", inner)
        return
    yield key, _compared(value)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield from _values(key, item)
        elif not isinstance(item, list):
            yield key, _compared(item)


def _value(value: Any) -> Value:
    return _compared(plain(value))


def _compared(value: Any) -> Value:
    """What a value that JSON has is compared as."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bool | int):
        return int(value) if value in _INTEGERS else str(value)
    return value if isinstance(value, float) else json.dumps(value, sort_keys=True, ensure_ascii=True).encode()


def comparable(value: Value) -> bool:
    """Whether one value can be more or less than another."""
    return not isinstance(value, bytes)


def is_text(value: Value) -> bool:
    return isinstance(value, str)
