"""The emulated registry of container images, for every host: manifests and configurations only.

It has images of two Pythons, for linux/amd64 and linux/arm64, with the same content and digests
everywhere. Access to any other image is refused: its content is unknown here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Response, Route, json_response

_PYTHONS = ("3.9", "3.12")
_TOKEN = "anonymous"  # noqa: S105
_OCI = "application/vnd.oci.image"
_INDEX, _MANIFEST = f"{_OCI}.index.v1+json", f"{_OCI}.manifest.v1+json"
_CONFIG = f"{_OCI}.config.v1+json"


class EmulatedImage(NamedTuple):
    """An image: the digests of the list of its platforms, and of each architecture's manifest."""

    digest: str
    manifests: Mapping[str, str]


class _Content(NamedTuple):
    """A manifest or a configuration."""

    media_type: str
    body: bytes


@cache
def build_images() -> tuple[dict[str, EmulatedImage], dict[str, _Content]]:
    """Return the images by their Python, such as 3.12, and everything by digest."""
    contents: dict[str, _Content] = {}

    def add(media_type: str, document: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps(document, sort_keys=True).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        contents[digest] = _Content(media_type, body)
        return {"digest": digest, "size": len(body), "mediaType": media_type}

    images = {}
    for python in _PYTHONS:
        rows = []
        for architecture in ("arm64", "amd64"):
            platform = {"os": "linux", "architecture": architecture}
            variables = ["PATH=/usr/local/bin:/usr/bin:/bin", f"PYTHON_VERSION={python}.1"]
            config = add(_CONFIG, {**platform, "config": {"Env": variables}})
            manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": []}
            rows.append({**add(_MANIFEST, manifest), "platform": platform})
        index = add(_INDEX, {"schemaVersion": 2, "mediaType": _INDEX, "manifests": rows})
        manifests = {row["platform"]["architecture"]: row["digest"] for row in rows}
        images[python] = EmulatedImage(index["digest"], manifests)
    return images, contents


def image_registry_routes(faults: Faults) -> list[Route]:
    """Return the routes for pulling manifests and configurations by digest, with their token."""

    def read_manifest(request: Request, name: str, digest: str) -> Response:  # noqa: ARG001
        return read(request, digest, is_manifest=True)

    def read_blob(request: Request, name: str, digest: str) -> Response:  # noqa: ARG001
        return read(request, digest, is_manifest=False)

    def read(request: Request, digest: str, *, is_manifest: bool) -> Response:
        if request.headers.get("authorization") != f"Bearer {_TOKEN}":
            realm = f"http://{request.headers['host']}/registry/token"
            challenge = {"WWW-Authenticate": f'Bearer realm="{realm}",service="sandbox"'}
            return _refuse(401, "UNAUTHORIZED", "authentication required", challenge)
        if faults.has("no-image"):
            return _refuse(404, "MANIFEST_UNKNOWN", "manifest unknown")
        content = build_images()[1].get(f"sha256:{digest}")
        if content is None:
            return _refuse(403, "DENIED", "the sandbox does not know the content of this image")
        if (content.media_type != _CONFIG) != is_manifest:
            return _refuse(404, "BLOB_UNKNOWN", "blob unknown to registry")
        if is_manifest and content.media_type not in request.headers.get("accept", ""):
            return _refuse(404, "MANIFEST_UNKNOWN", "no manifest of an accepted type")
        return Response(200, content.body, {"Content-Type": content.media_type})

    routes = [("manifests", read_manifest), ("blobs", read_blob)]
    return [
        ("GET", "/registry/token", lambda _request: {"token": _TOKEN}),
        *(
            (method, f"/v2/{{name*}}/{kind}/sha256:{{digest}}", handler)
            for method in ("HEAD", "GET")
            for kind, handler in routes
        ),
    ]


def _refuse(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error in the form of the OCI distribution specification."""
    return json_response({"errors": [{"code": code, "message": message}]}, status, headers)
