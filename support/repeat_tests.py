"""Run the tests that start programs or measure time many times on a loaded machine, and list those
that failed at least once.

A test that fails in one run of twenty is a defect: it depends on the load, on a race or on
another test. Run it before a release, or on the tests of a change:
`python support/repeat_tests.py --times 20 tests/world`. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
_USES_TIME = re.compile(
    r"^import time$|^from time import|^from threading import|^import threading$", re.MULTILINE
)


def main() -> int:
    """Parse the command line, repeat the tests and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths", nargs="*", default=["tests"], help="files, folders or tests (default: tests)"
    )
    parser.add_argument(
        "--times", type=int, default=20, help="how often each test runs (default: 20)"
    )
    parser.add_argument(
        "--load",
        type=int,
        default=os.cpu_count() or 2,
        help="busy loops beside the tests (default: one for each CPU)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 2,
        help="processes that share the tests (default: one for each CPU)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=600,
        help="start no further run after this time (default: 600)",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="provision-repeat-") as name, _load(options.load):
        chosen = _tests(options.paths, Path(name))
        print(
            f"{len(chosen)} tests, {options.times} times each, beside {options.load} busy loops",
            flush=True,
        )
        failures, runs = _repeat(chosen, options, Path(name))
    print(f"{runs} of {options.times} runs, {len(failures)} tests failed at least once")
    for test, count in failures.most_common():
        print(f"{count:4} of {runs}  {test}")
    return 1 if failures or runs < options.times else 0


def _tests(paths: list[str], folder: Path) -> list[str]:
    """Return the ids of the tests that start a program, and of all tests in files that use time or
    threads.
    """
    report = folder / "quick.xml"
    done = _pytest(
        "-q", "--quick", "-n", "2", f"--junitxml={report}", "-o", "junit_family=xunit1", *paths
    )
    if done.returncode not in (0, 1):
        sys.exit(
            "the tests cannot be listed; pytest ended with "
            f"{done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}"
        )
    timed = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if _USES_TIME.search(path.read_text(encoding="utf-8"))
    }
    chosen = []
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        starts = skipped is not None and "not pure" in str(skipped.get("message"))
        if starts or case.get("file") in timed:
            classes = (
                str(case.get("classname"))
                .removeprefix(str(case.get("file")).removesuffix(".py").replace("/", "."))
                .strip(".")
            )
            chosen.append(
                "::".join(
                    part
                    for part in (case.get("file"), *classes.split("."), case.get("name"))
                    if part
                )
            )
    if not chosen:
        sys.exit(f"no test in {' '.join(paths)} starts a program or uses time")
    return chosen


def _repeat(
    chosen: list[str], options: argparse.Namespace, folder: Path
) -> tuple[collections.Counter[str], int]:
    """Return how often each test failed, and the number of runs."""
    (folder / "tests.txt").write_text("\n".join(chosen), encoding="utf-8")
    failures: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    for number in range(options.times):
        if time.monotonic() - began > options.minutes * 60:
            return failures, number
        done = _pytest(
            "-q",
            "-r",
            "fE",
            "-n",
            str(options.jobs),
            "--dist",
            "worksteal",
            f"@{folder / 'tests.txt'}",
        )
        lines = re.findall(r"^(?:FAILED|ERROR|SUBFAILED\S*) (\S.*)", done.stdout, re.MULTILINE)
        failures.update({line.partition(" - ")[0] for line in lines})
        print(f"run {number + 1}: {done.stdout.strip().splitlines()[-1]}", flush=True)
        for line in lines:
            print(f"  {line}", flush=True)
    return failures, options.times


def _pytest(*words: str) -> subprocess.CompletedProcess[str]:
    line = ["sh", str(ROOT / "support/run_tests.sh"), sys.executable, "-m", "pytest", *words]
    return subprocess.run(line, check=False, cwd=ROOT, capture_output=True, text=True)


@contextmanager
def _load(count: int) -> Iterator[None]:
    """Keep `count` CPUs busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main())
