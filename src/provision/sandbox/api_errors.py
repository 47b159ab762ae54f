"""Errors of the services: Google's canonical codes, their HTTP status, and REST error bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from typing import Any

ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


class StatusCode(IntEnum):
    """google.rpc.Code."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16

    @property
    def http_status(self) -> int:
        """The HTTP status of Google's REST APIs. Source: the comments of google/rpc/code.proto."""
        return _HTTP[self]


_HTTP = {
    StatusCode.CANCELLED: 499,
    StatusCode.UNKNOWN: 500,
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.DEADLINE_EXCEEDED: 504,
    StatusCode.NOT_FOUND: 404,
    StatusCode.ALREADY_EXISTS: 409,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.ABORTED: 409,
    StatusCode.OUT_OF_RANGE: 400,
    StatusCode.UNIMPLEMENTED: 501,
    StatusCode.INTERNAL: 500,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.UNAUTHENTICATED: 401,
}


@dataclass(eq=False)
class ApiError(Exception):
    """A refused request.

    Attributes:
        code: canonical code.
        message: the service's message.
        details: details as JSON, with `@type`.
        reason: the word of the older APIs (Compute, Storage) in `error.errors`.
        http: HTTP status, if it is not that of the code.
        headers: headers of the REST response.
    """

    code: StatusCode
    message: str
    _: KW_ONLY
    details: Sequence[Mapping[str, Any]] = ()
    reason: str = ""
    http: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def http_status(self) -> int:
        """HTTP status of the REST response."""
        return self.http or self.code.http_status

    def to_rpc_status(self) -> dict[str, Any]:
        """Return the error as a google.rpc.Status, as in an operation."""
        return {
            "code": int(self.code),
            "message": self.message,
            **({"details": list(self.details)} if self.details else {}),
        }

    def to_rest_body(self) -> dict[str, Any]:
        """Return the error body of a REST response."""
        error: dict[str, Any] = {
            "code": self.http_status,
            "message": self.message,
            "status": self.code.name,
        }
        if self.reason:
            error["errors"] = [{"message": self.message, "domain": "global", "reason": self.reason}]
        if self.details:
            error["details"] = list(self.details)
        return {"error": error}


def error_info(reason: str, domain: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return a google.rpc.ErrorInfo."""
    return {"@type": ERROR_INFO, "reason": reason, "domain": domain, "metadata": dict(metadata)}


def invalid_argument(message: str, reason: str = "") -> ApiError:
    """Return the error for an argument that the service does not accept."""
    return ApiError(StatusCode.INVALID_ARGUMENT, message, reason=reason)


def not_found(message: str) -> ApiError:
    """Return the error of the older APIs for a missing resource."""
    return ApiError(StatusCode.NOT_FOUND, message, reason="notFound")


def resource_not_found(name: str) -> ApiError:
    """Return the error for a missing resource by its name."""
    return ApiError(StatusCode.NOT_FOUND, f"Resource '{name}' was not found")
