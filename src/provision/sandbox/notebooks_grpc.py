"""The Notebooks service over gRPC, with the messages of google-cloud-notebooks.

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
from provision.sandbox.notebooks import NotebooksService, filter_unsupported_error

_SERVICE = "google.cloud.notebooks.v2.NotebookService"
_OPERATIONS = "google.longrunning.Operations"
_DETAILS = {"ErrorInfo": error_details_pb2.ErrorInfo, "RetryInfo": error_details_pb2.RetryInfo}
_UNKNOWN_FIELD = b"\xc0\x3e\x01"
"""Field 1000 with the number 1."""


def build_method_handlers(service: NotebooksService) -> dict[str, Any]:
    """Return the gRPC handler of each method, by its full name (/SERVICE/METHOD)."""
    return {
        f"/{name}": grpc.unary_unary_rpc_method_handler(
            _guarded(partial(method, service)), parse, lambda message: message.SerializeToString()
        )
        for name, (parse, method) in _METHODS.items()
    }


def _list_instances(service: NotebooksService, request: Any) -> Any:
    if request.filter or request.order_by:
        raise filter_unsupported_error()
    page = service.list_instances(request.parent, request.page_size, request.page_token)
    return _message(page, nb.ListInstancesResponse())


def _get(service: NotebooksService, request: Any) -> Any:
    return _message(service.get(request.name), nb.Instance())


def _create(service: NotebooksService, request: Any) -> Any:
    body = _json(request.instance)
    return _operation(service.create(request.parent, request.instance_id, body, request.request_id))


def _update(service: NotebooksService, request: Any) -> Any:
    body, paths = _json(request.instance), list(request.update_mask.paths)
    return _operation(service.patch(request.instance.name, body, paths, request.request_id))


def _delete(service: NotebooksService, request: Any) -> Any:
    return _operation(service.delete(request.name, request.request_id))


def _start(service: NotebooksService, request: Any) -> Any:
    return _operation(service.start(request.name))


def _stop(service: NotebooksService, request: Any) -> Any:
    return _operation(service.stop(request.name))


def _reset(service: NotebooksService, request: Any) -> Any:
    return _operation(service.reset(request.name))


def _diagnose(service: NotebooksService, request: Any) -> Any:
    body = _json(request)
    body.pop("name", None)
    return _operation(service.diagnose(request.name, body))


def _get_operation(service: NotebooksService, request: Any) -> Any:
    return _operation(service.operation(request.name))


def _list_operations(service: NotebooksService, request: Any) -> Any:
    operations = service.operations(request.name).get("operations", [])
    return operations_pb2.ListOperationsResponse(operations=map(_operation, operations))


def _cancel_operation(service: NotebooksService, request: Any) -> Any:
    service.cancel(request.name)
    return empty_pb2.Empty()


_METHODS: dict[str, tuple[Callable[[bytes], Any], Callable[[NotebooksService, Any], Any]]] = {
    f"{_SERVICE}/ListInstances": (nb.ListInstancesRequest.deserialize, _list_instances),
    f"{_SERVICE}/GetInstance": (nb.GetInstanceRequest.deserialize, _get),
    f"{_SERVICE}/CreateInstance": (nb.CreateInstanceRequest.deserialize, _create),
    f"{_SERVICE}/UpdateInstance": (nb.UpdateInstanceRequest.deserialize, _update),
    f"{_SERVICE}/DeleteInstance": (nb.DeleteInstanceRequest.deserialize, _delete),
    f"{_SERVICE}/StartInstance": (nb.StartInstanceRequest.deserialize, _start),
    f"{_SERVICE}/StopInstance": (nb.StopInstanceRequest.deserialize, _stop),
    f"{_SERVICE}/ResetInstance": (nb.ResetInstanceRequest.deserialize, _reset),
    f"{_SERVICE}/DiagnoseInstance": (nb.DiagnoseInstanceRequest.deserialize, _diagnose),
    f"{_OPERATIONS}/GetOperation": (operations_pb2.GetOperationRequest.FromString, _get_operation),
    f"{_OPERATIONS}/ListOperations": (
        operations_pb2.ListOperationsRequest.FromString,
        _list_operations,
    ),
    f"{_OPERATIONS}/CancelOperation": (
        operations_pb2.CancelOperationRequest.FromString,
        _cancel_operation,
    ),
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
    status = next(status for status in grpc.StatusCode if status.value[0] == int(failure.code))
    # As in grpc_status.rpc_status.to_status, without another dependency.
    context.set_trailing_metadata(
        (("grpc-status-details-bin", _status(failure.to_rpc_status()).SerializeToString()),)
    )
    context.abort(status, failure.message)
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
