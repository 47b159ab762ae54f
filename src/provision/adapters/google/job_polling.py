"""Follows a custom job to its end, and collects the reports of its replicas from Cloud Storage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from provision.adapters import files
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.custom_jobs import (
    ENDED,
    RUN_LABEL,
    JobInternalError,
    JobUnplaced,
    state_of,
)
from provision.adapters.google.report_polling import (
    MAX_REPORT_BYTES,
    MAX_STATUS_BYTES,
    DeviceFailed,
    PollingClock,
    ReportTimeout,
    ReportUnavailable,
    parse_message,
)
from provision.adapters.google.retry import format_duration
from provision.adapters.google.vertex import region_of
from provision.effects.system import Notice, ProgressCallback
from provision.effects.vertex import AwaitJob, FollowProgram
from provision.sanitize import escape_line, redact

_STOCKOUT = "Resources are insufficient in region"
"""Vertex AI documentation, Understand the training service, errors."""
_INTERNAL = "Internal error occurred"
_MISSING = " did not start within "
"""Text of a replica that waited for another one."""
_STOPPED = "exited with a non-zero status of 143"
"""128 and SIGTERM."""
_QUEUED = "other jobs may use its quota"
"""Vertex AI documentation, Understand the training service, Queue a new job."""
_TEXT_LENGTH = 600
_MAX_INDEX_BYTES = 1 << 20
_MOST_WARNINGS = 5
"""Most warnings of a replica that are shown."""
_GOOD = ("verified", "simulated")
_FOREIGN_HINT = (
    "someone else may have written to the bucket: check who has write access, then verify again"
)


def await_job(
    effect: AwaitJob, client: GoogleClient, clock: PollingClock, progress: ProgressCallback
) -> None:
    """Write the reports of a job. May block for hours.

    Raises:
        JobUnplaced: the region did not give the job its machines.
        ReportTimeout: the job did not end in time; it still runs.
        DeviceFailed: a replica could not make the environment.
        ReportUnavailable: the job is gone or cancelled, or not every replica has a report.
    """
    _ReportFollower(effect, client, clock, progress).follow()


class JobFollower:
    """The wait for the end of a job; what happens meanwhile and then is a subclass's."""

    subject = "the target was not verified"

    def __init__(
        self,
        effect: AwaitJob | FollowProgram,
        client: GoogleClient,
        clock: PollingClock,
        progress: ProgressCallback,
    ) -> None:
        self._effect, self._client, self._clock, self._progress = effect, client, clock, progress
        self._shown: dict[str, str] = {}
        self._warned: set[str] = set()
        self._began = self._shown_at = clock.now()

    def follow(self) -> None:
        """Wait for the end. May block for hours."""
        while True:
            job = self._find_job()
            try:
                if self._is_collected(job):
                    return
            except JobInternalError:
                raise
            except JobUnplaced:
                self._client.job_stockouts.record(region_of(self._effect.name), job)
                raise
            self._sleep()

    def _sleep(self) -> None:
        """Wait for the next multiple of the interval, at which the jobs of all threads are read."""
        interval = self._clock.interval_s
        self._clock.sleep(interval - self._clock.now() % interval)

    def _is_collected(self, job: Mapping[str, Any]) -> bool:
        """Return whether a job has ended, with its results here. Raises if it takes too long."""
        effect, state = self._effect, state_of(job)
        if state in ENDED:
            self._show_warnings({name: self.read_status(name) for name in effect.replicas})
            self.collect(state, job)
            return True
        reason = f"; {_QUEUED}" if state == "QUEUED" else ""
        self._show("", f"custom job {_short_name(job)}: {state.lower()}{reason}")
        if state == "RUNNING":
            self.show_replicas()
        waited = self._clock.now() - self._began
        if state != "RUNNING" and waited >= effect.pending_s:
            raise JobUnplaced(
                f"the job had no machines after {format_duration(effect.pending_s)}",
                why=f"it is still {state.lower()}{reason}",
                hint="use another region, or `capacity: {flex_start: 6h}`",
            )
        if waited >= effect.timeout_s:
            raise ReportTimeout(
                self.subject,
                why=f"the custom job {_short_name(job)} did not end within "
                f"{format_duration(effect.timeout_s)}",
                hint="increase max_duration, or use a larger machine",
            )
        return False

    def _find_job(self) -> Mapping[str, Any]:
        _, project, _, region = self._effect.name.split("/")
        jobs = self._client.jobs(project, region, f"{RUN_LABEL}={self._effect.nonce}")
        if not jobs:
            raise ReportUnavailable(
                self.subject,
                why="the custom job was deleted while it was running",
                hint="run the same command again to start a new job",
            )
        return min(jobs, key=lambda job: str(job.get("createTime", "")))

    def _show(self, subject: str, text: str) -> None:
        """Report what is new, and what lasts from time to time."""
        now, is_new = self._clock.now(), self._shown.get(subject) != text
        if not is_new and (subject or now - self._shown_at < self._clock.heartbeat_s):
            return
        self._shown[subject], self._shown_at = text, now
        self._progress(text if is_new else f"still waiting; {text}")

    def collect(self, state: str, job: Mapping[str, Any]) -> None:
        """Keep what an ended job has left.

        Raises:
            ExternalError: the job did not do what it was for.
        """
        raise NotImplementedError

    def show_replicas(self) -> None:
        """Report the phases of the replicas of a running job."""
        statuses = {name: self.read_status(name) for name in self._effect.replicas}
        for name, status in statuses.items():
            if status:
                self._show(name, f"{name}: {line_of(str(status.get('p', '')))}")
        self._show_warnings(statuses)

    def _show_warnings(self, statuses: Mapping[str, Mapping[str, Any]]) -> None:
        """Report what the replicas warn about, each line once, whichever replica has it."""
        for name, status in statuses.items():
            lines = status.get("w")
            for line in lines[:_MOST_WARNINGS] if isinstance(lines, list) else ():
                if str(line) not in self._warned:
                    self._warned.add(str(line))
                    self._progress(Notice(f"{name}: {line_of(str(line))}"))

    def read_status(self, name: str) -> Mapping[str, Any]:
        """Return the last status of a replica; {} without one."""
        uri = f"{self._effect.folder}{name}/status.json"
        status = parse_message(self._client.object(uri, MAX_STATUS_BYTES))
        return status if status.get("n") == self._effect.nonce else {}


class _ReportFollower(JobFollower):
    _effect: AwaitJob

    def collect(self, state: str, job: Mapping[str, Any]) -> None:
        """Write the reports that the index lists, or raise why there are none."""
        effect = self._effect
        rows = self._read_index()
        if rows is None:
            raise self._failure(state, str((job.get("error") or {}).get("message", "")))
        decisive, is_good = b"", True
        for name in effect.replicas:
            content, result = self._read_report(name, str(rows[name].get("sha256")))
            self._progress(f"{name}: {line_of(result)}")
            files.write(effect.reports / f"{name}.json", content, 0o600)
            # The first report that is not good decides; else that of the primary replica.
            if not decisive or (is_good and result not in _GOOD):
                decisive, is_good = content, result in _GOOD
        files.write(effect.reports / "report.json", decisive, 0o600)

    def _read_index(self) -> dict[str, Mapping[str, Any]] | None:
        """Return the rows of the job's index by replica; None without a complete one."""
        effect = self._effect
        index = parse_message(self._client.object(f"{effect.folder}index.json", _MAX_INDEX_BYTES))
        listed = index.get("replicas")
        if index.get("nonce") != effect.nonce or not isinstance(listed, list):
            return None
        rows: dict[str, Mapping[str, Any]] = {}
        for row in listed:
            if isinstance(row, dict):
                rows[str(row.get("name"))] = row
        return rows if set(rows) == set(effect.replicas) else None

    def _read_report(self, name: str, sha256: str) -> tuple[bytes, str]:
        """Return a report and its verdict."""
        effect = self._effect
        content = self._client.object(f"{effect.folder}{name}/report.json", MAX_REPORT_BYTES)
        if content is None:
            raise ReportUnavailable(
                "the target was not verified",
                why=f"the job lists the report {name}, but the report is missing",
                hint=_FOREIGN_HINT,
            )
        document = parse_message(content, len(content))
        subject = document.get("subject")
        is_own = isinstance(subject, dict) and subject.get("nonce") == effect.nonce
        if not is_own or hashlib.sha256(content).hexdigest() != sha256:
            raise ReportUnavailable(
                f"the report received for {name} is not the one the replica wrote",
                why="its sha256 does not match the one in the job's index, or its nonce does "
                "not match this run",
                hint=_FOREIGN_HINT,
            )
        verdict = document.get("verdict")
        return content, str(verdict.get("result")) if isinstance(verdict, dict) else "unknown"

    def _failure(self, state: str, message: str) -> ReportUnavailable | JobUnplaced:
        """Return the error of a job that ended without an index."""
        if is_stockout(state, message):
            return build_stockout(message)
        if is_internal(message):
            return build_internal(message)
        if state == "CANCELLED":
            return ReportUnavailable(
                "the target was not verified",
                why="the custom job was cancelled, but not by this command",
                hint="run the same command again to start a new job",
            )
        statuses = {name: self.read_status(name) for name in self._effect.replicas}
        for name, status in statuses.items():
            text = str(status.get("e", ""))
            if status.get("s") == "error" and not text.startswith("the replica "):
                why = f"{name}, in the phase {line_of(str(status.get('p', '')))}: {line_of(text)}"
                what = "one of the job's machines could not be set up"
                return DeviceFailed(what, why=why, hint=advise_on(text))
        silent = [name for name, status in statuses.items() if status.get("s") != "done"]
        why = f"the job ended as {state.lower()}; no report from {', '.join(silent)}"
        if text := line_of(message.partition("\n")[0]):
            why += f"\n{text}"
        hint = (
            "look at the job's logs in Cloud Logging; if its account cannot write to the bucket, "
            "grant it roles/storage.objectUser on the bucket"
        )
        if _STOPPED in message:
            hint = "the machine was stopped, as Spot machines can be: run the same command again"
        return ReportUnavailable(
            "not every machine in the job wrote its report", why=why, hint=hint
        )


def advise_on(text: str) -> str:
    """Return how to fix what a replica reports as its error; "" if nothing is known."""
    if _MISSING not in text:
        return ""
    return (
        "run the same command again to get other machines; a machine has half of `max_duration` to "
        "start, and at most 30 minutes"
    )


def is_stockout(state: str, message: str) -> bool:
    """Return whether a job ended because its region has no machines for it."""
    return _STOCKOUT in message or state == "EXPIRED"


def build_stockout(message: str) -> JobUnplaced:
    """Return the error of a job whose region has no machines for it."""
    return JobUnplaced(
        "the region has no capacity for the job",
        why=line_of(message) or "the job expired before it had its machines",
        hint="use another region, `capacity: {flex_start: 6h}`, or a reservation",
    )


def is_internal(message: str) -> bool:
    """Return whether a job ended because the service failed, not because a replica did."""
    return message.startswith(_INTERNAL)


def build_internal(message: str) -> JobInternalError:
    """Return the error of a job that the service could not run."""
    return JobInternalError(
        "Vertex AI failed with an internal error",
        why=line_of(message),
        hint="run the same command again later, or add another region to the spec",
    )


def _short_name(job: Mapping[str, Any]) -> str:
    return line_of(str(job.get("name", "")).rpartition("/")[2])


def line_of(text: str) -> str:
    """Return foreign text as one line without secrets."""
    return escape_line(redact(text))[:_TEXT_LENGTH]
