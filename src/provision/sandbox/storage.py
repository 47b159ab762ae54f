"""Cloud Storage's JSON API: upload, get, list and delete, with generations and preconditions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Response, Router, json_response
from provision.sandbox.store import Store, StoredObject

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_LIST = "/storage/v1/b/{bucket}/o"
_OBJECT = _LIST + "/{object*}"
_NAME_BYTES = 1024
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_TYPE = re.compile(rb"(?im)^content-type:[ \t]*([^\r\n]+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def add_routes(router: Router, store: Store, faults: Faults) -> None:
    """Add the routes of these methods of storage.v1.

    The first upload into a bucket creates it, unless the fault `no-bucket` is set.
    """
    handlers = _Handlers(store, faults)
    router.add("POST", "/upload/storage/v1/b/{bucket}/o", handlers.upload)
    router.add("GET", _OBJECT, handlers.get)
    router.add("DELETE", _OBJECT, handlers.delete)
    router.add("GET", _LIST, handlers.list)
    router.add(
        "GET",
        "/download" + _OBJECT,
        lambda request, **at: handlers.get(
            request._replace(query={**request.query, "alt": "media"}), **at
        ),
    )
    router.add("GET", "/storage/v1/b/{bucket}", handlers.bucket)
    router.add("POST", "/storage/v1/b", handlers.make_bucket)


class _Handlers:
    def __init__(self, store: Store, faults: Faults) -> None:
        self._store, self._faults = store, faults

    def upload(self, request: Request, bucket: str) -> Response:
        kind = request.query.get("uploadType", "")
        if kind not in ("media", "multipart"):
            raise invalid_argument(
                f"uploadType {kind!r} is not offered by the sandbox; media and multipart are"
            )
        metadata, content, content_type = (
            _parts(request)
            if kind == "multipart"
            else ({}, request.body, request.headers.get("content-type", ""))
        )
        name = str(request.query.get("name") or metadata.get("name") or "")
        if not name or len(name.encode()) > _NAME_BYTES or "\n" in name or "\r" in name:
            raise ApiError(
                StatusCode.INVALID_ARGUMENT,
                "Required object name is missing or not valid",
                reason="required",
            )
        if not _BUCKET.fullmatch(bucket):
            raise ApiError(
                StatusCode.INVALID_ARGUMENT, f"Invalid bucket name: '{bucket}'", reason="invalid"
            )
        if error := self._faults.consume_scripted_error("upload"):
            raise error
        with self._store.edit_data():
            if self._faults.has("no-bucket"):
                self._existing(bucket)
            _check_preconditions(request.query, self._store.object(bucket, name))
            return json_response(
                self._store.put_object(
                    bucket,
                    name,
                    content,
                    str(metadata.get("contentType") or content_type or "application/octet-stream"),
                )
            )

    def get(self, request: Request, bucket: str, object: str) -> Response:  # noqa: A002
        stored = self._held(request.query, bucket, object)
        _check_preconditions(request.query, stored)
        if request.query.get("alt") != "media":
            return json_response(stored.about)
        headers = {
            "Content-Type": stored.about["contentType"],
            "ETag": stored.about["etag"],
            "x-goog-generation": stored.about["generation"],
            "x-goog-metageneration": stored.about["metageneration"],
            "x-goog-stored-content-length": stored.about["size"],
        }
        part = _RANGE.fullmatch(request.headers.get("range", ""))
        if part is None:
            return Response(200, stored.content, headers)
        first, last = (
            int(part[1]),
            min(int(part[2] or len(stored.content)), len(stored.content) - 1),
        )
        if first > last:
            raise ApiError(
                StatusCode.OUT_OF_RANGE,
                "Request range not satisfiable",
                http=416,
                reason="requestedRangeNotSatisfiable",
            )
        return Response(
            206,
            stored.content[first : last + 1],
            {**headers, "Content-Range": f"bytes {first}-{last}/{len(stored.content)}"},
        )

    def delete(self, request: Request, bucket: str, object: str) -> Response:  # noqa: A002
        with self._store.edit_data():
            _check_preconditions(request.query, self._held(request.query, bucket, object))
            self._store.delete_object(bucket, object)
        return Response(204)

    def list(self, request: Request, bucket: str) -> Response:
        self._existing(bucket)
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        size, token = request.query.get("maxResults", "1000"), request.query.get("pageToken", "0")
        if not (size.isdecimal() and int(size) and token.isdecimal()):
            raise ApiError(
                StatusCode.INVALID_ARGUMENT,
                "Invalid value for maxResults or pageToken",
                reason="invalid",
            )
        items, folders = [], set()
        for metadata in self._store.objects(bucket, prefix):
            head, found, _ = (
                metadata["name"][len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            )
            if found:
                folders.add(prefix + head + delimiter)
            else:
                items.append(metadata)
        end = int(token) + int(size)
        page: dict[str, Any] = {"kind": "storage#objects"}
        if items[int(token) : end]:
            page["items"] = items[int(token) : end]
        if folders:
            page["prefixes"] = sorted(folders)
        if end < len(items):
            page["nextPageToken"] = str(end)
        return json_response(page)

    def bucket(self, _request: Request, bucket: str) -> Response:
        self._existing(bucket)
        flags = {
            "publicAccessPrevention": "enforced",
            "uniformBucketLevelAccess": {"enabled": True},
        }
        return json_response(
            {
                "kind": "storage#bucket",
                "id": bucket,
                "name": bucket,
                "location": "US-CENTRAL1",
                "iamConfiguration": flags,
            }
        )

    def make_bucket(self, request: Request) -> Response:
        name = str(request.json().get("name", ""))
        if not _BUCKET.fullmatch(name):
            raise ApiError(
                StatusCode.INVALID_ARGUMENT, f"Invalid bucket name: '{name}'", reason="invalid"
            )
        if not self._store.make_bucket(name, request.query.get("project", "")):
            raise ApiError(
                StatusCode.ALREADY_EXISTS,
                "Your previous request to create the named bucket succeeded and you "
                "already own it.",
                reason="conflict",
            )
        return self.bucket(request, name)

    def _held(self, query: Mapping[str, str], bucket: str, name: str) -> StoredObject:
        self._existing(bucket)
        stored = self._store.object(bucket, name)
        if (
            stored is None
            or query.get("generation", stored.about["generation"]) != stored.about["generation"]
        ):
            raise ApiError(
                StatusCode.NOT_FOUND, f"No such object: {bucket}/{name}", reason="notFound"
            )
        return stored

    def _existing(self, bucket: str) -> None:
        if not self._store.has_bucket(bucket):
            raise ApiError(
                StatusCode.NOT_FOUND, "The specified bucket does not exist.", reason="notFound"
            )


def _check_preconditions(query: Mapping[str, str], stored: StoredObject | None) -> None:
    """Raise ApiError (412, or 304) if a precondition does not hold.

    Generation 0 is that of a missing object.
    """
    current = {
        "Generation": stored.about["generation"] if stored else "0",
        "Metageneration": stored.about["metageneration"] if stored else "0",
    }
    for condition, value in current.items():
        if query.get(f"if{condition}Match", value) != value:
            raise ApiError(
                StatusCode.FAILED_PRECONDITION,
                "At least one of the pre-conditions you specified did not hold.",
                http=412,
                reason="conditionNotMet",
            )
        if query.get(f"if{condition}NotMatch") == value:
            raise ApiError(
                StatusCode.FAILED_PRECONDITION, "Not Modified", http=304, reason="notModified"
            )


def _parts(request: Request) -> tuple[dict[str, Any], bytes, str]:
    """Return the metadata, the unchanged content and its type of a multipart upload (RFC 2046)."""
    boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
    pieces = (b"\r\n" + request.body).split(b"\r\n--" + boundary[1].encode()) if boundary else []
    try:
        (_, metadata), (head, media) = (piece.split(b"\r\n\r\n", 1) for piece in pieces[1:3])
        kind = _TYPE.search(head)
        return dict(json.loads(metadata or b"{}")), media, kind[1].decode("latin-1") if kind else ""
    except ValueError:
        raise ApiError(
            StatusCode.INVALID_ARGUMENT, "Failed to parse multipart body", reason="parseError"
        ) from None
