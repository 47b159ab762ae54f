"""Notebooks of Vertex AI over gRPC (google-cloud-aiplatform), with bodies in REST's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from provision.adapters.diagnostic_log import log
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import none_if_missing
from provision.adapters.google.grpc_calls import call_grpc, client_options
from provision.adapters.google.grpc_messages import (
    UnsupportedByGrpc,
    operation_to_rest,
    to_message,
    to_rest_resource,
)
from provision.adapters.google.notebooks import to_snake_case
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import RestClient, RestResource, resource_path
from provision.adapters.google.retry import RetryPolicy
from provision.adapters.google.vertex import VertexApi, region_of, split_name
from provision.lean_import import skip_package_init

_PACKAGE = "google.cloud.aiplatform_v1"
_SERVICE = f"{_PACKAGE}.services.notebook_service"


class _Collection(NamedTuple):
    """The names of a collection in the client: field of a request, and MODULE:CLASS of messages."""

    field: str
    message: str


_COLLECTIONS = {
    "notebookRuntimeTemplates": _Collection(
        "notebook_runtime_template", "notebook_runtime:NotebookRuntimeTemplate"
    ),
    "notebookExecutionJobs": _Collection(
        "notebook_execution_job", "notebook_execution_job:NotebookExecutionJob"
    ),
}


def is_installed() -> bool:
    """Return whether google-cloud-aiplatform is installed, with its service for notebooks."""
    try:
        skip_package_init(_PACKAGE, f"{_PACKAGE}.services", f"{_PACKAGE}.types")
        return find_spec(_SERVICE) is not None
    except ModuleNotFoundError:
        return False


def message_type(collection: str) -> Any:
    """Return the class of the messages of a collection; `is_installed` was called before."""
    module, _, name = _COLLECTIONS[collection].message.partition(":")
    return getattr(import_optional(f"{_PACKAGE}.types.{module}"), name)


class GrpcVertex(VertexApi):
    """Notebooks of Vertex AI over gRPC if the client's messages have every field, else over REST.

    A body that the messages cannot express is sent over REST. After a response with something that
    they cannot name, all reads go over REST.
    """

    def __init__(self, rest: RestClient, endpoints: Endpoints, policy: RetryPolicy) -> None:
        super().__init__(rest, endpoints.aiplatform, policy)
        self._grpc_address = endpoints.aiplatform_grpc
        self._is_loopback = endpoints.is_loopback
        self._is_outdated = False
        self._clients: dict[str, Any] = {}

    def get(self, name: str) -> RestResource | None:
        """See VertexApi."""
        if not self._is_outdated:
            method = f"get_{_field_of(name)}"
            message = none_if_missing(lambda: self._call(method, name, {"name": name}))
            try:
                return None if message is None else to_rest_resource(message)
            except UnsupportedByGrpc:
                self._read_over_rest(name)
        return super().get(name)

    def list(self, parent: str, collection: str) -> tuple[RestResource, ...]:
        """See VertexApi."""
        if not self._is_outdated:
            field = f"{_COLLECTIONS[collection].field}s"
            pages = self._call(f"list_{field}", parent, {"parent": parent}, _all_pages)
            messages = [item for page in pages for item in getattr(page, field)]
            try:
                return tuple(to_rest_resource(message) for message in messages)
            except UnsupportedByGrpc:
                self._read_over_rest(parent)
        return super().list(parent, collection)

    def update(self, name: str, body: RestResource, mask: str) -> RestResource:
        """See VertexApi."""
        message = self._message({**body, "name": name}, name)
        if message is None:
            return super().update(name, body, mask)
        field = _field_of(name)
        request = {field: message, "update_mask": {"paths": to_snake_case(mask).split(",")}}
        changed = self._call(f"update_{field}", name, request)
        try:
            return to_rest_resource(changed)
        except UnsupportedByGrpc:
            self._read_over_rest(name)
            return super().get(name) or {}

    def start_creation(self, name: str, body: RestResource) -> RestResource:
        """See VertexApi."""
        message = self._message(body, name)
        if message is None:
            return super().start_creation(name, body)
        parent, _, short_name = split_name(name)
        field = _field_of(name)
        request = {"parent": parent, field: message, f"{field}_id": short_name}
        return operation_to_rest(self._call(f"create_{field}", name, request).operation)

    def start_deletion(self, name: str) -> RestResource | None:
        """See VertexApi."""
        method = f"delete_{_field_of(name)}"
        operation = none_if_missing(lambda: self._call(method, name, {"name": name}))
        return None if operation is None else operation_to_rest(operation.operation)

    def operation(self, name: str) -> RestResource | None:
        """See VertexApi."""
        message = none_if_missing(lambda: self._call("get_operation", name, {"name": name}))
        return None if message is None else operation_to_rest(message)

    def _message(self, body: RestResource, name: str) -> Any | None:
        """Return a body as a message, None if it has to be sent over REST."""
        message = to_message(body, message_type(split_name(name)[1]))
        if message is None:
            log.info("REST for %s: the gRPC messages lack a field or value of its body", name)
        return message

    def _read_over_rest(self, name: str) -> None:
        self._is_outdated = True
        log.info("REST from now on: the gRPC messages lack a field or value of %s", name)

    def _call(
        self,
        method: str,
        name: str,
        request: Mapping[str, Any],
        read: Callable[[Any], Any] = lambda response: response,
    ) -> Any:
        """Call a method of the client of a region, and return what `read` makes of its response."""
        client = self._client(region_of(name))
        resource_path(name)

        def call(request: Mapping[str, Any], timeout: float) -> Any:
            return read(getattr(client, method)(request, timeout=timeout))

        return call_grpc(call, name, request, self._policy, self._rest.credentials)

    def _client(self, region: str) -> Any:
        """Return the client of a region: each has an address of its own."""
        if region not in self._clients:
            options = client_options(
                f"{_SERVICE}.transports:NotebookServiceGrpcTransport",
                self._grpc_address.replace("{region}", region),
                self._rest.credentials,
                loopback=self._is_loopback,
            )
            service = import_optional(_SERVICE)
            self._clients[region] = service.NotebookServiceClient(**options)
        return self._clients[region]


def _field_of(name: str) -> str:
    return _COLLECTIONS[split_name(name)[1]].field


def _all_pages(response: Any) -> tuple[Any, ...]:
    """Request all pages of a list; while it is read, the next page may fail."""
    return tuple(response.pages)
