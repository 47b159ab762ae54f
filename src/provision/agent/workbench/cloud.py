"""Google's services as the instance uses them: metadata, Cloud Storage, Secret Manager."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..core.redact import replace_unprintable
from ..core.timed_http import DEFAULT_LIMITS, TimedCall, TimedHandler, TimeLimits

_FLAVOR = {"Metadata-Flavor": "Google"}
_TRIES = 5
_NOT_FOUND = 404
_LATER = (408, 429, 500, 502, 503, 504)
"""Responses that are retried. Source: Cloud Storage documentation, "Retry strategy"."""


class ServiceCallFailed(Exception):
    """A service refused or failed; the text is one line without any token or value.

    `http` is the status of its response, 0 if there was none.
    """

    def __init__(self, text: str, http: int = 0) -> None:
        super().__init__(text)
        self.http = http


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
        bucket, name = _split_address(address)
        url = f"{self.storage_url}/storage/v1/b/{bucket}/o/{name}?alt=media"
        content = self._call_authorized("GET", url, f"cannot read {address}")
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ServiceCallFailed(f"{address} does not have the announced sha256")
        return content

    def find_object(self, address: str) -> bytes | None:
        """Return an object, None if it does not exist."""
        bucket, name = _split_address(address)
        url = f"{self.storage_url}/storage/v1/b/{bucket}/o/{name}?alt=media"
        try:
            return self._call_authorized("GET", url, f"cannot read {address}")
        except ServiceCallFailed as error:
            if error.http == _NOT_FOUND:
                return None
            raise

    def write_object(self, address: str, content: bytes, content_type: str) -> dict[str, Any]:
        """Write an object in one request; return its fields."""
        bucket, name = _split_address(address)
        query = f"uploadType=media&name={name}"
        url = f"{self.storage_url}/upload/storage/v1/b/{bucket}/o?{query}"
        failure = f"cannot write {address}"
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
        return self._call(request, f"no response to {path}", tries, no_proxy)

    def _call_authorized(
        self,
        method: str,
        url: str,
        failure: str,
        content: bytes | None = None,
        content_type: str = "",
    ) -> bytes:
        headers = {"Authorization": f"Bearer {self._access_token()}"}
        if content_type:
            headers["Content-Type"] = content_type
        return self._call(urllib.request.Request(url, content, headers, method=method), failure)

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
    ) -> bytes:
        attempt = 0
        while True:
            call = TimedCall(self.limits)
            opener = urllib.request.build_opener(_NoRedirect(), TimedHandler(call), *handlers)
            try:
                with opener.open(request, timeout=self.limits.whole_s) as answer:
                    content: bytes = answer.read()
                    return content
            except urllib.error.HTTPError as error:
                why = f"HTTP {error.code} {_google_message(error)}".strip()
                may_change, status = error.code in _LATER, error.code
            except (OSError, ValueError) as error:
                why, may_change, status = str(getattr(error, "reason", error)), True, 0
            attempt += 1
            if not may_change or attempt == tries:
                raise ServiceCallFailed(f"{failure}: {why}"[:500], status)
            self.sleep(min(16.0, 2.0 ** (attempt - 1)))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections: a token is sent to its own address only."""

    def redirect_request(self, *_: object) -> None:
        return None


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
