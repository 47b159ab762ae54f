"""The effects on the folder service, and the client that performs them and reads from it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from provision.adapters import files
from provision.adapters.services import Services
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError, NetworkError

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class FolderEffect(ServiceEffect):
    """A change at the service with this address."""

    service: ClassVar[str] = "tests.folder_kind.adapter:perform"

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class CreateMachine(FolderEffect):
    """Create a machine and start its first run; one of the same lineage stays as it is."""

    is_billable: ClassVar[bool] = True

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartRun(FolderEffect):
    """Make the environment anew if its digest differs, and run the probe."""

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FetchReport(FolderEffect):
    """Wait for the report of a rank, and write it to `report`."""

    nonce: str
    rank: int
    report: Path
    timeout_s: float


@dataclass(frozen=True, slots=True)
class DeleteMachine(FolderEffect):
    """Delete a machine; one of another lineage is left alone."""

    lineage: str


class ReportMissing(ExternalError):
    """A rank has not reported."""

    exit_code = 3


class FolderClient:
    """Speaks HTTP with the service at an address."""

    def __init__(self, address: str) -> None:
        self.address = address

    def machines(self) -> tuple[Mapping[str, Any], ...]:
        """Return all machines."""
        return tuple(json.loads(self._call("GET", "/machines") or b"[]"))

    def machine(self, name: str) -> Mapping[str, Any] | None:
        """Return a machine, None if there is none with this name."""
        content = self._call("GET", f"/machines/{name}")
        return json.loads(content) if content is not None else None

    def report(self, name: str, nonce: str, rank: int) -> bytes | None:
        """Return the report of a rank, None if it has not reported."""
        return self._call("GET", f"/machines/{name}/reports/{nonce}/{rank}")

    def change(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Change something; a machine that does not exist is an error of the service."""
        if self._call(method, path, body) is None:
            raise ExternalError(f"{self.address} has no {path}")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes | None:
        content = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address + path, content, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise ExternalError(f"{self.address} refused {method} {path}: {error.code}") from None
        except OSError as error:
            raise NetworkError(f"{self.address} did not answer", why=str(error)) from None


def perform(effect: ServiceEffect, services: Services, progress: ProgressCallback) -> None:
    """Perform one effect. May block until a report comes."""
    assert isinstance(effect, FolderEffect)
    client, path = FolderClient(effect.address), f"/machines/{effect.name}"
    match effect:
        case CreateMachine():
            client.change("PUT", path, effect.body)
        case StartRun():
            client.change("POST", f"{path}/runs", effect.body)
        case FetchReport():
            deadline = time.monotonic() + effect.timeout_s
            while (content := client.report(effect.name, effect.nonce, effect.rank)) is None:
                if time.monotonic() > deadline:
                    raise ReportMissing(f"rank {effect.rank} of {effect.name} has not reported")
                time.sleep(_POLL_S)
            files.write(effect.report, content, 0o600)
        case DeleteMachine():
            client.change("DELETE", f"{path}?lineage={effect.lineage}")
        case _:
            raise AssertionError(effect)
