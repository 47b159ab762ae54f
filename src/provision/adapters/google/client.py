"""The client of Google's services: connects to each service on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.retry import LOOPBACK_POLICY, RetryPolicy

if TYPE_CHECKING:
    from provision.adapters.google.compute import ComputeApi
    from provision.adapters.google.instances import InstanceOperations
    from provision.adapters.google.notebooks import NotebooksApi, RestNotebooks
    from provision.adapters.google.rest import RestClient
    from provision.adapters.google.storage import Storage
    from provision.effects.system import ProgressCallback


class GoogleClient:
    """The services at `endpoints`, and the `CloudReader` of them.

    Nothing of Google's is imported before it is used. `only_rest` avoids gRPC.
    """

    def __init__(
        self,
        endpoints: Endpoints | None = None,
        policy: RetryPolicy | None = None,
        *,
        only_rest: bool = False,
    ) -> None:
        self._endpoints = endpoints or Endpoints()
        default_policy = LOOPBACK_POLICY if self._endpoints.is_loopback else RetryPolicy()
        self.policy = policy or default_policy
        self._only_rest = only_rest
        self.unreachable_zones: tuple[str, ...] = ()
        """The zones that did not answer the last call of `instances`."""

    @cached_property
    def credentials(self) -> Any:
        """The credentials for these endpoints; raises CloudError."""
        from provision.adapters.google.credentials import load_credentials

        return load_credentials(self._endpoints)

    @cached_property
    def rest(self) -> RestClient:
        """The sender of REST calls."""
        from provision.adapters.google.rest import RestClient

        return RestClient(self.credentials, self.policy, loopback=self._endpoints.is_loopback)

    @cached_property
    def notebooks_rest(self) -> RestNotebooks:
        """Notebooks v2 over REST."""
        from provision.adapters.google.notebooks import RestNotebooks

        return RestNotebooks(self.rest, self._endpoints.notebooks_rest)

    @cached_property
    def notebooks(self) -> NotebooksApi:
        """Notebooks v2 over gRPC if its messages have every field, else over REST."""
        from provision.adapters.google.notebooks import FallbackNotebooks
        from provision.adapters.google.notebooks_grpc import GrpcNotebooks, is_supported_by_grpc

        if self._only_rest:
            return self.notebooks_rest
        return FallbackNotebooks(
            self.notebooks_rest,
            GrpcNotebooks(self.credentials, self._endpoints, self.policy),
            is_supported_by_grpc,
        )

    @cached_property
    def storage(self) -> Storage:
        """Cloud Storage."""
        from provision.adapters.google.storage import Storage

        return Storage(self.rest, self._endpoints.storage)

    @cached_property
    def compute(self) -> ComputeApi:
        """Compute Engine, read-only."""
        from provision.adapters.google.compute import ComputeApi

        return ComputeApi(self.rest, self._endpoints.compute)

    def operations(self, progress: ProgressCallback) -> InstanceOperations:
        """Return the operations on instances, which report their progress."""
        from provision.adapters.google.instances import InstanceOperations

        return InstanceOperations(self.notebooks, self.policy, progress, self.console)

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        from provision.adapters.google.instances import find_instance

        return find_instance(self.notebooks, name)

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        listed, self.unreachable_zones = self.notebooks.list(f"projects/{project}/locations/-")
        return listed

    def last_operation(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        from provision.adapters.google.operations import latest_operation

        return latest_operation(self.notebooks, name)

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        try:
            return self.notebooks_rest.config(f"projects/{project}/locations/{zone}")
        except CloudError as error:
            if error.failure.kind in ("refused", "permission"):
                return None
            raise

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """See CloudReader."""
        return self.compute.guest_attributes(name, namespace)

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """See CloudReader."""
        return self.compute.serial_output(name, start)

    def console(self, name: str) -> str:
        """See CloudReader."""
        return self.compute.console(name)

    def object(self, uri: str, limit: int) -> bytes | None:
        """See CloudReader."""
        return self.storage.get(uri, limit)

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        return self.compute.quotas(project, region)

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        return self.compute.accelerator_types(project, zone)
