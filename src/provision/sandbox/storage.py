"""Emulated JSON API of Cloud Storage: objects with generations, and preconditions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument, not_found
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Response, Route
from provision.sandbox.store import EmulatedObject, Store

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_LIST = "/storage/v1/b/{bucket}/o"
_OBJECT = _LIST + "/{object*}"
_NAME_BYTES = 1024
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?')
_TYPE = re.compile(rb"(?im)^content-type:[ \t]*([^\r\n]+)")
REFUSED_WRITER = "/refused/{account}"
"""Prefix of the paths of a service account that may not write."""
_OUTPUT = re.compile(r"/output-\d+-\d+\.txt$")
"""The objects that the fault `no-logs` concerns."""
_WHEEL = re.compile(r"(^|/)provision-wheels/")
"""The objects that the fault `no-wheel-write` concerns."""
_MULTI_REGIONS = ("ASIA", "EU", "US")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def storage_routes(store: Store, faults: Faults) -> list[Route]:
    """Return the routes of the emulated methods of storage.v1.

    The first upload into a bucket creates it, unless the fault `no-bucket` is set.
    """
    storage = _Storage(store, faults)
    return [
        ("POST", "/upload/storage/v1/b/{bucket}/o", storage.upload),
        ("POST", f"{REFUSED_WRITER}/upload/storage/v1/b/{{bucket}}/o", storage.refuse_upload),
        ("GET", _OBJECT, storage.get),
        ("DELETE", _OBJECT, storage.delete),
        ("GET", _LIST, storage.list),
        ("GET", "/download" + _OBJECT, storage.download),
        ("GET", "/storage/v1/b/{bucket}", storage.bucket),
        ("POST", "/storage/v1/b", storage.make_bucket),
    ]


class _Storage:
    def __init__(self, store: Store, faults: Faults) -> None:
        self._store, self._faults = store, faults

    def upload(self, request: Request, bucket: str) -> Any:
        kind = request.query.get("uploadType", "")
        if kind not in ("media", "multipart"):
            raise invalid_argument(
                f"uploadType {kind!r} is not supported by the sandbox; use media or multipart"
            )
        metadata, content, content_type = (
            _read_parts(request)
            if kind == "multipart"
            else ({}, request.body, request.headers.get("content-type", ""))
        )
        name = str(request.query.get("name") or metadata.get("name") or "")
        if not name or len(name.encode()) > _NAME_BYTES or "\n" in name or "\r" in name:
            raise invalid_argument("Required object name is missing or not valid", "required")
        _check_bucket_name(bucket)
        if error := self._faults.consume_scripted_error("upload"):
            raise error
        if self._faults.has("no-wheel-write") and _WHEEL.search(name):
            return self.refuse_upload(request, "the service account", bucket)
        stored_type = metadata.get("contentType") or content_type or "application/octet-stream"
        with self._store.edit_data():
            if self._faults.has("no-bucket"):
                self._require_bucket(bucket)
            _check_preconditions(request.query, self._store.object(bucket, name))
            return self._store.put_object(bucket, name, content, str(stored_type))

    def refuse_upload(self, request: Request, account: str, bucket: str) -> Any:
        name = request.query.get("name", "")
        raise ApiError(
            StatusCode.PERMISSION_DENIED,
            f"{account} does not have storage.objects.create access to the Google Cloud Storage "
            "object. Permission 'storage.objects.create' denied on resource "
            f"'projects/_/buckets/{bucket}/objects/{name}' (or it may not exist).",
            reason="forbidden",
        )

    def get(self, request: Request, bucket: str, object: str) -> Any:  # noqa: A002
        if request.query.get("alt") == "media":
            return self.download(request, bucket, object)
        return self._read(request, bucket, object).about

    def download(self, request: Request, bucket: str, object: str) -> Response:  # noqa: A002
        content, about = self._read(request, bucket, object)
        headers = {
            "Content-Type": about["contentType"],
            "ETag": about["etag"],
            "x-goog-generation": about["generation"],
            "x-goog-metageneration": about["metageneration"],
            "x-goog-stored-content-length": about["size"],
        }
        part = _RANGE.fullmatch(request.headers.get("range", ""))
        if part is None:
            return Response(200, content, headers)
        first, last = int(part[1]), min(int(part[2] or len(content)), len(content) - 1)
        if first > last:
            raise ApiError(
                StatusCode.OUT_OF_RANGE,
                "Request range not satisfiable",
                http=416,
                reason="requestedRangeNotSatisfiable",
            )
        content_range = f"bytes {first}-{last}/{len(content)}"
        return Response(206, content[first : last + 1], {**headers, "Content-Range": content_range})

    def delete(self, request: Request, bucket: str, object: str) -> Response:  # noqa: A002
        with self._store.edit_data():
            self._read(request, bucket, object)
            self._store.delete_object(bucket, object)
        return Response(204)

    def list(self, request: Request, bucket: str) -> Any:
        self._require_bucket(bucket)
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        size, token = request.query.get("maxResults", "1000"), request.query.get("pageToken", "0")
        if not (size.isdecimal() and int(size) and token.isdecimal()):
            raise invalid_argument("Invalid value for maxResults or pageToken", "invalid")
        items, folders = [], set()
        for about in self._store.objects(bucket, prefix):
            rest = about["name"][len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                items.append(about)
        first, end = int(token), int(token) + int(size)
        page: dict[str, Any] = {"kind": "storage#objects"}
        if items[first:end]:
            page["items"] = items[first:end]
        if folders:
            page["prefixes"] = sorted(folders)
        if end < len(items):
            page["nextPageToken"] = str(end)
        return page

    def bucket(self, _request: Request, bucket: str) -> Any:
        if not (location := self._scripted_location()):
            self._require_bucket(bucket)
            location = self._store.bucket_location(bucket)
        flags = {
            "publicAccessPrevention": "enforced",
            "uniformBucketLevelAccess": {"enabled": True},
        }
        about = {"kind": "storage#bucket", "id": bucket, "name": bucket, "iamConfiguration": flags}
        return {**about, **_describe_location(location)} if location else about

    def _scripted_location(self) -> str:
        return "".join(self._faults.locations("bucket-location")).upper()

    def make_bucket(self, request: Request) -> Any:
        name = str(request.json().get("name", ""))
        _check_bucket_name(name)
        # Cloud Storage's default, if a request names none.
        location = str(request.json().get("location") or "US").upper()
        if not self._store.make_bucket(name, request.query.get("project", ""), location):
            raise ApiError(
                StatusCode.ALREADY_EXISTS,
                "Your previous request to create the named bucket succeeded and you "
                "already own it.",
                reason="conflict",
            )
        return self.bucket(request, name)

    def _read(self, request: Request, bucket: str, name: str) -> EmulatedObject:
        """Return an object whose generation and preconditions are those of a request."""
        if self._faults.has("no-logs") and _OUTPUT.search(name):
            raise ApiError(
                StatusCode.PERMISSION_DENIED,
                "user does not have storage.objects.get access to the Google Cloud Storage "
                "object. Permission 'storage.objects.get' denied on resource "
                f"'projects/_/buckets/{bucket}/objects/{name}' (or it may not exist).",
                reason="forbidden",
            )
        self._require_bucket(bucket)
        stored = self._store.object(bucket, name)
        generation = stored and stored.about["generation"]
        if stored is None or request.query.get("generation", generation) != generation:
            raise not_found(f"No such object: {bucket}/{name}")
        _check_preconditions(request.query, stored)
        return stored

    def _require_bucket(self, bucket: str) -> None:
        if not self._store.has_bucket(bucket):
            raise not_found("The specified bucket does not exist.")


def _describe_location(location: str) -> dict[str, str]:
    """Return the location of a bucket with its type: regions have a hyphen in their names."""
    kind = "region" if "-" in location else "dual-region"
    return {
        "location": location,
        "locationType": "multi-region" if location in _MULTI_REGIONS else kind,
    }


def _check_bucket_name(name: str) -> None:
    if not _BUCKET.fullmatch(name):
        raise invalid_argument(f"Invalid bucket name: '{name}'", "invalid")


def _check_preconditions(query: Mapping[str, str], stored: EmulatedObject | None) -> None:
    """Raise ApiError (412, or 304) if a precondition does not hold.

    Generation 0 is that of a missing object.
    """
    for condition in ("Generation", "Metageneration"):
        value = stored.about[condition.lower()] if stored else "0"
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


def _read_parts(request: Request) -> tuple[dict[str, Any], bytes, str]:
    """Return the metadata, the unchanged content and its type of a multipart upload (RFC 2046)."""
    boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
    pieces = (b"\r\n" + request.body).split(b"\r\n--" + boundary[1].encode()) if boundary else []
    try:
        (_, metadata), (head, media) = (piece.split(b"\r\n\r\n", 1) for piece in pieces[1:3])
        kind = _TYPE.search(head)
        return dict(json.loads(metadata or b"{}")), media, kind[1].decode("latin-1") if kind else ""
    except ValueError:
        raise invalid_argument("Failed to parse multipart body", "parseError") from None
