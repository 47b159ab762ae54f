"""Run the tests of attacks against the source of an earlier commit, and list those that fail there: `python support/run_attacks.py COMMIT`.

The tests are those of the newest commit, the package, its templates and the action those of the named one.
A test that imports what the named commit lacks fails there too.
"""

from __future__ import annotations

import argparse
import re
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
    "tests/device/test_startup.py",
    "tests/source/test_editing.py",
    "tests/test_patterns.py",
    "tests/test_pull_requests.py",
)


def main() -> int:
    """Copy the tree with older sources, run the tests there and print what fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit whose sources are attacked")
    parser.add_argument("tests", nargs="*", default=TESTS, help="files or folders of tests (default: all attacks)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="provision-attacks-") as name:
        copy = Path(name) / "copy"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        subprocess.run(["git", "-C", str(copy), "rm", "-r", "--quiet", *SOURCES], check=True)
        subprocess.run(["git", "-C", str(copy), "checkout", "--quiet", options.commit, "--", *SOURCES], check=True)
        subprocess.run(["make", "--silent", "-C", str(copy), ".venv/.developed", f"PYTHON={sys.executable}"], check=True)
        command = [str(copy / ".venv/bin/python"), "-m", "pytest", "-q", "--continue-on-collection-errors", "-r", "fE", *options.tests]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)))
    print("\n".join(failed))
    print(f"{len(failed)} fail at {options.commit}; {done.stdout.strip().rpartition(chr(10))[2]}")
    return 0 if failed else 1


if __name__ == "__main__":
    sys.exit(main())
