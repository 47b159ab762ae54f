"""Notebooks v2 over gRPC (google-cloud-notebooks), with messages converted to REST's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import none_if_missing
from provision.adapters.google.grpc_calls import call_grpc, client_options
from provision.adapters.google.grpc_messages import (
    UnsupportedByGrpc,
    operation_to_rest,
    to_message,
    to_rest_resource,
)
from provision.adapters.google.notebooks import NotebooksApi, to_snake_case
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import RestClient, RestResource
from provision.adapters.google.retry import RetryPolicy

_TRANSPORT = (
    "google.cloud.notebooks_v2.services.notebook_service.transports:NotebookServiceGrpcTransport"
)


class GrpcNotebooks(NotebooksApi):
    """Notebooks v2 over gRPC if its messages have every field, else over REST.

    The gRPC client is behind the service: bodies that it cannot express and calls that it lacks go
    over REST, and after it received something that it cannot name, reads do too.
    """

    def __init__(self, rest: RestClient, endpoints: Endpoints, policy: RetryPolicy) -> None:
        super().__init__(rest, endpoints.notebooks_rest)
        self._policy = policy
        self._is_outdated = False
        v2 = import_optional("google.cloud.notebooks_v2")
        self._message_type = v2.Instance
        self._client = v2.NotebookServiceClient(
            **client_options(
                _TRANSPORT,
                endpoints.notebooks_grpc,
                rest.credentials,
                loopback=endpoints.is_loopback,
            )
        )

    def get(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        if not self._is_outdated:
            try:
                message = self._call_or_none(self._client.get_instance, name, {"name": name})
                return None if message is None else to_rest_resource(message)
            except UnsupportedByGrpc:
                self._is_outdated = True
        return super().get(name)

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi."""

        def list_pages(request: Any, timeout: float) -> Any:
            return tuple(self._client.list_instances(request, timeout=timeout).pages)

        if not self._is_outdated:
            try:
                pages = self._call(list_pages, parent, {"parent": parent})
                instances = tuple(
                    to_rest_resource(item) for page in pages for item in page.instances
                )
            except UnsupportedByGrpc:
                self._is_outdated = True
            else:
                unreachable = {zone for page in pages for zone in page.unreachable}
                return instances, tuple(sorted(unreachable))
        return super().list(parent)

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        message = to_message(body, self._message_type)
        if message is None:
            return super().create(parent, instance, body, request)
        fields = {"instance_id": instance, "instance": message, "request_id": request}
        return self._start_operation(
            self._client.create_instance, parent, {"parent": parent, **fields}
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        message = to_message({**body, "name": name}, self._message_type)
        if message is None:
            return super().update(name, body, mask, request)
        paths = {"paths": to_snake_case(mask).split(",")}
        fields = {"instance": message, "update_mask": paths, "request_id": request}
        return self._start_operation(self._client.update_instance, name, fields)

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        fields = {"name": name, "request_id": request}
        message = self._call_or_none(self._client.delete_instance, name, fields)
        return None if message is None else operation_to_rest(message.operation)

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(self._client.stop_instance, name, {"name": name})

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(self._client.start_instance, name, {"name": name})

    def operation(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        message = self._call_or_none(self._client.get_operation, name, {"name": name})
        return None if message is None else operation_to_rest(message)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi; only the first page, which has the running operations."""
        message = self._call(self._client.list_operations, parent, {"name": parent})
        return tuple(operation_to_rest(item) for item in message.operations)

    def _start_operation(
        self, call: Callable[..., Any], name: str, request: Mapping[str, Any]
    ) -> RestResource:
        return operation_to_rest(self._call(call, name, request).operation)

    def _call_or_none(
        self, call: Callable[..., Any], name: str, request: Mapping[str, Any]
    ) -> Any | None:
        return none_if_missing(lambda: self._call(call, name, request))

    def _call(self, call: Callable[..., Any], name: str, request: Mapping[str, Any]) -> Any:
        return call_grpc(call, name, request, self._policy, self._rest.credentials)
