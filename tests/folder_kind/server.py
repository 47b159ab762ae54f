"""The folder service: machines that are folders, with probes that answer by script."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from provision.agent.probe.report_json import canonical_digest, compact
from tests.views import builders


@dataclass
class FolderService:
    """The machines below `root`.

    Attributes:
        verdicts: The verdict of each rank; None for a rank that does not report.
        lost_answers: How many of the next changes are made and not answered.
        changes: What was changed, as "METHOD NAME".
    """

    root: Path
    verdicts: list[str | None] = field(default_factory=lambda: ["verified", "verified"])
    lost_answers: int = 0
    changes: list[str] = field(default_factory=list)
    address: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def names(self) -> list[str]:
        """Return the names of all machines."""
        return sorted(path.name for path in self.root.iterdir())

    def answer(self, method: str, path: str, body: bytes) -> bytes | None:
        """Answer a request; None for what does not exist."""
        path, _, query = path.partition("?")
        with self._lock:
            match method, path.strip("/").split("/"):
                case "GET", ["machines"]:
                    return json.dumps([self._machine(name) for name in self.names()]).encode()
                case "GET", ["machines", name]:
                    machine = self._machine(name)
                    return json.dumps(machine).encode() if machine is not None else None
                case "GET", ["machines", name, "reports", nonce, rank]:
                    report = self.root / name / f"report-{nonce}-{rank}.json"
                    return report.read_bytes() if report.exists() else None
                case _, ["machines", name, *_]:
                    return self._change(method, name, body, query)
        return None

    def _machine(self, name: str) -> dict[str, Any] | None:
        file = self.root / name / "machine.json"
        return {"name": name, **json.loads(file.read_bytes())} if file.exists() else None

    def _change(self, method: str, name: str, body: bytes, query: str) -> bytes | None:
        machine, folder = self._machine(name), self.root / name
        if method == "DELETE":
            if machine is not None and query == f"lineage={machine['lineage']}":
                self.changes.append(f"DELETE {name}")
                shutil.rmtree(folder)
            return b""
        request = json.loads(body)
        if method == "PUT" and machine is not None:
            return b"" if machine["lineage"] == request["lineage"] else None
        if method == "POST" and machine is None:
            return None
        self.changes.append(f"{method} {name}")
        folder.mkdir(exist_ok=True)
        (folder / "machine.json").write_text(json.dumps(request))
        for rank, verdict in enumerate(self.verdicts[: request["ranks"]]):
            if verdict is not None:
                report = json.dumps(_report(request, verdict, rank))
                (folder / f"report-{request['nonce']}-{rank}.json").write_text(report)
        return b""


def _report(request: Mapping[str, Any], verdict: str, rank: int) -> dict[str, Any]:
    """Return the report of a rank, in the form and with the digest of the probe."""
    status = "pass" if verdict == "verified" else "fail"
    document = builders.sample(verdict, [builders.check("H01", "host", "memory", status)])
    document["subject"] |= {
        "nonce": request["nonce"],
        "kind": "folder",
        "target": request["target"],
    }
    document["spec"] = dict(request["expectations"]["spec"])
    document["lock"] = dict(request["expectations"]["lock"])
    document["readings"].append({"key": "rank", "value": rank, "class": "context"})
    digests = document.pop("digests")
    return {**document, "digests": {**digests, "report": canonical_digest(compact(document))}}


@contextmanager
def serve(root: Path) -> Iterator[FolderService]:
    """Serve machines on loopback."""
    root.mkdir(parents=True, exist_ok=True)
    service = FolderService(root)

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            answer = service.answer(self.command, self.path, self.rfile.read(length))
            if self.command != "GET" and service.lost_answers:
                service.lost_answers -= 1
                self.close_connection = True
                return
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
