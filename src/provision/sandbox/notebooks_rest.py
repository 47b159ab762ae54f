"""The Notebooks service over REST: routes of its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.http_server import Handler, Request, Response, Router, json_response
from provision.sandbox.notebooks import NotebooksService, filter_unsupported_error
from provision.sandbox.request_validation import to_camel_case

_ZONE = "/v2/projects/{project}/locations/{location}"
_INSTANCE = _ZONE + "/instances/{instance}"
_EVERYWHERE = frozenset(
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
_OPERATION = _ZONE + "/operations/{operation}"
_Parts = Mapping[str, str]
"""The named parts of a path."""
_MethodHandler = Callable[[NotebooksService, Request, _Parts], Any]


def add_routes(router: Router, service: NotebooksService) -> None:
    """Route the methods of notebooks.v2 to a service."""
    for method, pattern, handler, *parameters in _ROUTES:
        router.add(method, pattern, _handler(service, handler, frozenset(parameters)))


def _handler(
    service: NotebooksService, handler: _MethodHandler, parameters: frozenset[str]
) -> Handler:
    def handle(request: Request, **parts: str) -> Response:
        return json_response(handler(service, _with_json_names(request, parameters), parts))

    return handle


def _create(service: NotebooksService, request: Request, parts: _Parts) -> Any:
    instance, request_id = request.query.get("instanceId", ""), request.query.get("requestId", "")
    return service.create(_zone(parts), instance, request.json(), request_id)


def _list_instances(service: NotebooksService, request: Request, parts: _Parts) -> Any:
    if request.query.get("filter") or request.query.get("orderBy"):
        raise filter_unsupported_error()
    size = request.query.get("pageSize", "0")
    if not size.isdecimal():
        raise invalid_argument(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
    return service.list_instances(_zone(parts), int(size), request.query.get("pageToken", ""))


def _patch(service: NotebooksService, request: Request, parts: _Parts) -> Any:
    mask, request_id = request.query.get("updateMask", ""), request.query.get("requestId", "")
    return service.patch(_name(parts), request.json(), mask, request_id)


def _delete(service: NotebooksService, request: Request, parts: _Parts) -> Any:
    return service.delete(_name(parts), request.query.get("requestId", ""))


_ROUTES: tuple[tuple[Any, ...], ...] = (
    (
        "GET",
        f"{_ZONE}/instances:getConfig",
        lambda service, _request, parts: service.config(_zone(parts)),
    ),
    ("POST", f"{_ZONE}/instances", _create, "instanceId", "requestId"),
    (
        "GET",
        f"{_ZONE}/instances",
        _list_instances,
        *("pageSize", "pageToken", "filter", "orderBy"),
    ),
    ("GET", _INSTANCE, lambda service, _request, parts: service.get(_name(parts))),
    ("PATCH", _INSTANCE, _patch, "updateMask", "requestId"),
    ("DELETE", _INSTANCE, _delete, "requestId"),
    ("POST", f"{_INSTANCE}:start", lambda service, _request, parts: service.start(_name(parts))),
    ("POST", f"{_INSTANCE}:stop", lambda service, _request, parts: service.stop(_name(parts))),
    ("POST", f"{_INSTANCE}:reset", lambda service, _request, parts: service.reset(_name(parts))),
    (
        "POST",
        f"{_INSTANCE}:resizeDisk",
        lambda service, request, parts: service.resize(_name(parts), request.json()),
    ),
    (
        "POST",
        f"{_INSTANCE}:diagnose",
        lambda service, request, parts: service.diagnose(_name(parts), request.json()),
    ),
    (
        "GET",
        f"{_ZONE}/operations",
        lambda service, _request, parts: service.operations(_zone(parts)),
        *("pageSize", "filter"),
    ),
    (
        "GET",
        _OPERATION,
        lambda service, _request, parts: service.operation(_operation_name(parts)),
    ),
    (
        "POST",
        f"{_OPERATION}:cancel",
        lambda service, _request, parts: service.cancel(_operation_name(parts)),
    ),
)
"""HTTP method, path, handler, and the query parameters that the method has."""


def _with_json_names(request: Request, parameters: frozenset[str]) -> Request:
    """Return a request whose query has JSON's names.

    Raises:
        ApiError: the method does not have a parameter (400).
    """
    query = {to_camel_case(name): value for name, value in request.query.items()}
    for name in query:
        if name not in parameters and name not in _EVERYWHERE:
            raise invalid_argument(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind '
                f"query parameter. Field '{name}' could not be found in request message."
            )
    return request._replace(query=query)


def _zone(parts: _Parts) -> str:
    return f"projects/{parts['project']}/locations/{parts['location']}"


def _name(parts: _Parts) -> str:
    return f"{_zone(parts)}/instances/{parts['instance']}"


def _operation_name(parts: _Parts) -> str:
    return f"{_zone(parts)}/operations/{parts['operation']}"
