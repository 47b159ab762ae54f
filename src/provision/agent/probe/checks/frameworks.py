"""Checks of jax and Keras: device, products, memory, speed, and a small training run."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold
from .device import PRODUCT_FAILS
from .numerics import FP32_ERROR
from .training import LOSS_RATIO

RESUMED_DIFFERENCE = Threshold(
    1e-3,
    "relative Frobenius distance of the weights",
    "jax and Keras on TensorFlow measure 0, Keras on jax up to 9.9e-6, as the model that was "
    "loaded is compiled again; a resume without the state of the optimizer measures 0.30 to 0.57",
)

DATA_DIFFERENCE = Threshold(
    1e-3,
    RESUMED_DIFFERENCE.unit,
    "Keras measures 0 on each backend; one batch that is made twice 0.12, batches that begin with "
    "the second one 0.31, a tf.data pipeline without its map 0.44",
)
LIMIT_DIFFERENCE = Threshold(
    0.05,
    "share of the card's memory",
    "own choice: jax may take 74.7 % of the memory that the driver reports for an H200, and 74.6 % "
    "for an H100, where 75 % is declared",
)

_DEVICE_CAUSES = (
    "framework.why",
    "framework.cuda",
    "package.jaxlib",
    "package.tensorflow",
    "driver.version",
    "gpu.name",
)
_ARRAYS = (Need.FRAMEWORK, Need.ARRAYS)
_framework = partial(Check, group="framework", stage="framework", after=("J01",), quiet=True)
_training = partial(
    _framework,
    group="training",
    stage="framework-training",
    needs=(Need.FRAMEWORK,),
    after=("J05",),
    causes=("package.keras", "package.jax"),
)
CHECKS = (
    _framework(
        "J01", title="device of the framework", causes=_DEVICE_CAUSES, needs=_ARRAYS, after=()
    ),
    _framework(
        "J02",
        title="matrix products",
        causes=("framework.default_error", *_DEVICE_CAUSES),
        needs=_ARRAYS,
        threshold=FP32_ERROR,
    ),
    _framework(
        "J03",
        title="GPU memory for the framework",
        causes=("nvml.used_bytes", "gpu.name"),
        needs=(*_ARRAYS, Need.GPU),
    ),
    _framework(
        "J04",
        title="matrix multiplication speed of the framework",
        causes=("nvml.reasons", "nvml.power_limit_mw", "gpu.name"),
        needs=(*_ARRAYS, Need.GPU),
        threshold=PRODUCT_FAILS,
    ),
    _framework(
        "J10",
        title="GPU memory in advance",
        causes=("framework.memory_env.*", "framework.memory_growth"),
        needs=(*_ARRAYS, Need.GPU),
        required_by="",
        threshold=LIMIT_DIFFERENCE,
    ),
    _training(
        "J05",
        title="learns",
        after=(),
        causes=("framework.trained_on", "package.keras", "package.jax", "package.jaxlib"),
        threshold=LOSS_RATIO,
    ),
    _training("J06", title="precision in effect"),
    _training(
        "J07",
        title="repeats exactly",
        causes=("framework.repeat_sha", "framework.determinism", "gpu.name"),
    ),
    _training(
        "J09",
        title="same batches from workers and tf.data",
        causes=("framework.data_workers", "package.keras", "package.tensorflow", "package.numpy"),
        needs=(Need.FRAMEWORK, Need.KERAS),
        threshold=DATA_DIFFERENCE,
    ),
    _training(
        "J08",
        title="resumes in a fresh process",
        stage="framework-resume",
        causes=("framework.checkpoint_missing", "package.keras", "package.jax", "gpu.name"),
        threshold=RESUMED_DIFFERENCE,
    ),
)
