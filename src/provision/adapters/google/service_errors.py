"""Errors of Google's services, parsed from REST bodies, long-running operations and gRPC."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# google.rpc.Code, and the HTTP status of each (google/rpc/code.proto).
RPC_CODES = {
    1: ("CANCELLED", 499),
    2: ("UNKNOWN", 500),
    3: ("INVALID_ARGUMENT", 400),
    4: ("DEADLINE_EXCEEDED", 504),
    5: ("NOT_FOUND", 404),
    6: ("ALREADY_EXISTS", 409),
    7: ("PERMISSION_DENIED", 403),
    8: ("RESOURCE_EXHAUSTED", 429),
    9: ("FAILED_PRECONDITION", 400),
    10: ("ABORTED", 409),
    11: ("OUT_OF_RANGE", 400),
    12: ("UNIMPLEMENTED", 501),
    13: ("INTERNAL", 500),
    14: ("UNAVAILABLE", 503),
    15: ("DATA_LOSS", 500),
    16: ("UNAUTHENTICATED", 401),
}
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
        return RPC_CODES.get(self.code, ("UNKNOWN", 500))[0]


def parse_http_error(status: int, body: bytes, headers: Mapping[str, str]) -> ServiceError:
    """Return the error in a REST response; its message is the text of a page that is not JSON."""
    try:
        document = json.loads(body)
        error = document["error"]
        details, message = error.get("details") or (), str(error.get("message") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        error, details, message = {}, (), _page_text(body)
    reason, domain, metadata, retry_after_s = _parse_details(details)
    older = next((entry for entry in _mappings(error.get("errors")) if entry.get("reason")), {})
    named_code = next(
        (code for code, (name, _) in RPC_CODES.items() if name == error.get("status")), None
    )
    return ServiceError(
        code=named_code or _CODE_BY_HTTP_STATUS.get(status, 2 if status >= 500 else 3),
        message=message[:_LONGEST] or f"HTTP {status}",
        reason=reason or str(older.get("reason", "")),
        domain=domain or str(older.get("domain", "")),
        metadata=metadata,
        http=status,
        retry_after_s=_parse_seconds(headers.get("Retry-After"))
        if headers.get("Retry-After")
        else retry_after_s,
    )


def parse_operation_error(error: Mapping[str, Any]) -> ServiceError:
    """Return the error of a long-running operation in JSON form."""
    reason, domain, metadata, retry_after_s = _parse_details(error.get("details") or ())
    code = error.get("code")
    return ServiceError(
        code=code if isinstance(code, int) and code in RPC_CODES else 2,
        message=str(error.get("message") or "the operation failed without a word")[:_LONGEST],
        reason=reason,
        domain=domain,
        metadata=metadata,
        retry_after_s=retry_after_s,
        operation=True,
    )


def _parse_details(details: Any) -> tuple[str, str, Mapping[str, str], float | None]:
    """Return reason, domain and metadata of the ErrorInfo, and the wait of the RetryInfo.

    Compute Engine wraps its ErrorInfo in `errorInfo`.
    """
    reason, domain, metadata, retry_after_s = "", "", {}, None
    for entry in _mappings(details):
        wrapped = entry.get("errorInfo")
        inner: Mapping[str, Any] = wrapped if isinstance(wrapped, Mapping) else entry
        if inner.get("reason") and not reason:
            reason, domain = str(inner["reason"]), str(inner.get("domain", ""))
            values = inner.get("metadata") or inner.get("metadatas")
            metadata = (
                {str(key): str(value) for key, value in values.items()}
                if isinstance(values, Mapping)
                else {}
            )
        if "retryDelay" in entry:
            retry_after_s = _parse_seconds(str(entry["retryDelay"]).removesuffix("s"))
    return reason, domain, metadata, retry_after_s


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    return (
        [entry for entry in values if isinstance(entry, Mapping)]
        if isinstance(values, list | tuple)
        else []
    )


def _parse_seconds(text: Any) -> float | None:
    """Return a number of seconds; None for a date, since our clock is not the service's."""
    return (
        float(text)
        if isinstance(text, str) and re.fullmatch(r"\d{1,6}(\.\d{1,9})?", text)
        else None
    )


def _page_text(body: bytes) -> str:
    """Return the beginning of a page that is not JSON, without its tags."""
    return " ".join(re.sub(r"<[^>]{0,200}>", " ", body[:4000].decode("utf-8", "replace")).split())[
        :300
    ]
