"""The proof with Keras: a small convolutional network and `fit`, on any backend of Keras 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..expectations import Expectations
from .frameworks import BATCH, SAVE_AT, SEED, STEPS, FrameworkOutcome

CHECKPOINT_FILES = ("model.keras", "state.json")
_SIDE, _CLASSES, _EXAMPLES, _RATE = 16, 4, 104, 7e-3
_POLICIES = {"bf16": "mixed_bfloat16", "fp16": "mixed_float16"}


class KerasRun:
    """A network that learns in which quarter of a picture the bright patch is."""

    def __init__(self, expected: Expectations, folder: Path) -> None:
        import keras

        keras.utils.set_random_seed(SEED)
        if expected.backend == "tensorflow":
            import tensorflow

            tensorflow.config.experimental.enable_op_determinism()
            tensorflow.config.experimental.enable_tensor_float_32_execution(
                expected.training.precision == "tf32"
            )
        if expected.backend == "jax" and expected.training.precision == "fp32":
            import jax

            jax.config.update("jax_default_matmul_precision", "highest")
        keras.config.set_dtype_policy(_POLICIES.get(expected.training.precision, "float32"))
        self.folder = folder
        self.workers = expected.training.dataloader_workers
        self.model = _model()

    def train(self, resume_from: Path | None = None) -> FrameworkOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        start = self._restore(resume_from) if resume_from else 0
        losses: list[float] = []
        if not resume_from:
            losses += self._fit(0, SAVE_AT)
            self._save(SAVE_AT)
        losses += self._fit(start or SAVE_AT, STEPS)
        # A loaded model counts its layers anew, so their names are not compared.
        names = [f"{index} {weight.name}" for index, weight in enumerate(self.model.weights)]
        layer = next(layer for layer in self.model.layers if layer.weights)
        return FrameworkOutcome(
            tuple(losses),
            dict(zip(names, self.model.get_weights(), strict=True)),
            str(layer.compute_dtype),
            platform_of(self.model.weights[0].value),
            start + len(losses),
        )

    def _fit(self, first: int, last: int) -> list[float]:
        import keras

        means = [0.0]
        note = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda _step, logs: means.append(float(logs["loss"]))
        )
        batches = _batches(first, last, self.workers)
        self.model.fit(batches, shuffle=False, verbose=0, callbacks=[note])
        # fit reports the mean since the start of the epoch.
        return [step * means[step] - (step - 1) * means[step - 1] for step in range(1, len(means))]

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
            layers.Input((_SIDE, _SIDE, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(_CLASSES, dtype="float32"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(_RATE), loss=loss)
    return model


def _batches(first: int, last: int, workers: int) -> Any:
    import keras

    class Pictures(keras.utils.PyDataset):  # type: ignore[misc]
        """Noise with a bright patch in one quarter, which is the label."""

        def __len__(self) -> int:
            return last - first

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return pictures_of((first + index) * BATCH)

    return Pictures(workers=max(workers, 1), use_multiprocessing=False)


def pictures_of(first: int) -> tuple[Any, Any]:
    """Return a batch of pictures and the quarters with their bright patch."""
    import numpy

    pictures, quarters = [], []
    for number in range(first, first + BATCH):
        draw = numpy.random.default_rng(number % _EXAMPLES)
        picture, quarter = draw.normal(0, 0.3, (_SIDE, _SIDE, 1)), number % _CLASSES
        row, column = divmod(quarter, 2)
        half = _SIDE // 2
        picture[row * half : (row + 1) * half, column * half : (column + 1) * half] += 1
        pictures.append(picture.astype("float32"))
        quarters.append(quarter)
    return numpy.stack(pictures), numpy.array(quarters)
