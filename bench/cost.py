"""What a team's memory costs: bytes and CPU per 1,000 memories, and CPU per 1,000 searches and writes of a server.

    python bench/cost.py [--data FOLDER] [--notes 10000] [--seconds 6] [--core-hour 0.04] [--gb-month 0.10]

A bank of notes is made, indexed, and served by one `memlane mcp --http`; four clients search it, then two write to it.
Then it is sent to a remote, which is a folder here, and a new member fetches it. CPU is that of the server and its
readers, or of the process that syncs; the clients' own is not in it. The prices are what you say they are: the defaults
are only there so that something can be computed. FOLDER holds the archives of notes that bench/search.py reads; without
it the notes are made up.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mcp_server import asked, serving
from search import made_up, paragraphs, spent_by_all, write_notes

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

GB, MONTH = 1e9, 730.0  # bytes; hours


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@contextmanager
def home(place: Path) -> Iterator[Path]:
    """A home folder of its own, with the state that memlane keeps."""
    place.mkdir()
    before, os.environ["HOME"] = os.environ.get("HOME", ""), str(place)
    yield place / ".local/state/memlane"
    os.environ["HOME"] = before


def served(bank: Path, state: Path, seconds: float) -> tuple[float, float, float]:
    """CPU seconds of a search and of a write, and the bytes that a write leaves beside the note and the index."""
    side = serving(bank)
    try:
        asked(side, 4, 0, seconds, 0.0)  # until the readers are up, with the index in their memory
        searched = asked(side, 4, 0, seconds, 0.0)
        before = size(state)
        wrote = asked(side, 0, 2, seconds, 0.0)
    finally:
        side.process.terminate()
        side.process.wait()
    writes = len(wrote.writes)
    return searched.server / len(searched.searches), wrote.server / writes, (size(state) - before) / writes


def synced(bank: Path, place: Path) -> tuple[float, float, float]:
    """Bytes of a note at a remote, CPU seconds to send one, and to fetch one into an empty bank."""
    from memlane import Bank
    from memlane.care import sync

    remote, member = place / "remote", place / "member"
    remote.mkdir()
    member.mkdir()
    with closing(Bank.open(bank)) as sender:
        sync.add(sender, "team", str(remote))
        sent = spent_by_all(lambda: sync.sync(sender, "team"))
        count = len(sender.list(limit=None))
    with home(place / "other"), closing(Bank.init(member)) as fetcher:
        sync.add(fetcher, "team", str(remote))
        fetched = spent_by_all(lambda: sync.sync(fetcher, "team"))
    return size(remote) / count, sent / count, fetched / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--core-hour", type=float, default=0.04, help="what an hour of a core costs")
    parser.add_argument("--gb-month", type=float, default=0.10, help="what a gigabyte costs in a month")
    options = parser.parse_args()
    from memlane import Bank

    with tempfile.TemporaryDirectory() as folder, home(Path(folder) / "home") as state:
        place, bank = Path(folder), Path(folder) / "bank"
        bank.mkdir()
        Bank.init(bank).close()
        texts = paragraphs(options.data) if options.data else made_up()
        write_notes(bank / ".memories/made", texts, options.notes)
        text = size(bank / ".memories")
        with closing(Bank.open(bank)) as opened:
            built = spent_by_all(lambda: opened.index.refresh(force=True)) / options.notes
        index = (size(bank / ".memories") - text) / options.notes
        remote, sent, fetched = synced(bank, place)
        search, write, kept = served(bank, state, options.seconds)

    def row(what: str, amount: str, cost: float) -> None:
        print(f"| {what} | {amount} | {cost:.6f} |")

    core, gigabyte = options.core_hour / 3600, options.gb_month / GB
    print(
        f"{options.notes:,} notes of {text / options.notes:.0f} bytes; {options.core_hour} for an hour of a core, ",
        end="",
    )
    print(f"{options.gb_month} for a gigabyte and month\n")
    print("| for 1,000 | measured | cost |\n|---|--:|--:|")
    for what, amount in (("the notes", text / options.notes), ("their index", index), ("at a remote", remote)):
        row(f"memories, a month: {what}", f"{amount * 1000 / 1e6:.2f} MB", amount * 1000 * gigabyte)
    row("memories, a month: journal of their writing", f"{kept * 1000 / 1e6:.2f} MB", kept * 1000 * gigabyte)
    for what, seconds in (
        ("memories indexed", built),
        ("memories sent to a remote", sent),
        ("memories fetched by a new member", fetched),
        ("searches", search),
        ("writes", write),
    ):
        row(what, f"{seconds * 1000:.2f} s of CPU", seconds * 1000 * core)
    print(f"\nA core that does nothing else answers {1 / search * 3600:,.0f} searches in an hour.")


if __name__ == "__main__":
    main()
