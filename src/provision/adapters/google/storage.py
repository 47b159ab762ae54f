"""Objects in Cloud Storage."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

from provision.adapters.google.errors import (
    CloudError,
    CloudFailure,
    fatal_error,
    none_if_missing,
)
from provision.adapters.google.rest import RestClient
from provision.errors import ExternalError


class BucketObject(NamedTuple):
    """An object with its generation, which each write changes, its size in bytes and its MD5.

    The MD5 is base64, and "" for composed objects.
    """

    uri: str
    generation: int
    size: int
    md5: str


class Storage:
    """Cloud Storage's JSON API. All calls raise CloudError."""

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._address = address

    def get(self, uri: str, limit: int) -> bytes | None:
        """Return an object's content, None if it does not exist.

        Raises:
            CloudError: it is longer than `limit` bytes (kind "too-long").
        """
        query = {"alt": "media"}
        with _named_in_errors(uri):
            response = none_if_missing(
                lambda: self._rest.send("GET", self._object(uri), query, limit=limit)
            )
        return None if response is None else response.body

    def bucket(self, name: str) -> Mapping[str, Any] | None:
        """Return a bucket, None if it does not exist."""
        with _named_in_errors(f"gs://{name}"):
            return self._rest.get_or_none(f"{self._address}/storage/v1/b/{quote(name, safe='')}")

    def stat(self, uri: str) -> BucketObject | None:
        """Return the description of an object, None if it does not exist."""
        with _named_in_errors(uri):
            document = self._rest.get_or_none(self._object(uri))
        return None if document is None else _to_object(uri, document)

    def put(self, uri: str, content: bytes) -> BucketObject:
        """Write an object and return its description.

        Raises:
            CloudError: kind "broken" if the MD5 of what arrived differs.
        """
        bucket, name = _split_uri(uri)
        query = {"uploadType": "media", "name": name}
        url = f"{self._address}/upload/storage/v1/b/{quote(bucket, safe='')}/o"
        with _named_in_errors(uri):
            response = self._rest.send("POST", url, query, content, "application/octet-stream")
        try:
            document = json.loads(response.body)
        except ValueError:
            document = {}
        written = _to_object(uri, document if isinstance(document, dict) else {})
        if written.md5 and written.md5 != _md5(content):
            raise fatal_error(
                "broken",
                f"{uri} changed during the upload",
                "its MD5 does not match the uploaded file",
                "run the same command again",
            )
        return written

    def list(self, prefix: str) -> tuple[BucketObject, ...]:
        """Return the objects whose address begins with `prefix`, sorted by it."""
        bucket, name = _split_uri(prefix, folder=True)
        url = f"{self._address}/storage/v1/b/{quote(bucket, safe='')}/o"
        with _named_in_errors(prefix):
            pages = list(self._rest.pages(url, {"prefix": name} if name else {}))
        return tuple(
            _to_object(f"gs://{bucket}/{item['name']}", item)
            for page in pages
            for item in page.get("items", ())
        )

    def list_if_exists(self, prefix: str) -> tuple[BucketObject, ...]:
        """Return the objects as `list` does; () if the bucket does not exist."""
        try:
            return self.list(prefix)
        except CloudError as error:
            if error.failure.kind != "bucket":
                raise
            return ()

    def delete(self, uri: str) -> bool:
        """Delete an object, and return whether it existed."""
        with _named_in_errors(uri):
            deleted = none_if_missing(lambda: self._rest.send("DELETE", self._object(uri)))
        return deleted is not None

    def upload(self, objects: tuple[tuple[str, bytes], ...]) -> tuple[str, ...]:
        """Write the objects whose content in the bucket differs, and return their addresses."""
        written = []
        for uri, content in objects:
            current = self.stat(uri)
            if current is None or current.md5 != _md5(content):
                self.put(uri, content)
                written.append(uri)
        return tuple(written)

    def delete_folder(self, prefix: str) -> int:
        """Delete every object below an address that ends in a slash, and return their number."""
        if not re.fullmatch(r"gs://[^/]+/.+/", prefix):
            raise ExternalError(
                f"{prefix} is not a folder in a bucket",
                why="provision deletes only folders in a bucket, never a whole bucket",
                hint="use a URI such as gs://BUCKET/PREFIX/INSTANCE/",
            )
        return sum(self.delete(item.uri) for item in self.list_if_exists(prefix))

    def _object(self, uri: str) -> str:
        bucket, name = _split_uri(uri)
        return f"{self._address}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"


def _split_uri(uri: str, *, folder: bool = False) -> tuple[str, str]:
    match = re.fullmatch(r"gs://([a-z0-9][a-z0-9._-]{1,220})(?:/([^\r\n]*))?", uri)
    bucket, name = match.group(1, 2) if match else ("", None)
    if not bucket or not (name or folder) or len((name or "").encode()) > 1024:
        raise ExternalError(
            f"{uri} is not a Cloud Storage URI",
            why="expected gs://BUCKET/NAME",
            hint="check the target's `bucket`",
        )
    return bucket, name or ""


def _to_object(uri: str, document: Mapping[str, Any]) -> BucketObject:
    generation, size = (int(document.get(field, 0)) for field in ("generation", "size"))
    return BucketObject(uri, generation, size, str(document.get("md5Hash", "")))


def _md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


@contextmanager
def _named_in_errors(uri: str) -> Iterator[None]:
    """Add the object's address to errors, and the bucket to their commands."""
    try:
        yield
    except CloudError as error:
        raise _with_address(error, uri) from error


def _with_address(error: CloudError, uri: str) -> CloudError:
    failure, bucket = error.failure, uri.removeprefix("gs://").partition("/")[0]
    if failure.kind == "not-found":
        hint = (
            "create it in the same region as the zones: gcloud storage buckets create "
            f"gs://{bucket} --location=REGION --uniform-bucket-level-access"
        )
        what = f"there is no bucket {bucket}"
        return CloudError(CloudFailure(failure.scope, "bucket", what, failure.why, hint))
    hint = failure.hint.replace("gs://BUCKET", f"gs://{bucket}")
    return CloudError(replace(failure, what=f"{failure.what} ({uri})", hint=hint))
