"""The Notebooks service over REST: which path is which method."""

from __future__ import annotations

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


def add_routes(router: Router, service: NotebooksService) -> None:
    """Route the methods of notebooks.v2 to a service."""

    def create(request: Request, **at: str) -> Response:
        return json_response(
            service.create(
                _zone(at),
                request.query.get("instanceId", ""),
                request.json(),
                request.query.get("requestId", ""),
            )
        )

    def listed(request: Request, **at: str) -> Response:
        if request.query.get("filter") or request.query.get("orderBy"):
            raise filter_unsupported_error()
        size = request.query.get("pageSize", "0")
        if not size.isdecimal():
            raise invalid_argument(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
        return json_response(
            service.list_instances(_zone(at), int(size), request.query.get("pageToken", ""))
        )

    def patch(request: Request, **at: str) -> Response:
        return json_response(
            service.patch(
                _name(at),
                request.json(),
                request.query.get("updateMask", ""),
                request.query.get("requestId", ""),
            )
        )

    def route(method: str, pattern: str, handler: Handler, *words: str) -> None:
        router.add(method, pattern, lambda request, **at: handler(_bound(request, words), **at))

    route(
        "GET",
        _ZONE + "/instances:getConfig",
        lambda _request, **at: json_response(service.config(_zone(at))),
    )
    route("POST", _ZONE + "/instances", create, "instanceId", "requestId")
    route("GET", _ZONE + "/instances", listed, "pageSize", "pageToken", "filter", "orderBy")
    route("GET", _INSTANCE, lambda _request, **at: json_response(service.get(_name(at))))
    route("PATCH", _INSTANCE, patch, "updateMask", "requestId")
    route(
        "DELETE",
        _INSTANCE,
        lambda request, **at: json_response(
            service.delete(_name(at), request.query.get("requestId", ""))
        ),
        "requestId",
    )
    route(
        "POST", _INSTANCE + ":start", lambda _request, **at: json_response(service.start(_name(at)))
    )
    route(
        "POST", _INSTANCE + ":stop", lambda _request, **at: json_response(service.stop(_name(at)))
    )
    route(
        "POST", _INSTANCE + ":reset", lambda _request, **at: json_response(service.reset(_name(at)))
    )
    route(
        "POST",
        _INSTANCE + ":resizeDisk",
        lambda request, **at: json_response(service.resize(_name(at), request.json())),
    )
    route(
        "POST",
        _INSTANCE + ":diagnose",
        lambda request, **at: json_response(service.diagnose(_name(at), request.json())),
    )
    route(
        "GET",
        _ZONE + "/operations",
        lambda _request, **at: json_response(service.operations(_zone(at))),
        "pageSize",
        "filter",
    )
    route(
        "GET", _OPERATION, lambda _request, **at: json_response(service.operation(_operation(at)))
    )
    route(
        "POST",
        _OPERATION + ":cancel",
        lambda _request, **at: json_response(service.cancel(_operation(at))),
    )


def _bound(request: Request, words: tuple[str, ...]) -> Request:
    """Return a request with its parameters in JSON's names. Raises Failure (400) for one that the
    method does not have.
    """
    query = {to_camel_case(name): value for name, value in request.query.items()}
    for name in query:
        if name not in words and name not in _EVERYWHERE:
            raise invalid_argument(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot bind '
                f"query parameter. Field '{name}' could not be found in request message."
            )
    return request._replace(query=query)


def _zone(at: dict[str, Any]) -> str:
    return f"projects/{at['project']}/locations/{at['location']}"


def _name(at: dict[str, Any]) -> str:
    return f"{_zone(at)}/instances/{at['instance']}"


def _operation(at: dict[str, Any]) -> str:
    return f"{_zone(at)}/operations/{at['operation']}"
