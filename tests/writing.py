"""One of several writers into one lane. Run by test_survival.py: python writing.py LANE FOLDER FIRST COUNT"""

from __future__ import annotations

import sys
from pathlib import Path

from memlane.disk import locks
from samples import draft, make_lane

if __name__ == "__main__":
    name, folder, first, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    locks.patience.set(300)  # the disk may be busy with other tests: how long somebody waits is not what is tried here
    lane = make_lane(name, folder)
    for number in range(first, first + count):
        print(lane.put(draft(name, number)).id, flush=True)
