"""The fields of memories in the index, a row for each value: so `where` reads no file and no memory. Light: no NumPy.

What a condition means is said in `memlane.core.where`; here it is asked in SQL.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime

from memlane.core.model import Memory
from memlane.core.values import NamedTuple
from memlane.core.where import NULL, Condition, Value, Where, is_text, values_of
from memlane.index.rows import in_thread, marks

_SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class Asked(NamedTuple):
    """What is asked of a memory beyond its labels: its fields, and the conversation that it belongs to. With `expired`,
    what has expired counts, too.
    """

    where: Where = ()
    thread: str | None = None
    expired: bool = False


NOTHING = Asked()


def over(db: sqlite3.Connection, now: datetime) -> list[int]:
    """The numbers of the memories that have expired by now."""
    return [n for (n,) in db.execute("SELECT memory FROM expiring WHERE at <= ?", (now.timestamp(),))]


def numbers(db: sqlite3.Connection, asked: Asked) -> list[int] | None:
    """The numbers of the memories that have what is asked; None for all."""
    found = list(clauses(asked.where))
    if asked.thread is not None:
        found.append(("thread = ?", (in_thread(asked.thread),)))
    if not found:
        return None
    query = f"SELECT n FROM memories WHERE {' AND '.join(clause for clause, _ in found)}"  # noqa: S608 - marks
    return [n for (n,) in db.execute(query, [value for _, values in found for value in values])]


def add(db: sqlite3.Connection, n: int | None, memory: Memory) -> None:
    """Write the fields of the memory with this number."""
    rows = [(key, value, n) for key, value in values_of(memory.fields)] if memory.fields else []
    db.executemany("INSERT OR IGNORE INTO fields VALUES (?, ?, ?)", rows)
    if end := memory.expires:
        db.execute("INSERT INTO expiring VALUES (?, ?)", (end.timestamp(), n))


def forget(db: sqlite3.Connection, n: int) -> None:
    """Delete the fields of the memory with this number, which is still there: its own JSON says which they are."""
    for (data,) in db.execute("SELECT data FROM shapes WHERE n = ?", (n,)).fetchall():
        rows = [(key, value, n) for key, value in values_of(json.loads(data)["fields"])]
        db.executemany("DELETE FROM fields WHERE key = ? AND value = ? AND memory = ?", rows)
        if any(key == "expires" for key, _, _ in rows):
            db.execute("DELETE FROM expiring WHERE memory = ?", (n,))


def clauses(where: Where, number: str = "n") -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Conditions on the column with a memory's number, each with its values."""
    for condition in where:
        key, operator = condition.key, condition.operator
        rows, values = _rows(condition)
        having, wanted = f"{number} IN (SELECT memory FROM fields WHERE key = ?{rows})", (key, *values)  # noqa: S608 - marks
        if operator != "$exists" and NULL in values:  # what is not there is equal to null
            having += f" OR {number} NOT IN (SELECT memory FROM fields WHERE key = ?)"  # noqa: S608 - fixed
            wanted += (key,)
        absent = operator == "$ne" or (operator == "$exists" and not condition.values)
        yield f"{'NOT ' if absent else ''}({having})", wanted


def _rows(condition: Condition) -> tuple[str, tuple[Value, ...]]:
    """Which rows of a key have a value that is asked for."""
    if condition.operator == "$exists":
        return "", ()
    if sign := _SIGNS.get(condition.operator):
        # SQLite has numbers before text, and text before anything else
        [bound] = condition.values
        return f" AND value {sign} ? AND {_KIND[is_text(bound)]}", condition.values
    return f" AND value IN ({marks(condition.values)})", condition.values


_KIND = {True: "value >= '' AND value < x''", False: "value < ''"}
