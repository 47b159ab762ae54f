"""REST calls to Google: authorized, bounded in size and time, repeated if that may help."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from provision.adapters import files
from provision.adapters.diagnostic_log import log
from provision.adapters.google import credentials as identity
from provision.adapters.google.errors import (
    CloudError,
    CloudFailure,
    FailureScope,
    classify_error,
    fatal_error,
    none_if_missing,
)
from provision.adapters.google.http_adapter import timeout_adapter
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.retry import RetryPolicy, retry_call
from provision.adapters.google.service_errors import parse_http_error
from provision.agent.core.timed_http import TimedCall
from provision.errors import ExternalError
from provision.sanitize import escape_control, redact

RestResource = Mapping[str, Any]
"""A resource or operation as the REST APIs have it: camelCase, enums as names, int64 as text."""
_CONNECT_S = 10.0
_MAX_BYTES = 32 * 2**20
_MAX_PAGES = 200


class HttpResponse(NamedTuple):
    """The response of a service: status below 300, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RestClient:
    """Sends authorized requests; on loopback it uses no proxy of the environment."""

    def __init__(self, credentials: Any, policy: RetryPolicy, *, loopback: bool) -> None:
        self.credentials = credentials
        self._policy = policy
        self._adapter = timeout_adapter(policy.call_timeout_s)
        # It never refreshes a token by itself: that is done in one place, for REST and gRPC alike.
        self._session = import_optional("google.auth.transport.requests").AuthorizedSession(
            credentials,
            refresh_status_codes=(),
            auth_request=identity.token_request(policy.call_timeout_s),
        )
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, self._adapter)
        self._session.trust_env = not loopback

    def add_credentials(self, url: str, headers: dict[str, str]) -> None:
        """Add the user's access token to the headers of a request that is sent elsewhere.

        Raises:
            CloudError: the credentials have expired.
        """
        try:
            request = identity.token_request(self._policy.call_timeout_s)
            self.credentials.before_request(request, "GET", url, headers)
        except import_optional("google.auth.exceptions").GoogleAuthError as error:
            raise identity.expired_credentials(error) from error

    def request_json(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        once: bool = False,
    ) -> dict[str, Any]:
        """Send a request with a JSON body and return the JSON object; raises CloudError.

        `once` is for a request that the service would perform again if it were repeated.
        """
        content = None if body is None else json.dumps(body).encode()
        kind = "application/json; charset=utf-8"
        response = self.send(method, url, query, content, kind, once=once)
        try:
            document = json.loads(response.body or b"{}")
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            text = escape_control(response.body[:200].decode("utf-8", "replace"))
            raise fatal_error(
                "nonsense",
                "Google Cloud's response is not JSON",
                f"{_without_query(url)} returned: {text}",
                "check whether a proxy responds in place of Google Cloud",
            )
        return document

    def get_or_none(
        self, url: str, query: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return the JSON object at an address, None if it does not exist; raises CloudError."""
        return none_if_missing(lambda: self.request_json("GET", url, query))

    def pages(self, url: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the pages of a list; raises CloudError."""
        page_query = dict(query or {})
        for _ in range(_MAX_PAGES):
            page = self.request_json("GET", url, page_query)
            yield page
            if not (token := page.get("nextPageToken")):
                return
            page_query["pageToken"] = str(token)

    def send(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "",
        *,
        limit: int = _MAX_BYTES,
        once: bool = False,
    ) -> HttpResponse:
        """Send a request, repeatedly while its failure is temporary. May block for minutes.

        A repeated request is the same in every byte, and so in its requestId.

        Raises:
            CloudError: the service refused, cannot be reached, or sent more than `limit` bytes.
        """
        request = {
            "params": dict(query or {}),
            "data": body,
            "headers": {"Content-Type": content_type} if body is not None else {},
        }
        return retry_call(
            lambda: self._send_once(method, url, request, limit),
            replace(self._policy, retry_limit_s=0.0) if once else self._policy,
            lambda: identity.refresh_token(self.credentials, self._policy.call_timeout_s),
        )

    def _send_once(
        self, method: str, url: str, request: Mapping[str, Any], limit: int
    ) -> HttpResponse:
        requests = import_optional("requests")
        exceptions = import_optional("google.auth.exceptions")
        start, status = monotonic(), "no response"
        try:
            with self._session.request(
                method,
                url,
                timeout=(_CONNECT_S, self._policy.call_timeout_s),
                stream=True,
                allow_redirects=False,
                **request,
            ) as response:
                status = str(response.status_code)
                content = _read_bounded(
                    response, url, limit if response.status_code < 300 else _MAX_BYTES
                )
        except exceptions.RefreshError as error:
            raise identity.expired_credentials(error) from error
        except (requests.RequestException, exceptions.TransportError) as error:
            raise _unreachable_error(url, error, self._adapter.call) from error
        finally:
            seconds = monotonic() - start
            log.info("%s %s: %s in %.2f s", method, _without_query(url), status, seconds)
        if response.status_code >= 300:
            refusal = parse_http_error(response.status_code, content, response.headers)
            raise CloudError(classify_error(refusal, project_from_name(url)))
        return HttpResponse(response.status_code, dict(response.headers), content)


def project_from_name(address: str) -> str:
    """Return the project in an address or resource name, else "PROJECT"."""
    match = re.search(r"projects/([a-z0-9:.-]+)", address)
    return match[1] if match else "PROJECT"


def resource_path(name: str) -> str:
    """Return a resource name as the path of a URL.

    Raises:
        ExternalError: it is not a resource name, and its URL would lead elsewhere.
    """
    if not re.fullmatch(r"[A-Za-z0-9._:/-]{1,1000}", name) or any(
        part in ("", ".", "..") for part in name.split("/")
    ):
        raise ExternalError(
            f"{escape_control(name)} is not a valid resource name",
            why="it contains characters or path segments that Google Cloud does not allow",
            hint="check the project, the zones and the target's name",
        )
    return name


def _read_bounded(response: Any, url: str, limit: int) -> bytes:
    content = bytearray()
    for part in response.iter_content(2**16):
        content += part
        if len(content) > limit:
            raise fatal_error(
                "too-long",
                f"the response is larger than {files.format_limit(limit)}",
                f"requested from {_without_query(url)}",
                "check the contents of this address: provision did not write it",
            )
    return bytes(content)


def _unreachable_error(url: str, error: Exception, call: TimedCall) -> CloudError:
    what = f"{urlsplit(url).hostname or url} cannot be reached"
    why = redact(escape_control(str(error)))[:300]
    hint = (
        "check this machine's network, proxy (https_proxy, no_proxy) and certificates "
        "(REQUESTS_CA_BUNDLE), then run the command again"
    )
    if call.timed_out:
        what = f"{_without_query(url)} responds too slowly"
        why = str(call.make_timeout_error())
        hint = (
            "check this machine's network and proxy (https_proxy, no_proxy), then run the "
            "command again"
        )
    failure = CloudFailure(FailureScope.RETRY, "unreachable", what, why, hint, max_retries=None)
    return CloudError(failure)


def _without_query(url: str) -> str:
    return escape_control(url.split("?", maxsplit=1)[0])
