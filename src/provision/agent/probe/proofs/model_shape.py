"""The shape of a transformer with the declared number of parameters."""

from __future__ import annotations

from dataclasses import dataclass

_HEAD = 64
_BYTES, _USUAL_VOCABULARY, _LARGEST_VOCABULARY = 256, 32000, 131072
"""Vocabularies: bytes, Llama 2's (32 thousand), and those of recent models (128 thousand). The spec
does not give one, and logits take memory with it.
"""
_SHARE = 0.2
"""Of the parameters, what a usual vocabulary may take; a smaller model has the vocabulary of bytes
at least.
"""
_USUAL_INNER = 8 / 3
"""Inner size of a gated feed-forward layer over the hidden size: 8/3 (Llama, arXiv 2302.13971,
section 2.2).
"""
_DEPTH = 128
"""Hidden size over layers where the spec gives neither: 4096/32 of the models of 7 billion
parameters.
"""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder with gated feed-forward layers, whose embedding is also its head."""

    hidden: int
    layers: int
    inner: int
    vocabulary: int
    heads: int

    @property
    def parameters(self) -> int:
        """Number of parameters: attention, feed-forward, norms, embedding."""
        return (
            self.layers * _layer(self.hidden, self.inner)
            + self.vocabulary * self.hidden
            + self.hidden
        )

    def __str__(self) -> str:
        """Its sizes in words."""
        return (
            f"{self.layers} layers of {self.hidden}, inner {self.inner}, vocabulary "
            f"{self.vocabulary}"
        )


def choose_shape(parameters: int, hidden: int | None, layers: int | None) -> ModelShape:
    """Return the shape nearest to `parameters`; declared sizes are kept.

    It may be far off if they contradict each other.
    """
    if hidden is None or layers is None:
        hidden, layers = _proportioned(parameters, hidden, layers)
    least = _USUAL_VOCABULARY if _USUAL_VOCABULARY * hidden <= _SHARE * parameters else _BYTES
    vocabulary = max(
        least,
        min(
            _LARGEST_VOCABULARY,
            (parameters - layers * _layer(hidden, round(_USUAL_INNER * hidden)) - hidden) // hidden,
        ),
    )
    left = parameters - vocabulary * hidden - hidden
    inner = max(1, round((left / layers - 4 * hidden**2 - 2 * hidden) / (3 * hidden)))
    return ModelShape(hidden, layers, inner, vocabulary, _heads(hidden))


def _layer(hidden: int, inner: int) -> int:
    return 4 * hidden**2 + 3 * hidden * inner + 2 * hidden


def _proportioned(parameters: int, hidden: int | None, layers: int | None) -> tuple[int, int]:
    # A layer has about 12 h^2 parameters; a tenth is left for the vocabulary.
    room = 0.9 * parameters / 12
    if layers is not None:
        return _multiple((room / layers) ** 0.5), layers
    if hidden is not None:
        return hidden, max(1, round(room / hidden**2))
    layers = max(1, round((room / _DEPTH**2) ** (1 / 3)))
    return _multiple((room / layers) ** 0.5), layers


def _multiple(hidden: float) -> int:
    return max(_HEAD, round(hidden / _HEAD) * _HEAD)


def _heads(hidden: int) -> int:
    """Heads of 64 where that divides; rotary embeddings need an even size of a head."""
    return next(
        (
            heads
            for heads in range(max(1, hidden // _HEAD), 0, -1)
            if hidden % heads == 0 and hidden // heads % 2 == 0
        ),
        1,
    )
