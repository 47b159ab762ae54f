"""Whether a request body is one that the API takes: unknown fields, kinds of values, enums, fields
that are output only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.discovery import load_api_schema

_UPPER = re.compile(r"([A-Z])")
_LOWER = re.compile(r"_([a-z0-9])")
_INTEGER = re.compile(r"-?\d{1,19}")
_Field = Mapping[str, Any]


def validate_body(body: Any, message: str, at: str) -> dict[str, Any]:
    """Return a body with int64 values as text and without what proto3 does not carry (false, "",
    empty lists and messages).

    `at` is how messages call it, as in "instance". Raises Failure (400) with the service's words
    for the first thing that is wrong.
    """
    if not isinstance(body, dict):
        raise invalid_argument(f"Invalid value at '{at}' ({message}), {_shown(body)}")
    fields = load_api_schema().messages[message]
    values: dict[str, Any] = {}
    for name, value in body.items():
        if name not in fields:
            raise invalid_argument(
                f"Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot "
                "find field."
            )
        if value is None:
            continue
        where = f"{at}.{to_snake_case(name)}"
        if fields[name].get("readOnly"):
            raise invalid_argument(f"Field '{where}' is output only and cannot be set.")
        kept = _value(value, fields[name], where)
        if kept not in (False, "", 0, [], {}):
            values[name] = kept
    return values


def first_or_empty(values: Iterable[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Return the first of the few messages that a list may hold, or an empty one."""
    return next(iter(values or ()), {})


def to_snake_case(name: str) -> str:
    """Return a JSON name as the proto has it: gceSetup is gce_setup."""
    return _UPPER.sub(lambda match: "_" + match[1].lower(), name)


def to_camel_case(name: str) -> str:
    """Return a proto's name as JSON has it: gce_setup is gceSetup."""
    return _LOWER.sub(lambda match: match[1].upper(), name)


def _value(value: Any, field: _Field, at: str) -> Any:
    if "$ref" in field:
        return validate_body(value, field["$ref"], at)
    if field["type"] == "array":
        if not isinstance(value, list):
            raise invalid_argument(f"Invalid value at '{at}', {_shown(value)}")
        return [_value(one, field["items"], f"{at}[{place}]") for place, one in enumerate(value)]
    if field["type"] == "object":
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise invalid_argument(f"Invalid value at '{at}' (Map), {_shown(value)}")
        return dict(value)
    return _plain(value, field, at)


def _plain(value: Any, field: _Field, at: str) -> Any:
    if "enum" in field:
        if value not in field["enum"]:
            raise invalid_argument(f"Invalid value at '{at}' (Enum), {_shown(value)}")
        return "" if value == field["enum"][0] else value
    if field.get("format") == "int64":
        if isinstance(value, bool) or not _INTEGER.fullmatch(str(value)):
            raise invalid_argument(f"Invalid value at '{at}' (TYPE_INT64), {_shown(value)}")
        return "" if int(value) == 0 else str(int(value))
    kinds = {"string": str, "boolean": bool, "integer": int}
    kind = kinds[field["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid_argument(
            f"Invalid value at '{at}' (TYPE_{field['type'].upper()}), {_shown(value)}"
        )
    return value


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)[:80]
