"""The Notebooks service by the messages of google-cloud-notebooks: what these lack travels without
a name, as with the real service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
_NAMELESS = b"\xc0\x3e\x01"  # field 1000, a number: 1
_Answer = Callable[[Any], Any]


def build_method_handlers(service: NotebooksService) -> dict[str, Any]:
    """Return the methods by full name (/SERVICE/METHOD), each from a request message to an answer
    message.
    """

    def create(asked: Any) -> Any:
        return _operation(
            service.create(asked.parent, asked.instance_id, _json(asked.instance), asked.request_id)
        )

    def update(asked: Any) -> Any:
        return _operation(
            service.patch(
                asked.instance.name,
                _json(asked.instance),
                list(asked.update_mask.paths),
                asked.request_id,
            )
        )

    def listed(asked: Any) -> Any:
        if asked.filter or asked.order_by:
            raise filter_unsupported_error()
        return _message(
            service.list_instances(asked.parent, asked.page_size, asked.page_token),
            nb.ListInstancesResponse(),
        )

    def all_operations(asked: Any) -> Any:
        return operations_pb2.ListOperationsResponse(
            operations=[
                _operation(one) for one in service.operations(asked.name).get("operations", [])
            ]
        )

    def cancelled(asked: Any) -> Any:
        service.cancel(asked.name)
        return empty_pb2.Empty()

    methods: dict[str, tuple[Callable[[bytes], Any], _Answer]] = {
        f"{_SERVICE}/ListInstances": (nb.ListInstancesRequest.deserialize, listed),
        f"{_SERVICE}/GetInstance": (
            nb.GetInstanceRequest.deserialize,
            lambda asked: _message(service.get(asked.name), nb.Instance()),
        ),
        f"{_SERVICE}/CreateInstance": (nb.CreateInstanceRequest.deserialize, create),
        f"{_SERVICE}/UpdateInstance": (nb.UpdateInstanceRequest.deserialize, update),
        f"{_SERVICE}/DeleteInstance": (
            nb.DeleteInstanceRequest.deserialize,
            lambda asked: _operation(service.delete(asked.name, asked.request_id)),
        ),
        f"{_SERVICE}/StartInstance": (
            nb.StartInstanceRequest.deserialize,
            lambda asked: _operation(service.start(asked.name)),
        ),
        f"{_SERVICE}/StopInstance": (
            nb.StopInstanceRequest.deserialize,
            lambda asked: _operation(service.stop(asked.name)),
        ),
        f"{_SERVICE}/ResetInstance": (
            nb.ResetInstanceRequest.deserialize,
            lambda asked: _operation(service.reset(asked.name)),
        ),
        f"{_SERVICE}/DiagnoseInstance": (
            nb.DiagnoseInstanceRequest.deserialize,
            lambda asked: _operation(service.diagnose(asked.name, _diagnosis(asked))),
        ),
        f"{_OPERATIONS}/GetOperation": (
            operations_pb2.GetOperationRequest.FromString,
            lambda asked: _operation(service.operation(asked.name)),
        ),
        f"{_OPERATIONS}/ListOperations": (
            operations_pb2.ListOperationsRequest.FromString,
            all_operations,
        ),
        f"{_OPERATIONS}/CancelOperation": (
            operations_pb2.CancelOperationRequest.FromString,
            cancelled,
        ),
    }
    return {
        f"/{name}": grpc.unary_unary_rpc_method_handler(
            _guarded(method), reader, lambda message: message.SerializeToString()
        )
        for name, (reader, method) in methods.items()
    }


def _guarded(method: _Answer) -> Callable[[Any, Any], Any]:
    """Return a method that tells of a failure as gRPC does, with its details."""

    def call(request: Any, context: Any) -> Any:
        try:
            return method(request)
        except ApiError as failure:
            _abort(context, failure)
        except Exception as error:  # noqa: BLE001
            _abort(
                context,
                ApiError(
                    StatusCode.INTERNAL, f"the sandbox failed: {type(error).__name__}: {error}"
                ),
            )

    return call


def _abort(context: Any, failure: ApiError) -> NoReturn:
    status = next(one for one in grpc.StatusCode if one.value[0] == int(failure.code))
    # As grpc_status.rpc_status.to_status does it, without one more package.
    context.set_trailing_metadata(
        (("grpc-status-details-bin", _status(failure.to_rpc_status()).SerializeToString()),)
    )
    context.abort(status, failure.message)
    raise AssertionError("abort raises")


def _operation(shown: Mapping[str, Any]) -> Any:
    """Return an operation as its message, with what is packed into it."""
    operation = operations_pb2.Operation(name=shown["name"], done=shown.get("done", False))
    operation.metadata.Pack(_message(_untyped(shown["metadata"]), nb.OperationMetadata()))
    if "error" in shown:
        operation.error.CopyFrom(_status(shown["error"]))
    elif "response" in shown:
        empty = shown["response"]["@type"].endswith("Empty")
        operation.response.Pack(
            empty_pb2.Empty() if empty else _message(_untyped(shown["response"]), nb.Instance())
        )
    return operation


def _status(shown: Mapping[str, Any]) -> Any:
    status = status_pb2.Status(code=shown["code"], message=shown["message"])
    for detail in shown.get("details", ()):
        packed = any_pb2.Any()
        packed.Pack(
            json_format.ParseDict(_untyped(detail), _DETAILS[detail["@type"].rsplit(".", 1)[-1]]())
        )
        status.details.append(packed)
    return status


def _diagnosis(asked: Any) -> dict[str, Any]:
    body = _json(asked)
    body.pop("name", None)
    return body


def _untyped(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if key != "@type"}


def _json(message: Any) -> dict[str, Any]:
    body: dict[str, Any] = json_format.MessageToDict(type(message).pb(message))
    return body


def _message(shown: Mapping[str, Any], message: Any) -> Any:
    """Return the protobuf message that holds what its fields can of a JSON body.

    Newer fields and enum values travel as a field without a name, so that a client can tell that
    there is more: the real service sends them so.
    """
    raw = json_format.ParseDict(dict(shown), type(message).pb(message), ignore_unknown_fields=True)
    for one, told in (
        (raw, shown),
        *zip(getattr(raw, "instances", ()), shown.get("instances", ()), strict=False),
    ):
        if _lost(told, json_format.MessageToDict(one)):
            one.MergeFromString(_NAMELESS)
    return raw


def _lost(told: Any, held: Any) -> bool:
    if isinstance(told, Mapping):
        return any(
            value not in (False, "", 0, [], {}) and (key not in held or _lost(value, held[key]))
            for key, value in told.items()
        )
    if isinstance(told, list):
        return len(told) != len(held) or any(
            _lost(value, held[place]) for place, value in enumerate(told)
        )
    return False
