"""Measure how many sampled mutants of src/provision the tests kill; CONTRIBUTING.md has the
commands.

Each mutant is tested with the test files closest to its module. Every package has the same
number of mutants in the sample.
A second start with the same files continues an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, apply_mutant, draw_mutants
from mutation.runs import ROOT, Run, collect_tests, prepare_copy, run_pytest
from mutation.selection import TestFiles, read_junit, read_seconds

BATCH = 8
"""Test files that one process of the baseline runs."""
LIMIT_S = 1200.0
"""Limit of a process of the baseline."""


def main() -> None:
    """Run the sample and print the table."""
    options = parse_options()
    # A shell ignores these for what it starts in the background, and some tests check that nothing
    # is ignored.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    git = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{options.commit}^{{commit}}"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    results = Results(options.results, commit)
    copies = [options.folder / f"copy-{number}" for number in range(options.jobs)]
    for copy in copies:
        prepare_copy(copy, commit)
    sample = read_sample(options, copies[0])
    files = sorted({file for mutant in sample for file in mutant.tests} - results.baseline.keys())
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    share(copies, [partial(run_baseline, batch, results) for batch in batches])
    left = [mutant for mutant in sample if mutant.key not in results.mutants]
    share(copies, [partial(run_mutant, mutant, options.budget_s, results) for mutant in left])
    print_report(sample, results.mutants, options.against)


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, help="folder for the copies of the repository, outside of any checkout"
    )
    parser.add_argument("--commit", default="HEAD", help="test this commit (default: HEAD)")
    parser.add_argument(
        "--sample",
        type=Path,
        required=True,
        help="file of the mutants: read if it exists, else drawn and written",
    )
    parser.add_argument(
        "--results",
        type=Path,
        required=True,
        help="file that results are appended to, one for each commit",
    )
    parser.add_argument("--against", type=Path, help="results of another commit to compare with")
    parser.add_argument(
        "--durations",
        type=Path,
        help="JUnit report of the whole suite; needed to choose test files",
    )
    parser.add_argument(
        "--per-package", type=int, default=20, help="mutants of each package (default: 20)"
    )
    parser.add_argument("--seed", type=int, default=17, help="seed of the sample (default: 17)")
    parser.add_argument(
        "--budget-s",
        type=float,
        default=25,
        help="seconds of tests for each mutant; the limit is three times as long (default: 25)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        choices=(1, 2),
        default=2,
        help="copies that run at the same time (default: 2)",
    )
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    return options


def read_sample(options: argparse.Namespace, copy: Path) -> list[Mutant]:
    """Return the mutants of the sample file, or of a new one; test files that no longer exist are
    replaced.
    """
    is_new = not options.sample.exists()
    if is_new:
        sample = draw_mutants(copy, options.per_package, options.seed)
    else:
        sample = [Mutant(**row) for row in json.loads(options.sample.read_text(encoding="utf-8"))]
    collected = collect_tests(copy)
    stale = [
        number
        for number, mutant in enumerate(sample)
        if not mutant.tests or not collected.keys() >= set(mutant.tests)
    ]
    if stale and options.durations is None:
        raise SystemExit(f"{len(stale)} mutants need other test files: give --durations")
    files = TestFiles(copy, read_seconds(options.durations, collected) if stale else {})
    for number in stale:
        before = sample[number]
        sample[number] = replace(before, tests=files.select(before, options.budget_s))
        if before.tests:
            print(f"other test files for {before.key}: {' '.join(sample[number].tests)}")
    if is_new:
        options.sample.write_text(
            json.dumps([asdict(mutant) for mutant in sample], indent=1) + "\n", encoding="utf-8"
        )
    return sample


def share(copies: list[Path], jobs: Sequence[Callable[[Path], None]]) -> None:
    """Run the jobs, one at a time on each copy."""
    waiting = iter(jobs)

    def work(copy: Path) -> None:
        for job in waiting:
            job(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for future in [pool.submit(work, copy) for copy in copies]:
                future.result()
        finally:
            # After an error or Ctrl-C the other worker ends its job and takes no further one.
            list(waiting)


def print_report(
    sample: list[Mutant], outcomes: dict[str, dict[str, Any]], against: Path | None
) -> None:
    """Print the kill rate of each package, the survivors, and what another commit killed but this
    one does not.
    """
    others = (Results(against).mutants if against else {}) or outcomes
    both = [
        mutant
        for mutant in sample
        if "skipped" not in {outcomes[mutant.key]["outcome"], others[mutant.key]["outcome"]}
    ]
    print(
        f"\n{'package':14}{'mutants':>8}{'killed':>8}{'survived':>9}{'timeout':>8}{'rate':>7}{'before' if against else '':>8}"  # noqa: E501
    )
    for package in [*sorted({mutant.package for mutant in both}), ""]:
        chosen = [mutant.key for mutant in both if package in {"", mutant.package}]
        counts = Counter(outcomes[key]["outcome"] for key in chosen)
        rate, other = (
            1 - sum(rows[key]["outcome"] == "survived" for key in chosen) / len(chosen)
            for rows in (outcomes, others)
        )
        numbers = f"{len(chosen):8}{counts['killed']:8}{counts['survived']:9}{counts['timeout']:8}{rate:7.0%}"  # noqa: E501
        print(f"{package or 'all':14}{numbers}{f'{other:8.0%}' if against else ''}")
    for mutant in sample:
        outcome, other = outcomes[mutant.key]["outcome"], others[mutant.key]["outcome"]
        note = f", {other} in {against}" if outcome != other else ""
        if outcome == "skipped":
            print(f"\nskipped {mutant.module}:{mutant.line}: {outcomes[mutant.key]['failure']}")
        elif outcome == "survived":
            print(
                f"\nsurvived{note} {mutant.module}:{mutant.line} {mutant.operator}",
                *mutant.change,
                sep="\n  ",
            )


class Results:
    """The results file: one JSON object a line, appended as the results come."""

    def __init__(self, path: Path, commit: str | None = None) -> None:
        self.path, self.lock = path, threading.Lock()
        self.baseline: dict[str, dict[str, Any]] = {}
        self.mutants: dict[str, dict[str, Any]] = {}
        if commit and not path.exists():
            self.add({"commit": commit})
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            self.add(row, write=False)
            if commit and row.get("commit", commit) != commit:
                raise SystemExit(f"{path} has the results of {row['commit']}, not of {commit}")

    def add(self, row: dict[str, Any], *, write: bool = True) -> None:
        """Append one result."""
        with self.lock:
            if "file" in row:
                self.baseline[row["file"]] = row
            if "mutant" in row:
                self.mutants[row["mutant"]] = row
            if write:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def run_baseline(files: list[str], results: Results, copy: Path) -> None:
    """Run test files on unmutated code; a file that fails runs once more by itself."""
    report = copy / ".cache/baseline.xml"
    report.unlink(missing_ok=True)
    run_pytest(copy, [f"--junitxml={report}", *files], LIMIT_S)
    cases = list(read_junit(report, files)) if report.exists() else []
    for file in files:
        seconds, passed = (
            sum(case[2] for case in cases if case[0] == file),
            [case[3] for case in cases if case[0] == file],
        )
        failure = ""
        if not passed or not all(passed):
            again = run_pytest(copy, [file], LIMIT_S)
            seconds, failure = again.seconds, "" if again.code == 0 else again.failure
        results.add({"file": file, "failure": failure, "seconds": round(seconds, 1)})
        print(
            f"baseline {'failed' if failure else 'passed'} {seconds:6.1f} s  {file} {failure}",
            flush=True,
        )


def run_mutant(mutant: Mutant, budget_s: float, results: Results, copy: Path) -> None:
    """Test one mutant and restore the module."""
    baseline = [results.baseline[file] for file in mutant.tests]
    failing = [row["file"] for row in baseline if row["failure"]]
    path = copy / mutant.module
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    mutated = apply_mutant(mutant, source)
    run = Run(
        5, f"{failing[0]} fails without a mutant" if failing else "the line no longer exists", 0
    )
    if mutated is not None and not failing:
        try:
            write_source(path, mutated)
            limit_s = 3 * max(budget_s, sum(row["seconds"] for row in baseline))
            run = run_pytest(copy, ["-x", *mutant.tests], limit_s)
            if (
                run.code
                and run.failing_file
                and run_pytest(copy, ["-x", run.failing_file], limit_s).code == 0
            ):
                # The test failed by chance, or only after other tests: the second run decides.
                run = run_pytest(copy, ["-x", *mutant.tests], limit_s)
        finally:
            write_source(path, source)
    failure = "" if run.outcome in {"survived", "timeout"} else run.failure
    results.add(
        {
            "mutant": mutant.key,
            "outcome": run.outcome,
            "seconds": run.seconds,
            "failure": failure,
            "tests": mutant.tests,
        }
    )
    print(
        f"{len(results.mutants):4} {run.outcome:8} {run.seconds:6.1f} s  "
        f"{mutant.module}:{mutant.line} {mutant.operator[5:]}  {failure}",
        flush=True,
    )


def write_source(path: Path, text: str) -> None:
    """Write a module and delete its bytecode, which could pass for that of another text with the
    same size and second.
    """
    path.write_text(text, encoding="utf-8")
    for bytecode in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        bytecode.unlink()


if __name__ == "__main__":
    main()
