"""Secret Manager: secrets, their versions and access to them."""

from __future__ import annotations

import base64
import binascii

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.http_server import Request, Response, Router, json_response
from provision.sandbox.store import Store

_PROJECT = "/v1/projects/{project}/secrets"
_SECRET = _PROJECT + "/{secret}"


def add_routes(router: Router, store: Store) -> None:
    """Add the routes of these methods of secretmanager.v1."""

    def access(_request: Request, project: str, secret: str, version: str) -> Response:
        stored = store.secret(name := f"projects/{project}/secrets/{secret}", version)
        if stored is None:
            raise ApiError(
                StatusCode.NOT_FOUND, f"Secret Version [{name}/versions/{version}] not found."
            )
        value, exact = stored
        return json_response({"name": exact, "payload": {"data": base64.b64encode(value).decode()}})

    def add_version(request: Request, project: str, secret: str) -> Response:
        payload = request.json().get("payload", {})
        try:
            value = base64.b64decode(payload.get("data", ""), validate=True)
        except (binascii.Error, ValueError, AttributeError, TypeError):
            raise invalid_argument(
                "Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed"
            ) from None
        return json_response(
            {
                "name": store.set_secret(f"projects/{project}/secrets/{secret}", value),
                "state": "ENABLED",
            }
        )

    router.add("GET", _SECRET + "/versions/{version}:access", access)
    router.add("POST", _SECRET + ":addVersion", add_version)
