"""gRPC handlers of the emulated Notebooks API, with the messages of google-cloud-notebooks.

Values that these messages lack are sent as an unknown field, as by the real service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import grpc
from google.cloud import notebooks_v2 as nb
from google.longrunning import operations_pb2
from google.protobuf import any_pb2, empty_pb2, json_format
from google.rpc import error_details_pb2, status_pb2

from provision.sandbox.api_errors import ApiError, StatusCode
from provision.sandbox.notebooks_service import NotebooksService, filter_unsupported_error

_NOTEBOOKS = "google.cloud.notebooks.v2.NotebookService"
_OPERATIONS = "google.longrunning.Operations"
_DETAILS = {"ErrorInfo": error_details_pb2.ErrorInfo, "RetryInfo": error_details_pb2.RetryInfo}
_UNKNOWN_FIELD = b"\xc0\x3e\x01"
"""Field 1000 with the number 1."""


def build_method_handlers(service: NotebooksService) -> dict[str, Any]:
    """Return the gRPC handler of each method, by its full name (/SERVICE/METHOD)."""
    handlers = {}
    for api, methods in _METHODS.items():
        for name, method in methods.items():
            if api == _OPERATIONS:
                parse = getattr(operations_pb2, f"{name}Request").FromString
            else:
                parse = getattr(nb, f"{name}Request").deserialize
            handlers[f"/{api}/{name}"] = grpc.unary_unary_rpc_method_handler(
                _guarded(partial(method, service)),
                parse,
                lambda message: message.SerializeToString(),
            )
    return handlers


def _list_instances(service: NotebooksService, request: Any) -> Any:
    if request.filter or request.order_by:
        raise filter_unsupported_error()
    page = service.list_instances(request.parent, request.page_size, request.page_token)
    return _message(page, nb.ListInstancesResponse())


def _get_instance(service: NotebooksService, request: Any) -> Any:
    return _message(service.get(request.name), nb.Instance())


def _create_instance(service: NotebooksService, request: Any) -> Any:
    body = _json(request.instance)
    return _operation(service.create(request.parent, request.instance_id, body, request.request_id))


def _update_instance(service: NotebooksService, request: Any) -> Any:
    body, paths = _json(request.instance), list(request.update_mask.paths)
    return _operation(service.patch(request.instance.name, body, paths, request.request_id))


def _diagnose_instance(service: NotebooksService, request: Any) -> Any:
    body = _json(request)
    body.pop("name", None)
    return _operation(service.diagnose(request.name, body))


def _list_operations(service: NotebooksService, request: Any) -> Any:
    operations = service.operations(request.name).get("operations", [])
    return operations_pb2.ListOperationsResponse(operations=map(_operation, operations))


def _cancel_operation(service: NotebooksService, request: Any) -> Any:
    service.cancel(request.name)
    return empty_pb2.Empty()


_METHODS: dict[str, dict[str, Callable[[NotebooksService, Any], Any]]] = {
    _NOTEBOOKS: {
        "ListInstances": _list_instances,
        "GetInstance": _get_instance,
        "CreateInstance": _create_instance,
        "UpdateInstance": _update_instance,
        "DeleteInstance": lambda service, request: _operation(
            service.delete(request.name, request.request_id)
        ),
        "StartInstance": lambda service, request: _operation(service.start(request.name)),
        "StopInstance": lambda service, request: _operation(service.stop(request.name)),
        "ResetInstance": lambda service, request: _operation(service.reset(request.name)),
        "DiagnoseInstance": _diagnose_instance,
    },
    _OPERATIONS: {
        "GetOperation": lambda service, request: _operation(service.operation(request.name)),
        "ListOperations": _list_operations,
        "CancelOperation": _cancel_operation,
    },
}


def _guarded(method: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a method that reports errors as gRPC does, with their details."""

    def call(request: Any, context: Any) -> Any:
        try:
            return method(request)
        except ApiError as failure:
            _abort(context, failure)
        except Exception as error:  # noqa: BLE001
            message = f"the sandbox failed: {type(error).__name__}: {error}"
            _abort(context, ApiError(StatusCode.INTERNAL, message))

    return call


def _abort(context: Any, failure: ApiError) -> NoReturn:
    # As in grpc_status.rpc_status.to_status, without another dependency.
    context.set_trailing_metadata(
        (("grpc-status-details-bin", _status(failure.to_rpc_status()).SerializeToString()),)
    )
    context.abort(grpc.StatusCode[failure.code.name], failure.message)
    raise AssertionError("abort raises")


def _operation(body: Mapping[str, Any]) -> Any:
    """Return an operation as its message, with its packed metadata and result."""
    operation = operations_pb2.Operation(name=body["name"], done=body.get("done", False))
    operation.metadata.Pack(_message(_untyped(body["metadata"]), nb.OperationMetadata()))
    if "error" in body:
        operation.error.CopyFrom(_status(body["error"]))
    elif "response" in body:
        response: Any = empty_pb2.Empty()
        if not body["response"]["@type"].endswith("Empty"):
            response = _message(_untyped(body["response"]), nb.Instance())
        operation.response.Pack(response)
    return operation


def _status(body: Mapping[str, Any]) -> Any:
    status = status_pb2.Status(code=body["code"], message=body["message"])
    for detail in body.get("details", ()):
        detail_type = _DETAILS[detail["@type"].rsplit(".", 1)[-1]]
        packed = any_pb2.Any()
        packed.Pack(json_format.ParseDict(_untyped(detail), detail_type()))
        status.details.append(packed)
    return status


def _untyped(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "@type"}


def _json(message: Any) -> dict[str, Any]:
    body: dict[str, Any] = json_format.MessageToDict(type(message).pb(message))
    return body


def _message(body: Mapping[str, Any], message: Any) -> Any:
    """Return a protobuf message with the values of a JSON body that its fields can hold.

    A message that lacks a newer field or enum value of the body gets an unknown field, from which
    a client can see that there is more: the real service sends such fields.
    """
    raw = json_format.ParseDict(dict(body), type(message).pb(message), ignore_unknown_fields=True)
    instances = zip(getattr(raw, "instances", ()), body.get("instances", ()), strict=False)
    for part, source in ((raw, body), *instances):
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
