"""Errors of Google's services, parsed from REST bodies, long-running operations and gRPC."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RPC_CODES = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}
"""The names of google.rpc.Code (google/rpc/code.proto)."""
_CODE_BY_HTTP_STATUS = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    408: 4,
    409: 10,
    412: 9,
    429: 8,
    499: 1,
    500: 13,
    501: 12,
    502: 14,
    503: 14,
    504: 4,
}
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class ServiceError:
    """An error as the service reported it.

    `code` is one of google.rpc.Code (7: PERMISSION_DENIED), `http` the HTTP status or 0. `reason`,
    `domain` and `metadata` are of its ErrorInfo, or of an older REST error. `retry_after_s` is the
    requested wait. `operation` is true if the call was accepted and its operation failed.
    """

    code: int
    message: str
    reason: str = ""
    domain: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    http: int = 0
    retry_after_s: float | None = None
    operation: bool = False

    @property
    def status(self) -> str:
        """The name of the code, as in PERMISSION_DENIED."""
        return RPC_CODES.get(self.code, "UNKNOWN")


def parse_http_error(status: int, body: bytes, headers: Mapping[str, str]) -> ServiceError:
    """Return the error in a REST response; its message is the text of a page that is not JSON."""
    try:
        document = json.loads(body)
        error = document["error"]
        details, message = error.get("details") or (), str(error.get("message") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        error, details, message = {}, (), _page_text(body)
    fields = _parse_details(details)
    older = next((entry for entry in _mappings(error.get("errors")) if entry.get("reason")), {})
    for name in ("reason", "domain"):
        fields[name] = fields.get(name) or str(older.get(name, ""))
    if wait := headers.get("Retry-After"):
        fields["retry_after_s"] = _parse_seconds(wait)
    code = _CODE_BY_HTTP_STATUS.get(status, 2 if status >= 500 else 3)
    for number, name in RPC_CODES.items():
        if name == error.get("status"):
            code = number
    return ServiceError(code, message[:_LONGEST] or f"HTTP {status}", http=status, **fields)


def parse_operation_error(error: Mapping[str, Any]) -> ServiceError:
    """Return the error of a long-running operation in JSON form."""
    code = error.get("code")
    message = str(error.get("message") or "the operation failed without a message")[:_LONGEST]
    return ServiceError(
        code if isinstance(code, int) and code in RPC_CODES else 2,
        message,
        operation=True,
        **_parse_details(error.get("details")),
    )


def _parse_details(details: Any) -> dict[str, Any]:
    """Return the fields of a ServiceError that its ErrorInfo and RetryInfo have.

    Compute Engine wraps its ErrorInfo in `errorInfo`.
    """
    fields: dict[str, Any] = {}
    for entry in _mappings(details):
        wrapped = entry.get("errorInfo")
        inner: Mapping[str, Any] = wrapped if isinstance(wrapped, Mapping) else entry
        if inner.get("reason") and "reason" not in fields:
            fields["reason"], fields["domain"] = str(inner["reason"]), str(inner.get("domain", ""))
            values = inner.get("metadata") or inner.get("metadatas")
            if isinstance(values, Mapping):
                fields["metadata"] = {str(key): str(value) for key, value in values.items()}
        if "retryDelay" in entry:
            fields["retry_after_s"] = _parse_seconds(str(entry["retryDelay"]).removesuffix("s"))
    return fields


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    if not isinstance(values, list | tuple):
        return []
    return [entry for entry in values if isinstance(entry, Mapping)]


def _parse_seconds(text: str) -> float | None:
    """Return a number of seconds; None for a date, since our clock is not the service's."""
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d{1,9})?", text) else None


def _page_text(body: bytes) -> str:
    """Return the beginning of a page that is not JSON, without its tags."""
    text = re.sub(r"<[^>]{0,200}>", " ", body[:4000].decode("utf-8", "replace"))
    return " ".join(text.split())[:300]
