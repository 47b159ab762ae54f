"""Reports the progress of a replica: a status object in the bucket for each phase, and a log."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field

from ..workbench.cloud import CloudClient, ServiceCallFailed
from ..workbench.document import WorkbenchDocument
from ..workbench.status import SecretRedactor

_LONGEST_LINE, _MOST_LINES, _MOST_WARNINGS = 300, 2000, 5


@dataclass
class ReplicaReporter:
    """Reports the phases of one replica; without access to the bucket, only its output does.

    `start` counts the starts of the machine, if it runs the user's program.
    """

    document: WorkbenchDocument
    cloud: CloudClient
    redactor: SecretRedactor
    phase: str = "start"
    start: int = 1
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def begin_phase(self, phase: str) -> None:
        """Report that a phase begins."""
        self.phase = phase
        self.log_line(f"phase {phase}")
        try:
            self._write_status("running")
        except ServiceCallFailed as error:
            self.log_line(str(error))

    def log_line(self, line: str) -> None:
        """Print a line, redacted and cut, and keep it for the log."""
        text = self._shorten(line)
        print(f"provision: {text}", flush=True)
        self.lines = [*self.lines, text][-_MOST_LINES:]

    def warn(self, line: str) -> None:
        """Print a line, and show it to the user with every status from now on."""
        self.log_line(line)
        self.warnings = [*self.warnings, self._shorten(line)][:_MOST_WARNINGS]

    def finish(self, verdict: str, report_sha256: str) -> None:
        """Report that the replica has its verdict. Raises ServiceCallFailed."""
        self._send_log()
        self._write_status("done", v=verdict, sha256=report_sha256)

    def finish_program(self, code: int | None, signal: str | None) -> None:
        """Report the end of the user's program. Raises ServiceCallFailed."""
        self._send_log()
        self._write_status("done", code=code, signal=signal)

    def report_stop(self) -> None:
        """Report that the machine was stopped, which is not the end of the user's program."""
        self.warn("the machine was stopped (SIGTERM) before the program ended")
        with suppress(ServiceCallFailed):
            self._send_log()
            self._write_status("running")

    def fail(self, why: str) -> None:
        """Report an error with its reason."""
        for line in why.splitlines()[:20]:
            self.log_line(line)
        try:
            self._send_log()
            self._write_status("error", e=self._shorten(why))
        except ServiceCallFailed as error:
            print(f"provision: {self._shorten(str(error))}", file=sys.stderr, flush=True)

    def _send_log(self) -> None:
        text = "\n".join(self.lines) + "\n"
        self.cloud.write_object(self.document.log, text.encode(), "text/plain; charset=utf-8")

    def _write_status(self, state: str, **more: str | int | None) -> None:
        status = {
            "n": self.document.nonce,
            "s": state,
            "p": self.phase,
            "start": self.start,
            "w": self.warnings,
            **more,
        }
        content = json.dumps(status, sort_keys=True).encode() + b"\n"
        self.cloud.write_object(self.document.status, content, "application/json")

    def _shorten(self, text: str) -> str:
        return self.redactor.clean(text).replace("\n", " ")[:_LONGEST_LINE]
