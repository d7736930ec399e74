"""Every figure of docs/benchmarks.md, printed anew: the benches one after the other, each with what it measures.

    python bench/report.py [--data FOLDER] [--others PYTHON] [--only TEXT ...] [--long] [--list]

FOLDER holds the data that the benches name in their help; those that cannot do without it are left out when it is not
given, and the page says so. PYTHON is an environment with memlane and what it is compared with, where there is one.
`--only` takes the sections whose title has one of these texts. `--long` also runs those that take an hour. `--list`
names them.

Prints Markdown, section by section: docs/benchmarks.md is what this printed. What a bench says on stderr is shown, and
one that fails is named in its section, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PAGE = """\
# Benchmarks

Every table is what the command above it printed; `make bench DATA=FOLDER` runs all of them and prints this page. CPU
is user and system time, which other programs disturb less than the clock on the wall. Machines differ: the ratios,
measured side by side in one run, are what to look at.

Printed on {cores} cores ({machine}, Python {python}).
"""


class Section(NamedTuple):
    title: str
    about: str
    command: tuple[str, ...]  # the bench and its options; DATA stands for the folder of data
    plain: bool = False  # what it prints is not Markdown
    long: bool = False  # it takes an hour
    others: bool = False  # it runs where what memlane is compared with is installed
    made_up: bool = False  # without data, its notes are made up


SECTIONS = (
    Section(
        "Beside what people would take instead",
        """\
SQLite FTS5 (words alone), tantivy with vectors (by the ranks of both), chroma and mem0 with `infer=False` (vectors
alone), each in processes of its own, one after the other. All vectors are memlane's built-in ones, because the models
of the others would have to be downloaded; with their own they may find more. What the columns mean is in the file's
help. In brackets: how many times as much as memlane's. A memlane search also looks whether a file has changed,
explains its hits and looks for secrets in them; an add is durable, has passed the gate and can be undone.

nDCG@10 is that of the first two conversations of LoCoMo, turn by turn, and no fair race: memlane's ranking was tuned
on this very data, and it alone is given the date and the session of each turn, which the others have no ranking for.

None of these is installed with memlane, and nothing installs them: `python3 -m venv .others`, then `.others/bin/pip
install --editable . tantivy chromadb mem0ai`, and `make bench` finds them. What chroma and mem0 report to their
makers is switched off.""",
        ("others.py", "--data", "DATA"),
        others=True,
        made_up=True,
    ),
    Section(
        "Where the time of a search goes",
        """\
CPU medians in ms of an open bank, and what a filter, a context and a prompt cost beside a search; then the stages of
`bank.search`. Each paragraph of the data is a note. `bench/engines.py` compares the lookup of words with FTS5 and
tantivy ([decision 16](decisions/0016-the-index-stays-ours.md)).""",
        ("stages.py", "--data", "DATA"),
    ),
    Section(
        "How fast search is",
        """\
"Open and check" is a new process that loads NumPy and compares all files with the index; "durable add, found" is
`bank.add` and a search that finds it. FTS5 is a plain table with an OR query: keywords alone.""",
        ("search.py", "--data", "DATA"),
    ),
    Section(
        "How a bank grows",
        """\
Notes of two paragraphs each. Building is told by the clock and by the CPU time of all processes that take part;
"first search" is a new process that compares all files and reads the index. Search takes less than in proportion. The
limits: a new process looks at every file before its first search, which is what grows; one that stays open is told by
the kernel.""",
        ("growth.py", "--data", "DATA", "--sizes", "10000", "100000", "300000", "1000000"),
        long=True,
    ),
    Section(
        "Asking about a whole bank",
        """\
CPU and peak memory of each command. "First" begins with nothing known of the files but their index, "unchanged" is
the same again, "one changed" after one note was written anew. `list` prints all rows.""",
        ("whole.py", "--data", "DATA", "--sizes", "100000"),
    ),
    Section(
        "Commands from a cold start",
        "User and system time of a new process, the index built before, the notes made up.",
        ("cli.py",),
    ),
    Section(
        "Hooks",
        """\
User and system time of a whole hook in a bank of 10,000 notes and ten vault records, in turns with the bare
interpreter, and where it goes. The size and times of every file are looked at, so that no edit is missed. "With a
server" is how `memlane connect` sets it up: while a client runs a server, [a process of its own answers
hooks](context.md#hooks), and what is loaded is loaded once; what that process used is counted.""",
        ("hooks.py", "--stages"),
    ),
    Section(
        "The MCP server, many clients",
        """\
One `memlane mcp --http` with 10,000 notes, beside one without readers, on cores that the clients share with the
server. Clients that never pause wait for each other: by Little's law, 32 of them on two cores wait at least sixteen
times as long as one, whatever the server does. What the slowest twentieth waits is therefore told at a pace.""",
        ("mcp_server.py", "--load", "--data", "DATA"),
        made_up=True,
    ),
    Section(
        "The MCP server, starting",
        "10,000 notes that are not indexed yet. The handshake needs neither the bank nor its index.",
        ("mcp_server.py",),
        plain=True,
    ),
    Section(
        "A large vault",
        """\
Memories of 6 to 16 words, durable and through the whole gate. "First add" is a process that opens a vault nothing is
known of, adds once, and keeps what it found out; "next, anew" one that opens it afterwards; "edited" one that does so
after a line in the middle was changed, as by hand or by a merge.""",
        ("vault.py", "--repeats", "20", "--openings", "3"),
        plain=True,
    ),
    Section(
        "A large vault in a bank",
        "CPU ms; each row but the first two is a new process.",
        ("vault.py", "--bank", "--sizes", "10000", "100000"),
        plain=True,
    ),
    Section(
        "Very many captured messages",
        'One file each in one folder. Each row is a new process but for those that say "open" or "warm".',
        ("records.py", "--sizes", "20000"),
    ),
    Section(
        "Reading, writing, starting",
        """\
The plain way: for reading, `os.walk`, `open().read()` and PyYAML's C loader where a note has front matter; for
writing, a temp file, fsync, rename and fsync of the folder by hand.""",
        ("files.py", "--data", "DATA"),
        made_up=True,
    ),
    Section(
        "Joining a shared bank",
        """\
Notes are sent to a remote, a new member fetches them and builds its index, then syncs again. PostgreSQL and the
object store are 20 ms away. What an object store costs is its client's work: a request for each file, sixteen at a
time.""",
        ("joining.py", "--data", "DATA", "--notes", "5000"),
        made_up=True,
    ),
    Section(
        "How well search finds",
        """\
The texts go in through `bank.add` and are asked for through `bank.search`; the baselines see the same texts in the
same run. The ranking was tuned with both halves of this data in view, so that none of it is unseen; what each of its
rules is for is in [search.md](search.md#what-its-rules-are-for).""",
        ("retrieval.py", "--data", "DATA"),
    ),
    Section(
        "What real notes look like to the reader",
        "Collections of notes that other people wrote, as they are.",
        ("real_notes.py", "--data", "DATA"),
    ),
    Section("Transcripts", "", ("capture.py",), plain=True),
    Section(
        "Distilling sessions",
        """\
Eight of the seventeen transcripts that the weights were made from, so that this says how well they fit, not what to
expect of other sessions: for that, `python scripts/distiller.py FOLDER ...` leaves out each of the seventeen in turn.
It finds 80 of 112 facts (71 %) there, and 97 of 126 candidates say one (77 %).""",
        ("distil.py", "DATA/helpful/dev/capture"),
        plain=True,
    ),
    Section(
        "The page",
        """\
`memlane ui` in Chromium (`make setup-browser`), with made-up notes that are not indexed at first, on cores that
server and browser share. By the clock, in ms.""",
        ("page.py",),
    ),
)


def ran(section: Section, python: str, data: str) -> tuple[str, bool]:
    """What a section's bench printed, as Markdown, and whether it came to its end."""
    bench, *given = section.command
    words = [word.replace("DATA", data) for word in given if data or word not in ("--data", "DATA")]
    command = [python, str(HERE / bench), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=HERE.parent)
    said = done.stdout.strip("\n")
    if section.plain:
        said = f"```\n{said}\n```"
    return (said, True) if done.returncode == 0 else (f"{said}\n\nIt ended with exit code {done.returncode}.", False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="")
    parser.add_argument("--others", default="", metavar="PYTHON")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    wanted = [section for section in SECTIONS if not options.only or any(one in section.title for one in options.only)]
    if options.list:
        print(*(f"{section.title}{' (an hour)' if section.long else ''}" for section in wanted), sep="\n")
        return
    if not options.only:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        print(PAGE.format(cores=cores, machine=platform.machine(), python=platform.python_version()))
    whole = True
    for section in wanted:
        if section.long and not options.long:
            continue
        shown = " ".join(section.command).replace("DATA", "FOLDER")
        print(f"## {section.title}\n\n`python bench/{shown}`\n")
        if section.about:
            print(f"{section.about}\n")
        if "FOLDER" in shown and not options.data and not section.made_up:
            print("Left out: it needs `--data FOLDER`.\n")
            continue
        python = options.others if section.others and options.others else sys.executable
        said, ended = ran(section, python, options.data)
        whole = whole and ended
        print(f"{said}\n")
    sys.exit(0 if whole else 1)


if __name__ == "__main__":
    main()
