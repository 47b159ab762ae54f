"""Reports progress: guest attributes within their limits, a status object, and a log."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.redact import REDACTED, redact, replace_unprintable, secret_spellings
from .cloud import CloudClient, ServiceCallFailed
from .document import WorkbenchDocument

PHASES = ("start", "driver", "system", "python", "packages", "kernel", "verify", "report")
MAX_STATUS_WRITES = 8
MAX_PROGRESS_WRITES = 6
"""Further writes with the number of installed packages, each after twice the wait of the previous
one. Our choice.
"""
FIRST_PROGRESS_S = 5.0
MIN_WRITE_INTERVAL_S = 5.0
"""Seconds between two writes; a short phase that begins sooner is not reported. Limit of the
service: 10 queries a minute, also those of the image's own agent
(Compute Engine documentation, "View guest attributes").
"""
LONG_PHASES = ("packages", "verify")
"""Phases that take minutes and are always reported."""
MAX_LOG_BYTES = 4 * 2**20
_LONGEST_LINE = 300


@dataclass
class SecretRedactor:
    """Removes secrets from text: their values in all spellings, and token-like strings."""

    secrets: list[str] = field(default_factory=list)

    def add_secrets(self, values: Iterable[str]) -> None:
        """Add values that must never be shown."""
        self.secrets = sorted({*self.secrets, *secret_spellings(values)}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Return the text without them, without control characters but newline and tab."""
        return replace_unprintable(redact(text, self.secrets), "\n\t")

    def without_values(self, text: str) -> str:
        """Return the text without the values; token-like strings stay."""
        for value in self.secrets:
            text = text.replace(value, REDACTED)
        return text


@dataclass
class StatusReporter:
    """Reports the phases of one run."""

    document: WorkbenchDocument
    cloud: CloudClient
    work: Path
    redactor: SecretRedactor
    console: Callable[[str], None]
    phase: str = PHASES[0]
    installed: int = 0
    writes: int = 0
    progress_writes: int = 0
    last_write: float = -MIN_WRITE_INTERVAL_S
    clock: Callable[[], float] = time.monotonic

    def begin_phase(self, phase: str) -> None:
        """Report that a phase begins; the last one is reported by `end_run`."""
        self.phase = phase
        (self.work / "phase").write_text(phase, encoding="ascii")
        self.log_line(f"phase {phase}")
        due = phase in LONG_PHASES or self.clock() - self.last_write >= MIN_WRITE_INTERVAL_S
        if phase != PHASES[-1] and self.writes < MAX_STATUS_WRITES - 1 and due:
            self._write("running")

    def report_count(self, installed: int) -> None:
        """Report the number of installed packages, if it is new and a write is due."""
        due = self.clock() - self.last_write >= FIRST_PROGRESS_S * 2**self.progress_writes
        if installed > self.installed and self.progress_writes < MAX_PROGRESS_WRITES and due:
            self.installed = min(installed, self.document.package_count)
            self.progress_writes += 1
            self._write_status("running")

    def log_line(self, line: str) -> None:
        """Print a line, redacted and cut, on the console and in the log."""
        self.console(self._shorten(line))

    def end_run(self, why: str = "") -> None:
        """Report the end of the run: done, or an error with its reason."""
        state, reason = ("error", {"e": self._shorten(why)}) if why else ("done", {})
        is_reported = self._write(state, **reason)
        status = json.dumps({**self._status(state), **reason}, sort_keys=True) + "\n"
        try:
            self.cloud.write_object(self.document.status, status.encode(), "application/json")
            is_reported = True
        except ServiceCallFailed as error:
            self.log_line(str(error))
        if is_reported:
            (self.work / "reported").touch()

    def report_result(self, verdict: str, code: int, report: bytes) -> None:
        """Report address, verdict and digest of the report."""
        result = {
            "n": self.document.nonce,
            "v": verdict,
            "exit": code,
            "sha256": hashlib.sha256(report).hexdigest(),
            "uri": self.document.report,
        }
        self._write_guest_attribute("result", result)

    def send_log(self, path: Path) -> None:
        """Send the end of the log, cleaned."""
        try:
            with open(path, "rb") as log:
                log.seek(max(0, path.stat().st_size - MAX_LOG_BYTES))
                text = log.read().decode("utf-8", "replace")
            self.cloud.write_object(
                self.document.log, self.redactor.clean(text).encode(), "text/plain; charset=utf-8"
            )
        except OSError as error:
            self.log_line(f"cannot read {path}: {error.strerror or error}")
        except ServiceCallFailed as error:
            self.log_line(str(error))

    def _shorten(self, text: str) -> str:
        return self.redactor.clean(text).replace("\n", " ")[:_LONGEST_LINE]

    def _write(self, state: str, **more: str) -> bool:
        self.writes += 1
        return self._write_status(state, **more)

    def _write_status(self, state: str, **more: str) -> bool:
        self.last_write = self.clock()
        return self._write_guest_attribute("status", {**self._status(state), **more})

    def _write_guest_attribute(self, key: str, value: Mapping[str, object]) -> bool:
        text = json.dumps(value, separators=(",", ":"))
        is_written = self.cloud.write_guest_attribute(key, text)
        if not is_written:
            self.log_line(f"cannot write the guest attribute provision/{key}")
        return is_written

    def _status(self, state: str) -> dict[str, object]:
        return {
            "n": self.document.nonce,
            "s": state,
            "p": self.phase,
            "i": self.installed,
            "of": self.document.package_count,
        }
