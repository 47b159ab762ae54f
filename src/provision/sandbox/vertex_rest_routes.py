"""Routes of the emulated Vertex AI API over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.custom_jobs import CustomJobs
from provision.sandbox.execution_jobs import ExecutionJobs
from provision.sandbox.http_server import Handler, Request, Route
from provision.sandbox.notebook_runtimes import NotebookRuntimes
from provision.sandbox.notebooks_rest_routes import COMMON_PARAMETERS, with_json_names
from provision.sandbox.notebooks_service import filter_unsupported_error
from provision.sandbox.vertex_service import VertexService

_REGION = "/v1/projects/{project}/locations/{location}"
_TEMPLATES = f"{_REGION}/notebookRuntimeTemplates"
_TEMPLATE = _TEMPLATES + "/{notebookRuntimeTemplates}"
_JOBS = f"{_REGION}/notebookExecutionJobs"
_JOB = _JOBS + "/{notebookExecutionJobs}"
_CUSTOM_JOBS = f"{_REGION}/customJobs"
_CUSTOM_JOB = _CUSTOM_JOBS + "/{customJobs}"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105
"""The metadata server's path of a token, for the replicas of custom jobs."""
_RUNTIMES = f"{_REGION}/notebookRuntimes"
_RUNTIME = _RUNTIMES + "/{notebookRuntimes}"
_Method = Callable[[Any, Request, str], Any]
"""Called with the service, the request, and the name of the region or resource in its path."""


def vertex_routes(
    service: VertexService, jobs: ExecutionJobs, custom_jobs: CustomJobs
) -> Iterator[Route]:
    """Yield the routes of the methods of aiplatform.v1 that the sandbox has."""
    runtimes = NotebookRuntimes(service)
    groups = (
        (service, _METHODS),
        (jobs, _JOB_METHODS),
        (custom_jobs, _CUSTOM_JOB_METHODS),
        (runtimes, _RUNTIME_METHODS),
    )
    yield "GET", _TOKEN, lambda _request: {"access_token": "sandbox", "expires_in": 3599}
    for owner, methods in groups:
        for http_method, pattern, method, *parameters in methods:
            allowed = COMMON_PARAMETERS.union(parameters)
            yield http_method, pattern, _handler(owner, method, allowed)


def _handler(service: Any, method: _Method, parameters: frozenset[str]) -> Handler:
    def handle(request: Request, project: str, location: str, **resource: str) -> Any:
        name = f"projects/{project}/locations/{location}"
        for collection, short_name in resource.items():
            name = f"{name}/{collection}/{short_name}"
        return method(service, with_json_names(request, parameters), name)

    return handle


def _list_templates(service: VertexService, request: Request, region: str) -> Any:
    if request.query.keys() & {"filter", "orderBy", "readMask"}:
        raise filter_unsupported_error()
    size = request.query.get("pageSize", "0")
    if not size.isdecimal():
        raise invalid_argument(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
    return service.list_templates(region, int(size), request.query.get("pageToken", ""))


def _create_template(service: VertexService, request: Request, region: str) -> Any:
    template = request.query.get("notebookRuntimeTemplateId", "")
    return service.create_template(region, template, request.json())


def _patch_template(service: VertexService, request: Request, name: str) -> Any:
    return service.patch_template(name, request.json(), request.query.get("updateMask", ""))


_METHODS: tuple[tuple[Any, ...], ...] = (
    ("POST", _TEMPLATES, _create_template, "notebookRuntimeTemplateId"),
    (
        "GET",
        _TEMPLATES,
        _list_templates,
        *("pageSize", "pageToken", "filter", "orderBy", "readMask"),
    ),
    ("GET", _TEMPLATE, lambda service, _request, name: service.get_template(name)),
    ("PATCH", _TEMPLATE, _patch_template, "updateMask"),
    ("DELETE", _TEMPLATE, lambda service, _request, name: service.delete_template(name)),
    (
        "GET",
        _TEMPLATE + "/operations/{operations}",
        lambda service, _request, name: service.operation(name),
    ),
    *(
        (
            "GET",
            resource + "/operations/{operations}",
            lambda service, _request, name: service.operation(name),
        )
        for resource in (_JOB, _RUNTIME, _CUSTOM_JOB)
    ),
)
"""HTTP method, path, handler, and the query parameters of each method."""


def _create_job(jobs: ExecutionJobs, request: Request, region: str) -> Any:
    return jobs.create(region, request.query.get("notebookExecutionJobId", ""), request.json())


def _list_jobs(jobs: ExecutionJobs, request: Request, region: str) -> Any:
    if request.query.keys() & {"filter", "orderBy", "pageToken"}:
        raise filter_unsupported_error()
    return jobs.list_jobs(region)


_JOB_METHODS: tuple[tuple[Any, ...], ...] = (
    ("POST", _JOBS, _create_job, "notebookExecutionJobId"),
    ("GET", _JOBS, _list_jobs, "pageSize", "pageToken", "filter", "orderBy", "view"),
    ("GET", _JOB, lambda jobs, _request, name: jobs.get(name), "view"),
    ("DELETE", _JOB, lambda jobs, _request, name: jobs.delete(name)),
)


def _list_custom_jobs(jobs: CustomJobs, request: Request, region: str) -> Any:
    size, query = request.query.get("pageSize", "0"), request.query
    if not size.isdecimal():
        raise invalid_argument(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
    return jobs.list_jobs(region, query.get("filter", ""), int(size), query.get("pageToken", ""))


_CUSTOM_JOB_METHODS: tuple[tuple[Any, ...], ...] = (
    ("POST", _CUSTOM_JOBS, lambda jobs, request, region: jobs.create(region, request.json())),
    ("GET", _CUSTOM_JOBS, _list_custom_jobs, "pageSize", "pageToken", "filter", "readMask"),
    ("GET", _CUSTOM_JOB, lambda jobs, _request, name: jobs.get(name)),
    ("DELETE", _CUSTOM_JOB, lambda jobs, _request, name: jobs.delete(name)),
    ("POST", f"{_CUSTOM_JOB}:cancel", lambda jobs, _request, name: jobs.cancel(name)),
)


def _list_runtimes(runtimes: NotebookRuntimes, request: Request, region: str) -> Any:
    if request.query.keys() & {"filter", "orderBy", "pageToken", "readMask"}:
        raise filter_unsupported_error()
    return runtimes.list_runtimes(region)


_RUNTIME_METHODS: tuple[tuple[Any, ...], ...] = (
    (
        "POST",
        f"{_RUNTIMES}:assign",
        lambda runtimes, request, region: runtimes.assign(region, request.json()),
    ),
    (
        "GET",
        _RUNTIMES,
        _list_runtimes,
        *("pageSize", "pageToken", "filter", "orderBy", "readMask"),
    ),
    ("GET", _RUNTIME, lambda runtimes, _request, name: runtimes.get(name)),
    ("POST", f"{_RUNTIME}:start", lambda runtimes, _request, name: runtimes.start(name)),
    ("POST", f"{_RUNTIME}:stop", lambda runtimes, _request, name: runtimes.stop(name)),
    ("POST", f"{_RUNTIME}:upgrade", lambda runtimes, _request, name: runtimes.upgrade(name)),
    ("DELETE", _RUNTIME, lambda runtimes, _request, name: runtimes.delete(name)),
)
