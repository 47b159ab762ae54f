"""What the training runs of jax and Keras share: variables, outcome, and the hash of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..expectations import Expectations
from ..instructions import avx_packages, require_instructions

STEPS, SAVE_AT, BATCH, SEED = 40, 20, 8, 20
HALF_TYPES = {"bf16": "bfloat16", "fp16": "float16"}
_DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
MEMORY_VARIABLES = {
    "tensorflow": ("TF_FORCE_GPU_ALLOW_GROWTH",),
    "jax": (
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    ),
}
"""Variables that decide how much memory of a GPU a library takes in advance
(tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc; jaxlib/xla_client.py).
"""


@dataclass(frozen=True, slots=True)
class FrameworkOutcome:
    """Result of a run: losses, the final weights by name, the type that a layer computes in.

    `platform` is where the weights are, as the framework calls it ("gpu", "cpu").
    """

    losses: tuple[float, ...]
    weights: dict[str, Any]
    dtype: str
    platform: str
    steps: int
    determinism: dict[str, bool]
    """The switches for deterministic kernels, as the library reports them."""


class FrameworkRun(Protocol):
    """A run that is ready to train."""

    def train(self, resume_from: Path | None = None) -> FrameworkOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        ...


def prepare_framework(
    environ: MutableMapping[str, str], expected: Expectations, *, deterministic: bool = False
) -> None:
    """Set what has to stand before jax, TensorFlow or Keras is imported.

    The memory of the card is taken as it is needed, so that the test of it sees what is free. XLA
    chooses slower kernels where it has to be deterministic.
    """
    environ["KERAS_BACKEND"] = expected.backend
    environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    if expected.gpu_type is None:
        environ.update({"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"})
        return
    environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    flags = environ.get("XLA_FLAGS", "")
    if deterministic and _DETERMINISTIC not in flags:
        environ["XLA_FLAGS"] = f"{flags} {_DETERMINISTIC}".strip()


def require_backend_instructions(expected: Expectations, root: Path) -> None:
    """Raise MissingInstructionsError if importing the backend would end the process."""
    if expected.backend != "torch":
        require_instructions(avx_packages(expected.packages, expected.platform), root)


def xla_determinism(environ: Mapping[str, str], expected: Expectations) -> dict[str, bool]:
    """Return whether XLA was started with deterministic GPU kernels; {} without a GPU."""
    if expected.gpu_type is None:
        return {}
    # XLA aborts on a flag that it does not have, so a flag that is set is in effect.
    flags = environ.get("XLA_FLAGS", "").split()
    return {"xla_gpu_deterministic_ops": _DETERMINISTIC in flags}


def arrays_hash(arrays: Mapping[str, Any]) -> str:
    """Return the sha256 over names, types, shapes and bytes of arrays."""
    import numpy

    total = hashlib.sha256()
    for name in sorted(arrays):
        values = numpy.ascontiguousarray(arrays[name])
        total.update(f"{name} {values.dtype} {values.shape}\n".encode())
        total.update(values.tobytes())
    return total.hexdigest()


def largest_difference(arrays: Mapping[str, Any], others: Mapping[str, Any]) -> float | None:
    """Return the largest relative Frobenius distance of arrays; None for other names or shapes."""
    import numpy

    if arrays.keys() != others.keys():
        return None
    distances = [0.0]
    for name, array in arrays.items():
        if numpy.shape(array) != numpy.shape(others[name]):
            return None
        apart = numpy.linalg.norm(numpy.ravel(array) - numpy.ravel(others[name]))
        distances.append(float(apart / max(float(numpy.linalg.norm(numpy.ravel(array))), 1e-30)))
    return max(distances)
