"""Notebooks v2, the API of Workbench instances: the calls, and their REST implementation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from provision.adapters.google.errors import CloudError
from provision.adapters.google.rest import RestClient, resource_path

RestResource = Mapping[str, Any]
"""An instance or an operation as the REST API has it: camelCase, enums as names, int64 as text."""
T = TypeVar("T")


class UnsupportedByGrpc(Exception):
    """The messages of the gRPC client lack a field, value or call."""


class NotebooksApi(Protocol):
    """The calls that we need. All raise CloudError and may block for minutes.

    A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE, a `parent` its part up to the
    zone.
    """

    def get(self, name: str) -> RestResource | None:
        """Return an instance, None if it does not exist."""

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """Return the instances below a parent (zone `-`: all), and the zones without an answer."""

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """Start creating an instance and return the operation.

        A call with the same `request` (a UUID) is the same call.
        """

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """Start changing the fields that `mask` names and return the operation."""

    def delete(self, name: str, request: str) -> RestResource | None:
        """Start deleting an instance and return the operation, None if it does not exist."""

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """Start enlarging a disk (bootDisk or dataDisk) and return the operation."""

    def stop(self, name: str) -> RestResource:
        """Start stopping an instance and return the operation."""

    def start(self, name: str) -> RestResource:
        """Start starting an instance and return the operation."""

    def operation(self, name: str) -> RestResource | None:
        """Return an operation, None if the service no longer remembers it."""

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """Return the operations below a parent that the service remembers."""


class RestNotebooks:
    """Notebooks v2 over REST, which supports everything."""

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/v2/"

    def get(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._rest.get_or_none(self._base + resource_path(name))

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi."""
        pages = list(self._rest.pages(f"{self._base}{resource_path(parent)}/instances"))
        instances = tuple(item for page in pages for item in page.get("instances", ()))
        return instances, tuple(
            sorted({zone for page in pages for zone in page.get("unreachable", ())})
        )

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._rest.request_json(
            "POST",
            f"{self._base}{resource_path(parent)}/instances",
            {"instanceId": instance, "requestId": request},
            body,
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._rest.request_json(
            "PATCH",
            self._base + resource_path(name),
            {"updateMask": to_snake_case(mask), "requestId": request},
            body,
        )

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        try:
            return self._rest.request_json(
                "DELETE", self._base + resource_path(name), {"requestId": request}
            )
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """See NotebooksApi; the gRPC client lacks this call."""
        return self._rest.request_json(
            "POST",
            f"{self._base}{resource_path(name)}:resizeDisk",
            body={disk: {"diskSizeGb": size_gb}},
        )

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._rest.request_json("POST", f"{self._base}{resource_path(name)}:stop", body={})

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._rest.request_json("POST", f"{self._base}{resource_path(name)}:start", body={})

    def operation(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._rest.get_or_none(self._base + resource_path(name))

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi."""
        return tuple(
            item
            for page in self._rest.pages(f"{self._base}{resource_path(parent)}/operations")
            for item in page.get("operations", ())
        )

    def config(self, parent: str) -> RestResource | None:
        """Return what Workbench offers in a zone (getConfig); the gRPC client lacks this call."""
        return self._rest.get_or_none(f"{self._base}{resource_path(parent)}/instances:getConfig")


class FallbackNotebooks:
    """Notebooks v2 over gRPC if its messages have every field, else over REST.

    The gRPC client is behind the service: bodies that it cannot express go over REST, and after it
    received something that it cannot name, reads do too.
    """

    def __init__(
        self, rest: RestNotebooks, grpc: NotebooksApi, is_supported: Callable[[RestResource], bool]
    ) -> None:
        self._rest = rest
        self._grpc = grpc
        self._expressible = is_supported
        self._grpc_is_outdated = False

    def get(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._read(lambda api: api.get(name))

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi."""
        return self._read(lambda api: api.list(parent))

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._api_for_body(body).create(parent, instance, body, request)

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._api_for_body(body).update(name, body, mask, request)

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._grpc.delete(name, request)

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """See NotebooksApi."""
        return self._rest.resize(name, disk, size_gb)

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._grpc.stop(name)

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._grpc.start(name)

    def operation(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._grpc.operation(name)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi."""
        return self._grpc.operations(parent)

    def _api_for_body(self, body: RestResource) -> NotebooksApi:
        return self._grpc if self._expressible(body) else self._rest

    def _read(self, call: Callable[[NotebooksApi], T]) -> T:
        if not self._grpc_is_outdated:
            try:
                return call(self._grpc)
            except UnsupportedByGrpc:
                self._grpc_is_outdated = True
        return call(self._rest)


def to_snake_case(mask: str) -> str:
    """Return the paths of a mask in the service's form: gce_setup.machine_type."""
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), mask)
