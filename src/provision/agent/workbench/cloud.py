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
from urllib.parse import quote

from ..core.timed_http import DEFAULT_LIMITS, HttpHandler, HttpsHandler, TimedCall, TimeLimits

_FLAVOR = {"Metadata-Flavor": "Google"}
_TRIES = 5
_LATER = (408, 429, 500, 502, 503, 504)
"""Answers that a later try may change. Source: Cloud Storage documentation, "Retry strategy"."""


class CloudError(Exception):
    """A service refused or failed; the text is one line without any token or value."""


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
            return self._metadata("GET", f"instance/attributes/{quote(key)}").decode(
                "utf-8", "replace"
            )
        except CloudError:
            return None

    def write_guest_attribute(self, key: str, value: str) -> bool:
        """Write a guest attribute of our namespace once; return whether it was accepted."""
        try:
            self._metadata(
                "PUT", f"instance/guest-attributes/provision/{key}", value.encode(), tries=1
            )
        except CloudError:
            return False
        return True

    def read_object(self, address: str, sha256: str) -> bytes:
        """Return an object whose sha256 is the announced one."""
        content = self._authorised(
            "GET", self._object(address) + "?alt=media", f"cannot read {address}"
        )
        if hashlib.sha256(content).hexdigest() != sha256:
            raise CloudError(f"{address} is not what was announced: its sha256 differs")
        return content

    def write_object(self, address: str, content: bytes, kind: str) -> None:
        """Write an object in one request."""
        bucket, _, name = address.removeprefix("gs://").partition("/")
        query = f"uploadType=media&name={quote(name, safe='')}"
        url = f"{self.storage_url}/upload/storage/v1/b/{bucket}/o?{query}"
        self._authorised("POST", url, f"cannot write {address}", content, kind)

    def read_secret(self, reference: str) -> str:
        """Return a secret's value (Secret Manager REST, projects.secrets.versions.access)."""
        try:
            answer = json.loads(
                self._authorised(
                    "GET",
                    f"{self.secrets_url}/v1/{reference}:access",
                    f"cannot read the secret {reference}",
                )
            )
            return base64.b64decode(answer["payload"]["data"]).decode()
        except (ValueError, KeyError, TypeError):
            raise CloudError(f"cannot read the secret {reference}: the answer is no text") from None

    def _object(self, address: str) -> str:
        bucket, _, name = address.removeprefix("gs://").partition("/")
        return f"{self.storage_url}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"

    def _metadata(
        self, method: str, path: str, content: bytes | None = None, tries: int = _TRIES
    ) -> bytes:
        return self._ask(
            [urllib.request.ProxyHandler({})],
            urllib.request.Request(f"{self.metadata_url}/{path}", content, _FLAVOR, method=method),
            f"no answer to {path}",
            tries,
        )

    def _authorised(
        self, method: str, url: str, failing: str, content: bytes | None = None, kind: str = ""
    ) -> bytes:
        headers = {
            "Authorization": f"Bearer {self._bearer()}",
            **({"Content-Type": kind} if kind else {}),
        }
        return self._ask(
            [], urllib.request.Request(url, content, headers, method=method), failing, _TRIES
        )

    def _bearer(self) -> str:
        if time.monotonic() >= self._until:
            try:
                answer = json.loads(
                    self._metadata("GET", "instance/service-accounts/default/token")
                )
                self._token, lifetime = str(answer["access_token"]), float(answer["expires_in"])
            except (ValueError, KeyError, TypeError):
                raise CloudError("the instance has no token: it needs a service account") from None
            self._until = time.monotonic() + max(0.0, lifetime - 60)
        return self._token

    def _ask(
        self,
        more: list[urllib.request.BaseHandler],
        request: urllib.request.Request,
        failing: str,
        tries: int,
    ) -> bytes:
        for attempt in range(tries):
            call = TimedCall(self.limits)
            opener = urllib.request.build_opener(
                _NoRedirect(), HttpHandler(call), HttpsHandler(call), *more
            )
            try:
                with opener.open(request, timeout=self.limits.whole_s) as answer:
                    content: bytes = answer.read()
                    return content
            except urllib.error.HTTPError as error:
                why, again = f"HTTP {error.code} {_said(error)}".strip(), error.code in _LATER
            except (OSError, ValueError) as error:
                why, again = str(getattr(error, "reason", error)), True
            if not again or attempt + 1 == tries:
                raise CloudError(f"{failing}: {why}"[:500])
            self.sleep(min(16.0, 2.0**attempt))
        raise CloudError(failing)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes nowhere but where it was sent."""

    def redirect_request(self, *_: object) -> None:
        return None


def _said(error: urllib.error.HTTPError) -> str:
    """Return the message of an error in Google's form, else nothing."""
    try:
        told = json.loads(error.read(65536))["error"]["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "".join(character if character.isprintable() else " " for character in str(told))[:300]
