"""Google's services as the instance uses them: metadata, Cloud Storage, Secret Manager."""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from ..core.redact import replace_unprintable
from ..core.timed_http import DEFAULT_LIMITS, TimedCall, TimedHandler, TimeLimits, write_body

_FLAVOR = {"Metadata-Flavor": "Google"}
_TRIES = 5
_NOT_FOUND, _EXISTS = 404, 412
_LATER = (408, 429, 500, 502, 503, 504)
"""Responses that are retried. Source: Cloud Storage documentation, "Retry strategy"."""
T = TypeVar("T")


class ServiceCallFailed(Exception):
    """A service refused or failed; the text is one line without any token or value.

    `http` is the status of its response, 0 if there was none.
    """

    def __init__(self, text: str, http: int = 0) -> None:
        super().__init__(text)
        self.http = http


class WrongContent(ServiceCallFailed):
    """An object does not have the announced sha256."""


@dataclass
class CloudClient:
    """Addresses of the services, and the token of the instance's service account."""

    metadata_url: str
    storage_url: str
    secrets_url: str
    sleep: Callable[[float], None] = time.sleep
    limits: TimeLimits = DEFAULT_LIMITS
    _token: str = field(default="", repr=False)
    _until: float = 0.0

    def read_metadata_attribute(self, key: str) -> str | None:
        """Return a value of the instance's metadata; None if it is not set."""
        try:
            value = self._call_metadata("GET", f"instance/attributes/{quote(key)}")
        except ServiceCallFailed:
            return None
        return value.decode("utf-8", "replace")

    def write_guest_attribute(self, key: str, value: str) -> bool:
        """Write a guest attribute of our namespace once; return whether it was accepted."""
        path = f"instance/guest-attributes/provision/{key}"
        try:
            self._call_metadata("PUT", path, value.encode(), tries=1)
        except ServiceCallFailed:
            return False
        return True

    def read_object(self, address: str, sha256: str) -> bytes:
        """Return an object whose sha256 is the announced one."""
        failure = f"cannot read {address}"
        content = self._call_authorized("GET", self._media_url(address), failure)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise WrongContent(f"{address} does not have the announced sha256")
        return content

    def fetch_file(self, address: str, sha256: str, path: Path) -> bool:
        """Write an object to a file; return False if it does not exist.

        Raises:
            WrongContent: its sha256 is not the announced one.
            ServiceCallFailed: it cannot be read.
        """
        failure = f"cannot read {address}"
        request = self._authorize("GET", self._media_url(address))
        try:
            digest = self._call(request, failure, receive=partial(write_body, path))
        except ServiceCallFailed as error:
            if error.http == _NOT_FOUND:
                return False
            raise
        if digest != sha256:
            raise WrongContent(f"{address} does not have the announced sha256")
        return True

    def add_file(self, address: str, path: Path) -> None:
        """Write a file as a new object; one that exists is left alone."""
        url = f"{self._upload_url(address)}&ifGenerationMatch=0"
        with path.open("rb") as file:
            request = self._authorize("POST", url, file, "application/octet-stream")
            # Without it, urllib sends a file in chunks.
            request.add_header("Content-Length", str(path.stat().st_size))
            try:
                self._call(request, f"cannot write {address}", receive=_read_all)
            except ServiceCallFailed as error:
                if error.http != _EXISTS:
                    raise

    def find_object(self, address: str) -> bytes | None:
        """Return an object, None if it does not exist."""
        failure = f"cannot read {address}"
        try:
            return self._call_authorized("GET", self._media_url(address), failure)
        except ServiceCallFailed as error:
            if error.http == _NOT_FOUND:
                return None
            raise

    def write_object(self, address: str, content: bytes, content_type: str) -> dict[str, Any]:
        """Write an object in one request; return its fields."""
        url, failure = self._upload_url(address), f"cannot write {address}"
        answer = self._call_authorized("POST", url, failure, content, content_type)
        try:
            fields = json.loads(answer or b"{}")
        except ValueError:
            fields = {}
        return fields if isinstance(fields, dict) else {}

    def read_secret(self, reference: str) -> str:
        """Return a secret's value (Secret Manager REST, projects.secrets.versions.access)."""
        url = f"{self.secrets_url}/v1/{reference}:access"
        failure = f"cannot read the secret {reference}"
        try:
            answer = json.loads(self._call_authorized("GET", url, failure))
            return base64.b64decode(answer["payload"]["data"]).decode()
        except (ValueError, KeyError, TypeError):
            raise ServiceCallFailed(f"{failure}: the response is not text") from None

    def _call_metadata(
        self, method: str, path: str, content: bytes | None = None, tries: int = _TRIES
    ) -> bytes:
        url = f"{self.metadata_url}/{path}"
        request = urllib.request.Request(url, content, _FLAVOR, method=method)
        no_proxy = urllib.request.ProxyHandler({})
        return self._call(request, f"no response to {path}", tries, no_proxy, receive=_read_all)

    def _call_authorized(
        self,
        method: str,
        url: str,
        failure: str,
        content: bytes | None = None,
        content_type: str = "",
    ) -> bytes:
        return self._call(
            self._authorize(method, url, content, content_type), failure, receive=_read_all
        )

    def _authorize(
        self, method: str, url: str, content: Any = None, content_type: str = ""
    ) -> urllib.request.Request:
        headers = {"Authorization": f"Bearer {self._access_token()}"}
        if content_type:
            headers["Content-Type"] = content_type
        return urllib.request.Request(url, content, headers, method=method)

    def _media_url(self, address: str) -> str:
        bucket, name = _split_address(address)
        return f"{self.storage_url}/storage/v1/b/{bucket}/o/{name}?alt=media"

    def _upload_url(self, address: str) -> str:
        bucket, name = _split_address(address)
        query = f"uploadType=media&name={name}"
        return f"{self.storage_url}/upload/storage/v1/b/{bucket}/o?{query}"

    def _access_token(self) -> str:
        if time.monotonic() >= self._until:
            path = "instance/service-accounts/default/token"
            try:
                answer = json.loads(self._call_metadata("GET", path))
                self._token, lifetime = str(answer["access_token"]), float(answer["expires_in"])
            except (ValueError, KeyError, TypeError):
                raise ServiceCallFailed(
                    "the instance has no token: it needs a service account"
                ) from None
            self._until = time.monotonic() + max(0.0, lifetime - 60)
        return self._token

    def _call(
        self,
        request: urllib.request.Request,
        failure: str,
        tries: int = _TRIES,
        *handlers: urllib.request.BaseHandler,
        receive: Callable[[Any], T],
    ) -> T:
        """Return what `receive` makes of the response."""
        attempt = 0
        while True:
            call = TimedCall(self.limits)
            if isinstance(request.data, io.BufferedReader):
                request.data.seek(0)
            opener = urllib.request.build_opener(_NoRedirect(), TimedHandler(call), *handlers)
            try:
                with opener.open(request, timeout=self.limits.whole_s) as answer:
                    return receive(answer)
            except urllib.error.HTTPError as error:
                why = f"HTTP {error.code} {_google_message(error)}".strip()
                may_change, status = error.code in _LATER, error.code
            except (OSError, ValueError, http.client.HTTPException) as error:
                why, may_change, status = str(getattr(error, "reason", error)), True, 0
            attempt += 1
            if not may_change or attempt == tries:
                raise ServiceCallFailed(f"{failure}: {why}"[:500], status)
            self.sleep(min(16.0, 2.0 ** (attempt - 1)))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections: a token is sent to its own address only."""

    def redirect_request(self, *_: object) -> None:
        return None


def _read_all(answer: Any) -> bytes:
    content: bytes = answer.read()
    return content


def _split_address(address: str) -> tuple[str, str]:
    """Return the bucket and the quoted name of a gs:// address."""
    bucket, _, name = address.removeprefix("gs://").partition("/")
    return bucket, quote(name, safe="")


def _google_message(error: urllib.error.HTTPError) -> str:
    """Return the message of an error in Google's form, else nothing."""
    try:
        message = json.loads(error.read(65536))["error"]["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return replace_unprintable(str(message))[:300]
