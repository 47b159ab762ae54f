"""The scripts of examples/keras-memory, with real Keras under a real limit of memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.training.framework_stacks import make_stack
from tests.training.memory_group import memory_group

pytestmark = [pytest.mark.long, pytest.mark.network]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/keras-memory"
LIMIT = 1500 << 20
COUNT = "40000"  # 0.9 GiB as float64, of which Keras makes copies


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Keras, and the scripts."""
    folder = make_stack(tmp_path_factory, "keras")
    for script in EXAMPLES.glob("*.py"):
        shutil.copy(script, folder)
    return folder


@pytest.fixture
def group() -> Iterator[Path]:
    with memory_group(LIMIT) as procs:
        yield procs


def provision(
    folder: Path, *words: str, group: Path | None = None
) -> subprocess.CompletedProcess[str]:
    argv = [*fork_server.ARGV, *words]
    if group is not None:
        argv = ["sh", "-c", f'echo $$ > "{group}" && exec "$@"', "sh", *argv]
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )


def ram_of(folder: Path, group: Path) -> dict[str, Any]:
    """Return how the last run fits this machine with the limit."""
    done = provision(folder, "fit", "stack.yaml", "--output-format", "json", group=group)
    (target,) = json.loads(done.stdout)["targets"]
    ram: dict[str, Any] = next(row for row in target["resources"] if row["resource"] == "ram")
    assert ram["available"]["bytes"] == LIMIT
    return ram


def test_data_in_memory_is_killed_under_a_limit_that_fit_names(project: Path, group: Path) -> None:
    train = ("run", "stack.yaml", "--", "python", "train.py", COUNT)
    whole = provision(project, *train)
    assert whole.returncode == 0, whole.stderr[-2000:]
    ram = ram_of(project, group)
    assert ram["fits"] is False
    assert any(saving.startswith("read the data in parts") for saving in ram["savings"])
    assert any("images as float32" in saving for saving in ram["savings"])
    killed = provision(project, *train, group=group)
    assert killed.returncode in {137, -9}
    assert "the kernel killed it because memory ran out" in killed.stderr
    in_parts = ("run", "stack.yaml", "--", "python", "train_in_parts.py", COUNT)
    done = provision(project, *in_parts, group=group)
    assert done.returncode == 0, done.stderr[-2000:]
    assert ram_of(project, group)["fits"] is True


def test_a_program_notes_its_large_arrays_once_and_no_memory_maps(
    project: Path, tmp_path: Path
) -> None:
    program = (
        "import numpy as np\n"
        "images = np.ones((2 << 20,)); view = images[1:]; small = np.ones(10)\n"
        "mapped = np.memmap('map', dtype='uint8', mode='w+', shape=(4 << 20,)); part = mapped[1:]\n"
        "labels = np.arange(1 << 20, dtype='int32').reshape(2, -1)\n"
    )
    python = project / ".provision/envs/stack.local/bin/python"
    hook = EXAMPLES.parents[1] / "src/provision/agent/probe/monitor/hook"
    environment = {**os.environ, "PYTHONPATH": str(hook), "PROVISION_RUN_NOTES": str(tmp_path)}
    subprocess.run([python, "-c", program], cwd=tmp_path, env=environment, check=True)
    (note,) = tmp_path.glob("arrays-*.json")
    rows = json.loads(note.read_text())["arrays"]
    assert rows == [
        {"name": "images", "dtype": "float64", "bytes": 16 << 20},
        {"name": "labels", "dtype": "int32", "bytes": 4 << 20},
    ]


PROGRAM = """
import keras, numpy as np
model = keras.Sequential([keras.Input((512,)), keras.layers.Dense(1024), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(np.ones((64, 512), "float32"), np.ones(64), verbose=0)
same = model
untrained = keras.Sequential([keras.Input((512,)), keras.layers.Dense(2048)])
small = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
"""


def test_a_program_notes_the_weights_and_optimizers_of_its_models(project: Path) -> None:
    (project / "models.py").write_text(PROGRAM)
    done = provision(project, "run", "stack.yaml", "--", "python", "models.py")
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = sorted(project.glob(".provision/reports/stack.local/runs/*.json"))[-1:]
    parameters = 512 * 1024 + 1024 + 1024 + 1
    rows = {(row["name"], row["part"]): row for row in json.loads(path.read_text())["tensors"]}
    assert set(rows) == {("model", "weights"), ("model", "optimizer"), ("untrained", "weights")}
    assert rows["model", "weights"]["bytes"] == 4 * parameters
    # Adam has two values for each parameter, and some counters.
    assert 0 <= rows["model", "optimizer"]["bytes"] - 8 * parameters < 64
    assert {row["device"] for row in rows.values()} == {"cpu"}
    shown = provision(project, "fit", "stack.yaml").stdout
    assert "weights of model (2 MiB)" in " ".join(shown.split())
