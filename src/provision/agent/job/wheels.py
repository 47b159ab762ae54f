"""Wheels in the bucket: every replica installs from them, the primary one adds those missing."""

from __future__ import annotations

import os
import re
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..core.agent_config import LockedUv
from ..core.own_wheels import write_page
from ..workbench.cloud import CloudClient, ServiceCallFailed, WrongContent
from ..workbench.package_index import DownloadFailed, download_file, find_default_index
from ..workbench.uv_download import install_program
from .document import WheelFile, WheelFolder

_INDEX = "bucket.wheels"
"""The index of fetched wheels in a request of the installer; no index of a spec has a dot."""
_PYPI = "pypi"
_NOT_ADDED = (
    "wheels are not added to the bucket (grant the job's service account "
    "roles/storage.objectUser on it)"
)
_TRANSFERS = 8
"""Wheels that are transferred at a time. Our choice."""


class _FetchedWheel(NamedTuple):
    """A wheel of a package, and where it came from: "bucket", "index", or "" if it is not here.

    `reason` is why it is not here, `problem` what is wrong with the bucket.
    """

    package: str
    file: WheelFile
    origin: str
    reason: str = ""
    problem: str = ""


@dataclass
class BucketWheels:
    """The folder of wheels of a job, as one of its replicas uses it.

    Attributes:
        fills: This replica adds what is missing; otherwise the installer fetches it.
        work: An empty folder for the files.
        log: Receives lines for the log.
        warn: Receives lines for the user.
        glibc: The machine's version; None without glibc.
    """

    cloud: CloudClient
    wheels: WheelFolder
    fills: bool
    work: Path
    log: Callable[[str], None]
    warn: Callable[[str], None]
    glibc: tuple[int, ...] | None
    _cannot_read: bool = False
    _cannot_write: bool = False
    _is_offline: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bind(self, install: dict[str, Any]) -> dict[str, Any]:
        """Return a request of the installer that takes what is in the bucket from there.

        Packages without a wheel there keep their index. May block for minutes.
        """
        addresses = install.get("indexes", {})
        known = {_PYPI: find_default_index(), **addresses}
        chosen = [
            (package["name"], file, known.get(package.get("index") or _PYPI, ""))
            for package in install["packages"]
            if (file := self._choose(self.wheels.packages.get(package["name"], ())))
        ]
        with ThreadPoolExecutor(_TRANSFERS) as pool:
            fetched = list(pool.map(lambda each: self._fetch(*each), chosen))
        self._report_counts(fetched)
        self._report(fetched)
        here = {wheel.package for wheel in fetched if wheel.origin}
        if not here:
            return install
        packages = [
            {**package, "index": _INDEX} if package["name"] in here else package
            for package in install["packages"]
        ]
        indexes = {**addresses, _INDEX: self.work.as_uri()}
        return {**install, "packages": packages, "indexes": indexes}

    def install_uv(self, uv: LockedUv, folder: Path, index: str) -> None:
        """Install the locked uv into a folder, as far as its wheel can be fetched."""
        file = self._choose(self.wheels.uv)
        if file is None:
            return
        fetched = self._fetch("uv", file, index)
        self._report([fetched])
        if fetched.origin:
            try:
                content = self._path("uv", file).read_bytes()
                install_program(content, "uv", uv.version, folder)
            except (DownloadFailed, OSError, zipfile.BadZipFile) as error:
                self.log(f"cannot install {file.name}: {error}")

    def _choose(self, files: Sequence[WheelFile]) -> WheelFile | None:
        """Return the first file that runs on this machine."""
        for file in files:
            if file.name.endswith("-any.whl"):
                return file
            if self.glibc is not None and (file.glibc is None or file.glibc <= self.glibc):
                return file
        return None

    def _path(self, package: str, file: WheelFile) -> Path:
        return self.work / package / file.name

    def _fetch(self, package: str, file: WheelFile, index: str) -> _FetchedWheel:
        """Fetch a wheel from the bucket, or from the index to add it to the bucket."""
        if self._cannot_read:
            return _FetchedWheel(package, file, "")
        path, address = self._path(package, file), self.wheels.locate(file)
        origin = "bucket"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self.cloud.fetch_file(address, file.sha256, path):
                if self._is_offline or not self.fills:
                    return _FetchedWheel(package, file, "")
                download_file(index, package, file.name, file.sha256, path)
                origin = "index"
            write_page(path.parent, file.name, file.sha256)
        except WrongContent:
            problem = (
                f"{address} does not have the locked sha256; the index is used instead; delete the "
                "object, and check who can write to the bucket"
            )
            return _FetchedWheel(package, file, "", problem=problem)
        except ServiceCallFailed as error:
            with self._lock:  # only the first of the threads reports it
                is_first, self._cannot_read = not self._cannot_read, True
            problem = f"wheels are not taken from the bucket: {error}" if is_first else ""
            return _FetchedWheel(package, file, "", problem=problem)
        except (DownloadFailed, OSError, ValueError) as error:
            # Each of many wheels would wait for an index that cannot be reached.
            self._is_offline = self._is_offline or isinstance(error, OSError)
            reason = f"{file.name} is not added to the bucket: {error}"
            return _FetchedWheel(package, file, "", reason)
        problem = self._add(address, path) if origin == "index" else ""
        return _FetchedWheel(package, file, origin, problem=problem)

    def _add(self, address: str, path: Path) -> str:
        """Add a wheel to the bucket; return why that is impossible."""
        if self._cannot_write:
            return ""
        try:
            self.cloud.add_file(address, path)
        except ServiceCallFailed as error:
            with self._lock:
                is_first, self._cannot_write = not self._cannot_write, True
            return f"{_NOT_ADDED}: {error}" if is_first else ""
        return ""

    def _report(self, fetched: Sequence[_FetchedWheel]) -> None:
        for wheel in fetched:
            if wheel.reason:
                self.log(wheel.reason)
            if wheel.problem:
                self.warn(wheel.problem)

    def _report_counts(self, fetched: Sequence[_FetchedWheel]) -> None:
        counts = Counter(wheel.origin for wheel in fetched)
        parts = {
            "bucket": "from the bucket",
            "index": "from the index" if self._cannot_write else "added to the bucket",
            "": "left to uv",
        }
        shown = [f"{counts[origin]} {text}" for origin, text in parts.items() if counts[origin]]
        self.log(f"wheels: {', '.join(shown) or 'none'}")


def read_glibc() -> tuple[int, ...] | None:
    """Return the version of this machine's glibc; None without glibc."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError, AttributeError):
        return None
    match = re.fullmatch(r"glibc (\d+)\.(\d+).*", text)
    return (int(match[1]), int(match[2])) if match else None
