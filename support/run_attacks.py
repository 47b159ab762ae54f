"""Run the tests of attacks against the source of an earlier commit, and list those that fail there:
`python support/run_attacks.py COMMIT`.

The package, its templates and the action are those of the named commit, the tests those of HEAD. A
test that imports what the named commit lacks fails there too: against a commit from before a
rename, take the tests of the last commit before it with `--tests-of`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("src", "templates", "specs", "action.yml")
TESTS = (
    "tests/attacks",
    "tests/agent/test_redact.py",
    "tests/agent/test_gpu_names.py",
    "tests/agent/workbench/test_startup.py",
    "tests/source/test_editing.py",
    "tests/test_patterns.py",
    "tests/test_pull_requests.py",
)


_NO_TESTS = 5
"""What pytest answers when it has deselected all tests of a file."""
_LIMIT_S = 300.0
"""For the tests of one file: what hangs at an earlier commit is a failure too."""


def main() -> int:
    """Copy the tree with older sources, run the tests there and print what fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the commit whose sources are attacked")
    parser.add_argument(
        "tests", nargs="*", default=TESTS, help="files or folders of tests (default: all attacks)"
    )
    parser.add_argument(
        "--tests-of", default="HEAD", help="the commit whose tests run (default: HEAD)"
    )
    options = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory(prefix="provision-attacks-") as name:
        copy = Path(name) / "copy"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        subprocess.run(
            ["git", "-C", str(copy), "checkout", "--quiet", options.tests_of], check=True
        )
        subprocess.run(["git", "-C", str(copy), "rm", "-r", "--quiet", *SOURCES], check=True)
        subprocess.run(
            ["git", "-C", str(copy), "checkout", "--quiet", options.commit, "--", *SOURCES],
            check=True,
        )
        subprocess.run(
            ["make", "--silent", "-C", str(copy), ".venv/.developed", f"PYTHON={sys.executable}"],
            check=True,
        )
        for path in [path for test in options.tests for path in _files(copy / test)]:
            for line in _failing(copy, path):
                print(line, flush=True)
                count += 1
    print(f"{count} fail at {options.commit}")
    return 0 if count else 1


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("test_*.py")) if path.is_dir() else [path]


def _failing(copy: Path, path: Path) -> list[str]:
    """Return the tests of a file that fail, or a line that says why they gave no result."""
    name = str(path.relative_to(copy))
    command = [
        str(copy / ".venv/bin/python"),
        "-m",
        "pytest",
        "-q",
        "--continue-on-collection-errors",
        "-r",
        "fE",
        name,
    ]
    process = subprocess.Popen(
        command,
        cwd=copy,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return [f"{name}: its tests do not end within {_LIMIT_S:g} s"]
    found = sorted(set(re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)))
    return found or (
        [] if process.returncode in (0, _NO_TESTS) else [f"{name}: its tests cannot be run"]
    )


if __name__ == "__main__":
    sys.exit(main())
