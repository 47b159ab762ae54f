"""Notebooks v2, the API of Workbench instances, over REST."""

from __future__ import annotations

import re

from provision.adapters.google.errors import none_if_missing
from provision.adapters.google.rest import RestClient, RestResource, resource_path


class NotebooksApi:
    """The calls of Notebooks v2 over REST. All raise CloudError and may block for minutes.

    A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE, a `parent` its part up to the
    zone.
    """

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/v2/"

    def get(self, name: str) -> RestResource | None:
        """Return an instance, None if it does not exist."""
        return self._rest.get_or_none(self._url(name))

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """Return the instances below a parent (zone `-`: all), and the zones without an answer."""
        pages = list(self._rest.pages(self._url(parent, "/instances")))
        instances = tuple(item for page in pages for item in page.get("instances", ()))
        unreachable = {zone for page in pages for zone in page.get("unreachable", ())}
        return instances, tuple(sorted(unreachable))

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """Start creating an instance and return the operation.

        A call with the same `request` (a UUID) is the same call.
        """
        query = {"instanceId": instance, "requestId": request}
        return self._rest.request_json("POST", self._url(parent, "/instances"), query, body)

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """Start changing the fields that `mask` names and return the operation."""
        query = {"updateMask": to_snake_case(mask), "requestId": request}
        return self._rest.request_json("PATCH", self._url(name), query, body)

    def delete(self, name: str, request: str) -> RestResource | None:
        """Start deleting an instance and return the operation, None if it does not exist."""
        query = {"requestId": request}
        return none_if_missing(lambda: self._rest.request_json("DELETE", self._url(name), query))

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """Start enlarging a disk (bootDisk or dataDisk) and return the operation."""
        body = {disk: {"diskSizeGb": size_gb}}
        return self._rest.request_json("POST", self._url(name, ":resizeDisk"), body=body)

    def stop(self, name: str) -> RestResource:
        """Start stopping an instance and return the operation."""
        return self._rest.request_json("POST", self._url(name, ":stop"), body={})

    def start(self, name: str) -> RestResource:
        """Start starting an instance and return the operation."""
        return self._rest.request_json("POST", self._url(name, ":start"), body={})

    def operation(self, name: str) -> RestResource | None:
        """Return an operation, None if the service no longer remembers it."""
        return self._rest.get_or_none(self._url(name))

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """Return the operations below a parent that the service remembers."""
        pages = self._rest.pages(self._url(parent, "/operations"))
        return tuple(item for page in pages for item in page.get("operations", ()))

    def config(self, parent: str) -> RestResource | None:
        """Return what Workbench offers in a zone (getConfig)."""
        return self._rest.get_or_none(self._url(parent, "/instances:getConfig"))

    def _url(self, name: str, suffix: str = "") -> str:
        return f"{self._base}{resource_path(name)}{suffix}"


def to_snake_case(mask: str) -> str:
    """Return the paths of a mask in the service's form: gce_setup.machine_type."""
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), mask)
