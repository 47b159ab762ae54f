"""The stand-in behaves as what it stands in for, where the cell could tell: kernels, restarts, and
how they are killed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import uv
from nbclient.exceptions import DeadKernelError

from tests.colab.conftest import TRAINED
from tests.colab_rig import smi
from tests.colab_rig.catalogue import Tool
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook

pytestmark = pytest.mark.network
CANARY = "import google.colab, google.colab._kernel, colab_kernel_launcher"


def installed(machine: Machine, *words: str) -> None:
    line = [uv.find_uv_bin(), "pip", "install", "--quiet", "--python", str(machine.python), *words]
    done = subprocess.run(
        line, capture_output=True, text=True, env=machine.environment(), timeout=600
    )
    assert done.returncode == 0, done.stderr


def canary(machine: Machine) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(machine.python), "-c", CANARY],
        capture_output=True,
        text=True,
        env=machine.environment(),
        timeout=600,
    )


def test_a_kernel_has_numpy_and_pillow_from_its_start_and_no_torch(trainer: Machine) -> None:
    with Notebook(trainer) as notebook:
        told = notebook.run(
            "import sys, os; print(*sorted({'numpy', 'PIL', 'torch', 'google.colab'} & "
            "set(sys.modules)), os.getcwd(), sys.prefix)"
        ).text
    assert told.split() == [
        "PIL",
        "google.colab",
        "numpy",
        str(trainer.content),
        str(trainer.folder / "usr"),
    ]


@pytest.mark.long
def test_a_kernel_that_is_killed_is_noticed_and_comes_back_empty(machine: Machine) -> None:
    with Notebook(machine) as notebook:
        assert notebook.run("held = 1").ended == "ok"
        assert notebook.run("import os; os.kill(os.getpid(), 9)").ended == "died"
        notebook.restart()
        assert notebook.run("held").error == "NameError"
        assert notebook.run("get_ipython().kernel.do_shutdown(True)").ended == "died"


def test_run_all_ends_with_the_first_cell_that_fails(machine: Machine) -> None:
    with Notebook(machine) as notebook:
        notebook.run("print(1)")
        notebook.run("1 / 0")
        notebook.run("print(3)")
        assert [ran.ended for ran in notebook.run_all()] == ["ok", "error"]


@pytest.mark.long
def test_another_numpy_under_a_running_kernel_breaks_what_was_built_for_it(
    machine: Machine,
) -> None:
    """The error that people report of Colab, in its own words."""
    with Notebook(machine) as notebook:
        installed(machine, "numpy==1.26.4", "pandas==2.2.2")
        broken = notebook.run("import pandas")
        assert "numpy.dtype size changed, may indicate binary incompatibility" in broken.text, (
            broken.text
        )
        notebook.restart()
        assert notebook.run("import pandas; print(pandas.__version__)").text.strip() == "2.2.2"


@pytest.mark.long
def test_what_kills_the_kernel_is_foretold_by_the_canary(machine: Machine) -> None:
    assert canary(machine).returncode == 0
    with Notebook(machine) as notebook:
        installed(machine, "ipython==9.0.0")
        assert canary(machine).returncode != 0
        with pytest.raises(DeadKernelError):
            notebook.restart()


@pytest.mark.parametrize("name", smi.CARDS)
def test_nvidia_smi_answers_what_is_asked_of_it(tmp_path: Path, name: str) -> None:
    card = smi.CARDS[name]
    smi.install(tmp_path, card)
    asked = [
        str(tmp_path / "nvidia-smi"),
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.stdout == f"{card.name}, 580.82.07, {card.memory} MiB\n"
    unknown = subprocess.run(
        [asked[0], "--query-gpu=colour", "--format=csv"], capture_output=True, text=True
    )
    assert (unknown.returncode, unknown.stdout) == (
        2,
        'Field "colour" is not a valid field to query.\n',
    )


def test_nvidia_smi_without_a_device_fails_as_the_real_one(tmp_path: Path) -> None:
    smi.install(tmp_path, None)
    done = subprocess.run([str(tmp_path / "nvidia-smi")], capture_output=True, text=True)
    assert done.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in done.stdout


def test_the_facts_of_the_tool_know_the_stand_in(tool: Tool) -> None:
    done = tool.run("lint", TRAINED.name, cwd=TRAINED.parent)
    assert done.returncode == 0, done.stdout
    assert "IMG031" not in done.stdout, "torch stays"
    assert "IMG024" in done.stdout, "the runtime is as old as it is"
