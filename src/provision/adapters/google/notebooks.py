"""Notebooks v2, the API of Workbench instances: what is asked of it, over REST, and which way a
call takes.
"""

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
    """The messages of the gRPC client do not hold all that was read."""


class NotebooksApi(Protocol):
    """The calls that we make. A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE, a
    `parent` its part up to the zone. All raise CloudError.
    """

    def get(self, name: str) -> RestResource | None:
        """Return an instance, None when there is none."""

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """Return the instances below a parent (zone `-`: all zones), and the zones that did not
        answer.
        """

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """Begin to create an instance and return the operation; the same `request` (a UUID) makes
        it the same call.
        """

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """Begin to change the fields that `mask` names and return the operation."""

    def delete(self, name: str, request: str) -> RestResource | None:
        """Begin to delete an instance and return the operation; None when there is none."""

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """Begin to make a disk of an instance larger and return the operation; `disk` is bootDisk
        or dataDisk.
        """

    def stop(self, name: str) -> RestResource:
        """Begin to stop an instance and return the operation."""

    def start(self, name: str) -> RestResource:
        """Begin to start an instance and return the operation."""

    def operation(self, name: str) -> RestResource | None:
        """Return an operation; None when it is forgotten."""

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """Return the operations that are remembered below a parent."""


class RestNotebooks:
    """Notebooks v2 over REST: holds everything the service knows."""

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/v2/"

    def get(self, name: str) -> RestResource | None:
        """See Notebooks."""
        return self._rest.get_or_none(self._base + resource_path(name))

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See Notebooks."""
        pages = list(self._rest.pages(f"{self._base}{resource_path(parent)}/instances"))
        instances = tuple(one for page in pages for one in page.get("instances", ()))
        return instances, tuple(
            sorted({zone for page in pages for zone in page.get("unreachable", ())})
        )

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See Notebooks."""
        return self._rest.request_json(
            "POST",
            f"{self._base}{resource_path(parent)}/instances",
            {"instanceId": instance, "requestId": request},
            body,
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See Notebooks."""
        return self._rest.request_json(
            "PATCH",
            self._base + resource_path(name),
            {"updateMask": to_snake_case(mask), "requestId": request},
            body,
        )

    def delete(self, name: str, request: str) -> RestResource | None:
        """See Notebooks."""
        try:
            return self._rest.request_json(
                "DELETE", self._base + resource_path(name), {"requestId": request}
            )
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """See Notebooks; the gRPC client does not have this call."""
        return self._rest.request_json(
            "POST",
            f"{self._base}{resource_path(name)}:resizeDisk",
            body={disk: {"diskSizeGb": size_gb}},
        )

    def stop(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._rest.request_json("POST", f"{self._base}{resource_path(name)}:stop", body={})

    def start(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._rest.request_json("POST", f"{self._base}{resource_path(name)}:start", body={})

    def operation(self, name: str) -> RestResource | None:
        """See Notebooks."""
        return self._rest.get_or_none(self._base + resource_path(name))

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See Notebooks."""
        return tuple(
            one
            for page in self._rest.pages(f"{self._base}{resource_path(parent)}/operations")
            for one in page.get("operations", ())
        )

    def config(self, parent: str) -> RestResource | None:
        """Return what Workbench offers in a zone (getConfig); the gRPC client does not have this
        call.
        """
        return self._rest.get_or_none(f"{self._base}{resource_path(parent)}/instances:getConfig")


class FallbackNotebooks:
    """Notebooks v2 over gRPC whenever its messages hold every field, else over REST.

    The client of gRPC is behind the service: what it cannot write goes over REST, and once it
    read something that it cannot name, reading does too.
    """

    def __init__(
        self, rest: RestNotebooks, grpc: NotebooksApi, expressible: Callable[[RestResource], bool]
    ) -> None:
        self._rest = rest
        self._grpc = grpc
        self._expressible = expressible
        self._grpc_is_outdated = False

    def get(self, name: str) -> RestResource | None:
        """See Notebooks."""
        return self._read(lambda way: way.get(name))

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See Notebooks."""
        return self._read(lambda way: way.list(parent))

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See Notebooks."""
        return self._api_for_body(body).create(parent, instance, body, request)

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See Notebooks."""
        return self._api_for_body(body).update(name, body, mask, request)

    def delete(self, name: str, request: str) -> RestResource | None:
        """See Notebooks."""
        return self._grpc.delete(name, request)

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """See Notebooks."""
        return self._rest.resize(name, disk, size_gb)

    def stop(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._grpc.stop(name)

    def start(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._grpc.start(name)

    def operation(self, name: str) -> RestResource | None:
        """See Notebooks."""
        return self._grpc.operation(name)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See Notebooks."""
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
    """Return the paths of a mask as the service lists them: gceSetup.machineType is
    gce_setup.machine_type.
    """
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), mask)
