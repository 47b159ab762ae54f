"""Objects in Cloud Storage."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope
from provision.adapters.google.rest import RestClient
from provision.errors import ExternalError


class StoredObject(NamedTuple):
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
        try:
            return self._rest.send("GET", self._object(uri), {"alt": "media"}, limit=limit).body
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise _with_address(error, uri) from error

    def stat(self, uri: str) -> StoredObject | None:
        """Return the description of an object, None if it does not exist."""
        try:
            document = self._rest.get_or_none(self._object(uri))
        except CloudError as error:
            raise _with_address(error, uri) from error
        return None if document is None else _to_stored_object(uri, document)

    def put(
        self,
        uri: str,
        content: bytes,
        if_generation: int | None = None,
        content_type: str = "application/octet-stream",
    ) -> StoredObject:
        """Write an object and return its description.

        With `if_generation`, only over that generation (0: only if it does not exist). A write
        whose answer was lost is repeated: its condition then fails, which is fine if our own
        content is there.

        Raises:
            CloudError: kind "changed" if the generation is another, "broken" if the MD5 differs.
        """
        bucket, name = _split_uri(uri)
        query = {
            "uploadType": "media",
            "name": name,
            **({} if if_generation is None else {"ifGenerationMatch": str(if_generation)}),
        }
        url = f"{self._address}/upload/storage/v1/b/{quote(bucket, safe='')}/o"
        digest = _md5(content)
        try:
            document = _to_stored_object(
                uri, _json(self._rest.send("POST", url, query, content, content_type).body)
            )
        except CloudError as error:
            if if_generation is None or error.failure.kind != "changed":
                raise _with_address(error, uri) from error
            current = self.stat(uri)
            if current is None or current.md5 != digest or current.generation == if_generation:
                raise CloudError(_changed(uri)) from error
            return current
        if document.md5 and document.md5 != digest:
            raise CloudError(
                CloudFailure(
                    FailureScope.FATAL,
                    "broken",
                    f"{uri} did not arrive as it was sent",
                    "its MD5 is another",
                    "run the same command again",
                )
            )
        return document

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """Return the objects whose address begins with `prefix`, sorted by it."""
        bucket, name = _split_uri(prefix, folder=True)
        url = f"{self._address}/storage/v1/b/{quote(bucket, safe='')}/o"
        try:
            pages = list(self._rest.pages(url, {"prefix": name} if name else {}))
        except CloudError as error:
            raise _with_address(error, prefix) from error
        return tuple(
            _to_stored_object(f"gs://{bucket}/{item['name']}", item)
            for page in pages
            for item in page.get("items", ())
        )

    def delete(self, uri: str, if_generation: int | None = None) -> bool:
        """Delete an object, and return whether it existed.

        Raises:
            CloudError: kind "changed" if its generation is not `if_generation`.
        """
        query = {} if if_generation is None else {"ifGenerationMatch": str(if_generation)}
        try:
            self._rest.send("DELETE", self._object(uri), query)
        except CloudError as error:
            if error.failure.kind == "not-found":
                return False
            raise (
                CloudError(_changed(uri))
                if error.failure.kind == "changed"
                else _with_address(error, uri)
            ) from error
        return True

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
                f"{prefix} is no folder in a bucket",
                why="only a folder of ours is cleared",
                hint="gs://BUCKET/PREFIX/INSTANCE/",
            )
        return sum(self.delete(item.uri) for item in self.list(prefix))

    def _object(self, uri: str) -> str:
        bucket, name = _split_uri(uri)
        return f"{self._address}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"


def _split_uri(uri: str, *, folder: bool = False) -> tuple[str, str]:
    document = re.fullmatch(r"gs://([a-z0-9][a-z0-9._-]{1,220})(?:/([^\r\n]*))?", uri)
    if document is None or not (document[2] or folder) or len((document[2] or "").encode()) > 1024:
        raise ExternalError(
            f"{uri} is no address of Cloud Storage",
            why="it is written gs://BUCKET/NAME",
            hint="look at `bucket:` of the target",
        )
    return document[1], document[2] or ""


def _to_stored_object(uri: str, document: Mapping[str, Any]) -> StoredObject:
    return StoredObject(
        uri,
        int(document.get("generation", 0)),
        int(document.get("size", 0)),
        str(document.get("md5Hash", "")),
    )


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = {}
    return document if isinstance(document, dict) else {}


def _md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def _changed(uri: str) -> CloudFailure:
    return CloudFailure(
        FailureScope.FATAL,
        "changed",
        f"{uri} was changed by somebody else",
        "its generation is another",
        "run the same command again",
    )


def _with_address(error: CloudError, uri: str) -> CloudError:
    """Return the error with the object's address, and the bucket in its commands."""
    failure, bucket = error.failure, uri.removeprefix("gs://").partition("/")[0]
    if failure.kind == "not-found":
        hint = (
            f"make it in the region of the zones: gcloud storage buckets create gs://{bucket} "
            "--location=REGION --uniform-bucket-level-access"
        )
        return CloudError(
            CloudFailure(failure.scope, "bucket", f"there is no bucket {bucket}", failure.why, hint)
        )
    return CloudError(
        _with_hint(failure, uri, failure.hint.replace("gs://BUCKET", f"gs://{bucket}"))
    )


def _with_hint(failure: CloudFailure, uri: str, hint: str) -> CloudFailure:
    return replace(failure, what=f"{failure.what} ({uri})", hint=hint)
