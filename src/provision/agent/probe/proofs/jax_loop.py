"""The proof with plain jax: a small network, `jax.grad` and Adam, written out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..expectations import Expectations
from .frameworks import (
    BATCH,
    HALF_TYPES,
    SAVE_AT,
    SEED,
    STEPS,
    FrameworkOutcome,
    xla_determinism,
)
from .recipe import EXAMPLES, VOCABULARY, SequenceDataset

CHECKPOINT_FILES = ("weights.npz", "state.json")
_WIDTH, _INNER, _DROPOUT = 64, 128, 0.1
_RATE, _DECAY_1, _DECAY_2, _EPSILON = 7e-3, 0.9, 0.999, 1e-8
_MATMUL = {"fp32": "highest", "tf32": "tensorfloat32"}


class JaxRun:
    """A network that learns the next symbol of `SequenceDataset`, in the declared precision."""

    def __init__(self, expected: Expectations, folder: Path) -> None:
        import jax

        self.expected, self.folder = expected, folder
        self.precision = expected.training.precision
        if (matmul := _MATMUL.get(self.precision)) is not None:
            jax.config.update("jax_default_matmul_precision", matmul)
        self.weights = _first_weights()
        self.moments = [{name: value * 0 for name, value in self.weights.items()} for _ in "mv"]
        self.key = jax.random.key(SEED)
        self.step = jax.jit(self._step)

    def train(self, resume_from: Path | None = None) -> FrameworkOutcome:
        """Train to the last step, from the start or from a checkpoint."""
        import numpy

        start = self._restore(resume_from) if resume_from else 0
        losses, dtype = [], ""
        for number in range(start + 1, STEPS + 1):
            symbols = numpy.array(_batch(number))
            self.weights, self.moments, self.key, loss, product = self.step(
                self.weights, self.moments, self.key, symbols, number
            )
            losses.append(float(loss))
            dtype = str(product.dtype)
            if number == SAVE_AT and not resume_from:
                self._save(number)
        device = next(iter(self.weights["embedding"].devices()))
        return FrameworkOutcome(
            tuple(losses),
            {name: numpy.asarray(value) for name, value in self.weights.items()},
            dtype,
            str(device.platform),
            start + len(losses),
            xla_determinism(os.environ, self.expected),
        )

    def _step(
        self, weights: Any, moments: Any, key: Any, symbols: Any, number: Any
    ) -> tuple[Any, Any, Any, Any, Any]:
        import jax

        key, drawn = jax.random.split(key)
        (loss, product), gradients = jax.value_and_grad(self._loss, has_aux=True)(
            weights, symbols, drawn
        )
        kept, first, second = {}, {}, {}
        for name, gradient in gradients.items():
            first[name] = _DECAY_1 * moments[0][name] + (1 - _DECAY_1) * gradient
            second[name] = _DECAY_2 * moments[1][name] + (1 - _DECAY_2) * gradient**2
            steep = second[name] / (1 - _DECAY_2**number)
            step = first[name] / (1 - _DECAY_1**number) / (steep**0.5 + _EPSILON)
            kept[name] = weights[name] - _RATE * step
        return kept, [first, second], key, loss, product

    def _loss(self, weights: Any, symbols: Any, key: Any) -> tuple[Any, Any]:
        import jax
        import jax.numpy as jnp

        half = HALF_TYPES.get(self.precision)
        cast = {name: value.astype(half) if half else value for name, value in weights.items()}
        hidden = cast["embedding"][symbols[:, :-1]]
        hidden = jax.nn.relu(hidden @ cast["inner"] + cast["bias"])
        is_kept = jax.random.bernoulli(key, 1 - _DROPOUT, hidden.shape)
        product = jnp.where(is_kept, hidden / (1 - _DROPOUT), 0).astype(hidden.dtype) @ cast["head"]
        chances = jax.nn.log_softmax(product.astype(jnp.float32))
        right = jnp.take_along_axis(chances, symbols[:, 1:, None], axis=-1)
        return -right.mean(), product

    def _save(self, number: int) -> None:
        import jax
        import numpy

        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {
            f"{place} {name}": numpy.asarray(value)
            for place, values in zip("wmv", (self.weights, *self.moments), strict=True)
            for name, value in values.items()
        }
        key = numpy.asarray(jax.random.key_data(self.key))
        numpy.savez(self.folder / "weights.npz", key=key, **arrays)
        state = json.dumps({"step": number})
        (self.folder / "state.json").write_text(state, encoding="utf-8")

    def _restore(self, folder: Path) -> int:
        import jax
        import jax.numpy as jnp
        import numpy

        with numpy.load(folder / "weights.npz") as arrays:
            self.key = jax.random.wrap_key_data(jnp.asarray(arrays["key"]))
            self.weights, *self.moments = (
                {name: jnp.asarray(arrays[f"{place} {name}"]) for name in self.weights}
                for place in "wmv"
            )
        return int(json.loads((folder / "state.json").read_text(encoding="utf-8"))["step"])


Run = JaxRun
"""The run of this proof; each proof module has one of this name."""


def _first_weights() -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    one, two, three = jax.random.split(jax.random.key(SEED), 3)
    return {
        "embedding": jax.random.normal(one, (VOCABULARY, _WIDTH)),
        "inner": jax.random.normal(two, (_WIDTH, _INNER)) * _WIDTH**-0.5,
        "bias": jnp.zeros(_INNER),
        "head": jax.random.normal(three, (_INNER, VOCABULARY)) * _INNER**-0.5,
    }


def _batch(number: int) -> list[list[int]]:
    examples = SequenceDataset()
    first = (number - 1) * BATCH
    return [examples[(first + index) % EXAMPLES]["input_ids"] for index in range(BATCH)]
