"""The metadata server of an instance, which its programs reach at 169.254.169.254."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from provision.sandbox.store import Store

METADATA_ADDRESS = "169.254.169.254"
METADATA_HOSTS = ("metadata.google.internal", "metadata", "metadata.goog")
_ROOT = "/computeMetadata/v1"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_USER_NAMED = ("attributes", "service-accounts")
_ATTRIBUTE = re.compile(rf"{_ROOT}/instance/guest-attributes/([A-Za-z0-9_-]+)/([A-Za-z0-9_-]+)")
_LONGEST_WAIT_S = 300.0
_WRITES_A_MINUTE = 10
"""Beyond that values may be lost. Source: Compute Engine documentation, "View guest attributes"."""


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
    _write_times: list[float] = field(default_factory=list)

    def handle_request(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes = b""
    ) -> MetadataResponse:
        """Return the response to a request.

        The service's header is required, so that a page in a browser cannot send requests.
        """
        parts, fields = urlsplit(target), {key.lower(): value for key, value in headers.items()}
        if parts.path == "/" and method == "GET":
            return MetadataResponse(200, "computeMetadata/\n")
        if fields.get("metadata-flavor", "") != "Google" or "x-forwarded-for" in fields:
            return MetadataResponse(403, "Missing Metadata-Flavor:Google header.\n")
        if method == "PUT":
            return self._put(parts.path, content)
        if method != "GET":
            return MetadataResponse(405, "method not allowed\n")
        if re.fullmatch(rf"{_ROOT}/instance/service-accounts/.*/token", parts.path):
            token = {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}
            return MetadataResponse(200, json.dumps(token), "application/json")
        query = dict(parse_qsl(parts.query))
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
        value = self._value_at(path)
        if value is None:
            return MetadataResponse(404, "The requested URL was not found on this server.\n")
        if not isinstance(value, dict):
            return MetadataResponse(200, str(value))
        if query.get("recursive", "").lower() == "true":
            tree = _to_camel_case(value, path.rstrip("/").rpartition("/")[2])
            return MetadataResponse(200, json.dumps(tree, sort_keys=True), "application/json")
        if not path.endswith("/"):
            return MetadataResponse(301, "")
        lines = (
            f"{key}/\n" if isinstance(inner, dict) else f"{key}\n"
            for key, inner in sorted(value.items())
        )
        return MetadataResponse(200, "".join(lines))

    def _value_at(self, path: str) -> Any:
        if not path.startswith(_ROOT):
            return None
        value: Any = self._tree()
        for part in path.removeprefix(_ROOT).split("/"):
            if part:
                value = value.get(unquote(part)) if isinstance(value, dict) else None
        return value

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
        wait_s = min(float(limit), _LONGEST_WAIT_S) if limit.isdecimal() else _LONGEST_WAIT_S
        deadline = time.monotonic() + wait_s
        before = query.get("last_etag") or self.etag(path)
        while time.monotonic() < deadline and self.etag(path) == before:
            time.sleep(0.1)

    def etag(self, path: str) -> str:
        """Return a value that changes with the content of a path."""
        content = json.dumps(self._value_at(path), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _put(self, path: str, content: bytes) -> MetadataResponse:
        match = _ATTRIBUTE.fullmatch(path)
        if match is None:
            return MetadataResponse(
                404, "guest attributes are NAMESPACE/KEY of letters, digits, _ and -\n"
            )
        attributes = instance_attributes(self.store, self.name)
        if attributes.get("enable-guest-attributes", "").lower() != "true":
            return MetadataResponse(403, "Guest attributes endpoint access is disabled.\n")
        now, (namespace, key) = time.monotonic(), match.groups()
        self._write_times = [moment for moment in self._write_times if moment >= now - 60] + [now]
        if len(self._write_times) > _WRITES_A_MINUTE:
            self.store.append_serial(
                self.name,
                f"SANDBOX: more than {_WRITES_A_MINUTE} guest attributes in one "
                f"minute: {key} was dropped\n",
            )
        else:
            text = content.decode("utf-8", "replace")
            self.store.set_guest_attribute(self.name, namespace, key, text)
        return MetadataResponse(200, "")


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


def _to_camel_case(value: Any, parent: str = "") -> Any:
    """Convert keys to camelCase, as recursive responses have them, except user-defined names."""
    if not isinstance(value, dict):
        return value
    converted = {}
    for key, inner in value.items():
        name = re.sub(r"-(.)", lambda match: match[1].upper(), key)
        converted[key if parent in _USER_NAMED else name] = _to_camel_case(inner, key)
    return converted
