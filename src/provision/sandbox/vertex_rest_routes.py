"""Routes of the emulated Vertex AI API over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.http_server import Handler, Request, Route
from provision.sandbox.notebooks_rest_routes import COMMON_PARAMETERS, with_json_names
from provision.sandbox.notebooks_service import filter_unsupported_error
from provision.sandbox.vertex_service import VertexService

_REGION = "/v1/projects/{project}/locations/{location}"
_TEMPLATES = f"{_REGION}/notebookRuntimeTemplates"
_TEMPLATE = _TEMPLATES + "/{notebookRuntimeTemplates}"
_Method = Callable[[VertexService, Request, str], Any]
"""Called with the service, the request, and the name of the region or resource in its path."""


def vertex_routes(service: VertexService) -> Iterator[Route]:
    """Yield the routes of the methods of aiplatform.v1 that the sandbox has."""
    for http_method, pattern, method, *parameters in _METHODS:
        yield http_method, pattern, _handler(service, method, COMMON_PARAMETERS.union(parameters))


def _handler(service: VertexService, method: _Method, parameters: frozenset[str]) -> Handler:
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
)
"""HTTP method, path, handler, and the query parameters of each method."""
