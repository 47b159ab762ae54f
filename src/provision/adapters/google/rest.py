"""REST calls to Google: authorised, bounded, repeated where the failure passes by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from provision.adapters.google import credentials as identity
from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, classify_error
from provision.adapters.google.http_adapter import timeout_adapter
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.retry import RetryPolicy, retry_call
from provision.adapters.google.service_errors import parse_http_error
from provision.agent.core.timed_http import TimedCall
from provision.errors import ExternalError
from provision.sanitize import escape_control, redact

_CONNECT_S = 10.0
_LIMIT = 32 * 2**20
_PAGES = 200


class HttpResponse(NamedTuple):
    """What a service answered: status below 300, headers, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RestClient:
    """Sends requests with `given` credentials; on loopback no proxy of the environment is asked."""

    def __init__(self, given: Any, pace: RetryPolicy, *, loopback: bool) -> None:
        self._credentials = given
        self._pace = pace
        self._adapter = timeout_adapter(pace.call_timeout_s)
        # It never refreshes by itself on an answer: that is counted in one place, for REST and gRPC
        # alike.
        self._session = import_optional("google.auth.transport.requests").AuthorizedSession(
            given, refresh_status_codes=(), auth_request=identity.token_request(pace.call_timeout_s)
        )
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._adapter)
        self._session.trust_env = not loopback

    def request_json(
        self, method: str, url: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> dict[str, Any]:
        """Send a request with a JSON body and return the JSON answer; raises CloudError."""
        content = None if body is None else json.dumps(body).encode()
        answer = self.send(method, url, query, content, "application/json; charset=utf-8")
        try:
            document = json.loads(answer.body or b"{}")
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CloudError(_not_json(url, answer.body))
        return document

    def get_or_none(
        self, url: str, query: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return the JSON of an address, None where there is nothing; raises CloudError."""
        try:
            return self.request_json("GET", url, query)
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def pages(self, url: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Return the pages of a list one by one; raises CloudError."""
        asked = dict(query or {})
        for _ in range(_PAGES):
            page = self.request_json("GET", url, asked)
            yield page
            if not (token := page.get("nextPageToken")):
                return
            asked["pageToken"] = str(token)

    def send(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        kind: str = "",
        *,
        limit: int = _LIMIT,
    ) -> HttpResponse:
        """Send a request, again where its failure passes by itself and always with the same words
        (and so the same requestId). Raises CloudError.
        """
        return retry_call(
            lambda: self._once(method, url, query or {}, body, kind, limit),
            self._pace,
            lambda: identity.refresh_token(self._credentials, self._pace.call_timeout_s),
        )

    def _once(
        self,
        method: str,
        url: str,
        query: Mapping[str, str],
        body: bytes | None,
        kind: str,
        limit: int,
    ) -> HttpResponse:
        requests, exceptions = (
            import_optional("requests"),
            import_optional("google.auth.exceptions"),
        )
        headers = {"Content-Type": kind} if body is not None else {}
        try:
            with self._session.request(
                method,
                url,
                params=dict(query),
                data=body,
                headers=headers,
                timeout=(_CONNECT_S, self._pace.call_timeout_s),
                stream=True,
                allow_redirects=False,
            ) as response:
                content = _read_bounded(
                    response, url, limit if response.status_code < 300 else _LIMIT
                )
                answer = HttpResponse(response.status_code, dict(response.headers), content)
        except exceptions.RefreshError as error:
            raise identity.expired_credentials(error) from error
        except (requests.RequestException, exceptions.TransportError) as error:
            raise CloudError(
                _too_slow(url, self._adapter.call)
                if self._adapter.call.timed_out
                else _unreachable(url, error)
            ) from error
        if answer.status >= 300:
            raise CloudError(
                classify_error(
                    parse_http_error(answer.status, answer.body, response.headers),
                    project_from_name(url),
                )
            )
        return answer


def project_from_name(address: str) -> str:
    """Return the project that an address or a resource name speaks of."""
    found = re.search(r"projects/([a-z0-9:.-]+)", address)
    return found[1] if found else "PROJECT"


def resource_path(name: str) -> str:
    """Return a resource name as the path of an address; raises WorldError where it is none: it
    would lead elsewhere.
    """
    if not re.fullmatch(r"[A-Za-z0-9._:/-]{1,1000}", name) or any(
        part in ("", ".", "..") for part in name.split("/")
    ):
        raise ExternalError(
            f"{escape_control(name)} is no name of a resource",
            why="it holds what no name of Google Cloud holds",
            hint="look at project, zones and the name of the target",
        )
    return name


def _read_bounded(response: Any, url: str, limit: int) -> bytes:
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > limit:
            hint = "look at what lies there: it was not written by us"
            raise CloudError(
                CloudFailure(
                    FailureScope.FATAL,
                    "too-long",
                    f"the answer is longer than {limit} bytes",
                    f"asked of {_url_for_message(url)}",
                    hint,
                )
            )
    return bytes(content)


def _unreachable(url: str, error: Exception) -> CloudFailure:
    host = urlsplit(url).hostname or url
    hint = (
        "look at the network, the proxy (https_proxy, no_proxy) and the certificates "
        "(REQUESTS_CA_BUNDLE) of this machine, then run it again"
    )
    return CloudFailure(
        FailureScope.RETRY,
        "unreachable",
        f"{host} cannot be reached",
        redact(escape_control(str(error)))[:300],
        hint,
        max_retries=None,
    )


def _too_slow(url: str, call: TimedCall) -> CloudFailure:
    hint = (
        "look at the network and the proxy (https_proxy, no_proxy) of this machine, then run "
        "it again"
    )
    return CloudFailure(
        FailureScope.RETRY,
        "unreachable",
        f"{_url_for_message(url)} answers too slowly",
        str(call.make_timeout_error()),
        hint,
        max_retries=None,
    )


def _not_json(url: str, body: bytes) -> CloudFailure:
    why = (
        f"{_url_for_message(url)} answered: {escape_control(body[:200].decode('utf-8', 'replace'))}"
    )
    return CloudFailure(
        FailureScope.FATAL,
        "nonsense",
        "an answer of Google Cloud is no JSON",
        why,
        "look whether a proxy answers in its place",
    )


def _url_for_message(url: str) -> str:
    return escape_control(url.split("?", maxsplit=1)[0])
