"""Cases of judging what jax and Keras compute and train."""

from __future__ import annotations

from typing import Any

from tests.agent.probe.rows import H200_CARD, Row

GIB = 1024**3
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
    Row("J05", "fail", LEARNT, H200, "the training ran on the cpu"),
    Row("J05", "fail", {**LEARNT, "framework.loss_last": 4.2}, JAX, "does not learn"),
    Row("J05", "fail", {**LEARNT, "framework.steps": 20}, JAX, "after 20 steps"),
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
    Row("J07", "pass", {"framework.weights_sha": "a", "framework.repeat_sha": "a"}, JAX),
    Row(
        "J07",
        "fail",
        {"framework.weights_sha": "a", "framework.repeat_sha": "b"},
        JAX,
        "different weights",
    ),
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
]
