"""Called names in the source lines of a traceback, which its error does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ALIASES: Mapping[str, str] = {
    "F": "torch.nn.functional",
    "K": "keras.backend",
    "T": "torchvision.transforms",
    "bnb": "bitsandbytes",
    "jnp": "jax.numpy",
    "keras": "keras",
    "layers": "keras.layers",
    "nn": "torch.nn",
    "np": "numpy",
    "optim": "torch.optim",
    "pd": "pandas",
    "pl": "pytorch_lightning",
    "tf": "tensorflow",
    "transforms": "torchvision.transforms",
    "xops": "xformers.ops",
}
"""Names by which programs usually import a module."""
_REFUSED = re.compile(
    r"(?:\w{1,60}\.){0,6}TypeError: (?:[\w<>]{1,80}\.){0,6}(\w{1,80})\(\) (?:got (?:an unexpected|"
    r"multiple values)|missing \d|takes )"
)
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,6})\(")
_TERSE = re.compile(
    r"(?:AttributeError: (?:'NoneType' object has no attribute |can't set attribute|property '\w)|"
    r"KeyError: (?:\d{1,20}|'(?:rope_)?type')$|TypeError: 'NoneType' object is not callable$|"
    r"SyntaxError: invalid syntax$)"
)
_PROSE = re.compile(r"[\"'][^\"']{0,200}\w \w[^\"']{0,200}[\"']")
"""A text of several words, which may be the message of another error."""
_MAX_SOURCE_CHARACTERS = 200
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__cinit__", "__call__", "forward", "wrapper"})


def describe_source(error: str, source: str) -> str:
    """Return a line about the source of an error that does not say enough by itself, or "".

    Args:
        error: The line of the error.
        source: The source line that the last frame of the traceback quotes.
    """
    if called := find_called_name(error, source):
        return f"(in the call of {called})"
    if _TERSE.match(error) and source.strip() and not _PROSE.search(source):
        return f"(in the line {source.strip()[:_MAX_SOURCE_CHARACTERS]})"
    return ""


def find_called_name(error: str, source: str) -> str:
    """Return the full name of the function or class whose call an error refused, or "".

    Args:
        error: The line of the error: a TypeError about the arguments of a call.
        source: The source line that the last frame of the traceback quotes.
    """
    refused = _REFUSED.match(error)
    if refused is None:
        return ""
    function = refused[1]
    for name in _CALL.findall(source):
        first, _, rest = name.partition(".")
        called = rest.rpartition(".")[2]
        is_class = called[:1].isupper()
        if called == function or (function in _CONSTRUCTORS and is_class):
            return f"{_ALIASES.get(first, first)}.{rest}"
    return ""
