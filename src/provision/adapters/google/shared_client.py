"""A client of Google's services for several threads: reads of the same things share a call."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.notebooks import NotebooksApi
from provision.adapters.google.rest import HttpResponse, RestClient, RestResource
from provision.adapters.google.retry import RetryPolicy
from provision.adapters.google.shared_calls import SharedCalls
from provision.effects.google import ImageDescription

T = TypeVar("T")


class _LockedProperty(cached_property[T]):
    """A property that one thread computes on first use while the others wait."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with instance.connecting:
            return super().__get__(instance, owner)


class SharedGoogleClient(GoogleClient):
    """A `GoogleClient` that several threads may use.

    An instance that one thread waits for is read by itself, those of several threads by one list of
    their project, and their custom jobs by one list of a region. Quotas, machines on offer,
    buckets, their lists and images are read once for all threads that request them at the same
    time.
    """

    def __init__(
        self,
        endpoints: Endpoints | None,
        policy: RetryPolicy | None,
        *,
        images: Path | None = None,
    ) -> None:
        super().__init__(endpoints, policy, images=images)
        self.connecting = threading.RLock()
        self._calls = SharedCalls()

    @_LockedProperty
    def rest(self) -> RestClient:
        """The sender of REST calls, with connections for each thread."""
        single = super().rest
        return _ThreadedRestClient(
            single.credentials, self.policy, loopback=self._endpoints.is_loopback
        )

    @_LockedProperty
    def notebooks(self) -> NotebooksApi:
        """Notebooks v2 with shared reads."""
        return SharedNotebooks(super().notebooks, self._calls)

    storage = _LockedProperty(GoogleClient.__dict__["storage"].func)
    vertex = _LockedProperty(GoogleClient.__dict__["vertex"].func)
    job_stockouts = _LockedProperty(GoogleClient.__dict__["job_stockouts"].func)
    stockouts = _LockedProperty(GoogleClient.__dict__["stockouts"].func)

    def templates(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        return self._calls.read(
            ("templates", project, region), lambda: GoogleClient.templates(self, project, region)
        )

    def jobs(self, project: str, region: str, label: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader. Jobs with different labels are read by one list of their region."""
        parent = f"projects/{project}/locations/{region}"
        listed = self._calls.read_items(
            ("jobs", parent),
            label,
            lambda labels: self.vertex.list_jobs(parent, *sorted(labels)),
        )
        key, _, value = label.partition("=")
        return tuple(job for job in listed if job.get("labels", {}).get(key) == value)

    def object_uris(self, prefix: str) -> tuple[str, ...] | None:
        """See CloudReader."""
        return self._calls.read(("objects", prefix), lambda: GoogleClient.object_uris(self, prefix))

    def bucket(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        return self._calls.read(("bucket", name), lambda: GoogleClient.bucket(self, name))

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        return self._calls.read(
            ("quotas", project, region), lambda: GoogleClient.quotas(self, project, region)
        )

    def job_quotas(self, project: str) -> Mapping[str, Mapping[str, int]] | None:
        """See CloudReader."""
        return self._calls.read(
            ("job quotas", project), lambda: GoogleClient.job_quotas(self, project)
        )

    def look_up_image(self, image: str) -> ImageDescription:
        """See GoogleClient."""
        return self._calls.read(("image", image), lambda: GoogleClient.look_up_image(self, image))

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        return self._calls.read(
            ("accelerators", project, zone),
            lambda: GoogleClient.accelerator_types(self, project, zone),
        )


class SharedNotebooks(NotebooksApi):
    """Notebooks v2 for several threads: reads are shared, changes go to the API as they are."""

    def __init__(self, api: NotebooksApi, calls: SharedCalls) -> None:
        self._api, self._calls = api, calls
        self._shown: set[str] = set()
        """The instances that were shown: a list does not contain one that is being created."""

    def get(self, name: str) -> RestResource | None:
        """Return an instance, from one list of the project if several are requested.

        An instance that was not shown before, or that the list lacks, is read by itself.
        """
        instance = self._find_listed(name) if name in self._shown else None
        if instance is None:
            instance = self._api.get(name)
        if instance is not None:
            self._shown.add(name)
        return instance

    def _find_listed(self, name: str) -> RestResource | None:
        project = name.split("/")[1]

        def read(names: frozenset[str]) -> Mapping[str, RestResource]:
            if len(names) == 1:
                return {}
            listed, _ = self._api.list(f"projects/{project}/locations/-")
            return {str(item.get("name")): item for item in listed}

        return self._calls.read_items(("instances", project), name, read).get(name)

    def operation(self, name: str) -> RestResource | None:
        """Return an operation, from one list of its zone if several are requested."""
        parent = name.partition("/operations/")[0]

        def read(names: frozenset[str]) -> Mapping[str, RestResource | None]:
            if len(names) == 1:
                return {name: self._api.operation(name)}
            return {str(item.get("name")): item for item in self._api.operations(parent)}

        operations = self._calls.read_items(("operation", parent), name, read)
        # A list has the newest operations only.
        return operations[name] if name in operations else self._api.operation(name)

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi."""
        return self._calls.read(("list", parent), lambda: self._api.list(parent))

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi."""
        return self._calls.read(("operations", parent), lambda: self._api.operations(parent))

    def config(self, parent: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._calls.read(("config", parent), lambda: self._api.config(parent))

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._api.create(parent, instance, body, request)

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        return self._api.update(name, body, mask, request)

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        return self._api.delete(name, request)

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """See NotebooksApi."""
        return self._api.resize(name, disk, size_gb)

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._api.stop(name)

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._api.start(name)


class _ThreadedRestClient(RestClient):
    """Sends the requests of each thread over its own connections: a session is for one thread."""

    def __init__(self, credentials: Any, policy: RetryPolicy, *, loopback: bool) -> None:
        self.credentials = credentials
        self._arguments = (credentials, policy)
        self._loopback = loopback
        self._own = threading.local()

    def send(self, *arguments: Any, **options: Any) -> HttpResponse:
        """See RestClient."""
        if not hasattr(self._own, "client"):
            self._own.client = RestClient(*self._arguments, loopback=self._loopback)
        response: HttpResponse = self._own.client.send(*arguments, **options)
        return response
