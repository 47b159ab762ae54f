"""Follows the user's program in a custom job: its output, its end, and what it used."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from typing import Any

from provision.adapters import files
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.errors import CloudError
from provision.adapters.google.job_polling import (
    JobFollower,
    advise_on,
    build_internal,
    build_stockout,
    is_internal,
    is_stockout,
    line_of,
)
from provision.adapters.google.report_polling import PollingClock
from provision.effects.system import Notice, ProgramOutput, ProgressCallback
from provision.effects.vertex import FollowProgram
from provision.errors import ExternalError
from provision.sanitize import escape_control

_MAX_PART_BYTES = 8 << 20
_MAX_RECORD_BYTES = 4 << 20
_REFUSED = ("permission", "refused")
_EXIT = re.compile(r"The replica ([\w-]+) exited with a non-zero status of (\d+)")
"""Vertex AI documentation, Understand the training service, errors."""


class ProgramNotFinished(ExternalError):
    """The job ended without the end of its program."""


def follow_program(
    effect: FollowProgram, client: GoogleClient, clock: PollingClock, progress: ProgressCallback
) -> None:
    """Show the output of a program until its job ends, and write its end. May block for days.

    Raises:
        JobUnplaced: the region did not give the job its machines.
        ReportTimeout: the job did not end in time; it still runs.
        ProgramNotFinished: the job ended without the end of its program.
        ReportUnavailable: the job is gone.
    """
    _ProgramFollower(effect, client, clock, progress).follow()


class _ProgramFollower(JobFollower):
    _effect: FollowProgram
    subject = "the end of the program is not known"

    def __init__(
        self,
        effect: FollowProgram,
        client: GoogleClient,
        clock: PollingClock,
        progress: ProgressCallback,
    ) -> None:
        super().__init__(effect, client, clock, progress)
        self._next_parts = dict.fromkeys(effect.shown, (1, 0))
        self._is_refused = False

    def show_replicas(self) -> None:
        super().show_replicas()
        self._show_output()

    def read_status(self, name: str) -> Mapping[str, Any]:
        """Return the last status of a replica; {} without one, or if it cannot be read."""
        try:
            return super().read_status(name)
        except CloudError as error:
            self._note_refusal(error)
            return {}

    def collect(self, state: str, job: Mapping[str, Any]) -> None:
        self._show_output()
        message = str((job.get("error") or {}).get("message", ""))
        if is_stockout(state, message):
            raise build_stockout(message)
        if is_internal(message) and not self._has_begun():
            raise build_internal(message)
        name, code = self._find_end(state, message)
        if name != self._effect.replicas[0]:
            self._progress(Notice(f"{name} ended with exit code {code} before the primary machine"))
        for replica in self._effect.replicas:
            self._keep_record(replica)
        end = json.dumps({"code": code, "replica": name}).encode()
        files.write(self._effect.files / "end.json", end, 0o600)

    def _has_begun(self) -> bool:
        """Return whether a machine may have started the program, which is then not repeated."""
        phases = [self.read_status(name).get("p") for name in self._effect.replicas]
        return self._is_refused or "program" in phases

    def _show_output(self) -> None:
        for name in self._effect.shown:
            while (text := self._read_part(name)) is not None:
                if len(self._effect.shown) > 1:
                    text = re.sub(r"(?m)^(?=.)", f"[{name}] ", text)
                self._progress(ProgramOutput(text))

    def _read_part(self, name: str) -> str | None:
        """Return the next part of a replica's output; None if it is not there yet."""
        start, number = self._next_parts[name]
        content = self._read(f"{name}/output-{start:03}-{number:05}.txt", _MAX_PART_BYTES)
        if content is None:
            last = self.read_status(name).get("start")
            if not isinstance(last, int) or last <= start:
                return None
            self._progress(Notice(f"{name}: started again"))
            self._next_parts[name] = (start + 1, 0)
            return ""
        self._next_parts[name] = (start, number + 1)
        return escape_control(content.decode("utf-8", "replace"))

    def _keep_record(self, name: str) -> None:
        content = self._read(f"{name}/run.json", _MAX_RECORD_BYTES)
        if content is not None:
            files.write(self._effect.files / f"{name}.json", content, 0o600)

    def _read(self, path: str, limit: int) -> bytes | None:
        try:
            return self._client.object(f"{self._effect.folder}{path}", limit)
        except CloudError as error:
            self._note_refusal(error)
            return None

    def _note_refusal(self, error: CloudError) -> None:
        """Report once that the output cannot be read; raise any other error."""
        if error.failure.kind not in _REFUSED:
            raise error
        if not self._is_refused:
            self._is_refused = True
            self._progress(
                Notice(
                    f"the output of the job cannot be read: {line_of(error.failure.why)}; the job "
                    "goes on; grant yourself roles/storage.objectViewer on the bucket"
                )
            )

    def _find_end(self, state: str, message: str) -> tuple[str, int]:
        """Return the replica whose end counts with its exit code: the primary one if it has one."""
        chief, *_ = self._effect.replicas
        statuses = {name: self.read_status(name) for name in self._effect.replicas}
        codes = {name: _exit_code(status) for name, status in statuses.items()}
        failed = _EXIT.search(message)
        if (code := codes[chief]) is not None:
            return chief, code
        if state == "SUCCEEDED" and not self._effect.is_repeated:
            return chief, 0  # its end ends the job
        for name, own in codes.items():
            if own:
                return name, own
        if self._is_refused and failed is not None and failed[1] == chief:
            return chief, int(failed[2])
        raise self._explain(state, message, statuses)

    def _explain(
        self, state: str, message: str, statuses: Mapping[str, Mapping[str, Any]]
    ) -> ProgramNotFinished:
        if state == "CANCELLED":
            return ProgramNotFinished(
                "the program on the job's machines did not finish",
                why="the custom job was cancelled, but not by this command",
                hint="run the same command again to start a new job",
            )
        for name, status in statuses.items():
            text = str(status.get("e", ""))
            if status.get("s") == "error" and not text.startswith("the replica "):
                phase = line_of(str(status.get("p", "")))
                why = f"{name}, in the phase {phase}: {line_of(text)}"
                what = "one of the job's machines could not run the program"
                return ProgramNotFinished(what, why=why, hint=advise_on(text))
        silent = [name for name, status in statuses.items() if status.get("s") != "done"]
        why = f"the job ended as {state.lower()}; no end from {', '.join(silent)}"
        hint = (
            "look at the job's logs in Cloud Logging; if its account cannot write to the bucket, "
            "grant it roles/storage.objectUser on the bucket"
        )
        if any(status.get("p") == "program" for status in statuses.values()):
            hint = (
                "if a machine was lost, set `restarts: 3` on the target and resume from a "
                "checkpoint; if the job reached `max_duration`, increase it"
            )
        if text := line_of(message.partition("\n")[0]):
            why += f"\n{text}"
        return ProgramNotFinished(
            "the program on the job's machines did not finish", why=why, hint=hint
        )


def _exit_code(status: Mapping[str, Any]) -> int | None:
    """Return the exit code in a last status, as a shell shows it; None without one."""
    code, name = status.get("code"), status.get("signal")
    if status.get("s") != "done":
        return None
    if isinstance(code, int):
        return code
    known = signal.Signals.__members__.get(str(name))
    return 1 if known is None else 128 + known.value
