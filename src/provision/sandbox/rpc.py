"""The Notebooks service over gRPC, with the messages of google-cloud-notebooks: what these lack is not carried, as with the real client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.cloud import notebooks_v2 as nb
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf import any_pb2, empty_pb2, json_format
from google.rpc import error_details_pb2, status_pb2

from provision.sandbox.failure import Code, Failure
from provision.sandbox.notebooks import Notebooks

_SERVICE = "google.cloud.notebooks.v2.NotebookService"
_THREADS = 8
_DETAILS = {"ErrorInfo": error_details_pb2.ErrorInfo, "RetryInfo": error_details_pb2.RetryInfo}
_NAMELESS = b"\xc0\x3e\x01"  # field 1000, a number: 1
_Answer = Callable[[Any], Any]


@contextmanager
def served(service: Notebooks, port: int = 0) -> Iterator[int]:
    """Serve on a loopback port (0: a free one) while the block runs; yields the port."""
    server = grpc.server(ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox-grpc"), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, _handlers(service)),))
    operations_pb2_grpc.add_OperationsServicer_to_server(_Operations(service), server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=0.2).wait()


def _handlers(service: Notebooks) -> dict[str, Any]:
    """Return the methods by name, each from a request message to an answer message."""

    def create(asked: Any) -> Any:
        return _operation(service.create(asked.parent, asked.instance_id, _json(asked.instance), asked.request_id))

    def update(asked: Any) -> Any:
        return _operation(service.patch(asked.instance.name, _json(asked.instance), list(asked.update_mask.paths), asked.request_id))

    def listed(asked: Any) -> Any:
        return _message(service.listed(asked.parent, asked.page_size, asked.page_token), nb.ListInstancesResponse())

    methods: dict[str, tuple[Any, _Answer]] = {
        "ListInstances": (nb.ListInstancesRequest, listed),
        "GetInstance": (nb.GetInstanceRequest, lambda asked: _message(service.get(asked.name), nb.Instance())),
        "CreateInstance": (nb.CreateInstanceRequest, create),
        "UpdateInstance": (nb.UpdateInstanceRequest, update),
        "DeleteInstance": (nb.DeleteInstanceRequest, lambda asked: _operation(service.delete(asked.name, asked.request_id))),
        "StartInstance": (nb.StartInstanceRequest, lambda asked: _operation(service.start(asked.name))),
        "StopInstance": (nb.StopInstanceRequest, lambda asked: _operation(service.stop(asked.name))),
        "ResetInstance": (nb.ResetInstanceRequest, lambda asked: _operation(service.reset(asked.name))),
        "DiagnoseInstance": (nb.DiagnoseInstanceRequest, lambda asked: _operation(service.diagnose(asked.name, _diagnosis(asked)))),
    }
    return {
        name: grpc.unary_unary_rpc_method_handler(_guarded(method), kind.deserialize, lambda message: message.SerializeToString())
        for name, (kind, method) in methods.items()
    }


class _Operations(operations_pb2_grpc.OperationsServicer):  # type: ignore[misc]
    def __init__(self, service: Notebooks) -> None:
        self._service = service

    def GetOperation(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        return _guarded(lambda asked: _operation(self._service.operation(asked.name)))(request, context)

    def ListOperations(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        def listed(asked: Any) -> Any:
            found = self._service.operations(asked.name).get("operations", [])
            return operations_pb2.ListOperationsResponse(operations=[_operation(one) for one in found])

        return _guarded(listed)(request, context)

    def CancelOperation(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        def cancelled(asked: Any) -> Any:
            self._service.cancel(asked.name)
            return empty_pb2.Empty()

        return _guarded(cancelled)(request, context)


def _guarded(method: _Answer) -> Callable[[Any, Any], Any]:
    """Return a method that tells of a failure as gRPC does, with its details."""

    def call(request: Any, context: Any) -> Any:
        try:
            return method(request)
        except Failure as failure:
            _abort(context, failure)
        except Exception as error:  # noqa: BLE001 - a bug of the sandbox must not look like a lost connection
            _abort(context, Failure(Code.INTERNAL, f"the sandbox failed: {type(error).__name__}: {error}"))

    return call


def _abort(context: Any, failure: Failure) -> NoReturn:
    status = next(one for one in grpc.StatusCode if one.value[0] == int(failure.code))
    # As grpc_status.rpc_status.to_status does it, without one more package.
    context.set_trailing_metadata((("grpc-status-details-bin", _status(failure.status()).SerializeToString()),))
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
        operation.response.Pack(empty_pb2.Empty() if empty else _message(_untyped(shown["response"]), nb.Instance()))
    return operation


def _status(shown: Mapping[str, Any]) -> Any:
    status = status_pb2.Status(code=shown["code"], message=shown["message"])
    for detail in shown.get("details", ()):
        packed = any_pb2.Any()
        packed.Pack(json_format.ParseDict(_untyped(detail), _DETAILS[detail["@type"].rsplit(".", 1)[-1]]()))
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

    Newer fields and enum values travel as a field without a name, so that a client can tell that there is more: the real service sends them so.
    """
    raw = json_format.ParseDict(dict(shown), type(message).pb(message), ignore_unknown_fields=True)
    for one, told in ((raw, shown), *zip(getattr(raw, "instances", ()), shown.get("instances", ()), strict=False)):
        if _lost(told, json_format.MessageToDict(one)):
            one.MergeFromString(_NAMELESS)
    return raw


def _lost(told: Any, held: Any) -> bool:
    if isinstance(told, Mapping):
        return any(value not in (False, "", 0, [], {}) and (key not in held or _lost(value, held[key])) for key, value in told.items())
    if isinstance(told, list):
        return len(told) != len(held) or any(_lost(value, held[place]) for place, value in enumerate(told))
    return False
