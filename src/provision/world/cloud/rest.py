"""REST calls to Google: authorised, bounded, repeated where the failure passes by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from provision.agent.core.timed_http import Call
from provision.errors import WorldError
from provision.safe import redact, safe
from provision.world.cloud import credentials as identity
from provision.world.cloud.extra import need
from provision.world.cloud.failures import CloudError, Failure, Width, classify
from provision.world.cloud.faults import of_http
from provision.world.cloud.pace import Pace, repeated
from provision.world.cloud.timed import timed_adapter

_CONNECT_S = 10.0
_LIMIT = 32 * 2**20
_PAGES = 200


class Answer(NamedTuple):
    """What a service answered: status below 300, headers, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Rest:
    """Sends requests with `given` credentials; on loopback no proxy of the environment is asked."""

    def __init__(self, given: Any, pace: Pace, *, loopback: bool) -> None:
        self._given = given
        self._pace = pace
        self._timed = timed_adapter(pace.answer_s)
        # It never refreshes by itself on an answer: that is counted in one place, for REST and gRPC alike.
        self._session = need("google.auth.transport.requests").AuthorizedSession(given, refresh_status_codes=(), auth_request=identity.sender(pace.answer_s))
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._timed)
        self._session.trust_env = not loopback

    def json(self, method: str, url: str, query: Mapping[str, str] | None = None, body: Any = None) -> dict[str, Any]:
        """Send a request with a JSON body and return the JSON answer; raises CloudError."""
        content = None if body is None else json.dumps(body).encode()
        answer = self.send(method, url, query, content, "application/json; charset=utf-8")
        try:
            document = json.loads(answer.body or b"{}")
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CloudError(_nonsense(url, answer.body))
        return document

    def found(self, url: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """Return the JSON of an address, None where there is nothing; raises CloudError."""
        try:
            return self.json("GET", url, query)
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def pages(self, url: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Return the pages of a list one by one; raises CloudError."""
        asked = dict(query or {})
        for _ in range(_PAGES):
            page = self.json("GET", url, asked)
            yield page
            if not (token := page.get("nextPageToken")):
                return
            asked["pageToken"] = str(token)

    def send(self, method: str, url: str, query: Mapping[str, str] | None = None, body: bytes | None = None, kind: str = "", *, limit: int = _LIMIT) -> Answer:
        """Send a request, again where its failure passes by itself and always with the same words (and so the same requestId). Raises CloudError."""
        return repeated(lambda: self._once(method, url, query or {}, body, kind, limit), self._pace, lambda: identity.refresh(self._given, self._pace.answer_s))

    def _once(self, method: str, url: str, query: Mapping[str, str], body: bytes | None, kind: str, limit: int) -> Answer:
        requests, exceptions = need("requests"), need("google.auth.exceptions")
        headers = {"Content-Type": kind} if body is not None else {}
        try:
            with self._session.request(
                method, url, params=dict(query), data=body, headers=headers, timeout=(_CONNECT_S, self._pace.answer_s), stream=True, allow_redirects=False
            ) as response:
                content = _bounded(response, url, limit if response.status_code < 300 else _LIMIT)
                answer = Answer(response.status_code, dict(response.headers), content)
        except exceptions.RefreshError as error:
            raise identity.stale(error) from error
        except (requests.RequestException, exceptions.TransportError) as error:
            raise CloudError(_too_slow(url, self._timed.call) if self._timed.call.late else _unreachable(url, error)) from error
        if answer.status >= 300:
            raise CloudError(classify(of_http(answer.status, answer.body, response.headers), project_of(url)))
        return answer


def project_of(address: str) -> str:
    """Return the project that an address or a resource name speaks of."""
    found = re.search(r"projects/([a-z0-9:.-]+)", address)
    return found[1] if found else "PROJECT"


def path(name: str) -> str:
    """Return a resource name as the path of an address; raises WorldError where it is none: it would lead elsewhere."""
    if not re.fullmatch(r"[A-Za-z0-9._:/-]{1,1000}", name) or any(part in ("", ".", "..") for part in name.split("/")):
        raise WorldError(
            f"{safe(name)} is no name of a resource",
            why="it holds what no name of Google Cloud holds",
            hint="look at project, zones and the name of the target",
        )
    return name


def _bounded(response: Any, url: str, limit: int) -> bytes:
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > limit:
            hint = "look at what lies there: it was not written by us"
            raise CloudError(Failure(Width.FATAL, "too-long", f"the answer is longer than {limit} bytes", f"asked of {_shown(url)}", hint))
    return bytes(content)


def _unreachable(url: str, error: Exception) -> Failure:
    host = urlsplit(url).hostname or url
    hint = "look at the network, the proxy (https_proxy, no_proxy) and the certificates (REQUESTS_CA_BUNDLE) of this machine, then run it again"
    return Failure(Width.RETRY, "unreachable", f"{host} cannot be reached", redact(safe(str(error)))[:300], hint, repeats=None)


def _too_slow(url: str, call: Call) -> Failure:
    hint = "look at the network and the proxy (https_proxy, no_proxy) of this machine, then run it again"
    return Failure(Width.RETRY, "unreachable", f"{_shown(url)} answers too slowly", str(call.ended()), hint, repeats=None)


def _nonsense(url: str, body: bytes) -> Failure:
    why = f"{_shown(url)} answered: {safe(body[:200].decode('utf-8', 'replace'))}"
    return Failure(Width.FATAL, "nonsense", "an answer of Google Cloud is no JSON", why, "look whether a proxy answers in its place")


def _shown(url: str) -> str:
    return safe(url.split("?", maxsplit=1)[0])
