"""Notebooks v2, the API of Workbench instances: what is asked of it, over REST, and which way a call takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from provision.world.cloud.failures import CloudError
from provision.world.cloud.rest import Rest, path

Wire = Mapping[str, Any]
"""An instance or an operation as the REST API has it: camelCase, enums as names, int64 as text."""
T = TypeVar("T")


class Inexpressible(Exception):
    """The messages of the gRPC client do not hold all that was read."""


class Notebooks(Protocol):
    """The calls that we make. A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE, a `parent` its part up to the zone. All raise CloudError."""

    def get(self, name: str) -> Wire | None:
        """Return an instance, None when there is none."""

    def list(self, parent: str) -> tuple[tuple[Wire, ...], tuple[str, ...]]:
        """Return the instances below a parent (zone `-`: all zones), and the zones that did not answer."""

    def create(self, parent: str, instance: str, body: Wire, request: str) -> Wire:
        """Begin to create an instance and return the operation; the same `request` (a UUID) makes it the same call."""

    def update(self, name: str, body: Wire, mask: str, request: str) -> Wire:
        """Begin to change the fields that `mask` names and return the operation."""

    def delete(self, name: str, request: str) -> Wire | None:
        """Begin to delete an instance and return the operation; None when there is none."""

    def resize(self, name: str, disk: str, size_gb: str) -> Wire:
        """Begin to make a disk of an instance larger and return the operation; `disk` is bootDisk or dataDisk."""

    def stop(self, name: str) -> Wire:
        """Begin to stop an instance and return the operation."""

    def start(self, name: str) -> Wire:
        """Begin to start an instance and return the operation."""

    def operation(self, name: str) -> Wire | None:
        """Return an operation; None when it is forgotten."""

    def operations(self, parent: str) -> tuple[Wire, ...]:
        """Return the operations that are remembered below a parent."""


class OverRest:
    """Notebooks v2 over REST: holds everything the service knows."""

    def __init__(self, rest: Rest, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/v2/"

    def get(self, name: str) -> Wire | None:
        """See Notebooks."""
        return self._rest.found(self._base + path(name))

    def list(self, parent: str) -> tuple[tuple[Wire, ...], tuple[str, ...]]:
        """See Notebooks."""
        pages = list(self._rest.pages(f"{self._base}{path(parent)}/instances"))
        instances = tuple(one for page in pages for one in page.get("instances", ()))
        return instances, tuple(sorted({zone for page in pages for zone in page.get("unreachable", ())}))

    def create(self, parent: str, instance: str, body: Wire, request: str) -> Wire:
        """See Notebooks."""
        return self._rest.json("POST", f"{self._base}{path(parent)}/instances", {"instanceId": instance, "requestId": request}, body)

    def update(self, name: str, body: Wire, mask: str, request: str) -> Wire:
        """See Notebooks."""
        return self._rest.json("PATCH", self._base + path(name), {"updateMask": snake(mask), "requestId": request}, body)

    def delete(self, name: str, request: str) -> Wire | None:
        """See Notebooks."""
        try:
            return self._rest.json("DELETE", self._base + path(name), {"requestId": request})
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def resize(self, name: str, disk: str, size_gb: str) -> Wire:
        """See Notebooks; the gRPC client does not have this call."""
        return self._rest.json("POST", f"{self._base}{path(name)}:resizeDisk", body={disk: {"diskSizeGb": size_gb}})

    def stop(self, name: str) -> Wire:
        """See Notebooks."""
        return self._rest.json("POST", f"{self._base}{path(name)}:stop", body={})

    def start(self, name: str) -> Wire:
        """See Notebooks."""
        return self._rest.json("POST", f"{self._base}{path(name)}:start", body={})

    def operation(self, name: str) -> Wire | None:
        """See Notebooks."""
        return self._rest.found(self._base + path(name))

    def operations(self, parent: str) -> tuple[Wire, ...]:
        """See Notebooks."""
        return tuple(one for page in self._rest.pages(f"{self._base}{path(parent)}/operations") for one in page.get("operations", ()))

    def config(self, parent: str) -> Wire | None:
        """Return what Workbench offers in a zone (getConfig); the gRPC client does not have this call."""
        return self._rest.found(f"{self._base}{path(parent)}/instances:getConfig")


class Chosen:
    """Notebooks v2 over gRPC whenever its messages hold every field, else over REST.

    The client of gRPC is behind the service: what it cannot write goes over REST, and once it read something that it cannot name, reading does too.
    """

    def __init__(self, rest: OverRest, grpc: Notebooks, expressible: Callable[[Wire], bool]) -> None:
        self._rest = rest
        self._grpc = grpc
        self._expressible = expressible
        self._behind = False

    def get(self, name: str) -> Wire | None:
        """See Notebooks."""
        return self._read(lambda way: way.get(name))

    def list(self, parent: str) -> tuple[tuple[Wire, ...], tuple[str, ...]]:
        """See Notebooks."""
        return self._read(lambda way: way.list(parent))

    def create(self, parent: str, instance: str, body: Wire, request: str) -> Wire:
        """See Notebooks."""
        return self._for(body).create(parent, instance, body, request)

    def update(self, name: str, body: Wire, mask: str, request: str) -> Wire:
        """See Notebooks."""
        return self._for(body).update(name, body, mask, request)

    def delete(self, name: str, request: str) -> Wire | None:
        """See Notebooks."""
        return self._grpc.delete(name, request)

    def resize(self, name: str, disk: str, size_gb: str) -> Wire:
        """See Notebooks."""
        return self._rest.resize(name, disk, size_gb)

    def stop(self, name: str) -> Wire:
        """See Notebooks."""
        return self._grpc.stop(name)

    def start(self, name: str) -> Wire:
        """See Notebooks."""
        return self._grpc.start(name)

    def operation(self, name: str) -> Wire | None:
        """See Notebooks."""
        return self._grpc.operation(name)

    def operations(self, parent: str) -> tuple[Wire, ...]:
        """See Notebooks."""
        return self._grpc.operations(parent)

    def _for(self, body: Wire) -> Notebooks:
        return self._grpc if self._expressible(body) else self._rest

    def _read(self, call: Callable[[Notebooks], T]) -> T:
        if not self._behind:
            try:
                return call(self._grpc)
            except Inexpressible:
                self._behind = True
        return call(self._rest)


def snake(mask: str) -> str:
    """Return the paths of a mask as the service lists them: gceSetup.machineType is gce_setup.machine_type."""
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), mask)
