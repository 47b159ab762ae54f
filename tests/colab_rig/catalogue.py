"""The tool with other facts: a copy of the checkout whose tables know the stand-in as a runtime.
Nothing in the tool takes facts from elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.colab_rig import image

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Tool:
    """A copy of provision that is run as `python -m provision`."""

    folder: Path

    def run(
        self, *words: str, cwd: Path, timeout: float = 600, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return how it ended."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PROVISION_", "PYTHON", "GITHUB_"))
        }
        environment = {
            **kept,
            "PYTHONPATH": str(self.folder / "src"),
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "UV_PYTHON_DOWNLOADS": "never",
            **variables,
        }
        line = [sys.executable, "-m", "provision", *words]
        return subprocess.run(
            line,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )


def lay_out(folder: Path, packages: Mapping[str, str] | None = None, **row: str) -> Tool:
    """Copy the tool and give runtime 2025.07 the stand-in's packages, or others; `row` are further
    values of its row.
    """
    litter = shutil.ignore_patterns("__pycache__", ".provision")
    for name in ("src/provision", "templates", "specs"):
        shutil.copytree(ROOT / name, folder / name, ignore=litter)
    facts = folder / "src/provision/facts"
    compiled = json.loads((facts / "compiled.json").read_bytes())
    held = dict(packages if packages is not None else image.packages())
    release, _, flavour = held["torch"].partition("+")
    (found,) = [one for one in compiled["colab"]["runtimes"] if one["runtime"] == image.RUNTIME]
    about = {
        "python": _version(),
        "torch": release,
        "flavour": flavour,
        "numpy": held["numpy"],
        "packages": len(held),
        "source": "the stand-in of the tests",
    }
    found.update({**about, **row})
    (facts / "compiled.json").write_text(json.dumps(compiled))
    sets = json.loads((facts / "on_demand/colab_packages.json").read_bytes())
    place = sets["columns"].index(image.RUNTIME)
    rows = {line[0]: line for line in sets["rows"]}
    for line in rows.values():
        line[place] = held.get(line[0], "")
    missing = [[name, *([""] * (len(sets["columns"]) - 1))] for name in held if name not in rows]
    for line in missing:
        line[place] = held[line[0]]
    sets["rows"] += missing
    (facts / "on_demand/colab_packages.json").write_text(json.dumps(sets))
    return Tool(folder)


def _version() -> str:
    python = image.program()
    return subprocess.run(
        [str(python), "-c", "import platform; print(platform.python_version())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
