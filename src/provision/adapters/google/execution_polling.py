"""Waits for the end of a notebook execution job, and reads its report from Cloud Storage."""

from __future__ import annotations

import hashlib
from typing import Any

from provision.adapters.google.client import GoogleClient
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
from provision.effects.system import ProgressCallback
from provision.effects.vertex import AwaitExecution
from provision.sanitize import escape_line, redact

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
_TEXT_LENGTH = 600
_MESSAGE_LINES = 4


def await_execution(
    effect: AwaitExecution, client: GoogleClient, clock: PollingClock, progress: ProgressCallback
) -> bytes:
    """Return the report of a job. May block for hours.

    Raises:
        ReportTimeout: the job did not end in time; it still runs.
        DeviceFailed: the notebook could not make the environment.
        ReportUnavailable: the job is gone, or left no acceptable report.
    """
    job = effect.name.rpartition("/")[2]
    began = shown_at = clock.now()
    shown = ""
    while True:
        resource = client.vertex.get(effect.name)
        if resource is None:
            raise ReportUnavailable(
                f"{effect.subject} was not verified",
                why=f"the execution job {job} was deleted while it was running",
                hint="run the same command again to start a new job",
            )
        state = str(resource.get("jobState", "")).removeprefix("JOB_STATE_")
        if state in _ENDED:
            return _read_report(effect, client, state, resource.get("status") or {})
        now = clock.now()
        if state != shown or now - shown_at >= clock.heartbeat_s:
            still = "still " if state == shown else ""
            progress(f"execution job {job}: {still}{state.lower()}")
            shown, shown_at = state, now
        if now - began >= effect.timeout_s:
            raise ReportTimeout(
                f"{effect.subject} was not verified",
                why=f"the execution job {job} did not finish within "
                f"{format_duration(effect.timeout_s)}",
                hint=effect.timeout_hint,
            )
        clock.sleep(clock.interval_s)


def _read_report(
    effect: AwaitExecution, client: GoogleClient, state: str, outcome: dict[str, Any]
) -> bytes:
    status = parse_message(client.object(f"{effect.folder}status.json", MAX_STATUS_BYTES))
    if status.get("nonce") != effect.nonce:
        status = {}
    report = client.object(f"{effect.folder}report.json", MAX_REPORT_BYTES) if status else None
    if report is not None:
        subject = parse_message(report, len(report)).get("subject")
        is_own = isinstance(subject, dict) and subject.get("nonce") == effect.nonce
        if is_own and status.get("report_sha256") == hashlib.sha256(report).hexdigest():
            return report
        raise ReportUnavailable(
            "the report in the bucket is not the one that the notebook wrote",
            why="its sha256 does not match the one in the notebook's status, or its nonce "
            "does not match this run",
            hint="someone else may have written to the bucket; check who has write access, "
            "then verify again",
        )
    why = f"the execution job ended as {state.lower()}"
    if lines := str(outcome.get("message", "")).splitlines():
        why += f": {_line(lines[0])}"
        why += "".join(f"\n  {_line(line.strip())}" for line in lines[1:_MESSAGE_LINES])
    if status:
        why += f"\nin stage {_line(str(status.get('stage', '')))}: "
        why += _line(str(status.get("message", "")))
        if status.get("outcome") == "interrupted":
            what = f"{effect.subject} was not verified"
            raise ReportUnavailable(what, why=why, hint=effect.timeout_hint)
        hint = _line(str(status.get("hint", "")))
        raise DeviceFailed("the notebook could not create the environment", why=why, hint=hint)
    hint = (
        "look at the job's executed notebook in the bucket, if the service wrote one; if the "
        "service account cannot write to the bucket, grant it roles/storage.objectUser on the "
        "bucket"
    )
    raise ReportUnavailable("the execution job did not write a report", why=why, hint=hint)


def _line(text: str) -> str:
    return escape_line(redact(text))[:_TEXT_LENGTH]
