"""Values as TOML: its strings and arrays of them are written as JSON's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x7f-\x9f]")


def to_toml_string(value: str) -> str:
    """Return a string.

    JSON keeps control characters beyond ASCII: TOML forbids some, and a terminal may obey others.
    """
    return _CONTROL.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False)
    )


def to_toml_array(values: Sequence[str]) -> str:
    """Return an array of strings, each on its own line if there are several."""
    if len(values) < 2:
        return f"[{', '.join(to_toml_string(value) for value in values)}]"
    return "[\n" + "".join(f"    {to_toml_string(value)},\n" for value in values) + "]"


def to_toml_table(**values: str) -> str:
    """Return an inline table of strings."""
    return (
        "{ " + ", ".join(f"{key} = {to_toml_string(value)}" for key, value in values.items()) + " }"
    )
