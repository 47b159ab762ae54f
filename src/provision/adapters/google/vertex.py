"""Notebooks of Vertex AI (aiplatform v1) over REST."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from provision.adapters.google.errors import (
    CloudError,
    classify_error,
    fatal_error,
    none_if_missing,
)
from provision.adapters.google.rest import RestClient, project_from_name, resource_path
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import parse_operation_error
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError

RestResource = Mapping[str, Any]
_REGION = re.compile(r"[a-z]{2,20}-[a-z]{2,20}[0-9]{1,2}")
_TEMPLATES, _EXECUTIONS = "notebookRuntimeTemplates", "notebookExecutionJobs"


class VertexApi:
    """The calls for runtime templates and execution jobs. All raise CloudError and may block.

    A `name` is projects/PROJECT/locations/REGION/notebookRuntimeTemplates/TEMPLATE.
    """

    def __init__(self, rest: RestClient, address: str, policy: RetryPolicy) -> None:
        self._rest, self._address, self._policy = rest, address, policy

    def template(self, name: str) -> RestResource | None:
        """Return a template, None if it does not exist."""
        return self._rest.get_or_none(self._url(name))

    def templates(self, project: str, region: str) -> tuple[RestResource, ...]:
        """Return the templates of a region."""
        pages = self._rest.pages(self._url(f"projects/{project}/locations/{region}", _TEMPLATES))
        return tuple(item for page in pages for item in page.get(_TEMPLATES, ()))

    def create_template(self, name: str, body: RestResource, progress: ProgressCallback) -> None:
        """Create a template and wait until it exists."""
        parent, _, template = name.rpartition(f"/{_TEMPLATES}/")
        query = {"notebookRuntimeTemplateId": template}
        url = self._url(parent, _TEMPLATES)
        self._wait(self._rest.request_json("POST", url, query, body), progress)

    def update_template(self, name: str, body: RestResource, mask: str) -> RestResource:
        """Change the fields that `mask` names, and return the template."""
        return self._rest.request_json("PATCH", self._url(name), {"updateMask": mask}, body)

    def delete(self, name: str, progress: ProgressCallback) -> bool:
        """Delete a template or job and wait until it is gone; return whether it existed."""
        operation = none_if_missing(lambda: self._rest.request_json("DELETE", self._url(name)))
        if operation is not None:
            self._wait(operation, progress)
        return operation is not None

    def execution(self, name: str) -> RestResource | None:
        """Return an execution job, None if it does not exist."""
        return self._rest.get_or_none(self._url(name))

    def executions(self, project: str, region: str) -> tuple[RestResource, ...]:
        """Return the execution jobs of a region."""
        pages = self._rest.pages(self._url(f"projects/{project}/locations/{region}", _EXECUTIONS))
        return tuple(item for page in pages for item in page.get(_EXECUTIONS, ()))

    def create_execution(self, name: str, body: RestResource, progress: ProgressCallback) -> None:
        """Create an execution job, and wait until it exists; it then runs."""
        parent, _, job = name.rpartition(f"/{_EXECUTIONS}/")
        query, url = {"notebookExecutionJobId": job}, self._url(parent, _EXECUTIONS)
        self._wait(self._rest.request_json("POST", url, query, body), progress)

    def _wait(self, operation: RestResource, progress: ProgressCallback) -> None:
        """Wait until an operation is done, or until the service no longer remembers it."""
        name = str(operation.get("name", ""))

        def get_done() -> RestResource | None:
            current = (
                operation if operation.get("done") else self._rest.get_or_none(self._url(name))
            )
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
                f"the operation is not done after {self._policy.operation_s / 60:.0f} minutes",
                f"operation {name}",
                "it continues at Google Cloud: run the same command again",
            )
        if "error" in done:
            failure = classify_error(parse_operation_error(done["error"]), project_from_name(name))
            raise CloudError(failure)

    def _url(self, name: str, collection: str = "") -> str:
        region = (*name.split("/"), "", "", "", "")[3]
        if not _REGION.fullmatch(region):
            # It is part of a host name, to which credentials are sent.
            raise ExternalError(
                f"{region!r} is not a region",
                why="expected a name such as us-central1",
                hint="check `region` of the target",
            )
        path = f"{resource_path(name)}/{collection}".rstrip("/")
        return f"{self._address.replace('{region}', region)}/v1/{path}"
