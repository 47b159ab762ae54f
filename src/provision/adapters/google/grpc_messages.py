"""Conversion between protobuf messages of Google's gRPC clients and REST's JSON form."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import RestResource


class UnsupportedByGrpc(Exception):
    """The messages of the gRPC client lack a field or value."""


def to_rest_resource(message: Any) -> RestResource:
    """Return a message in REST's form.

    Raises:
        UnsupportedByGrpc: it has a value or field without a name in this client.
    """
    if _has_unknown_fields(type(message).pb(message)):
        raise UnsupportedByGrpc
    return to_rest_resource_lenient(message)


def to_rest_resource_lenient(message: Any) -> RestResource:
    """Return a message in REST's form, with unnamed values as UNKNOWN_NUMBER."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = type(message).pb(message)
        document: RestResource = _name_unknown_enums(
            import_optional("google.protobuf.json_format").MessageToDict(raw), raw
        )
    return document


def to_message(body: RestResource, message_type: Any) -> Any | None:
    """Return a body as a message, None if the client's messages lack a field or value of it."""
    json_format = import_optional("google.protobuf.json_format")
    raw = message_type.pb(message_type())
    try:
        json_format.ParseDict(dict(body), raw)
    except json_format.ParseError:
        return None
    return message_type.wrap(raw)


def operation_to_rest(raw: Any) -> RestResource:
    """Return an operation in REST's form: name, done, metadata, and error or response."""
    operation: dict[str, Any] = {"name": raw.name, "metadata": any_to_rest(raw.metadata)}
    if raw.done:
        operation["done"] = True
    if raw.HasField("error"):
        operation["error"] = {
            "code": raw.error.code,
            "message": raw.error.message,
            "details": [any_to_rest(item) for item in raw.error.details],
        }
    elif raw.HasField("response"):
        operation["response"] = any_to_rest(raw.response)
    return operation


def any_to_rest(raw: Any) -> dict[str, Any]:
    """Return a google.protobuf.Any as JSON, {} for a type that is not imported."""
    import_optional("google.rpc.error_details_pb2")
    try:
        message: dict[str, Any] = import_optional("google.protobuf.json_format").MessageToDict(raw)
    except (TypeError, ValueError):
        return {}
    return message


def _has_unknown_fields(raw: Any) -> bool:
    """Return whether a message has fields or enum values, also nested ones, without a name."""
    if len(import_optional("google.protobuf.unknown_fields").UnknownFieldSet(raw)):
        return True
    for field, value in raw.ListFields():
        for item in _field_values(value):
            if field.enum_type is not None and item not in field.enum_type.values_by_number:
                return True
            if hasattr(item, "ListFields") and _has_unknown_fields(item):
                return True
    return False


def _field_values(value: Any) -> list[Any]:
    """Return the values of a field: of a map, of a list, or the single one."""
    if isinstance(value, Mapping):
        return list(value.values())
    is_single = isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields")
    return [value] if is_single else list(value)


def _name_unknown_enums(document: Any, raw: Any) -> Any:
    """Return the JSON form with the numbers of unnamed enum values as text."""
    for field, value in raw.ListFields():
        written = document.get(field.json_name) if isinstance(document, dict) else None
        if field.enum_type is not None and isinstance(written, int):
            document[field.json_name] = f"UNKNOWN_{written}"
        elif field.message_type is not None and not isinstance(value, Mapping):
            inner = written if isinstance(written, list) else [written]
            for part, item in zip(inner, _field_values(value), strict=False):
                _name_unknown_enums(part, item)
    return document
