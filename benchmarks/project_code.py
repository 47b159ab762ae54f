"""The promise about `code`: unchanged files add next to nothing to a plan."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from benchmarks.timing import Cost, alternate, cost
from benchmarks.workshop import Workshop

FILES = 5000
_IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")
_TEXT = "x = 1\n" * 600


def unchanged(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """A plan of a spec with code in git, next to the plan of the same spec without it."""
    bare, spec = workshop.project("without-code"), workshop.project("with-code")
    spec.write_text(f"{spec.read_text()}\ncode: .\n")
    _write_files(spec.parent)
    plan = workshop.script("provision", "plan", str(spec))
    return alternate(
        lambda: cost(plan),
        lambda: cost(workshop.script("provision", "plan", str(bare))),
        rounds=9,
    )


def _write_files(folder: Path) -> None:
    for number in range(FILES):
        path = folder / f"package{number % 50}" / f"part{number % 7}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_TEXT}# {number}\n")
    time.sleep(2)  # files that have just changed are read again, also by git
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "code")):
        subprocess.run(["git", *_IDENTITY, *words], cwd=folder, check=True)
