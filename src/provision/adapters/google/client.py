"""Google's services as one: made when first asked for, and the deeds that a World performs on them."""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from provision.adapters.google import credentials as identity
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.reader import CloudReader, read_serial_console
from provision.adapters.google.retry import LOOPBACK_POLICY, RetryPolicy

if TYPE_CHECKING:
    from provision.adapters.google.compute import ComputeApi
    from provision.adapters.google.instance_creation import CreatedInstance
    from provision.adapters.google.notebooks import NotebooksApi, RestNotebooks
    from provision.adapters.google.rest import RestClient
    from provision.adapters.google.storage import Storage
    from provision.effects import ProgressCallback


class GoogleClient:
    """The services at `endpoints`. Nothing is imported, opened or asked before it is used;
    `only_rest` leaves gRPC out.
    """

    def __init__(
        self,
        endpoints: Endpoints | None = None,
        pace: RetryPolicy | None = None,
        *,
        only_rest: bool = False,
    ) -> None:
        self._endpoints = endpoints or Endpoints()
        self._pace = pace or (LOOPBACK_POLICY if self._endpoints.is_loopback else RetryPolicy())
        self._only_rest = only_rest

    @cached_property
    def credentials(self) -> Any:
        """Who we are; raises CloudError."""
        return identity.load_credentials(self._endpoints)

    @cached_property
    def rest(self) -> RestClient:
        """The sender of REST calls."""
        from provision.adapters.google.rest import RestClient

        return RestClient(self.credentials, self._pace, loopback=self._endpoints.is_loopback)

    @cached_property
    def notebooks_rest(self) -> RestNotebooks:
        """Notebooks v2 over REST alone."""
        from provision.adapters.google.notebooks import RestNotebooks

        return RestNotebooks(self.rest, self._endpoints.notebooks_rest)

    @cached_property
    def notebooks(self) -> NotebooksApi:
        """Notebooks v2 over gRPC where its messages hold every field, else over REST."""
        from provision.adapters.google.notebooks import FallbackNotebooks
        from provision.adapters.google.notebooks_grpc import GrpcNotebooks, is_supported_by_grpc

        if self._only_rest:
            return self.notebooks_rest
        return FallbackNotebooks(
            self.notebooks_rest,
            GrpcNotebooks(self.credentials, self._endpoints, self._pace),
            is_supported_by_grpc,
        )

    @cached_property
    def storage(self) -> Storage:
        """Cloud Storage."""
        from provision.adapters.google.storage import Storage

        return Storage(self.rest, self._endpoints.storage)

    @cached_property
    def compute(self) -> ComputeApi:
        """Compute Engine, to look at."""
        from provision.adapters.google.compute import ComputeApi

        return ComputeApi(self.rest, self._endpoints.compute)

    @cached_property
    def reader(self) -> CloudReader:
        """What a Target may ask."""
        return CloudReader(self)

    def upload(self, objects: tuple[tuple[str, bytes], ...], tell: ProgressCallback) -> None:
        """Write objects that are not there with the same content. Raises CloudError."""
        written = self.storage.upload(objects)
        tell(f"upload: {len(written)} of {len(objects)} files are new in the bucket")

    def create(
        self,
        project: str,
        zones: tuple[str, ...],
        instance: str,
        body: Mapping[str, Any],
        request: str,
        tell: ProgressCallback,
        *,
        instead_of: str = "",
    ) -> CreatedInstance:
        """Create an instance in the first zone that takes it, or adopt ours. Raises
        provision.adapters.google.instance_creation.Unplaced (a CloudError).
        """
        from provision.adapters.google.instance_creation import CreateRequest, create_instance

        return create_instance(
            self.notebooks,
            CreateRequest(project, zones, instance, body, request, instead_of),
            self._pace,
            tell,
            self._console,
        )

    def update(self, name: str, body: Mapping[str, Any], mask: str, tell: ProgressCallback) -> None:
        """Change an instance in place, stopping and starting it where the fields need that. Raises
        CloudError.
        """
        from provision.adapters.google import instances

        instances.update_instance(self.notebooks, name, body, mask, self._pace, tell, self._console)

    def resize(self, name: str, disk: str, size_gb: str, tell: ProgressCallback) -> None:
        """Make a disk of an instance larger. Raises CloudError."""
        from provision.adapters.google import instances

        instances.resize_disk(self.notebooks, name, disk, size_gb, self._pace, tell)

    def stop(self, name: str, tell: ProgressCallback) -> None:
        """Stop an instance and wait until it is. Raises CloudError."""
        from provision.adapters.google import instances

        instances.stop_instance(self.notebooks, name, self._pace, tell)

    def start(self, name: str, tell: ProgressCallback) -> None:
        """Start an instance and wait until it is ACTIVE. Raises CloudError."""
        from provision.adapters.google import instances

        instances.start_instance(self.notebooks, name, self._pace, tell, self._console)

    def delete(self, name: str, tell: ProgressCallback, *, lineage: str | None = None) -> None:
        """Delete an instance and wait until it is gone; with a lineage only one that bears its
        label. Raises CloudError.
        """
        from provision.adapters.google import instances

        instances.delete_instance(self.notebooks, name, self._pace, tell, lineage)

    def delete_folder(self, prefix: str, tell: ProgressCallback) -> None:
        """Delete every object below a folder of ours. Raises CloudError."""
        tell(f"delete: {self.storage.delete_folder(prefix)} objects below {prefix}")

    def _console(self, name: str) -> str:
        return read_serial_console(self.reader.serial_output, name)
