"""Validates request bodies against the API's schema: fields, types, enums, output-only fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.discovery import NOTEBOOKS, ApiDocument, load_api_schema

_UPPER = re.compile(r"([A-Z])")
_LOWER = re.compile(r"_([a-z0-9])")
_INTEGER = re.compile(r"-?\d{1,19}")
_DURATION = re.compile(r"\d{1,12}(\.\d{1,9})?s")
_Field = Mapping[str, Any]


def validate_body(
    body: Any, message: str, at: str, document: ApiDocument = NOTEBOOKS
) -> dict[str, Any]:
    """Return a body with int64 values as text and without the defaults that proto3 omits.

    `at` is the name of the body in messages, such as "instance".

    Raises:
        ApiError: the first invalid value, with the service's message (400).
    """
    if not isinstance(body, dict):
        raise invalid_argument(f"Invalid value at '{at}' ({message}), {_shown(body)}")
    fields = load_api_schema(document).messages[message]
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
        kept = _value(value, fields[name], where, document)
        if kept not in (False, "", 0, [], {}):
            values[name] = kept
    return values


def first_or_empty(values: Iterable[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Return the first message of a list, or an empty one."""
    return next(iter(values or ()), {})


def value_at_path(body: Any, path: str) -> Any:
    """Return the value at a path of a field mask, in the first element of lists; None if unset."""
    value = body
    for part in path.split("."):
        value = value[0] if isinstance(value, list) and value else value
        value = value.get(to_camel_case(part)) if isinstance(value, Mapping) else None
    return value


def to_snake_case(name: str) -> str:
    """Return the proto's name of a JSON name: gce_setup for gceSetup."""
    return _UPPER.sub(lambda match: "_" + match[1].lower(), name)


def to_camel_case(name: str) -> str:
    """Return the JSON name of a proto's name: gceSetup for gce_setup."""
    return _LOWER.sub(lambda match: match[1].upper(), name)


def _value(value: Any, field: _Field, at: str, document: ApiDocument) -> Any:
    if "$ref" in field:
        return validate_body(value, field["$ref"], at, document)
    if field["type"] == "array":
        if not isinstance(value, list):
            raise invalid_argument(f"Invalid value at '{at}', {_shown(value)}")
        items = field["items"]
        return [_value(item, items, f"{at}[{index}]", document) for index, item in enumerate(value)]
    if field["type"] == "object":
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise invalid_argument(f"Invalid value at '{at}' (Map), {_shown(value)}")
        return dict(value)
    return _plain(value, field, at)


def _plain(value: Any, field: _Field, at: str) -> Any:
    if "enum" in field:
        if value not in field["enum"]:
            raise invalid_argument(f"Invalid value at '{at}' (Enum), {_shown(value)}")
        return "" if value == field["enum"][0] else value
    if field.get("format") == "google-duration" and not _DURATION.fullmatch(str(value)):
        raise invalid_argument(f"Invalid value at '{at}' (Duration), {_shown(value)}")
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
