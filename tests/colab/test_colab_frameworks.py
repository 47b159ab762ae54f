"""Trainings with jax and Keras on the stand-in for a Colab runtime, in their own environment."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.colab.conftest import LIGHT
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered

pytestmark = [pytest.mark.network, pytest.mark.long]
JAX = (
    LIGHT.replace("[numpy, tqdm, einops]", "[jax==0.10.*]")
    .replace("framework: none", "framework: jax")
    .replace('runtime: "2025.07"}', 'runtime: "2025.07", isolation: venv}')
)

KERAS = (
    JAX.replace("[jax==0.10.*]", "[keras==3.*, tensorflow-cpu==2.21.*]").replace(
        "framework: jax", "framework: keras, backend: tensorflow"
    )
    + "env: {KERAS_BACKEND: tensorflow}\n"
)


def test_keras_is_verified_without_torch(render: Callable[..., Rendered], machine: Machine) -> None:
    made = render(KERAS, "keras")
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
    assert ran.ended == "ok", ran.text
    assert machine.status["outcome"] == "verified"
    assert machine.report["subject"]["proof"] == "keras"
    passed = {row["id"] for row in machine.report["checks"] if row["status"] == "pass"}
    assert passed >= {"J01", "J02", "J05", "J06", "J07", "J08"}
    readings = {row["key"]: row["value"] for row in machine.report["readings"]}
    assert (readings["framework.name"], readings["framework.dtype"]) == ("tensorflow", "float32")


def test_jax_is_verified_without_torch_and_the_kernel_is_noted(
    render: Callable[..., Rendered], machine: Machine
) -> None:
    made = render(JAX, "jax")
    with Notebook(machine, made.notebook) as notebook:
        ran = notebook.run(0)
        assert ran.ended == "ok", ran.text
    assert machine.status["outcome"] == "verified"
    assert machine.report["subject"]["proof"] == "jax"
    noted = json.loads((machine.base / "kernel.json").read_text(encoding="utf-8"))
    assert noted["kernel"]["pid"] > 0
    with Notebook(machine, made.notebook) as notebook:
        again = notebook.run(0)
    assert again.ended == "ok", again.text
    assert "memory ran out" not in again.text, "a kernel that was only restarted"
    if noted["kills"] is None:
        return  # this system does not count them
    earlier = {**noted, "kernel": {"pid": 1, "started": 1}, "kills": noted["kills"] - 1}
    (machine.base / "kernel.json").write_text(json.dumps(earlier), encoding="utf-8")
    with Notebook(machine, made.notebook) as notebook:
        told = notebook.run(0)
    assert told.ended == "ok", told.text
    assert "killed a process because memory ran out: most likely that kernel" in told.text
