"""Notebooks of Vertex AI (aiplatform v1) over REST."""

from __future__ import annotations

import re

from provision.adapters.google.errors import (
    CloudError,
    classify_error,
    fatal_error,
    none_if_missing,
)
from provision.adapters.google.rest import (
    RestClient,
    RestResource,
    project_from_name,
    resource_path,
)
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import parse_operation_error
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError

_REGION = re.compile(r"[a-z]{2,20}-[a-z]{2,20}[0-9]{1,2}")
_ID_PARAMETERS = {
    "notebookRuntimeTemplates": "notebookRuntimeTemplateId",
    "notebookExecutionJobs": "notebookExecutionJobId",
}
"""The query parameter with the id of a new resource, by collection."""


class VertexApi:
    """The calls for runtime templates and execution jobs. All raise CloudError and may block.

    A `name` is projects/PROJECT/locations/REGION/COLLECTION/ID, a `parent` its part up to the
    region; the collections are notebookRuntimeTemplates and notebookExecutionJobs.
    """

    def __init__(self, rest: RestClient, address: str, policy: RetryPolicy) -> None:
        self._rest, self._address, self._policy = rest, address, policy

    def get(self, name: str) -> RestResource | None:
        """Return a resource, None if it does not exist."""
        return self._rest.get_or_none(self._url(name))

    def list(self, parent: str, collection: str) -> tuple[RestResource, ...]:
        """Return the resources of a collection in a region."""
        pages = self._rest.pages(self._url(parent, collection))
        return tuple(item for page in pages for item in page.get(collection, ()))

    def update(self, name: str, body: RestResource, mask: str) -> RestResource:
        """Change the fields of a template that `mask` names, and return the template."""
        return self._rest.request_json("PATCH", self._url(name), {"updateMask": mask}, body)

    def start_creation(self, name: str, body: RestResource) -> RestResource:
        """Start creating a resource and return the operation."""
        parent, collection, short_name = split_name(name)
        query = {_ID_PARAMETERS[collection]: short_name}
        return self._rest.request_json("POST", self._url(parent, collection), query, body)

    def start_deletion(self, name: str) -> RestResource | None:
        """Start deleting a resource and return the operation, None if it does not exist."""
        return none_if_missing(lambda: self._rest.request_json("DELETE", self._url(name)))

    def operation(self, name: str) -> RestResource | None:
        """Return an operation, None if the service no longer remembers it."""
        return self._rest.get_or_none(self._url(name))

    def create_job(self, parent: str, body: RestResource) -> RestResource:
        """Create a custom job once: a repeated request would create a second one."""
        return self._rest.request_json("POST", self._url(parent, "customJobs"), {}, body, once=True)

    def job(self, name: str) -> RestResource | None:
        """Return a custom job, None if it does not exist."""
        return self._rest.get_or_none(self._url(name))

    def list_jobs(self, parent: str, *labels: str) -> tuple[RestResource, ...]:
        """Return the custom jobs of a region with one of the labels ("KEY=VALUE")."""
        text = " OR ".join(f"labels.{label}" for label in labels)
        pages = self._rest.pages(self._url(parent, "customJobs"), {"filter": text})
        return tuple(item for page in pages for item in page.get("customJobs", ()))

    def cancel_job(self, name: str) -> None:
        """Start to cancel a custom job."""
        self._rest.request_json("POST", f"{self._url(name)}:cancel", {}, {})

    def create(self, name: str, body: RestResource, progress: ProgressCallback) -> None:
        """Create a resource and wait until it exists; an execution job then runs."""
        self._wait(self.start_creation(name, body), progress)

    def delete(self, name: str, progress: ProgressCallback) -> bool:
        """Delete a resource and wait until it is gone; return whether it existed."""
        operation = self.start_deletion(name)
        if operation is not None:
            self._wait(operation, progress)
        return operation is not None

    def _wait(self, operation: RestResource, progress: ProgressCallback) -> None:
        """Wait until an operation is done, or until the service no longer remembers it."""
        name = str(operation.get("name", ""))

        def get_done() -> RestResource | None:
            current = operation if operation.get("done") else self.operation(name)
            if current is None:  # forgotten: the state of the resource shows the result
                return {"name": name}
            return current if current.get("done") else None

        done = poll_until(
            get_done,
            self._policy,
            self._policy.operation_s,
            lambda waited: progress(
                f"still waiting for {name.rpartition('/operations/')[0]}, {waited}"
            ),
        )
        if done is None:
            raise fatal_error(
                "slow",
                f"the operation has not finished after {self._policy.operation_s / 60:.0f} minutes",
                f"operation {name}",
                "it continues on Google Cloud: run the same command again",
            )
        if "error" in done:
            failure = classify_error(parse_operation_error(done["error"]), project_from_name(name))
            raise CloudError(failure)

    def _url(self, name: str, collection: str = "") -> str:
        address = self._address.replace("{region}", region_of(name))
        return f"{address}/v1/{resource_path(name)}/{collection}".rstrip("/")


def split_name(name: str) -> tuple[str, str, str]:
    """Return parent, collection and short name of a full name."""
    parent, collection, short_name = name.rsplit("/", 2)
    return parent, collection, short_name


def region_of(name: str) -> str:
    """Return the region in a full name.

    Raises:
        ExternalError: it is not a region. It becomes part of a host name, to which credentials are
            sent.
    """
    region = (*name.split("/"), "", "", "", "")[3]
    if not _REGION.fullmatch(region):
        raise ExternalError(
            f"{region!r} is not a region",
            why="expected a name such as us-central1",
            hint="check the target's `region`",
        )
    return region
