"""The promise about `provision run`: what the process beside a program takes while it watches,
beginning and record with it.
"""

from __future__ import annotations

import json

from benchmarks.timing import Cost, cost
from benchmarks.workshop import Workshop

_SECONDS = 20
_WATCHED = f"""
import os, sys
from pathlib import Path
from provision.effects.local import MonitorRequest
from provision.adapters import RealSystem
RealSystem().run(("sleep", "{_SECONDS}"), os.environ, MonitorRequest(Path(sys.argv[1]), {{}}, {{}}, ()))
"""  # noqa: E501


def beside(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Watch a program that does nothing for 20 seconds; 1% of one CPU is 0.2 s."""
    record = workshop.folder / "run.json"
    spent = cost(workshop.python("-c", _WATCHED, str(record)))
    return Cost(spent.wall_s, float(json.loads(record.read_text())["monitor"]["cpu_s"])), None
