"""Return whether the name that a driver gives a GPU is the declared one."""

from __future__ import annotations

import re

_ALIASES = {
    "h100-mega-80gb": "h100-80gb",
    "h100-mega": "h100-80gb",
    "rtx6000": "rtx-pro-6000",
    "g4": "rtx-pro-6000",
}
"""Names of a machine type whose GPU has another name (Compute Engine documentation, "GPU machine
types"; aliases of the facts).
"""
_MAKER = re.compile(r"^(nvidia[-_ ])?(tesla[-_ ])?")
_OTHER_GPU = frozenset({"ti", "super", "laptop", "mobile", "max", "nvl", "d"})
"""Words that make a name another GPU's: an RTX 4060 Ti is not an RTX 4060."""


def is_declared_gpu(name: str, declared: str) -> bool:
    """Return whether a GPU's name in the driver fits the declared one.

    "NVIDIA A100-SXM4-80GB" fits "A100-80GB".

    A size in the declared name counts only against a size in the driver's name: "NVIDIA H200"
    has none.
    """
    wanted = _MAKER.sub("", declared.lower())
    wanted = _ALIASES.get(wanted.replace("_", "-"), wanted)
    words, asked = _words(name), _words(wanted)
    sizes, asked_sizes = _sizes(words), _sizes(asked)
    if asked_sizes and sizes and not asked_sizes & sizes:
        return False
    return asked - asked_sizes <= words and not (words - asked) & _OTHER_GPU


def _words(name: str) -> set[str]:
    return {word for word in re.split(r"[^a-z0-9]+", name.lower()) if word}


def _sizes(words: set[str]) -> set[str]:
    return {word for word in words if re.fullmatch(r"\d+gb", word)}
