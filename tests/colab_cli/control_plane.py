"""A stand-in for the service that hands out Colab machines: the addresses that the real command
line calls, on loopback.
"""

from __future__ import annotations

import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

PREFIX = ")]}'\n"


@dataclass
class ControlPlane:
    """What is running, and what was asked. `refuse` is the status that a request for a machine
    gets, `machine` the Jupyter server that every machine is.

    `hold` makes a granted request wait before it is answered; `deaf` makes giving back fail. Not
    `signed_in`: credentials are refused; not `scoped`: they are
    for something else.
    """

    machine: str
    refuse: int = 0
    deaf: bool = False
    hold: threading.Event | None = None
    signed_in: bool = True
    scoped: bool = True
    running: dict[str, dict[str, str]] = field(default_factory=dict)
    granted: list[dict[str, str]] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    address: str = ""
    arrived: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        self.calls.append(f"{method} {path}")
        if path == "/token":
            return (
                (
                    200,
                    {
                        "access_token": "ya29.stand-in-for-an-access-token",
                        "expires_in": 3600,
                        "token_type": "Bearer",
                    },
                )
                if self.signed_in
                else (400, {})
            )
        if not self.scoped:
            return 403, {}
        if path == "/tun/m/ccu-info":
            return 200, {
                "currentBalance": 42.5,
                "consumptionRateHourly": 1.19 * len(self.running),
                "assignmentsCount": len(self.running),
            }
        if path == "/tun/m/assignments":
            return 200, {"assignments": [self._listed(name) for name in self.running]}
        if path == "/tun/m/assign":
            return self._assign(method, query)
        if path.startswith("/tun/m/unassign/"):
            return self._unassign(method, path.rpartition("/")[2])
        return 404, {}

    def _assign(self, method: str, query: dict[str, str]) -> tuple[int, Any]:
        if method == "GET":
            return 200, {
                "acc": query.get("accelerator", "NONE"),
                "nbh": query["nbh"],
                "token": "xsrf-token",
                "variant": query.get("variant", "DEFAULT"),
            }
        self.arrived.set()
        if self.refuse:
            return self.refuse, {"error": "\x1b[31mno"}
        name = f"m-s-{uuid.uuid4().hex[:12]}"
        self.running[name] = query
        self.granted.append(query)
        if self.hold is not None:
            self.hold.wait(30)
        told = self._listed(name)
        return 200, {
            "accelerator": told["accelerator"],
            "endpoint": name,
            "runtimeProxyInfo": told["runtimeProxyInfo"],
            "variant": told["variant"],
        }

    def _unassign(self, method: str, name: str) -> tuple[int, Any]:
        if self.deaf:
            return 500, {}
        if method == "GET":
            return 200, {"token": "xsrf-token"}
        self.returned.append(name)
        return (204, None) if self.running.pop(name, None) is not None else (404, {})

    def _listed(self, name: str) -> dict[str, Any]:
        query = self.running[name]
        info = {"url": self.machine, "token": "runtime-proxy-token", "tokenExpiresInSeconds": 3600}
        variant = {"DEFAULT": 0, "GPU": 1, "TPU": 2}[query.get("variant", "DEFAULT")]
        shape = 1 if query.get("shape") == "hm" else 0
        return {
            "accelerator": query.get("accelerator", "NONE"),
            "endpoint": name,
            "variant": variant,
            "machineShape": shape,
            "runtimeProxyInfo": info,
        }


@contextmanager
def serving(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Serve a control plane on loopback; its `address` is set meanwhile."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            status, body = plane.answer(
                self.command,
                parts.path,
                {key: values[0] for key, values in parse_qs(parts.query).items()},
            )
            content = b"" if body is None else json.dumps(body).encode()
            if content and parts.path != "/token":
                content = PREFIX.encode() + content
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = _answer  # noqa: N815
        do_POST = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plane.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield plane
    finally:
        server.shutdown()
        server.server_close()
