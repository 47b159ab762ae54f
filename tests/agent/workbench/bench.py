"""A stand-in of what an instance talks to: a store as the sandbox has it, Cloud Storage and Secret
Manager on loopback, and an index of small wheels.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from provision.agent.probe.report_json import expand
from provision.assets import find_asset
from provision.verification.device_files import installer_zipapp, probe_zipapp, workbench_zipapp
from tests.rig import MINOR, make_index, make_wheel, served
from tests.support import with_bytecode

NAME = "projects/my-project/locations/us-central1-a/instances/provision-spec-workbench"
BUCKET = "gs://my-bucket/provision/provision-spec-workbench"
CANARY = "canary-value-5f8e2c1d0a"
DIGEST = "ab" * 32
ENVIRONMENT = f".provision/envs/{DIGEST[:12]}"

CUT = 0
"""An answer that ends before its announced length."""


class Faults:
    """The faults of one boot."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def has(self, name: str) -> bool:
        return name in self.names


@dataclass
class Store:
    """What a machine needs of the sandbox's store, kept in memory."""

    body: dict[str, Any] | None = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    guest: dict[str, str] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    serial: str = ""
    notes: dict[str, Any] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)

    def instance(self, name: str) -> dict[str, Any] | None:
        if self.body is None:
            return None
        return {
            "name": name,
            **self.body,
            "gceSetup": {**self.body.get("gceSetup", {}), "metadata": dict(self.attributes)},
        }

    def set_guest_attribute(self, name: str, namespace: str, key: str, value: str) -> None:
        self.guest[f"{namespace}/{key}"] = value
        self.history.append((f"{namespace}/{key}", value))

    def append_serial(self, name: str, text: str) -> None:
        self.serial += text

    def object(self, bucket: str, name: str) -> SimpleNamespace | None:
        content = self.objects.get(f"gs://{bucket}/{name}")
        return None if content is None else SimpleNamespace(content=content)

    def put_object(self, bucket: str, name: str, content: bytes, content_type: str) -> None:
        self.objects[f"gs://{bucket}/{name}"] = content

    def note(self, name: str, **values: Any) -> None:
        self.notes.update(values)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.guest.get("provision/status", "{}"))
        return found

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.guest.get("provision/result", "{}"))
        return found


@dataclass
class Cloud:
    """Objects and secrets, served; `asked` are the requests as METHOD path, `bodies` what was sent,
    `bearers` the tokens that came with them.

    `trouble` is what happens to the first requests for a path: a status, or CUT, which ends the
    connection in the middle of the answer.
    """

    folder: Path
    store: Store = field(default_factory=Store)
    objects: dict[str, bytes] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    trouble: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    bearers: set[str] = field(default_factory=set)
    token: str = "test-token-0123456789"
    address: str = ""
    index: str = ""
    wheels: dict[str, Path] = field(default_factory=dict)

    def __enter__(self) -> Cloud:
        self.store.objects = self.objects
        made = [
            make_wheel(self.folder / "wheels", name, version)
            for name, version in (("alpha", "1.0"), ("beta", "1.0"), ("ipykernel", "6.0"))
        ]
        self.wheels = {path.name.split("-")[0]: path for path in made}
        make_index(self.folder / "index", tuple(made))
        self._serving = served(self.folder / "index")
        self.index = self._serving.__enter__()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._serving.__exit__(None, None, None)

    @property
    def endpoints(self) -> dict[str, str]:
        return {
            "storage": self.address,
            "secrets": self.address,
            "compute": self.address,
            "metadata": "",
        }

    def text(self, address: str) -> str:
        return self.objects[address].decode()

    def report(self, nonce: str) -> dict[str, Any]:
        found: dict[str, Any] = expand(json.loads(self.objects[f"{BUCKET}/{nonce}/report.json"]))
        return found

    def document(self, nonce: str, *names: str, **changes: Any) -> dict[str, Any]:
        """The document of a run that makes an environment of these packages of the index."""
        packages = [
            {
                "name": name,
                "version": self.wheels[name].name.split("-")[1],
                "index": "pypi",
                "files": _hashed(self.wheels[name]),
            }
            for name in names
        ]
        install = {
            "schema": "provision.install/1",
            "mode": "own",
            "python_version": MINOR,
            "packages": packages,
            "indexes": {"pypi": self.index},
        }
        base: dict[str, Any] = {
            "schema": "provision.agent.workbench/1",
            "nonce": nonce,
            "digest": f"sha256:{DIGEST}",
            "python": MINOR,
            "uv": None,
            "install": install,
            "expectations": _expectations(packages, changes),
            "system_packages": [],
            "env": {"TOKENIZERS_PARALLELISM": "false"},
            "paths": {},
            "secrets": {},
            "gpu": None,
            "kernel": None,
            "simulated": [],
            "fetch": {
                name: self.keep(f"{BUCKET}/{name}.pyz", with_bytecode(make()))
                for name, make in (
                    ("device", workbench_zipapp),
                    ("installer", installer_zipapp),
                    ("probe", probe_zipapp),
                )
            },
            "report": {
                part: f"{BUCKET}/{nonce}/{part}.{'txt' if part == 'log' else 'json'}"
                for part in ("report", "log", "status")
            },
        }
        return {**base, **changes}

    def keep(self, address: str, content: bytes) -> dict[str, str]:
        self.objects[address] = content
        return {"uri": address, "sha256": hashlib.sha256(content).hexdigest()}

    def announce(self, document: Mapping[str, Any], **more: str) -> None:
        """Upload the program and a document, and say so in the instance's metadata."""
        nonce = document["nonce"]
        self.objects[f"{BUCKET}/program.sh"] = find_asset(
            "templates/workbench-startup.sh"
        ).read_bytes()
        kept = self.keep(f"{BUCKET}/{nonce}/document.json", json.dumps(document).encode())
        self.store.attributes = {
            "provision-run": json.dumps(
                {"nonce": nonce, "digest": f"sha256:{kept['sha256']}", "document": kept["uri"]}
            ),
            "post-startup-script": f"{BUCKET}/program.sh",
            "post-startup-script-behavior": "download_and_run_every_start",
            "enable-guest-attributes": "true",
            **more,
        }

    def everything(self) -> bytes:
        """All that came here by any way: objects, requests, guest attributes, serial output."""
        return b"".join(
            [
                *self.objects.values(),
                *self.bodies,
                *(part.encode() for part in self.asked),
                repr(self.store.history).encode(),
                self.store.serial.encode(),
            ]
        )


def _hashed(path: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}


def _expectations(packages: list[dict[str, Any]], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schema": "provision.expectations/1",
        "tool": {"name": "provision", "version": "0.1.0"},
        "spec": {"name": "spec", "digest": "sha256:spec"},
        "lock": {"digest": "sha256:lock", "environment_digest": f"sha256:{DIGEST}"},
        "target": {"name": "workbench", "kind": "workbench"},
        "tier": "quick",
        "timeout_s": 300,
        "nonce": "to-be-replaced",
        "python": {"version": MINOR, "prefix": "/elsewhere"},
        "platform": "linux-x86_64",
        "flavour": None,
        "glibc_min": None,
        "packages": [{"name": one["name"], "version": one["version"]} for one in packages],
        "direct": [one["name"] for one in packages],
        "gpu": {"type": None, "count": 0},
        "requires": dict.fromkeys(
            ("ram_bytes", "disk_bytes", "shm_bytes", "vram_bytes", "driver", "compute_capability")
        ),
        "paths": changes.get("paths", {}),
        "env": changes.get("env", {"TOKENIZERS_PARALLELISM": "false"}),
        "secrets": sorted(changes.get("secrets", {})),
        "training": {
            "framework": "none",
            "precision": "fp32",
            "dataloader_workers": 0,
            "gradient_checkpointing": False,
            "optimizer": "adamw_torch",
            "arguments": {},
        },
    }


def _handler(cloud: Cloud) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            cloud.asked.append(f"{self.command} {self.path}")
            cloud.bodies.append(body)
            cloud.bearers.add(self.headers.get("Authorization", ""))
            status, content = _served(
                cloud,
                self.command,
                parts.path,
                {key: values[0] for key, values in parse_qs(parts.query).items()},
                body,
            )
            self.send_response(200 if status == CUT else status)
            self.send_header("Content-Length", str(len(content) + (status == CUT)))
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True

        do_GET = do_POST = do_PUT = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    return Handler


def _served(
    cloud: Cloud, method: str, path: str, query: Mapping[str, str], body: bytes
) -> tuple[int, bytes]:
    for part, left in cloud.trouble.items():
        if part in unquote(path) and left:
            return left.pop(0), b"{}"
    for part, status in cloud.refused.items():
        if part in unquote(path) or part in query.get("name", ""):
            return status, json.dumps({"error": {"message": "refused by the test"}}).encode()
    if path.startswith("/computeMetadata/"):
        return _metadata(cloud, method, path, body)
    if found := re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", path):
        cloud.objects[f"gs://{found[1]}/{query['name']}"] = body
        return 200, b"{}"
    if found := re.fullmatch(r"/storage/v1/b/([^/]+)/o/([^/]+)", path):
        content = cloud.objects.get(f"gs://{found[1]}/{unquote(found[2])}")
        return (404, b"{}") if content is None else (200, content)
    if found := re.fullmatch(r"/v1/(projects/.*):access", path):
        value = cloud.secrets.get(found[1])
        return (
            (404, b"{}")
            if value is None
            else (
                200,
                json.dumps(
                    {"payload": {"data": base64.b64encode(value.encode()).decode()}}
                ).encode(),
            )
        )
    return 404, b"{}"


def _metadata(cloud: Cloud, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """A metadata server in few words, for tests of what asks it; that of the sandbox has tests of
    its own.
    """
    if path.endswith("/token"):
        return 200, json.dumps(
            {"access_token": cloud.token, "expires_in": 3599, "token_type": "Bearer"}
        ).encode()
    if method == "PUT":
        cloud.store.set_guest_attribute(NAME, *path.split("/")[-2:], body.decode())
        return 200, b""
    value = cloud.store.attributes.get(path.rpartition("/")[2])
    return (404, b"") if value is None else (200, value.encode())
