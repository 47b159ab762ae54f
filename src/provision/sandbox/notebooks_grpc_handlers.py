"""gRPC handlers of the emulated Notebooks API, with the messages of google-cloud-notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from google.cloud import notebooks_v2 as nb
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from provision.sandbox.grpc_messages import (
    method_handler,
    status_message,
    to_json,
    to_message,
    untyped,
)
from provision.sandbox.notebooks_service import NotebooksService, filter_unsupported_error

_NOTEBOOKS = "google.cloud.notebooks.v2.NotebookService"
_OPERATIONS = "google.longrunning.Operations"
_VERTEX_OPERATION = re.compile(r".+/(notebookRuntimeTemplates|notebookExecutionJobs)/.+")


def build_method_handlers(
    service: NotebooksService, get_vertex_operation: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return the gRPC handler of each method, by its full name (/SERVICE/METHOD).

    Requests for an operation of Vertex AI, which has another address but the same method, go to
    `get_vertex_operation`.
    """

    def get_operation(service: NotebooksService, request: Any) -> Any:
        if _VERTEX_OPERATION.fullmatch(request.name):
            return get_vertex_operation(request)
        return _operation(service.operation(request.name))

    methods_by_api = {
        **_METHODS,
        _OPERATIONS: {**_METHODS[_OPERATIONS], "GetOperation": get_operation},
    }
    handlers = {}
    for api, methods in methods_by_api.items():
        for name, method in methods.items():
            if api == _OPERATIONS:
                parse = getattr(operations_pb2, f"{name}Request").FromString
            else:
                parse = getattr(nb, f"{name}Request").deserialize
            handlers[f"/{api}/{name}"] = method_handler(partial(method, service), parse)
    return handlers


def _list_instances(service: NotebooksService, request: Any) -> Any:
    if request.filter or request.order_by:
        raise filter_unsupported_error()
    page = service.list_instances(request.parent, request.page_size, request.page_token)
    return to_message(page, nb.ListInstancesResponse(), "instances")


def _get_instance(service: NotebooksService, request: Any) -> Any:
    return to_message(service.get(request.name), nb.Instance())


def _create_instance(service: NotebooksService, request: Any) -> Any:
    body = to_json(request.instance)
    return _operation(service.create(request.parent, request.instance_id, body, request.request_id))


def _update_instance(service: NotebooksService, request: Any) -> Any:
    body, paths = to_json(request.instance), list(request.update_mask.paths)
    return _operation(service.patch(request.instance.name, body, paths, request.request_id))


def _diagnose_instance(service: NotebooksService, request: Any) -> Any:
    body = to_json(request)
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
        "ListOperations": _list_operations,
        "CancelOperation": _cancel_operation,
    },
}


def _operation(body: Mapping[str, Any]) -> Any:
    """Return an operation as its message, with its packed metadata and result."""
    operation = operations_pb2.Operation(name=body["name"], done=body.get("done", False))
    operation.metadata.Pack(to_message(untyped(body["metadata"]), nb.OperationMetadata()))
    if "error" in body:
        operation.error.CopyFrom(status_message(body["error"]))
    elif "response" in body:
        response: Any = empty_pb2.Empty()
        if not body["response"]["@type"].endswith("Empty"):
            response = to_message(untyped(body["response"]), nb.Instance())
        operation.response.Pack(response)
    return operation
