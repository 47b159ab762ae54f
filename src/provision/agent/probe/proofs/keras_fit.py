"""The proof with Keras: a small convolutional network and `fit`, on any backend of Keras 3."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..expectations import Expectations
from .frameworks import BATCH, SAVE_AT, SEED, STEPS, FrameworkOutcome, xla_determinism
from .keras_data import CLASSES, SIDE, examples_of, make_dataset

CHECKPOINT_FILES = ("model.keras", "state.json")
_RATE = 7e-3
_POLICIES = {"bf16": "mixed_bfloat16", "fp16": "mixed_float16"}
Feed = Callable[[int, int], Any]
"""Makes the data of the steps from one (included) to another (left out), counted from 0."""


class KerasRun:
    """A network that learns in which quarter of a picture the bright patch is.

    `halfway` has its weights at the step of the checkpoint.
    """

    def __init__(self, expected: Expectations, folder: Path) -> None:
        import keras

        keras.utils.set_random_seed(SEED)
        self.expected, self.folder = expected, folder
        self.halfway: dict[str, Any] = {}
        self._prepare_backend()
        keras.config.set_dtype_policy(_POLICIES.get(expected.training.precision, "float32"))
        self.model = _model()

    def train(self, resume_from: Path | None = None) -> FrameworkOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        start = self._restore(resume_from) if resume_from else 0
        losses: list[float] = []
        if not resume_from:
            losses += self.fit(0, SAVE_AT)
            self.halfway = self.weights()
            self._save(SAVE_AT)
        losses += self.fit(start or SAVE_AT, STEPS)
        layer = next(layer for layer in self.model.layers if layer.weights)
        return FrameworkOutcome(
            tuple(losses),
            self.weights(),
            str(layer.compute_dtype),
            platform_of(self.model.weights[0].value),
            start + len(losses),
            self._determinism(),
        )

    def fit(self, first: int, last: int, feed: Feed | None = None) -> list[float]:
        """Train some steps and return their losses, by default with batches made one by one."""
        import keras

        means = [0.0]
        note = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda _step, logs: means.append(float(logs["loss"]))
        )
        batches = (feed or make_dataset)(first, last)
        self.model.fit(batches, shuffle=False, verbose=0, callbacks=[note])
        # fit reports the mean since the start of the epoch.
        return [step * means[step] - (step - 1) * means[step - 1] for step in range(1, len(means))]

    def build_losses(self) -> None:
        """Build what `fit` would otherwise build with the first batch of the data.

        With workers of a PyDataset, jax and torch then begin with the second batch and end with
        the first one (Keras 3.15; keras-team/keras#20394).
        """
        self.model.test_on_batch(*examples_of(0, BATCH))

    def weights(self) -> dict[str, Any]:
        """Return the weights by position and name."""
        # A loaded model counts its layers anew, so their names are not compared.
        names = [f"{index} {weight.name}" for index, weight in enumerate(self.model.weights)]
        return dict(zip(names, self.model.get_weights(), strict=True))

    def _prepare_backend(self) -> None:
        precision, backend = self.expected.training.precision, self.expected.backend
        if backend == "tensorflow":
            import tensorflow

            experimental = tensorflow.config.experimental
            experimental.enable_op_determinism()
            experimental.enable_tensor_float_32_execution(precision == "tf32")
        if backend == "jax" and precision == "fp32":
            import jax

            jax.config.update("jax_default_matmul_precision", "highest")
        if backend == "torch" and self.expected.gpu_type is not None:
            import torch

            torch.use_deterministic_algorithms(True, warn_only=True)

    def _determinism(self) -> dict[str, bool]:
        backend = self.expected.backend
        if backend == "tensorflow":
            # tf.config has no function that reads it.
            from tensorflow.python.framework import config

            return {"op_determinism": bool(config.is_op_determinism_enabled())}
        if backend == "torch" and self.expected.gpu_type is not None:
            import torch

            return {"deterministic_algorithms": torch.are_deterministic_algorithms_enabled()}
        return xla_determinism(os.environ, self.expected) if backend == "jax" else {}

    def _save(self, number: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model.save(self.folder / "model.keras")
        state = json.dumps({"step": number})
        (self.folder / "state.json").write_text(state, encoding="utf-8")

    def _restore(self, folder: Path) -> int:
        import keras

        self.model = keras.saving.load_model(folder / "model.keras")
        return int(json.loads((folder / "state.json").read_text(encoding="utf-8"))["step"])


Run = KerasRun
"""The run of this proof; each proof module has one of this name."""


def platform_of(value: Any) -> str:
    """Return where an array of any backend is: "gpu" or "cpu"."""
    if hasattr(value, "devices"):  # jax
        return str(next(iter(value.devices())).platform)
    device = str(value.device).lower()  # "/job:localhost/.../device:gpu:0", "cuda:0"
    return "gpu" if "gpu" in device or "cuda" in device else "cpu"


def _model() -> Any:
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            layers.Input((SIDE, SIDE, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(CLASSES, dtype="float32"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(_RATE), loss=loss)
    return model
