"""specs/hf-trainer.yaml for a T4 on runtime 2026.07: its cell, on a machine that is neither, says
so before it changes anything.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.colab_rig import smi
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered
from tests.pytorch_rig import PyTorch
from tests.rig import Bench

pytestmark = pytest.mark.network
SPEC = Path(__file__).parents[2] / "specs/hf-trainer.yaml"


@pytest.fixture
def hf_trainer(bench: Bench, pytorch: PyTorch) -> Rendered:
    """The example, locked with the rig of PyTorch's indexes and rendered."""
    shutil.copy(SPEC, bench.folder)
    for words in (("lock", SPEC.name), ("render", SPEC.name, "--target", "colab")):
        done = bench.run(*words, **pytorch.offline())
        assert done.returncode == 0, done.stdout + done.stderr
    return Rendered(bench.folder / "hf-trainer.colab.py", bench.folder / "hf-trainer.ipynb")


@pytest.mark.long
def test_the_same_bytes_are_rendered_elsewhere(
    hf_trainer: Rendered, bench: Bench, tmp_path: Path
) -> None:
    other = tmp_path / "other/place"
    other.mkdir(parents=True)
    for name in ("hf-trainer.yaml", "hf-trainer.lock"):
        shutil.copy(bench.folder / name, other)
    done = Bench(other, bench.index).run("render", SPEC.name, "--target", "colab")
    assert done.returncode == 0, done.stderr
    for file in (hf_trainer.cell, hf_trainer.notebook):
        assert (other / file.name).read_bytes() == file.read_bytes()


@pytest.mark.long
def test_its_cell_stops_at_the_check_with_what_is_otherwise(
    hf_trainer: Rendered, machine: Machine
) -> None:
    before = machine.versions()
    with Notebook(machine, hf_trainer.notebook) as notebook:
        every = notebook.run_all()
        assert [one.ended for one in every] == ["error"]
        ran = every[0]
        assert (machine.status["stage"], machine.status["outcome"]) == ("check", "stopped")
        assert re.search(
            r"this is Python 3\.11\.\d+, but the packages are locked for 3\.12", ran.text
        )
        assert re.search(r"there is no GPU, but the spec requires T4 \(Tesla T4\)", ran.text)
        assert re.search(r"choose the runtime version 2026\.07", ran.text)
        moved = {one["what"]: (one["listed"], one["found"]) for one in machine.status["moved"]}
        assert moved["Python"][0] == "3.12.13", "what the facts listed, beside what was found"
        assert machine.versions() == before
        assert notebook.run("import numpy").ended == "ok"

        machine.put(smi.L4)
        assert "the GPU is NVIDIA L4, but the spec requires T4 (Tesla T4)" in notebook.run(0).text
        machine.put(smi.T4)
        again = notebook.run(0)
        assert "GPU" not in again.text.partition("provision stopped")[2].partition("help:")[0], (
            "the Python alone is left"
        )
        assert machine.status["stage"] == "check"
    assert machine.versions() == before
