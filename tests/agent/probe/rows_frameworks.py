"""Cases of judging what jax and Keras compute and train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from provision.agent.probe.proofs.frameworks import MEMORY_VARIABLES
from provision.agent.probe.report_json import expand
from tests.agent.probe.rows import H200_CARD, Row

GIB = 1024**3
RECORDED = Path(__file__).parents[2] / "reports/recorded"


def recorded(name: str) -> dict[str, Any]:
    """Return the readings of a recorded report by key."""
    report = expand(json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8")))
    return {reading["key"]: reading["value"] for reading in report["readings"]}


def set_memory(name: str, seen: dict[str, Any], **variables: str) -> dict[str, Any]:
    """Return readings with the variables of a library's memory; those not named are not set."""
    keys = {f"framework.memory_env.{key}": variables.get(key) for key in MEMORY_VARIABLES[name]}
    return {"framework.name": name, "framework.memory_growth": None, **seen, **keys}


def on_h200(**variables: str) -> dict[str, Any]:
    """Return the recorded limit of jax on an H200, with variables for it."""
    limit = recorded("gpu-h200-jax")["framework.limit_bytes"]
    total = recorded("gpu-h200")["gpu.vram_bytes"]
    seen = {"framework.memory_limit_bytes": limit, "gpu.vram_bytes": total}
    return set_memory("jax", seen, **variables)


def on_h100(**variables: str) -> dict[str, Any]:
    """Return the recorded limit of jax on an H100, with variables for it."""
    limit = recorded("gpu-h100-jax")["framework.limit_bytes"]
    total = recorded("gpu-h100")["gpu.vram_bytes"]
    seen = {"framework.memory_limit_bytes": limit, "gpu.vram_bytes": total}
    return set_memory("jax", seen, **variables)


def growing(growth: bool | None, **variables: str) -> dict[str, Any]:
    """Return what TensorFlow reports about one card, with variables for it."""
    return set_memory("tensorflow", {"framework.memory_growth": [growth]}, **variables)


TRAINING = {
    "framework": "jax",
    "precision": "fp32",
    "dataloader_workers": 0,
    "gradient_checkpointing": False,
    "optimizer": "adamw_torch",
    "arguments": {},
}
JAX: dict[str, Any] = {"packages": [{"name": "jax", "version": "0.10.2"}], "training": TRAINING}
KERAS = {
    "packages": [{"name": "keras", "version": "3.15.1"}, {"name": "torch", "version": "2.13.0"}],
    "training": {
        **TRAINING,
        "framework": "keras",
        "method": "full",
        "model": None,
        "batch_size": None,
        "sequence_length": None,
        "torch_compile": False,
        "strategy": "none",
        "launcher": "auto",
        "backend": "torch",
    },
}
H200: dict[str, Any] = {**JAX, "gpu": {"type": "H200", "count": 1}, "card": H200_CARD}
TWO = {**H200, "gpu": {"type": "H200", "count": 2}}
BF16 = {**JAX, "training": {**TRAINING, "precision": "bf16"}}
FP8 = {**JAX, "training": {**TRAINING, "precision": "fp8"}}
ON_CPU = {
    "framework.name": "jax",
    "framework.version": "0.10.2",
    "framework.platform": "cpu",
    "framework.devices": ["cpu"],
    "framework.errors": {},
    "framework.why": "Unknown backend cuda",
}
ON_CARD = {
    **ON_CPU,
    "framework.platform": "gpu",
    "framework.devices": ["NVIDIA H200"],
    "framework.why": None,
}
RIGHT = {
    "framework.name": "jax",
    "framework.highest_error": 2.1e-7,
    "framework.bf16_error": 1.66e-3,
    "framework.default_error": 2.9e-4,
}
MEMORY = {
    "framework.name": "jax",
    "framework.limit_bytes": 100 * GIB,
    "framework.wanted_bytes": 80 * GIB,
    "framework.held_bytes": 80 * GIB,
}
LEARNT = {
    "framework.loss_first": 4.3,
    "framework.loss_last": 0.002,
    "framework.steps": 40,
    "framework.trained_on": "cpu",
}
ON_TENSORFLOW: dict[str, Any] = {
    **H200,
    "packages": [
        {"name": "keras", "version": "3.15.1"},
        {"name": "tensorflow", "version": "2.21.0"},
    ],
    "training": {**KERAS["training"], "backend": "tensorflow"},
}
REPEATED = {
    "framework.weights_sha": "a",
    "framework.repeat_sha": "a",
    "framework.determinism": {},
}
FED = {
    "framework.data_workers": 2,
    "framework.workers_met": True,
    "framework.workers_difference": 0.0,
    "framework.has_pipeline": True,
    "framework.pipeline_difference": 0.0,
}
WITH_INSTRUCTIONS = {"packages": [{"name": "tensorflow", "version": "2.21.0"}]}
RESUMED = {
    "framework.checkpoint_missing": [],
    "framework.resumed_steps": 40,
    "framework.resumed_made": 20,
    "framework.resumed_difference": 9.9e-6,
}

OF_FRAMEWORKS = [
    Row("J01", "pass", ON_CPU, JAX, "jax 0.10.2 runs on cpu"),
    Row("J01", "pass", ON_CARD, H200, "NVIDIA H200"),
    Row("J01", "fail", ON_CPU, H200, "runs on the cpu: Unknown backend cuda"),
    Row("J01", "fail", ON_CARD, JAX, "runs on the gpu"),
    Row(
        "J01",
        "fail",
        {**ON_CARD, "framework.errors": {"NVIDIA H200 0": "1 + 1 is 3"}},
        H200,
        "cannot add two numbers",
    ),
    Row("J01", "fail", ON_CARD, TWO, "sees only 1 of 2 GPUs"),
    Row("J02", "pass", RIGHT, H200, "tf32"),
    Row(
        "J02",
        "fail",
        {**RIGHT, "framework.highest_error": 2.9e-4},
        H200,
        "fp32 matrix products in jax are wrong",
    ),
    Row("J02", "fail", {**RIGHT, "framework.bf16_error": 0.02}, H200, "bf16 matrix products"),
    Row("J03", "pass", MEMORY, H200, "80 GiB of the 100 GiB"),
    Row("J03", "fail", {**MEMORY, "framework.held_bytes": 12 * GIB}, H200, "only 12 GiB of 80 GiB"),
    Row("J03", "unknown", {"framework.wanted_bytes": None, "framework.held_bytes": None}, H200),
    Row("J04", "pass", {"framework.speed_tflops": 780.0}, H200, "780 TFLOP/s"),
    Row("J04", "warn", {"framework.speed_tflops": 610.0}, H200, "62%"),
    Row("J04", "fail", {"framework.speed_tflops": 400.0}, H200, "40%"),
    Row("J04", "unknown", {"framework.speed_tflops": None}, H200),
    Row("J05", "pass", LEARNT, JAX, "from 4.3 to 0.002 in 40 steps on the cpu"),
    Row("J05", "pass", {**LEARNT, "framework.trained_on": "gpu"}, H200),
    Row("J05", "fail", LEARNT, H200, "training ran on the cpu"),
    Row("J05", "fail", {**LEARNT, "framework.loss_last": 4.2}, JAX, "did not learn"),
    Row("J05", "fail", {**LEARNT, "framework.steps": 20}, JAX, "in 20 steps"),
    Row("J05", "pass", LEARNT, KERAS),
    Row("J06", "pass", {"framework.dtype": "bfloat16"}, BF16, "bfloat16"),
    Row("J06", "fail", {"framework.dtype": "float32"}, BF16, "bf16 is not in effect"),
    Row("J06", "pass", {"framework.dtype": "float32", "framework.default_error": 4e-7}, JAX),
    Row(
        "J06",
        "warn",
        {"framework.dtype": "float32", "framework.default_error": 2.9e-4},
        H200,
        "tf32",
    ),
    Row("J06", "unknown", {"framework.dtype": "float32"}, FP8),
    Row("J07", "pass", REPEATED, JAX, "the same weights"),
    Row(
        "J07",
        "pass",
        {**REPEATED, "framework.determinism": {"xla_gpu_deterministic_ops": True}},
        H200,
        "with xla_gpu_deterministic_ops on",
    ),
    Row(
        "J07",
        "fail",
        {**REPEATED, "framework.determinism": {"op_determinism": False}},
        ON_TENSORFLOW,
        "op_determinism was requested but is not in effect",
    ),
    Row("J07", "fail", {**REPEATED, "framework.repeat_sha": "b"}, JAX, "different weights"),
    Row("J08", "pass", RESUMED, JAX, "the same weights"),
    Row("J08", "fail", {**RESUMED, "framework.resumed_difference": 0.3}, JAX, "different weights"),
    Row("J08", "fail", {**RESUMED, "framework.resumed_made": 40}, JAX, "different weights"),
    Row("J08", "fail", {**RESUMED, "framework.resumed_difference": None}, JAX, "different weights"),
    Row(
        "J08",
        "fail",
        {"framework.checkpoint_missing": ["weights.npz"]},
        JAX,
        "is missing weights.npz",
    ),
    Row("J09", "pass", FED, KERAS, "a PyDataset with 2 workers and a tf.data pipeline"),
    Row(
        "J09",
        "pass",
        {**FED, "framework.has_pipeline": False, "framework.pipeline_difference": None},
        KERAS,
        "tf.data is not tested",
    ),
    Row("J09", "fail", {**FED, "framework.workers_met": False}, KERAS, "only one batch at a time"),
    Row("J09", "fail", {**FED, "framework.workers_difference": 0.12}, KERAS, "with 2 workers"),
    Row("J09", "fail", {**FED, "framework.pipeline_difference": 0.31}, KERAS, "a tf.data pipeline"),
    Row("J09", "fail", {**FED, "framework.pipeline_difference": None}, KERAS, "a tf.data pipeline"),
    Row("J10", "pass", on_h200(), H200, "jax takes 75% of the GPU memory"),
    Row("J10", "pass", on_h100(), H200, "at most 59.38 GiB"),
    Row(
        "J10",
        "pass",
        on_h200(XLA_PYTHON_CLIENT_PREALLOCATE="false"),
        H200,
        "as it needs it, at most 104.9 GiB (XLA_PYTHON_CLIENT_PREALLOCATE=false)",
    ),
    Row(
        "J10",
        "pass",
        on_h200(XLA_PYTHON_CLIENT_ALLOCATOR="platform"),
        H200,
        "as it needs it",
    ),
    Row(
        "J10",
        "warn",
        on_h200(XLA_PYTHON_CLIENT_MEM_FRACTION=".5"),
        H200,
        "can allocate 75% of the GPU memory: XLA_PYTHON_CLIENT_MEM_FRACTION=.5 is not in effect",
    ),
    Row(
        "J10",
        "pass",
        {**on_h200(XLA_CLIENT_MEM_FRACTION=".5"), "framework.memory_limit_bytes": 70 * GIB},
        H200,
        "jax takes 50%",
    ),
    Row("J10", "pass", on_h200(XLA_PYTHON_CLIENT_MEM_FRACTION=".5"), TWO, "jax takes 50%"),
    Row(
        "J10",
        "pass",
        on_h200(XLA_PYTHON_CLIENT_MEM_FRACTION=".5", XLA_PYTHON_CLIENT_ALLOCATOR="cuda_async"),
        H200,
        "jax takes 50%",
    ),
    Row("J10", "warn", on_h200(XLA_CLIENT_MEM_FRACTION="half"), H200, "=half has no effect"),
    Row("J10", "warn", on_h200(XLA_PYTHON_CLIENT_ALLOCATOR="malloc"), H200, "=malloc has no"),
    Row("J10", "warn", on_h200(XLA_PYTHON_CLIENT_PREALLOCATE="FALSE"), H200, "=FALSE has no"),
    Row("J10", "pass", growing(None), ON_TENSORFLOW, "nearly all free GPU memory"),
    Row("J10", "pass", growing(True), ON_TENSORFLOW, "memory growth is on"),
    Row(
        "J10",
        "pass",
        growing(True, TF_FORCE_GPU_ALLOW_GROWTH="false"),
        ON_TENSORFLOW,
        "nearly all free GPU memory",
    ),
    Row("J10", "pass", growing(None, TF_FORCE_GPU_ALLOW_GROWTH="true"), ON_TENSORFLOW, "(TF_FORCE"),
    Row("J10", "warn", growing(None, TF_FORCE_GPU_ALLOW_GROWTH="1"), ON_TENSORFLOW, "=1 has no"),
    Row("H13", "pass", {"host.missing_instructions": []}, WITH_INSTRUCTIONS, "AVX"),
    Row(
        "H13",
        "fail",
        {"host.missing_instructions": ["avx"]},
        WITH_INSTRUCTIONS,
        "this processor lacks the AVX instructions required by tensorflow",
    ),
    Row("H13", "unknown", {"host.missing_instructions": None}, WITH_INSTRUCTIONS),
]
