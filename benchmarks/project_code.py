"""Promises about `code`: what its files add to a plan, unchanged and after an edit."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

from benchmarks.timing import Cost, Subject, alternate, cost
from benchmarks.workshop import ROOT, Workshop

FILES = 5000
_COLAB = ROOT / "tests/golden/lock-restart/spec.yaml"
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


def unchanged_in_notebook(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """A plan of a Colab target whose notebook contains the code, next to one without code."""
    rendered, bare, _ = _notebooks(workshop)
    return alternate(rendered, bare, rounds=9)


def edited_in_notebook(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """The same after an edit of one file, which is to be packed again."""
    rendered, bare, folder = _notebooks(workshop)
    edited = next(folder.glob("package3/*/*.py"))

    def plan_after_edit() -> Cost:
        edited.write_text(f"{_TEXT}# {time.time()}\n")
        return rendered()

    return alternate(plan_after_edit, bare, rounds=9)


def _notebooks(workshop: Workshop) -> tuple[Subject, Subject, Path]:
    """Return the plans of a spec with code and of one without it, and the folder of the code."""
    folder = workshop.folder / "colab"
    folder.mkdir(exist_ok=True)
    colab = Workshop(folder, _COLAB)
    bare, spec = colab.project("without-code"), colab.project("with-code")
    spec.write_text(f"{spec.read_text()}\ncode: .\n")
    _write_files(spec.parent)
    plans = []
    for path in (spec, bare):
        cost(colab.script("provision", "render", str(path), "--target", "colab"))
        plan = colab.script("provision", "plan", str(path), "--target", "colab")
        plans.append(partial(cost, plan))
    return plans[0], plans[1], spec.parent


def _write_files(folder: Path) -> None:
    for number in range(FILES):
        path = folder / f"package{number % 50}" / f"part{number % 7}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{_TEXT}# {number}\n")
    time.sleep(2)  # files that have just changed are read again, also by git
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "code")):
        subprocess.run(["git", *_IDENTITY, *words], cwd=folder, check=True)
