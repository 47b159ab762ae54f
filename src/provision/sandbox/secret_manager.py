"""Emulated Secret Manager: adding and accessing versions of secrets."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.http_server import Request, Route
from provision.sandbox.store import Store

_SECRET = "/v1/projects/{project}/secrets/{secret}"  # noqa: S105


def secret_manager_routes(store: Store) -> list[Route]:
    """Return the routes of the emulated methods of secretmanager.v1."""

    def access(_request: Request, project: str, secret: str, version: str) -> Any:
        name = f"projects/{project}/secrets/{secret}"
        stored = store.secret(name, version)
        if stored is None and store.secret(name, "1") is None:
            # Looser than the service: a spec with secrets can be tried as it is.
            stored = f"sandbox-placeholder-{secret}".encode(), f"{name}/versions/{version}"
        if stored is None:
            raise ApiError(
                StatusCode.NOT_FOUND, f"Secret Version [{name}/versions/{version}] not found."
            )
        value, version_name = stored
        return {"name": version_name, "payload": {"data": base64.b64encode(value).decode()}}

    def add_version(request: Request, project: str, secret: str) -> Any:
        payload = request.json().get("payload", {})
        try:
            value = base64.b64decode(payload.get("data", ""), validate=True)
        except (binascii.Error, ValueError, AttributeError, TypeError):
            raise invalid_argument(
                "Invalid value at 'payload.data' (TYPE_BYTES), Base64 decoding failed"
            ) from None
        name = store.set_secret(f"projects/{project}/secrets/{secret}", value)
        return {"name": name, "state": "ENABLED"}

    return [
        ("GET", _SECRET + "/versions/{version}:access", access),
        ("POST", _SECRET + ":addVersion", add_version),
    ]
