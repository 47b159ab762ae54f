"""Custom jobs that run on this machine, and their replicas."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PROJECT_NUMBER = "123456789012"
_TAIL_LINES = 5
_AT_WORK = re.compile(r"(?ms)^provision: phase (?:verify$|program\n(?P<output>.+))")
"""The log of a replica that verifies itself, or whose program has written something."""


class RunningJob(NamedTuple):
    """A job to run: its spec, and the addresses of the services that its replicas use.

    `killed` and the fields after it are names of replicas, such as workerpool1-0. `reclaimed` has
    the texts that their programs write before. `texts` are documents with addresses that the
    replicas use.
    """

    name: str
    spec: Mapping[str, Any]
    storage: str
    metadata: str
    secrets: str
    killed: frozenset[str]
    reclaimed: Mapping[str, str]
    missing: frozenset[str]
    silent: frozenset[str]
    slow: frozenset[str]
    texts: tuple[str, ...]


class JobEnd(NamedTuple):
    """The end of a job; `error` is "" if its primary replica ended with 0."""

    error: str


class Replica(NamedTuple):
    """A replica: its pool and its number in it, its container, and its folder."""

    pool: int
    number: int
    container: Mapping[str, Any]
    folder: Path

    @property
    def task(self) -> str:
        """Its name, such as workerpool1-0."""
        return f"workerpool{self.pool}-{self.number}"

    @property
    def home(self) -> Path:
        """The folder that HOME names."""
        return self.folder / "root"

    @property
    def is_primary(self) -> bool:
        """True if its end ends the job."""
        return (self.pool, self.number) == (0, 0)

    def is_at_work(self, output: str) -> bool:
        """Return whether its program has written a text; if "", also whether it verifies itself."""
        found = _AT_WORK.search(self._read_log())
        return found is not None and output in (found["output"] or "")

    def make_disk(self) -> None:
        """Give it the disk of a new machine, with this machine's cache of packages.

        Without the cache, each replica of each job would download them.
        """
        for folder in (self.home, self.folder / "tmp"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache/uv").absolute()
        if cache.is_dir():
            (self.home / ".provision").mkdir()
            (self.home / ".provision/cache").symlink_to(cache)

    def describe_failure(self, code: int) -> str:
        """Return the service's text about its exit code, with the end of its output."""
        status = code if code > 0 else 128 - code
        tail = "\n".join(self._read_log().splitlines()[-_TAIL_LINES:])
        return (
            f"The replica {self.task} exited with a non-zero status of {status}. Termination "
            f"reason: Error. {tail}\nTo find out more about why your job exited please check the "
            "logs: https://console.cloud.google.com/logs/viewer"
            f"?project={PROJECT_NUMBER}&resource=ml_job"
        )

    def _read_log(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
