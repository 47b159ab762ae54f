"""What the observers of jax and TensorFlow make of a card, from recorded answers of the libraries.

The answers of jax are those of the recorded reports of an H200. Those of TensorFlow are of its
documentation (tf.config.experimental.get_device_details) and of build_info.py in its wheels.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.expectations import parse_expectations
from tests.agent.probe.rows_frameworks import H200, JAX, ON_TENSORFLOW, recorded
from tests.agent.probe.test_judging import judge_one

GIB = 2**30
LIBRARIES = {
    "jax/__init__.py": """
import json, os
told = json.loads(os.environ["ANSWERS"])
__version__ = told["version"]
class Client: platform_version = told["cuda"]
class Device:
    device_kind, platform, client = told["kind"], told["platform"], Client
    def memory_stats(self): return told["stats"]
def devices(kind=None):
    if kind and told["why"]: raise RuntimeError(told["why"])
    return [Device()] * told["count"]
def device_put(value, device):
    if told["put"]: raise RuntimeError(told["put"])
    return value
""",
    "jax/numpy.py": """
import jax
uint8, made = "uint8", []
class Array:
    def block_until_ready(self): return self
def full(shape, value, dtype):
    if len(made) >= jax.told["room"]: raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory")
    made.append(shape)
    return Array()
""",
    "tensorflow.py": """
import contextlib, json, os
from types import SimpleNamespace as Names
told = json.loads(os.environ["ANSWERS"])
__version__ = told["version"]
cards = [Names(name=f"/physical_device:GPU:{index}") for index in range(told["count"])]
details = {"device_name": told["kind"], "compute_capability": (9, 0)}
config = Names(
    list_physical_devices=lambda kind: cards,
    experimental=Names(
        get_device_details=lambda card: details,
        get_memory_growth=lambda card: told["growth"],
    ),
)
sysconfig = Names(get_build_info=lambda: told["build"])
def device(place): return contextlib.nullcontext()
def constant(value, kind=None):
    if told["put"]: raise RuntimeError(told["put"])
    return value
""",
}
OBSERVE = """
import json, os, sys
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
from provision_probe.probe.context import ObserverContext
from provision_probe.probe.expectations import parse_expectations
from provision_probe.probe.observing import frameworks
context = ObserverContext(parse_expectations(json.loads(sys.argv[3])), Path("."))
seen = {}
for id_ in ("J01", "J03", "J10"):
    seen |= frameworks.OBSERVERS[id_](context)
print(json.dumps({"seen": seen, "environ": dict(os.environ)}))
"""
ON_H200 = recorded("gpu-h200-jax")
JAX_ANSWERS: dict[str, Any] = {
    "version": ON_H200["framework.version"],
    "cuda": ON_H200["framework.cuda"],
    "kind": ON_H200["framework.devices"][0],
    "platform": "gpu",
    "count": 1,
    "stats": {"bytes_limit": ON_H200["framework.limit_bytes"]},
    "room": 1000,
    "why": None,
    "put": None,
}
TENSORFLOW_ANSWERS: dict[str, Any] = {
    "version": "2.21.0",
    "kind": "NVIDIA H200",
    "count": 1,
    "growth": None,
    "build": {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"},
    "put": None,
}
INVALID_PTX = "'cuLaunchKernel' failed with 'CUDA_ERROR_INVALID_HANDLE' [Op:AddV2]"
"""tensorflow/tensorflow#99592."""

Observe = Callable[..., dict[str, Any]]


@pytest.fixture
def observe(tmp_path: Path, probe: Path, document: Callable[..., dict[str, Any]]) -> Observe:
    """Run the real observers in a process where a library gives some answers."""
    libraries = tmp_path / "libraries"
    (libraries / "jax").mkdir(parents=True)
    for name, text in LIBRARIES.items():
        (libraries / name).write_text(text, encoding="utf-8")

    def run(declared: dict[str, Any], answers: dict[str, Any], **variables: str) -> dict[str, Any]:
        command = [sys.executable, "-c", OBSERVE, str(probe), str(libraries)]
        environ = {"ANSWERS": json.dumps(answers), **variables}
        done = subprocess.run(
            [*command, json.dumps(document(**declared))],
            capture_output=True,
            text=True,
            env=environ,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def judged(
    document: Callable[..., dict[str, Any]],
    declared: dict[str, Any],
    found: dict[str, Any],
    id_: str,
) -> tuple[str, str]:
    seen = {**found["seen"], "gpu.vram_bytes": recorded("gpu-h200")["gpu.vram_bytes"]}
    judgement = judge_one(id_, parse_expectations(document(**declared)), seen)
    return judgement.status.value, judgement.message


def test_jax_on_a_recorded_card_is_observed_as_in_the_report(
    observe: Observe, document: Callable[..., dict[str, Any]]
) -> None:
    found = observe(H200, JAX_ANSWERS, XLA_PYTHON_CLIENT_MEM_FRACTION="0.75")
    same = {key for key in ON_H200 if key in found["seen"]}
    assert {key: found["seen"][key] for key in same} == {key: ON_H200[key] for key in same}
    assert same >= {f"framework.{key}" for key in ("cuda", "devices", "errors", "held_bytes")}
    assert found["seen"]["framework.memory_env.XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.75"
    # The job's own setting is observed, and the checks take memory as they need it.
    assert found["seen"]["framework.memory_env.XLA_PYTHON_CLIENT_PREALLOCATE"] is None
    assert found["environ"]["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    for id_ in ("J01", "J03", "J10"):
        assert judged(document, H200, found, id_)[0] == "pass"


def test_a_card_that_jax_cannot_use_is_named(
    observe: Observe, document: Callable[..., dict[str, Any]]
) -> None:
    busy = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4 bytes."
    found = observe(H200, {**JAX_ANSWERS, "room": 12, "put": busy})
    assert judged(document, H200, found, "J01") == (
        "fail",
        "jax cannot add two numbers on NVIDIA H200 0",
    )
    assert busy in found["seen"]["framework.errors"]["NVIDIA H200 0"]
    assert judged(document, H200, found, "J03") == (
        "fail",
        "only 12 GiB of 83 GiB could be allocated",
    )


def test_jax_that_falls_back_to_the_cpu_is_found(
    observe: Observe, document: Callable[..., dict[str, Any]]
) -> None:
    why = "Unknown backend cuda. Available backends are ['cpu']"
    cpu = {"kind": "cpu", "platform": "cpu", "cuda": "cpu", "stats": None, "why": why}
    found = observe(H200, {**JAX_ANSWERS, **cpu})
    status, message = judged(document, H200, found, "J01")
    assert (status, message) == ("fail", f"jax runs on the cpu: {why}")
    assert found["seen"]["framework.held_bytes"] is None
    with_cpu = observe(JAX, {**JAX_ANSWERS, **cpu})
    assert with_cpu["seen"]["framework.why"] is None
    assert judged(document, JAX, with_cpu, "J01") == ("pass", "jax 0.11.2 runs on cpu")


def test_tensorflow_on_a_card_is_observed(
    observe: Observe, document: Callable[..., dict[str, Any]]
) -> None:
    found = observe(ON_TENSORFLOW, {**TENSORFLOW_ANSWERS, "growth": True})
    seen = found["seen"]
    assert (seen["framework.platform"], seen["framework.devices"]) == ("gpu", ["NVIDIA H200"])
    assert (seen["framework.cuda"], seen["framework.errors"]) == ("12.5.1", {})
    assert seen["framework.memory_growth"] == [True]
    assert judged(document, ON_TENSORFLOW, found, "J01") == (
        "pass",
        "tensorflow 2.21.0 runs on NVIDIA H200",
    )
    assert "memory growth is on" in judged(document, ON_TENSORFLOW, found, "J10")[1]
    ignored = observe(ON_TENSORFLOW, TENSORFLOW_ANSWERS, TF_FORCE_GPU_ALLOW_GROWTH="1")
    assert judged(document, ON_TENSORFLOW, ignored, "J10")[0] == "warn"
    assert ignored["environ"]["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            {"count": 0},
            "did not find its CUDA libraries or a driver",
        ),
        (
            {"count": 0, "build": {"is_cuda_build": False}},
            "this TensorFlow is a CPU build",
        ),
        ({"put": INVALID_PTX}, "tensorflow cannot add two numbers on GPU:0"),
    ],
)
def test_a_card_that_tensorflow_cannot_use_is_named(
    observe: Observe,
    document: Callable[..., dict[str, Any]],
    answers: dict[str, Any],
    message: str,
) -> None:
    found = observe(ON_TENSORFLOW, {**TENSORFLOW_ANSWERS, **answers})
    status, text = judged(document, ON_TENSORFLOW, found, "J01")
    assert status == "fail"
    assert message in text
