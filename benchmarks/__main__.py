"""`python -m benchmarks [NAME ...]`: measure the promises and print the table; exit 1 when a bound
does not hold, 2 when one could not be measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import PROMISES, measure
from benchmarks.promise import exit_code, table
from benchmarks.workshop import Workshop


def main(words: list[str]) -> int:
    """Measure what is named, everything when nothing is, and return the exit code."""
    known = [promise.name for promise in PROMISES]
    strange = [word for word in words if word not in known]
    if strange:
        sys.stderr.write(f"there is no benchmark {strange[0]}; there are: {', '.join(known)}\n")
        return 2
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(
        prefix="provision-bench-", ignore_cleanup_errors=True
    ) as folder:
        outcomes = []
        for outcome in measure(words or known, Workshop(Path(folder))):
            sys.stderr.write(f"measured {outcome.promise.name}\n")
            outcomes.append(outcome)
    sys.stdout.write(table(outcomes))
    sys.stdout.write(
        f"\nPython {sys.version.split()[0]}, {os.cpu_count()} cores, load average "
        f"{before:.1f} before and {os.getloadavg()[0]:.1f} after\n"
    )
    return exit_code(outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
