"""How commands print results and take text.

stdout carries data, stderr carries talk. What somebody else wrote never steers a terminal: `main` runs a command inside
`safe_streams`, where everything that reaches a terminal, and all talk, shows control and invisible characters as
escapes, whoever prints it. Data in a pipe stays as it is. Colours and progress, which need control characters of our
own, pass by that filter through `echo` and `overwrite`.

Nor is a secret printed that got into a file by hand or by git: all that goes through the streams is `without_secrets`.
`print_json` looks at the values instead, and `print_text(…, as_it_is=True)` is for what was looked at before.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.invisible import escaped
from memlane.core.model import Memory, Plan, Problem
from memlane.core.values import NamedTuple
from memlane.gate import DEFAULT, Guard

if TYPE_CHECKING:
    from memlane.bank import Bank

T = TypeVar("T")
Row = Sequence[str]
LEAST = 24  # columns that a cell gets at least
PAGE = 1000  # rows that are laid out together
MANY = 100  # rows of a page that it is worth to note something about
BELOW = 4  # by so many columns, what does not fit into a line is indented below it
_guard: ContextVar[Guard] = ContextVar("guard", default=DEFAULT)  # of the bank that a command opened
_bank: ContextVar[Bank | None] = ContextVar("bank", default=None)  # in whose state it is noted what has no secrets


# -- what reaches a terminal


def guarded_by(guard: Guard, bank: Bank | None = None) -> None:
    """Let what a bank allows be printed from now on."""
    _guard.set(guard)
    _bank.set(bank)


def guards_of(bank: Bank) -> set[Guard]:
    """What the memories of a bank must not be printed with."""
    return {bank.guard, _guard.get()}


def without_secrets(value: T) -> T:
    """What is about to be printed, with secrets blanked; nearly always it is as it was."""
    from memlane.gate.outgoing import cleaned

    return cleaned(value, _guard.get())


def titled_lines(
    bank: Bank, memories: Iterable[Memory], cells: Callable[[Memory], Row], *, many: bool = False
) -> Iterator[str]:
    """Lines with the cells of memories, secrets blanked: also the piece of one that a title was cut in."""
    from memlane.recall import leaving, listing

    guards = listing.guards(bank)
    memories = iter(memories)
    apart = "many" if many else ""
    while page := list(islice(memories, PAGE)):
        lines = _lines(map(cells, page))
        firsts = [leaving.first_line(memory.text) for memory in page]  # that a title may be cut from
        beside = [
            "" if line.strip("#>*-+ \t") == memory.title else line for line, memory in zip(firsts, page, strict=True)
        ]
        for guard in {*guards.values(), _guard.get()}:
            own = [at for at, memory in enumerate(page) if guard in (guards[bool(memory.owner)], _guard.get())]
            clean = leaving.clean_lines(bank, guard, [lines[at] for at in own], [beside[at] for at in own], apart=apart)
            for at, line in zip(own, clean, strict=True):
                lines[at] = line
        yield from lines


def _lines(rows: Iterable[Row]) -> list[str]:
    """Rows as lines, with tabs between the cells, each of which is as `one_line` has it."""
    lines = ["\t".join([" ".join(str(cell).split()) for cell in row]) for row in rows]
    return escaped("\n".join(lines)).split("\n")


def _clean(lines: Sequence[str], again: bool) -> list[str]:
    """Lines with secrets blanked. Of many, and of those that may be printed `again`, it is noted that they have none:
    to load the rules takes longer than most commands."""
    bank = _bank.get()
    if bank is None or not (again or len(lines) >= MANY):
        return [without_secrets(line) for line in lines]
    from memlane.recall.leaving import clean_lines

    return clean_lines(bank, _guard.get(), lines)


class SafeStream(io.TextIOWrapper):
    """Standard output or error with control and invisible characters as escapes. `plain` is the same without them.

    What cannot be encoded, such as half a character, is escaped, too, instead of ending the command.
    """

    def __init__(self, stream: TextIO, *, always: bool) -> None:
        # click would replace a stream of ASCII by one of its own, without our filter
        encoding = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding
        super().__init__(stream.buffer, encoding, "backslashreplace", write_through=True)
        self.plain = io.TextIOWrapper(stream.buffer, encoding, "backslashreplace", write_through=True)
        self.filters = always or stream.isatty()

    def write(self, text: str) -> int:
        clean = without_secrets(text) if text else text  # click writes nothing to find out what kind of stream it is
        super().write(escaped(clean) if self.filters else clean)
        return len(text)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Filter what the body prints: always on stderr, on stdout when it is a terminal.

    The streams stay as they are after an unexpected error, whose traceback is still to be printed.
    """
    guarded_by(DEFAULT)
    before = sys.stdout, sys.stderr
    for stream in before:
        with suppress(AttributeError, OSError, ValueError):  # None or closed
            stream.flush()
    sys.stdout, sys.stderr = (
        SafeStream(stream, always=stream is before[1]) if hasattr(stream, "buffer") else stream for stream in before
    )
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        _restore(before)
        raise
    else:
        _restore(before)


def _restore(streams: tuple[TextIO, TextIO]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, SafeStream):
            with suppress(OSError, ValueError):
                stream.plain.detach()
                stream.detach()
    sys.stdout, sys.stderr = streams


def _plain(stream: TextIO) -> TextIO:
    """The stream without its filter, for text that was filtered piece by piece."""
    return stream.plain if isinstance(stream, SafeStream) else stream


class Styled(NamedTuple):
    """A piece of a line in colour, or bold."""

    text: str
    fg: str | None = None
    bold: bool = False


def echo(*pieces: str | Styled, err: bool = False, clean: bool = False) -> None:
    """Print a line of pieces, of which some are coloured on a terminal; `clean` has no secrets left in it."""
    line = "".join(
        click.style(escaped(piece.text), fg=piece.fg, bold=piece.bold or None)
        if isinstance(piece, Styled)
        else escaped(piece)
        for piece in pieces
    )
    line = line if clean else without_secrets(line)
    click.echo(line, file=_plain(sys.stderr if err else sys.stdout), color=colour())


def overwrite(text: str) -> None:
    """Print a text over the last line of stderr, which is a terminal; "" clears it."""
    click.echo(f"\r{escaped(text)}\x1b[K", file=_plain(sys.stderr), nl=False, color=True)


def colour() -> bool | None:
    """Whether to use colour, by NO_COLOR, FORCE_COLOR and TERM; None means: only on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def print_json(value: Any) -> None:
    """Print plain values, and others by their `to_dict()`, as JSON."""
    click.echo(to_json(value, indent=2), file=_plain(sys.stdout))


def print_list(bank: Bank, values: Iterable[Any]) -> None:
    """Print values as `print_json` does, a page at a time: however many they are."""
    from memlane.recall.leaving import each_without_secrets

    out, values, is_first = _plain(sys.stdout), iter(values), True
    while page := list(islice(values, PAGE)):
        clean = each_without_secrets(bank, _guard.get(), [_as_plain(value) for value in page])
        lines = escaped(json.dumps(clean, ensure_ascii=False, indent=2))
        click.echo(("[\n" if is_first else ",\n") + lines.removeprefix("[\n").removesuffix("\n]"), file=out, nl=False)
        is_first = False
    click.echo("[]" if is_first else "\n]", file=out)


def print_tables(tables: Mapping[str, Sequence[Any]]) -> None:
    """Print lists of rows that have no secrets left in them, as JSON, a row on a line: however long they are."""
    out = _plain(sys.stdout)
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",\0", ": ")).encode  # no text has such a sign in JSON
    ends = dict.fromkeys(tables, "],")
    ends[list(tables)[-1]] = "]"
    click.echo("{", file=out)
    for name, rows in tables.items():
        click.echo(f"  {json.dumps(name)}: [", file=out)
        for start in range(0, len(rows), 1000):
            lines = encode(rows[start : start + 1000])[1:-1].replace("},\0{", "},\n    {").replace("\0", " ")
            click.echo(f"    {escaped(lines)}" + ("," if start + 1000 < len(rows) else ""), file=out)
        click.echo(f"  {ends[name]}", file=out)
    click.echo("}", file=out)


def to_json(value: Any, indent: int | None = None) -> str:
    """The value as JSON that is safe to print: secrets are blanked, what is invisible is escaped and means the same."""
    return escaped(json.dumps(without_secrets(_as_plain(value)), ensure_ascii=False, indent=indent))


def _as_plain(value: Any) -> Any:
    """A value of nothing but what JSON has."""
    return json.loads(json.dumps(value, default=lambda other: other.to_dict()))


def print_result(
    value: Any, as_json: bool, rows: Iterable[Sequence[str]] = (), talk: str = "", notes: Iterable[str] = ()
) -> None:
    """Print the value as JSON, or else notes on stderr, rows on stdout and a last line of talk on stderr."""
    if as_json:
        print_json(value)
        return
    say_notes(notes)
    print_rows(rows)
    if talk:
        say(talk)


def say(text: str) -> None:
    """Print a line to stderr, so that stdout stays data. A line end inside it is escaped: it may be forged."""
    echo(_line(text), err=True)


def _line(text: str) -> str:
    return text.replace("\n", "\\u000a")


def so_many(count: int) -> str:
    """So many memories, in words."""
    return "1 memory" if count == 1 else f"{count:,} memories"


def say_under(bank: Bank) -> None:
    """Say that the user's own bank is read as well, where a command speaks of one bank alone."""
    if below := bank.under:
        say(f"your own bank, {below.root}, is read here as well; `memlane --user` and this command looks at it")


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"note: {note}")


def complain(error: MemlaneError) -> None:
    """Print an error and its next step to stderr.

    A step may have several lines, such as SQL to be copied. They are indented, so that none passes for one of ours.
    """
    echo(Styled("error:", "red", bold=True), f" {_line(str(error))}", err=True)
    first, *more = error.to_dict()["hint"].rstrip("\n").split("\n")
    if first:
        echo(Styled("next:", "cyan", bold=True), f" {first}", err=True)
    for line in more:
        echo(f"{' ' * BELOW}{line}".rstrip(), err=True)


def width(text: str) -> int:
    """How many columns a text takes on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def one_line(text: str) -> str:
    """A title, file name or the like on one line, with escapes for characters that could steer a terminal."""
    return escaped(" ".join(text.split()))


def columns() -> int:
    """How wide the terminal is."""
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrapped(text: str, room: int) -> list[str]:
    """A text in lines of at most so many columns, broken between words.

    What somebody may want to copy stays whole, and is left to the terminal: a command, and a path or an id that is
    longer than a line. A script without spaces is broken anywhere.
    """
    if text.startswith("memlane "):
        return [text]
    lines, line, used = [], "", 0
    for word in text.split(" "):
        for piece in _pieces(word, room):
            taken = width(piece)
            if line and used + 1 + taken <= room:
                line, used = f"{line} {piece}", used + 1 + taken
                continue
            lines += [line] if line else []
            line, used = piece, taken
    return [*lines, line]


def _pieces(word: str, room: int) -> Iterator[str]:
    """A word; text without spaces that is longer than a line, in pieces."""
    if width(word) <= max(room, len(word)):
        yield word
        return
    start = used = 0
    for at, char in enumerate(word):
        used += width(char)
        if used > room and at > start:
            yield word[start:at]
            start, used = at, width(char)
    yield word[start:]


def print_rows(rows: Iterable[Row], *, numbered: bool = False, again: bool = False) -> None:
    """Print columns, tab-separated in a pipe; a cell is one line of visible characters.

    On a terminal they are aligned and fit its width, and nothing is cut off: the last column is wrapped, and where
    there is no room for that, the cells that do not fit into a row's line stand below it. Rows are printed as they
    come, a page at a time, however many there are. `numbered` ones get a first column with their numbers, from 1.
    `again` is for rows that are likely to be printed again as they are.
    """
    rows = iter(rows)
    print_lines(
        (line for page in iter(lambda: list(islice(rows, PAGE)), []) for line in _clean(_lines(page), again)), numbered
    )


def print_lines(lines: Iterable[str], numbered: bool = False) -> None:
    """Print rows as `print_rows`: lines with tabs between their cells and no secrets left in them."""
    seen = sys.stdout.isatty()
    room = columns() if seen else 0
    widths: list[int] = []
    lines = (f"{number}\t{line}" for number, line in enumerate(lines, 1)) if numbered else iter(lines)
    while page := list(islice(lines, PAGE)):
        if not seen:
            click.echo("\n".join(page), file=_plain(sys.stdout))
            continue
        table = [line.split("\t") for line in page]
        sizes = (map(width, column) for column in zip_longest(*table, fillvalue=""))
        fitting = (max((size for size in column if size <= room // 2), default=0) for column in sizes)  # few are longer
        widths = [max(pair) for pair in zip_longest(widths, fitting, fillvalue=0)]
        for row in table:
            first, *more = _laid_out(row, widths, room)
            head = row[0] if len(row) > 1 else ""
            echo(Styled(head, "cyan"), first[len(head) :], clean=True)
            for line in more:
                echo(line, clean=True)


def _laid_out(row: Sequence[str], widths: Sequence[int], room: int) -> list[str]:
    """A row in lines. The first begins with its first cell; the others are indented, so that none passes for a row."""
    start = "".join(f"{cell}{' ' * (widths[at] - width(cell))}  " for at, cell in enumerate(row[:-1]))
    indent = width(start) or BELOW
    beside = wrapped(row[-1], max(room - indent, LEAST))
    if not start or indent + max(map(width, beside)) <= room:
        return [f"{start}{beside[0]}".rstrip(), *(" " * indent + line for line in beside[1:])]
    first = row[0]
    below: list[str] = []
    for at in range(1, len(row)):
        longer = f"{first}{' ' * (widths[at - 1] - width(row[at - 1]))}  {row[at]}"
        if not below and width(longer) <= room:
            first = longer
        elif row[at]:
            below += wrapped(row[at], max(room - BELOW, LEAST))
    return [first, *(" " * BELOW + line for line in below)]


def print_problems(problems: Sequence[Problem], as_json: bool) -> None:
    """Print damage, a line for each problem, and end the command with exit code 6 if there is any."""
    print_result(problems, as_json, ((str(problem),) for problem in problems))
    if problems:
        click.get_current_context().exit(6)


def print_plan(plan: Plan, as_json: bool, applied: bool, talk: str) -> None:
    """Print a plan as JSON, or else its notes, its steps and a line of talk."""
    rows = ((step.id, step.action, step.reason, step.title) for step in plan.steps)
    print_result({"applied": applied, **plan.to_dict()}, as_json, rows, talk, plan.remarks)


def print_stored(value: Any, as_json: bool, id: str, *talk: str) -> None:
    """Print what was written as JSON, or else the talk on stderr and then its id on stdout."""
    if as_json:
        print_json(value)
        return
    for line in talk:
        say(line)
    print_line(id)


def print_written(memory: Memory, as_json: bool, verb: str) -> None:
    """Print a memory that was written, after the notes that the gate made on it."""
    say_notes(remark.replace(" with replaces=", " with --replaces ") for remark in memory.remarks)  # as it is said here
    print_stored(memory, as_json, memory.id, f"{verb} {memory.path}")


def titled(memory: Memory) -> str:
    """A memory's title, with a mark where another one took its place."""
    return f"{memory.title} (replaced by {memory.superseded_by})" if memory.superseded_by else memory.title


def print_line(text: str, *, again: bool = False) -> None:
    """Print an id or a path: unchanged in a pipe; on a terminal in one line. `again` is as for `print_rows`."""
    stream = sys.stdout
    text = _line(text) if stream.isatty() else text
    if again and isinstance(stream, SafeStream):
        (text,) = _clean([text], again)
        text, stream = escaped(text) if stream.filters else text, stream.plain
    click.echo(text, file=stream)


def print_text(text: str, *, as_it_is: bool = False, nl: bool = True) -> None:
    """Print a memory's own text; on a terminal with escapes for characters that could steer it.

    `as_it_is` is for a text that may be shown, or was cleaned, as a whole.
    """
    stream = sys.stdout
    if as_it_is and isinstance(stream, SafeStream):
        text, stream = escaped(text) if stream.filters else text, stream.plain
    # without `color`, click takes colours out of it in a pipe
    click.echo(text, nl=nl and not text.endswith("\n"), color=True, file=stream)


def print_bytes(data: bytes, *, as_it_is: bool = False) -> None:
    """Print a file: in a pipe byte for byte, unless it holds a secret; on a terminal as text, with escapes."""
    text = data.decode(errors="backslashreplace")
    if sys.stdout.isatty() or without_secrets(text) is not text:
        print_text(text, as_it_is=as_it_is, nl=False)
    else:
        click.echo(data, nl=False)


# -- text that is given


def line_ended(text: str, lane: str) -> str:
    """A note's text with a line end, because it becomes a text file. Other lanes keep the text as it is."""
    return text if lane != "notes" or text.endswith("\n") else text + "\n"


def take_text(text: str | None) -> str:
    """The text argument; `-`, or no argument when something is piped in, means standard input. Without the mark that
    some editors put before a text in UTF-8.

    Raises InvalidInput when there is no text, or it is not UTF-8.
    """
    if text is not None and text != "-":
        return text.removeprefix("\ufeff")
    if text is None and sys.stdin.isatty():
        raise InvalidInput("There is no text.", hint="Give it as an argument, or pipe it in with -.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("Standard input is not UTF-8 text.", hint="Convert it to UTF-8 first.") from None
