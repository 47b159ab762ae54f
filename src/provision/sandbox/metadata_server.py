"""The metadata server of an instance, which its programs reach at 169.254.169.254."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import secrets
import socket
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

METADATA_ADDRESS = "169.254.169.254"
METADATA_HOSTS = ("metadata.google.internal", "metadata", "metadata.goog")
_ROOT = "/computeMetadata/v1"
_ATTRIBUTE = re.compile(rf"{_ROOT}/instance/guest-attributes/([A-Za-z0-9_-]+)/([A-Za-z0-9_-]+)")
_LONGEST_WAIT_S = 300.0
_WRITES_A_MINUTE = 10
"""Beyond that values may be lost. Source: Compute Engine documentation, "View guest attributes"."""


class Store(Protocol):
    """The part of the sandbox's store that a device uses."""

    def instance(self, name: str) -> dict[str, Any] | None:
        """Return an instance's body, or None."""

    def set_guest_attribute(self, name: str, namespace: str, key: str, value: str) -> object:
        """Store a guest attribute."""

    def append_serial(self, name: str, text: str) -> None:
        """Append to the serial output."""

    def note(self, name: str, **values: Any) -> None:
        """Store a note on an instance."""


def instance_attributes(store: Store, name: str) -> dict[str, str]:
    """Return the metadata of an instance, with the keys that the service added."""
    value: dict[str, str] = (store.instance(name) or {}).get("gceSetup", {}).get("metadata", {})
    return value


class MetadataResponse(NamedTuple):
    """A response: status, text and content type."""

    status: int
    text: str
    content_type: str = "application/text"


@dataclass
class MetadataServer:
    """Serves the metadata of an instance (full name).

    `own` are attributes that the machine itself adds, such as the list of what is not real.
    """

    store: Store
    name: str
    extra_attributes: Mapping[str, str] = field(default_factory=dict)
    token: str = field(
        default_factory=lambda: f"ya29.sandbox-{secrets.token_urlsafe(24)}", repr=False
    )
    _written: deque[float] = field(default_factory=deque)

    def handle_request(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes = b""
    ) -> MetadataResponse:
        """Return the response to a request.

        The service's header is required, so that a page in a browser cannot send requests.
        """
        parts, given = urlsplit(target), {key.lower(): value for key, value in headers.items()}
        if parts.path == "/" and method == "GET":
            return MetadataResponse(200, "computeMetadata/\n")
        if given.get("metadata-flavor", "") != "Google" or "x-forwarded-for" in given:
            return MetadataResponse(403, "Missing Metadata-Flavor:Google header.\n")
        if method == "PUT":
            return self._put(parts.path, content)
        if method != "GET":
            return MetadataResponse(405, "method not allowed\n")
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        if parts.path.startswith(f"{_ROOT}/instance/service-accounts/") and parts.path.endswith(
            "/token"
        ):
            return self._token()
        if query.get("wait_for_change", "").lower() == "true":
            self._wait(parts.path, query)
        return self._get(parts.path, query)

    def serve_connection(self, connection: socket.socket) -> None:
        """Respond to a connection and close it."""
        try:
            _Handler(connection, self)
        except OSError:
            pass
        finally:
            connection.close()

    def _get(self, path: str, query: Mapping[str, str]) -> MetadataResponse:
        value = self._found(path)
        if value is None:
            return MetadataResponse(404, "The requested URL was not found on this server.\n")
        if not isinstance(value, dict):
            return MetadataResponse(200, str(value))
        if query.get("recursive", "").lower() == "true":
            return MetadataResponse(
                200,
                json.dumps(_camel(value, path.rstrip("/").rpartition("/")[2]), sort_keys=True),
                "application/json",
            )
        if not path.endswith("/"):
            return MetadataResponse(301, "")
        return MetadataResponse(
            200,
            "".join(
                f"{key}{'/' if isinstance(value, dict) else ''}\n"
                for key, value in sorted(value.items())
            ),
        )

    def _found(self, path: str) -> Any:
        value: Any = self._tree()
        for part in (unquote(part) for part in path.removeprefix(_ROOT).split("/") if part):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        return value if path.startswith(_ROOT) else None

    def _tree(self) -> dict[str, Any]:
        body = self.store.instance(self.name) or {}
        _, project, _, zone, _, short = self.name.split("/")
        number = str(int(hashlib.sha256(project.encode()).hexdigest()[:10], 16))
        setup = body.get("gceSetup", {})
        machine_type = setup.get("machineType", "").rpartition("/")[2]
        accounts = setup.get("serviceAccounts") or [{}]
        account = {
            "email": accounts[0].get("email", f"{number}-compute@developer.gserviceaccount.com"),
            "aliases": "default",
            "scopes": _SCOPE,
        }
        return {
            "project": {"project-id": project, "numeric-project-id": number, "attributes": {}},
            "instance": {
                "attributes": {**setup.get("metadata", {}), **self.extra_attributes},
                "hostname": f"{short}.{zone}.c.{project}.internal",
                "id": str(int(hashlib.sha256(self.name.encode()).hexdigest()[:15], 16)),
                "machine-type": f"projects/{number}/machineTypes/{machine_type}",
                "name": short,
                "service-accounts": {"default": account, account["email"]: account},
                "tags": json.dumps(setup.get("tags", [])),
                "zone": f"projects/{number}/zones/{zone}",
            },
        }

    def _wait(self, path: str, query: Mapping[str, str]) -> None:
        limit = query.get("timeout_sec", "")
        deadline = time.monotonic() + min(
            float(limit) if limit.isdecimal() else _LONGEST_WAIT_S, _LONGEST_WAIT_S
        )
        before = query.get("last_etag") or self.etag(path)
        while time.monotonic() < deadline and self.etag(path) == before:
            time.sleep(0.1)

    def etag(self, path: str) -> str:
        """Return a value that changes with the content of a path."""
        return hashlib.sha256(json.dumps(self._found(path), sort_keys=True).encode()).hexdigest()[
            :16
        ]

    def _put(self, path: str, content: bytes) -> MetadataResponse:
        match = _ATTRIBUTE.fullmatch(path)
        if match is None:
            return MetadataResponse(
                404, "guest attributes are NAMESPACE/KEY of letters, digits, _ and -\n"
            )
        if (
            instance_attributes(self.store, self.name).get("enable-guest-attributes", "").lower()
            != "true"
        ):
            return MetadataResponse(403, "Guest attributes endpoint access is disabled.\n")
        now = time.monotonic()
        while self._written and self._written[0] < now - 60:
            self._written.popleft()
        self._written.append(now)
        if len(self._written) > _WRITES_A_MINUTE:
            self.store.append_serial(
                self.name,
                f"SANDBOX: more than {_WRITES_A_MINUTE} guest attributes in a minute: "
                f"{match[2]} was lost\n",
            )
        else:
            self.store.set_guest_attribute(
                self.name, match[1], match[2], content.decode("utf-8", "replace")
            )
        return MetadataResponse(200, "")

    def _token(self) -> MetadataResponse:
        return MetadataResponse(
            200,
            json.dumps({"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}),
            "application/json",
        )


_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class _Handler(http.server.BaseHTTPRequestHandler):
    """The handler of a connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Metadata Server for VM", ""

    def __init__(self, connection: socket.socket, metadata: MetadataServer) -> None:
        self._metadata = metadata
        connection.settimeout(_LONGEST_WAIT_S + 30)
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type]

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "0")
        content = self.rfile.read(min(int(length) if length.isdecimal() else 0, 2**18))
        answer = self._metadata.handle_request(self.command, self.path, dict(self.headers), content)
        body = answer.text.encode()
        self.send_response(answer.status)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", answer.content_type)
        self.send_header("ETag", self._metadata.etag(urlsplit(self.path).path))
        if answer.status == 301:
            path, _, query = self.path.partition("?")
            self.send_header("Location", f"{path}/{'?' if query else ''}{query}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer

    def log_message(self, *_: object) -> None:
        """Print nothing: the serial output belongs to the machine."""


def _camel(value: Any, of: str = "") -> Any:
    """Convert keys to camelCase, as recursive responses have them, except user-defined names."""
    if not isinstance(value, dict):
        return value
    return {
        key if of in _NAMED else re.sub(r"-(.)", lambda match: match[1].upper(), key): _camel(
            inner, key
        )
        for key, inner in value.items()
    }


_NAMED = ("attributes", "service-accounts")
