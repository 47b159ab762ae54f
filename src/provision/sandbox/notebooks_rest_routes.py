"""Routes of the emulated Notebooks API over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.http_server import Handler, Request, Route
from provision.sandbox.notebooks_service import NotebooksService, filter_unsupported_error
from provision.sandbox.request_validation import to_camel_case

_ZONE = "/v2/projects/{project}/locations/{location}"
_INSTANCE = _ZONE + "/instances/{instances}"
_OPERATION = _ZONE + "/operations/{operations}"
COMMON_PARAMETERS = frozenset(
    (
        "alt",
        "$alt",
        "fields",
        "key",
        "prettyPrint",
        "quotaUser",
        "accessToken",
        "oauthToken",
        "callback",
        "uploadType",
        "uploadProtocol",
        "$.xgafv",
    )
)
"""Query parameters that every method of Google's REST APIs has."""
_Method = Callable[[NotebooksService, Request, str], Any]
"""Called with the service, the request, and the name of the zone or resource in its path."""


def notebooks_routes(service: NotebooksService) -> Iterator[Route]:
    """Yield the routes of the methods of notebooks.v2."""
    for http_method, pattern, method, *parameters in _METHODS:
        yield http_method, pattern, _handler(service, method, COMMON_PARAMETERS.union(parameters))


def _handler(service: NotebooksService, method: _Method, parameters: frozenset[str]) -> Handler:
    def handle(request: Request, project: str, location: str, **resource: str) -> Any:
        name = f"projects/{project}/locations/{location}"
        for collection, short_name in resource.items():
            name = f"{name}/{collection}/{short_name}"
        return method(service, with_json_names(request, parameters), name)

    return handle


def with_json_names(request: Request, parameters: frozenset[str]) -> Request:
    """Return a request whose query has JSON's names. Raises ApiError for an unknown parameter."""
    query = {to_camel_case(name): value for name, value in request.query.items()}
    for name in query:
        if name not in parameters:
            raise invalid_argument(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind '
                f"query parameter. Field '{name}' could not be found in request message."
            )
    return request._replace(query=query)


def _create(service: NotebooksService, request: Request, zone: str) -> Any:
    instance, request_id = request.query.get("instanceId", ""), request.query.get("requestId", "")
    return service.create(zone, instance, request.json(), request_id)


def _list_instances(service: NotebooksService, request: Request, zone: str) -> Any:
    if request.query.get("filter") or request.query.get("orderBy"):
        raise filter_unsupported_error()
    size = request.query.get("pageSize", "0")
    if not size.isdecimal():
        raise invalid_argument(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
    return service.list_instances(zone, int(size), request.query.get("pageToken", ""))


def _patch(service: NotebooksService, request: Request, name: str) -> Any:
    mask, request_id = request.query.get("updateMask", ""), request.query.get("requestId", "")
    return service.patch(name, request.json(), mask, request_id)


def _delete(service: NotebooksService, request: Request, name: str) -> Any:
    return service.delete(name, request.query.get("requestId", ""))


_METHODS: tuple[tuple[Any, ...], ...] = (
    ("GET", f"{_ZONE}/instances:getConfig", lambda service, _request, zone: service.config(zone)),
    ("POST", f"{_ZONE}/instances", _create, "instanceId", "requestId"),
    ("GET", f"{_ZONE}/instances", _list_instances, "pageSize", "pageToken", "filter", "orderBy"),
    ("GET", _INSTANCE, lambda service, _request, name: service.get(name)),
    ("PATCH", _INSTANCE, _patch, "updateMask", "requestId"),
    ("DELETE", _INSTANCE, _delete, "requestId"),
    ("POST", f"{_INSTANCE}:start", lambda service, _request, name: service.start(name)),
    ("POST", f"{_INSTANCE}:stop", lambda service, _request, name: service.stop(name)),
    ("POST", f"{_INSTANCE}:reset", lambda service, _request, name: service.reset(name)),
    (
        "POST",
        f"{_INSTANCE}:resizeDisk",
        lambda service, request, name: service.resize(name, request.json()),
    ),
    (
        "POST",
        f"{_INSTANCE}:diagnose",
        lambda service, request, name: service.diagnose(name, request.json()),
    ),
    (
        "GET",
        f"{_ZONE}/operations",
        lambda service, _request, zone: service.operations(zone),
        *("pageSize", "filter"),
    ),
    ("GET", _OPERATION, lambda service, _request, name: service.operation(name)),
    ("POST", f"{_OPERATION}:cancel", lambda service, _request, name: service.cancel(name)),
)
"""HTTP method, path, handler, and the query parameters of each method."""
