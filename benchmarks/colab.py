"""The promises about Colab, measured in real kernels on a stand-in for its machines: how soon the
cell has looked, how soon it sees that nothing is to do.

What is installed on top of a runtime is compared with a bare uv, and with pip, for the same
wheels on a machine of the same image.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uv

from benchmarks.timing import Call, Cost, Unmeasured, alternate, cost, repeat
from benchmarks.workshop import Workshop
from tests.colab_rig import catalogue, image, machine
from tests.colab_rig.notebook import Notebook, Ran
from tests.colab_rig.rendered import Rendered

_SPEC = """gpu: none
python: "3.11"
packages: [torch==2.13.*, numpy, transformers>=5.13, safetensors]
training: {framework: none}
targets:
  colab: {kind: colab, runtime: "2025.07"}
"""


class _Colab:
    """The image, and the notebook that goes on top of it; made once for all that is measured in a
    workshop.
    """

    def __init__(self, workshop: Workshop) -> None:
        self.folder, self.uv, self.booted = workshop.folder / "colab", uv.find_uv_bin(), 0
        try:
            self.prefix = image.with_torch(
                image.make(self.folder / "small", self.uv), self.folder / "whole", self.uv
            )
        except image.Missing as why:
            raise Unmeasured(str(why)) from None
        self.rendered = _rendered(self.folder)

    @contextmanager
    def machine(self) -> Iterator[machine.Machine]:
        """Boot a machine; it is gone afterwards."""
        self.booted += 1
        booted = machine.boot(
            self.prefix, self.folder / f"machine-{self.booted}", self.folder / "uv-cache", self.uv
        )
        booted.variables["PIP_CACHE_DIR"] = str(self.folder / "pip-cache")
        try:
            yield booted
        finally:
            machine.end(booted)


_MADE: dict[Path, _Colab] = {}


def checked(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure the cell where it asks for a card that is not there: it unpacks, looks at the
    machine, says so, and stops.
    """
    colab = _colab(workshop)

    def card(document: dict[str, Any]) -> None:
        document["gpu"] = {"type": "T4", "device": "Tesla T4", "count": 1}

    asking = colab.rendered.otherwise(colab.folder / "asking", card)
    with colab.machine() as booted, Notebook(booted, asking.notebook) as notebook:
        return repeat(lambda: _timed(notebook, "check", booted), rounds=5), None


def again(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure the cell where all is as it left it: sizes of files are compared, and the stored
    report is shown.
    """
    colab = _colab(workshop)
    with colab.machine() as booted, Notebook(booted, colab.rendered.notebook) as notebook:
        _timed(notebook, "report", booted)
        return repeat(lambda: _timed(notebook, "report", booted), rounds=5), None


def install(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure the stages from comparing to auditing, and a bare uv for the same wheels on such a
    machine; both from a warm cache.
    """
    return _installing(
        workshop,
        lambda booted, pins: (
            str(booted.folder / "tools/uv"),
            "pip",
            "install",
            "--python",
            str(booted.python),
            *_strict(pins),
        ),
    )


def pip(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure the same, and the usual `pip install -r` of the same pins."""
    return _installing(
        workshop,
        lambda booted, pins: (
            str(booted.python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "-r",
            str(pins),
        ),
    )


def _installing(
    workshop: Workshop, words: Callable[[machine.Machine, Path], tuple[str, ...]]
) -> tuple[Cost, Cost | None]:
    colab = _colab(workshop)
    pins = _pins(colab)

    def ours() -> Cost:
        with colab.machine() as booted, Notebook(booted, colab.rendered.notebook) as notebook:
            spent = _timed(notebook, "report", booted)
            seconds = booted.status["seconds"]
            return Cost(
                sum(seconds.get(stage, 0) for stage in ("compare", "install", "audit")), spent.cpu_s
            )

    def theirs() -> Cost:
        with colab.machine() as booted:
            return cost(Call(words(booted, pins), booted.environment(), booted.content))

    return alternate(ours, theirs, rounds=3)


def _strict(pins: Path) -> tuple[str, ...]:
    return ("--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "-r", str(pins))


def _pins(colab: _Colab) -> Path:
    """Write what is added on top of the image, with the hashes of the lock."""
    document = colab.rendered.document
    due = {*document["predicted"]["added"], *document["predicted"]["changed"]}
    rows = [one for one in document["install"]["packages"] if one["name"] in due]
    lines = [
        " ".join(
            [
                f"{one['name']}=={one['version']}",
                *(f"--hash=sha256:{sha}" for sha in one["files"].values()),
            ]
        )
        for one in rows
    ]
    path = colab.folder / "pins.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def _timed(notebook: Notebook, stage: str, booted: machine.Machine) -> Cost:
    """Run the first cell; its wall clock as a person waits for it, and the CPU of its kernel and of
    what that started.
    """
    before = _spent(notebook)
    ran: Ran = notebook.run(0)
    if booted.status["stage"] != stage or (stage == "report" and ran.ended != "ok"):
        raise Unmeasured(f"the cell ended at {booted.status['stage']}: {ran.text[-1500:]}")
    return Cost(ran.seconds, _spent(notebook) - before)


def _spent(notebook: Notebook) -> float:
    words = Path(f"/proc/{notebook.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def _colab(workshop: Workshop) -> _Colab:
    if workshop.folder not in _MADE:
        _MADE[workshop.folder] = _Colab(workshop)
    return _MADE[workshop.folder]


def _rendered(folder: Path) -> Rendered:
    tool, project = catalogue.lay_out(folder / "tool"), folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    (project / "bench.yaml").write_text(_SPEC)
    for verb in ("lock", "render"):
        done: subprocess.CompletedProcess[str] = tool.run(verb, "bench.yaml", cwd=project)
        if done.returncode:
            raise Unmeasured(f"provision {verb}: {(done.stdout + done.stderr)[-1500:]}")
    return Rendered(project / "bench.colab.py", project / "bench.ipynb")
