"""The meeting of the replicas in the bucket: what each of them is, and the wait for the others."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.installed_packages import find_installed_packages
from ..core.nvidia_smi import parse_rows, query_arguments
from ..workbench.cloud import CloudClient
from ..workbench.environment import Environment
from ..workbench.instance import PhaseFailed
from .cluster import ClusterPlace

_CARD_FIELDS = ("name", "driver_version")
_FIRST_POLL_S, _MOST_POLL_S = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class Meeting:
    """The objects of one job in the bucket, as one of its replicas uses them.

    `folder` is a gs:// address with a slash at its end.
    """

    cloud: CloudClient
    folder: str
    nonce: str
    place: ClusterPlace
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def write_report(self, report: dict[str, Any]) -> None:
        """Publish what this replica is. Raises ServiceCallFailed."""
        content = json.dumps({"nonce": self.nonce, **report}, sort_keys=True).encode()
        self.cloud.write_object(self._address(self.place.name, "ready"), content, _JSON)

    def measure_clock(self) -> float | None:
        """Return how far this machine's clock is ahead of Cloud Storage's, in seconds.

        It writes an object, which shows at once whether the bucket can be written. The error is at
        most half of the duration of the call.

        Raises:
            ServiceCallFailed: the object cannot be written.
        """
        before = time.time()
        answer = self.cloud.write_object(self._address(self.place.name, "clock"), b"{}", _JSON)
        after = time.time()
        try:
            # Python 3.10 does not read "Z".
            text = str(answer["timeCreated"]).replace("Z", "+00:00")
            created = datetime.fromisoformat(text)
        except (KeyError, ValueError):
            return None
        return (before + after) / 2 - created.timestamp()

    def await_reports(
        self, limit_s: float, progress: Callable[[str], None]
    ) -> list[dict[str, Any]]:
        """Return the reports of all replicas in the order of their ranks.

        Raises:
            PhaseFailed: a replica failed, or did not come within the limit.
        """
        return self._await("ready", limit_s, progress, "did not start")

    def await_ends(self, limit_s: float, progress: Callable[[str], None]) -> list[dict[str, Any]]:
        """Return the last status of all replicas in the order of their ranks.

        Raises:
            PhaseFailed: a replica failed, or did not finish within the limit.
        """
        return self._await("status", limit_s, progress, "did not finish", state="done")

    def read_own_status(self) -> dict[str, Any]:
        """Return the last status of this replica, that of an earlier start; {} without one."""
        return self._read(self.place.name, "status") or {}

    def await_chief(self, limit_s: float) -> None:
        """Wait until the chief has ended, at most for the limit."""
        deadline = self.clock() + limit_s
        while self.clock() < deadline:
            status = self._read(self.place.names[0], "status") or {}
            if status.get("s") in ("done", "error"):
                return
            self.sleep(_FIRST_POLL_S)

    def write_index(self, ends: list[dict[str, Any]]) -> None:
        """List the reports of all replicas with their digests: the chief's last object."""
        rows = [
            {"name": name, "verdict": end.get("v"), "sha256": end.get("sha256")}
            for name, end in zip(self.place.names, ends, strict=True)
        ]
        content = json.dumps({"nonce": self.nonce, "replicas": rows}, sort_keys=True).encode()
        self.cloud.write_object(f"{self.folder}index.json", content, _JSON)

    def _await(
        self,
        kind: str,
        limit_s: float,
        progress: Callable[[str], None],
        failure: str,
        state: str = "",
    ) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        deadline, pause, shown = self.clock() + limit_s, _FIRST_POLL_S, 0
        while True:
            for name in self.place.names:
                document = self._read(name, kind) if name not in found else None
                if document is not None and document.get("s", "") in ("", state):
                    found[name] = document
            if len(found) == len(self.place.names):
                return [found[name] for name in self.place.names]
            missing = [name for name in self.place.names if name not in found]
            self._raise_failed(missing)
            if self.clock() >= deadline:
                raise PhaseFailed(f"{', '.join(missing)} {failure} within {limit_s:.0f} s")
            if len(found) != shown:
                shown = len(found)
                progress(f"{shown} of {len(self.place.names)} replicas; missing: {missing[0]}")
            self.sleep(pause)
            pause = min(pause * 1.3, _MOST_POLL_S)

    def _raise_failed(self, missing: list[str]) -> None:
        for name in missing:
            status = self._read(name, "status") or {}
            if name != self.place.name and status.get("s") == "error":
                raise PhaseFailed(f"the replica {name} failed: {status.get('e', '')}")

    def _read(self, name: str, kind: str) -> dict[str, Any] | None:
        content = self.cloud.find_object(self._address(name, kind))
        try:
            document = json.loads(content or b"null")
        except ValueError:
            return None
        if not isinstance(document, dict):
            return None
        is_ours = self.nonce in (document.get("nonce"), document.get("n"))
        return document if is_ours else None

    def _address(self, name: str, kind: str) -> str:
        return f"{self.folder}{name}/{kind}.json"


_JSON = "application/json"


def describe_replica(
    environment: Environment, place: ClusterPlace, clock_offset_s: float | None
) -> dict[str, Any]:
    """Return what a replica is: what has one value in the whole job, its clock and its /dev/shm."""
    document, instance = environment.document, environment.instance
    cards: list[dict[str, str]] = []
    if document.gpu is not None:
        query = ["nvidia-smi", *query_arguments(_CARD_FIELDS)]
        answer = instance.run(query, 60, root=True)
        cards = list(parse_rows(answer.stdout, _CARD_FIELDS)) if answer.code == 0 else []
    packages = sorted(
        f"{package.name}=={package.version}"
        for package in find_installed_packages(environment.package_folders).values()
    )
    version = instance.run([environment.python, "-I", "-S", "-c", _VERSION], 60)
    try:
        shm = os.statvfs("/dev/shm")
        shm_bytes: int | None = shm.f_frsize * shm.f_blocks
    except OSError:
        shm_bytes = None
    return {
        "name": place.name,
        "environment": document.digest,
        "packages": hashlib.sha256("\n".join(packages).encode()).hexdigest(),
        "python": version.stdout,
        "architecture": platform.machine(),
        "driver": sorted({card["driver_version"] for card in cards}),
        "gpus": [card["name"] for card in cards],
        "shm_bytes": shm_bytes,
        "clock_offset_s": clock_offset_s,
    }


_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
