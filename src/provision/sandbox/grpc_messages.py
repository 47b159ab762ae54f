"""Messages and errors of the emulated gRPC services.

Values that the installed messages lack are sent as an unknown field, as by the real service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2, json_format
from google.rpc import error_details_pb2, status_pb2

from provision.sandbox.api_errors import ApiError, StatusCode
from provision.sandbox.request_validation import to_snake_case

_DETAILS = {"ErrorInfo": error_details_pb2.ErrorInfo, "RetryInfo": error_details_pb2.RetryInfo}
_UNKNOWN_FIELD = b"\xc0\x3e\x01"
"""Field 1000 with the number 1."""


def method_handler(method: Callable[[Any], Any], parse: Callable[[bytes], Any]) -> Any:
    """Return the handler of a method that is called with a parsed request.

    Its errors are reported as gRPC does, with their details.
    """

    def call(request: Any, context: Any) -> Any:
        try:
            return method(request)
        except ApiError as failure:
            _abort(context, failure)
        except Exception as error:  # noqa: BLE001
            message = f"the sandbox failed: {type(error).__name__}: {error}"
            _abort(context, ApiError(StatusCode.INTERNAL, message))

    return grpc.unary_unary_rpc_method_handler(
        call, parse, lambda message: message.SerializeToString()
    )


def _abort(context: Any, failure: ApiError) -> NoReturn:
    # As in grpc_status.rpc_status.to_status, without another dependency.
    context.set_trailing_metadata(
        (("grpc-status-details-bin", status_message(failure.to_rpc_status()).SerializeToString()),)
    )
    context.abort(grpc.StatusCode[failure.code.name], failure.message)
    raise AssertionError("internal error: abort returned")


def status_message(body: Mapping[str, Any]) -> Any:
    """Return a google.rpc.Status as its message, with its packed details."""
    status = status_pb2.Status(code=body["code"], message=body["message"])
    for detail in body.get("details", ()):
        detail_type = _DETAILS[detail["@type"].rsplit(".", 1)[-1]]
        packed = any_pb2.Any()
        packed.Pack(json_format.ParseDict(untyped(detail), detail_type()))
        status.details.append(packed)
    return status


def untyped(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a google.protobuf.Any without its type."""
    return {key: value for key, value in body.items() if key != "@type"}


def to_json(message: Any) -> dict[str, Any]:
    """Return a message of a request in REST's form."""
    body: dict[str, Any] = json_format.MessageToDict(type(message).pb(message))
    return body


def to_message(body: Mapping[str, Any], message: Any, collection: str = "") -> Any:
    """Return a protobuf message with the values of a JSON body that its fields can hold.

    A message that lacks a newer field or enum value of the body gets an unknown field, from which
    a client can see that there is more: the real service sends such fields. `collection` is the
    JSON name of the field with the resources of a list.
    """
    raw = json_format.ParseDict(dict(body), type(message).pb(message), ignore_unknown_fields=True)
    items = getattr(raw, to_snake_case(collection), ()) if collection else ()
    for part, source in ((raw, body), *zip(items, body.get(collection, ()), strict=True)):
        if _is_lossy(source, json_format.MessageToDict(part)):
            part.MergeFromString(_UNKNOWN_FIELD)
    return raw


def _is_lossy(source: Any, copy: Any) -> bool:
    """Return whether a copy lacks a value of its source that is not a default."""
    if isinstance(source, Mapping):
        return any(
            value not in (False, "", 0, [], {}) and (key not in copy or _is_lossy(value, copy[key]))
            for key, value in source.items()
        )
    if isinstance(source, list):
        return len(source) != len(copy) or any(map(_is_lossy, source, copy))
    return False
