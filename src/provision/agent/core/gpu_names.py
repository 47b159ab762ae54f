"""Comparison of the GPU name that a driver reports with the declared one."""

from __future__ import annotations

import re

_ALIASES = {
    "h100-mega-80gb": "h100-80gb",
    "h100-mega": "h100-80gb",
    "rtx6000": "rtx-pro-6000",
    "g4": "rtx-pro-6000",
}
"""Names of machine types whose GPU has another name (Compute Engine documentation, "GPU machine
types"; aliases of the facts).
"""
_MAKER = re.compile(r"^(nvidia[-_ ])?(tesla[-_ ])?")
_OTHER_GPU = frozenset({"ti", "super", "laptop", "mobile", "max", "nvl", "d", "sff", "3e"})
"""Words that distinguish GPUs: an RTX 4060 Ti is not an RTX 4060."""


def is_declared_gpu(name: str, declared: str) -> bool:
    """Return whether a GPU's name in the driver matches the declared one.

    "NVIDIA A100-SXM4-80GB" matches "A100-80GB".

    A size in the declared name counts only against a size in the driver's name: "NVIDIA H200"
    has none.
    """
    model = _MAKER.sub("", declared.lower())
    model = _ALIASES.get(model.replace("_", "-"), model)
    words, declared_words = _words(name), _words(model)
    sizes, declared_sizes = _sizes(words), _sizes(declared_words)
    if declared_sizes and sizes and not declared_sizes & sizes:
        return False
    extra_words = words - declared_words
    return declared_words - declared_sizes <= words and not extra_words & _OTHER_GPU


def _words(name: str) -> set[str]:
    return {word for word in re.split(r"[^a-z0-9]+", name.lower()) if word}


def _sizes(words: set[str]) -> set[str]:
    return {word for word in words if re.fullmatch(r"\d+gb", word)}
