"""The Notebooks service over REST: which path is which method."""

from __future__ import annotations

from typing import Any

from provision.sandbox.failure import invalid
from provision.sandbox.http import Request, Response, Router, answer
from provision.sandbox.notebooks import Notebooks

_ZONE = "/v2/projects/{project}/locations/{location}"
_INSTANCE = _ZONE + "/instances/{instance}"
_OPERATION = _ZONE + "/operations/{operation}"


def add(router: Router, service: Notebooks) -> None:
    """Route the methods of notebooks.v2 to a service."""

    def create(request: Request, **at: str) -> Response:
        return answer(service.create(_zone(at), request.query.get("instanceId", ""), request.json(), request.query.get("requestId", "")))

    def listed(request: Request, **at: str) -> Response:
        size = request.query.get("pageSize", "0")
        if not size.isdecimal():
            raise invalid(f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
        return answer(service.listed(_zone(at), int(size), request.query.get("pageToken", "")))

    def patch(request: Request, **at: str) -> Response:
        return answer(service.patch(_name(at), request.json(), request.query.get("updateMask", ""), request.query.get("requestId", "")))

    router.add("GET", _ZONE + "/instances:getConfig", lambda _request, **at: answer(service.config(_zone(at))))
    router.add("POST", _ZONE + "/instances", create)
    router.add("GET", _ZONE + "/instances", listed)
    router.add("GET", _INSTANCE, lambda _request, **at: answer(service.get(_name(at))))
    router.add("PATCH", _INSTANCE, patch)
    router.add("DELETE", _INSTANCE, lambda request, **at: answer(service.delete(_name(at), request.query.get("requestId", ""))))
    router.add("POST", _INSTANCE + ":start", lambda _request, **at: answer(service.start(_name(at))))
    router.add("POST", _INSTANCE + ":stop", lambda _request, **at: answer(service.stop(_name(at))))
    router.add("POST", _INSTANCE + ":reset", lambda _request, **at: answer(service.reset(_name(at))))
    router.add("POST", _INSTANCE + ":diagnose", lambda request, **at: answer(service.diagnose(_name(at), request.json())))
    router.add("GET", _ZONE + "/operations", lambda _request, **at: answer(service.operations(_zone(at))))
    router.add("GET", _OPERATION, lambda _request, **at: answer(service.operation(_operation(at))))
    router.add("POST", _OPERATION + ":cancel", lambda _request, **at: answer(service.cancel(_operation(at))))


def _zone(at: dict[str, Any]) -> str:
    return f"projects/{at['project']}/locations/{at['location']}"


def _name(at: dict[str, Any]) -> str:
    return f"{_zone(at)}/instances/{at['instance']}"


def _operation(at: dict[str, Any]) -> str:
    return f"{_zone(at)}/operations/{at['operation']}"
