"""Validation of notebook execution jobs beyond the schema.

Fields and groups are those of the aiplatform v1 discovery document; the service's own words for a
refusal are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.template_validation import check_disk, check_machine, check_network
from provision.sandbox.vertex_validation import check_heading

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?")
_BUCKET_URI = re.compile(r"gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?")
_GROUPS = (
    ("directNotebookSource", "gcsNotebookSource", "dataformRepositorySource"),
    ("notebookRuntimeTemplateResourceName", "customEnvironmentSpec"),
    ("executionUser", "serviceAccount"),
)
"""Fields of which exactly one is set (aiplatform v1, oneof groups of NotebookExecutionJob)."""
_NOT_RUN = ("directNotebookSource", "dataformRepositorySource")


def check_job_id(text: str) -> None:
    """Raise ApiError for an invalid id; the service chooses one if it is left out."""
    if text and not _ID.fullmatch(text):
        raise invalid_argument(f"Invalid notebook_execution_job_id '{text}'")


def check_job(body: Mapping[str, Any], region: str, facts: Facts) -> None:
    """Raise the first ApiError that the service would raise when a job is created.

    Fields with which the sandbox runs no jobs are refused as not implemented.
    """
    for group in _GROUPS:
        _check_one_of(body, group)
    check_heading(body)
    if not _BUCKET_URI.fullmatch(body.get("gcsOutputUri", "")):
        raise invalid_argument("'gcs_output_uri' is required, as in gs://BUCKET/FOLDER")
    _check_runtime(body)
    environment = body.get("customEnvironmentSpec")
    if environment is not None:
        check_machine(environment.get("machineSpec", {}), region, facts)
        check_disk(environment.get("persistentDiskSpec", {}), facts)
        check_network(environment.get("networkSpec", {}), region)
    for field in _NOT_RUN:
        if field in body:
            raise _not_run(field, "use a notebook in a bucket")


def _check_runtime(body: Mapping[str, Any]) -> None:
    """Check the image of a Workbench runtime; without one, the job runs on a Colab runtime."""
    runtime = body.get("workbenchRuntime")
    if runtime is None:
        return
    if "customEnvironmentSpec" not in body:
        raise invalid_argument("'workbench_runtime' needs a custom_environment_spec")
    if "executionUser" in body:
        raise invalid_argument("'execution_user' is only supported by Colab runtimes")
    _check_one_of(runtime, ("vmImage", "customContainerImage"), "workbench_runtime: ")
    if "customContainerImage" in runtime:
        raise _not_run("customContainerImage", "use a vmImage")
    image = runtime["vmImage"]
    if "project" not in image:
        raise invalid_argument("'workbench_runtime.vm_image.project' is required")
    _check_one_of(image, ("name", "family"), "workbench_runtime.vm_image: ")


def _check_one_of(body: Mapping[str, Any], group: Iterable[str], at: str = "") -> None:
    if sum(field in body for field in group) != 1:
        raise invalid_argument(f"{at}Exactly one of {', '.join(group)} must be set")


def _not_run(field: str, advice: str) -> ApiError:
    return ApiError(
        StatusCode.UNIMPLEMENTED, f"The sandbox does not run jobs with {field}; {advice}"
    )
