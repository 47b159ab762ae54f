"""The client of Google's services: connects to each service on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError, none_if_missing
from provision.adapters.google.rest import RestClient, resource_path
from provision.adapters.google.retry import LOOPBACK_POLICY, RetryPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from provision.adapters.google.instances import InstanceOperations
    from provision.adapters.google.job_stockouts import JobStockouts
    from provision.adapters.google.notebooks import NotebooksApi
    from provision.adapters.google.stockouts import Stockouts
    from provision.adapters.google.storage import Storage
    from provision.adapters.google.vertex import VertexApi
    from provision.effects.google import ImageDescription
    from provision.effects.system import ProgressCallback

_UNAVAILABLE_KINDS = (
    "permission",
    "refused",
    "policy",
    "api-disabled",
    "act-as",
    "project",
    "billing",
)
"""Failures of a read that mean "unknown": the caller goes on without the value."""
T = TypeVar("T")
_CONSOLE_LENGTH = 65536
_CONSOLE_PAGES = 32


class GoogleClient:
    """The services at `endpoints`, and the `CloudReader` of them.

    Nothing of Google's is imported before it is used. `only_rest` avoids gRPC. `images` is the
    folder that caches descriptions of container images.
    """

    def __init__(
        self,
        endpoints: Endpoints | None = None,
        policy: RetryPolicy | None = None,
        *,
        only_rest: bool = False,
        images: Path | None = None,
    ) -> None:
        self._endpoints = endpoints or Endpoints()
        default_policy = LOOPBACK_POLICY if self._endpoints.is_loopback else RetryPolicy()
        self.policy = policy or default_policy
        self._only_rest = only_rest
        self._images = images
        self._described: dict[str, ImageDescription] = {}
        self.unreachable_zones: tuple[str, ...] = ()
        """The zones that did not answer the last call of `instances`."""

    @cached_property
    def rest(self) -> RestClient:
        """The sender of REST calls; raises CloudError if there are no credentials."""
        from provision.adapters.google.credentials import load_credentials

        credentials = load_credentials(self._endpoints)
        return RestClient(credentials, self.policy, loopback=self._endpoints.is_loopback)

    @cached_property
    def notebooks(self) -> NotebooksApi:
        """Notebooks v2 over gRPC if its messages have every field, else over REST."""
        if self._only_rest:
            from provision.adapters.google.notebooks import NotebooksApi

            return NotebooksApi(self.rest, self._endpoints.notebooks_rest)
        from provision.adapters.google.notebooks_grpc import GrpcNotebooks

        return GrpcNotebooks(self.rest, self._endpoints, self.policy)

    @cached_property
    def stockouts(self) -> Stockouts:
        """The zones that had no capacity for an earlier instance."""
        from provision.adapters.google.stockouts import Stockouts

        return Stockouts()

    @cached_property
    def job_stockouts(self) -> JobStockouts:
        """The regions that had no capacity for an earlier job."""
        from provision.adapters.google.job_stockouts import JobStockouts

        return JobStockouts()

    @cached_property
    def storage(self) -> Storage:
        """Cloud Storage."""
        from provision.adapters.google.storage import Storage

        return Storage(self.rest, self._endpoints.storage)

    @cached_property
    def vertex(self) -> VertexApi:
        """Notebooks of Vertex AI: over gRPC if its client is installed, else over REST."""
        from provision.adapters.google.vertex_grpc import GrpcVertex, is_installed

        if not self._only_rest and is_installed():
            return GrpcVertex(self.rest, self._endpoints, self.policy)
        from provision.adapters.google.vertex import VertexApi

        return VertexApi(self.rest, self._endpoints.aiplatform, self.policy)

    def operations(self, progress: ProgressCallback) -> InstanceOperations:
        """Return the operations on instances, which report their progress."""
        from provision.adapters.google.instances import InstanceOperations

        return InstanceOperations(
            self.notebooks, self.policy, progress, self.console, self.stockouts
        )

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        from provision.adapters.google.instances import find_instance

        return find_instance(self.notebooks, name)

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        listed, self.unreachable_zones = self.notebooks.list(f"projects/{project}/locations/-")
        return listed

    def template(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        return self.vertex.get(name)

    def templates(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        return self._list_in_region(project, region, "notebookRuntimeTemplates")

    def execution(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        return self.vertex.get(name)

    def executions(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        return self._list_in_region(project, region, "notebookExecutionJobs")

    def jobs(self, project: str, region: str, label: str) -> tuple[Mapping[str, Any], ...]:
        """See CloudReader."""
        return self.vertex.list_jobs(f"projects/{project}/locations/{region}", label)

    def last_operation(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        from provision.adapters.google.operations import latest_operation

        return latest_operation(self.notebooks, name)

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        try:
            return self.notebooks.config(f"projects/{project}/locations/{zone}")
        except CloudError as error:
            if error.failure.kind in ("refused", "permission"):
                return None
            raise

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """See CloudReader."""
        url = self._vm_url(name, "/getGuestAttributes")
        query = {"queryPath": f"{namespace}/"}
        document = _none_if_unavailable(lambda: self.rest.get_or_none(url, query) or {})
        if document is None:
            return None
        items = document.get("queryValue", {}).get("items", ())
        return {
            str(item.get("key", "")): str(item.get("value", ""))
            for item in items
            if item.get("namespace", namespace) == namespace
        }

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the text of the first serial port from a position on, and the next position.

        ("", start) if it cannot be read.
        """
        url, query = self._vm_url(name, "/serialPort"), {"port": "1", "start": str(start)}
        document = _none_if_unavailable(lambda: self.rest.get_or_none(url, query)) or {}
        return str(document.get("contents", "")), int(document.get("next", start))

    def console(self, name: str) -> str:
        """See CloudReader; the last 64 KiB."""
        text, position = "", 0
        try:
            for _ in range(_CONSOLE_PAGES):
                page, position = self.serial_output(name, position)
                text = (text + page)[-_CONSOLE_LENGTH:]
                if not page:
                    break
        except CloudError:
            return ""
        return text

    def object(self, uri: str, limit: int) -> bytes | None:
        """See CloudReader."""
        return self.storage.get(uri, limit)

    def object_uris(self, prefix: str) -> tuple[str, ...] | None:
        """See CloudReader."""
        listed = _none_if_unavailable(lambda: self.storage.list_if_exists(prefix))
        return None if listed is None else tuple(item.uri for item in listed)

    def bucket(self, name: str) -> Mapping[str, Any] | None:
        """See CloudReader."""
        return _none_if_unavailable(lambda: self.storage.bucket(name))

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        url = self._compute_url(f"projects/{project}/regions/{region}")
        document = _none_if_unavailable(lambda: self.rest.get_or_none(url))
        return None if document is None else tuple(document.get("quotas", ()))

    def job_quotas(self, project: str) -> Mapping[str, Mapping[str, int]] | None:
        """See CloudReader."""
        from provision.adapters.google.job_quotas import SERVICE, read_job_quotas

        path = resource_path(f"projects/{project}/services/{SERVICE}/consumerQuotaMetrics")
        url = f"{self._endpoints.serviceusage}/v1beta1/{path}"
        pages = _none_if_unavailable(lambda: none_if_missing(lambda: list(self.rest.pages(url))))
        return None if pages is None else read_job_quotas(pages)

    def image(self, image: str) -> ImageDescription:
        """See CloudReader; each image is looked up once."""
        if image not in self._described:
            self._described[image] = self.look_up_image(image)
        return self._described[image]

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """See CloudReader."""
        url = self._compute_url(f"projects/{project}/zones/{zone}/acceleratorTypes")
        read = partial(none_if_missing, lambda: list(self.rest.pages(url)))
        pages = _none_if_unavailable(read)
        if pages is None:
            return None
        return tuple(item for page in pages for item in page.get("items", ()))

    def look_up_image(self, image: str) -> ImageDescription:
        """Return the description of an image from its registry."""
        from provision.adapters.google.image_registry import find_registry, read_image
        from provision.effects.google import ImageDescription

        reference = find_registry(image)
        if reference is None:
            why = "only images by digest on Docker Hub and in Artifact Registry are looked up"
            return ImageDescription(unknown=why)
        address = self._endpoints.registry.format(host=reference.host)
        has_credentials = reference.takes_google_credentials and not self._endpoints.is_loopback
        authorize = self.rest.add_credentials if has_credentials else None
        return read_image(reference, address, authorize, self._images)

    def _list_in_region(
        self, project: str, region: str, collection: str
    ) -> tuple[Mapping[str, Any], ...]:
        return self.vertex.list(f"projects/{project}/locations/{region}", collection)

    def _compute_url(self, path: str) -> str:
        return f"{self._endpoints.compute}/compute/v1/{resource_path(path)}"

    def _vm_url(self, name: str, suffix: str) -> str:
        """Return the address of the virtual machine of a Workbench instance."""
        _, project, _, zone, _, instance = name.split("/")
        return self._compute_url(f"projects/{project}/zones/{zone}/instances/{instance}") + suffix


def _none_if_unavailable(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except CloudError as error:
        if error.failure.kind not in _UNAVAILABLE_KINDS:
            raise
    return None
