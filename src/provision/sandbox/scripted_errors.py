"""Recorded errors that the emulator repeats: a code and message from a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from provision.sandbox.api_errors import ERROR_INFO, RETRY_INFO, ApiError, StatusCode

TRIGGERS = {
    "request": "every request to the Notebooks API is refused with it",
    "create": "creating is refused with it",
    "operation": "the operation of a creation ends with it",
    "update": "the operation of an update ends with it",
    "upload": "writing to a bucket is refused with it",
}
_LONGEST = 1 << 20
_FIELDS = {
    "at": str,
    "zone": str,
    "times": int,
    "code": int,
    "http": int,
    "message": str,
    "reason": str,
    "details": list,
    "headers": dict,
}
_TYPE_NAMES = {str: "a string", int: "a number", list: "a list", dict: "an object"}
_TYPES = (ERROR_INFO, RETRY_INFO)


class InvalidErrorFile(ValueError):
    """The file does not contain a valid error; the message explains why."""


class ScriptedError(NamedTuple):
    """An error with its moment (`at`, one of MOMENTS), zone ("": any) and count (None: always)."""

    at: str
    zone: str
    times: int | None
    error: dict[str, Any]

    def to_api_error(self) -> ApiError:
        """Return the error as the service raises it."""
        options = {
            name: self.error[name]
            for name in ("details", "reason", "http", "headers")
            if name in self.error
        }
        return ApiError(StatusCode(self.error["code"]), self.error["message"], **options)


def read_error_file(path: Path) -> ScriptedError:
    """Return the error of a file; raises InvalidErrorFile, or OSError if it cannot be read."""
    text = path.read_bytes()
    try:
        content = json.loads(text) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise InvalidErrorFile("it is not a JSON object")
    for name, value in content.items():
        if name not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise InvalidErrorFile(f"it has the unknown field {name!r}; known fields: {known}")
        if not isinstance(value, _FIELDS[name]) or isinstance(value, bool):
            raise InvalidErrorFile(f"its {name} is not {_TYPE_NAMES[_FIELDS[name]]}")
    if content.get("at") not in TRIGGERS:
        raise InvalidErrorFile(f"its `at` must be one of {', '.join(TRIGGERS)}")
    if content.get("code") not in list(StatusCode) or not content.get("message"):
        raise InvalidErrorFile(
            "it must have a code of google.rpc.Code (7 is PERMISSION_DENIED) and a message"
        )
    if any(
        not isinstance(detail, dict) or detail.get("@type") not in _TYPES
        for detail in content.get("details", ())
    ):
        raise InvalidErrorFile(f"each of its details must have an @type, {' or '.join(_TYPES)}")
    return ScriptedError(content["at"], content.get("zone", ""), content.get("times"), content)
