"""One run on a Colab machine: taken, the cell run until it is done, its report fetched and checked,
and the machine given back whatever happens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

from provision.adapters import files
from provision.adapters.google.report_polling import DeviceFailed, ReportUnavailable
from provision.effects.colab import RunOnColab
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError
from provision.facts import load_facts
from provision.sanitize import escape_line, redact

_MAX_STATUS_BYTES = 64 * 2**10
_RESTARTS = 2
"""Restarts of the kernel in one run: one is needed at most, as all is installed before it. Our
choice.
"""
_RELEASE_ATTEMPTS = 3
"""How often giving back is tried. Our choice."""
_MANUAL_HINT = "or end it by hand: colab.research.google.com, Runtime > Manage sessions"
_OUTCOMES = ("verified", "failed", "unverified", "restart-needed", "stopped", "error")


class RuntimeService(Protocol):
    """What hands out Colab machines by name: Google's command line today; the public API
    (runtimes.create ...), once it is open to all, is another one.
    """

    def balance(self) -> str:
        """Return in words what the account has left, "" where it cannot be told; raises WorldError
        where nobody is signed in.
        """

    def take(self, session: str, gpu: str, *, high_memory: bool) -> None:
        """Take a machine under a name; what was granted is known by that name even when we end
        meanwhile. Raises WorldError.
        """

    def run(self, session: str, cell: bytes, timeout_s: int, progress: ProgressCallback) -> bool:
        """Run a cell and tell what it prints; returns whether it came to an end in time. How it
        ended, only its files tell.
        """

    def restart(self, session: str) -> None:
        """Restart the kernel; raises WorldError."""

    def fetch(self, session: str, name: str) -> bytes | None:
        """Return a file of the cell's folder, None when it cannot be had."""

    def give_back(self, session: str, progress: ProgressCallback) -> None:
        """Give a machine back; nothing happens when there is none of that name. Raises WorldError."""  # noqa: E501


def refuse_unknown_machine(gpu: str, *, high_memory: bool) -> None:
    """Raise WorldError for an accelerator that Colab does not have: its command line takes an A100
    for any name that it does not know.
    """
    known = {(shape.colab, shape.shape == "high") for shape in load_facts().shapes}
    if (gpu, high_memory) not in known:
        names = ", ".join(sorted({name for name, _ in known if name}))
        more = " with more memory" if high_memory else ""
        raise ExternalError(
            f"Colab has no machine with {escape_line(gpu) or 'no GPU'}{more}",
            why=f"it offers {names}",
            hint="change gpu or shape of the target",
        )


def show_balance(runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Tell what the account has left, before anything is taken; raises WorldError where nobody is
    signed in.
    """
    if left := runtimes.balance():
        progress(f"Colab account: {left}")


def perform_run(effect: RunOnColab, runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Perform a run. Raises WorldError when it could not be asked, NoReport (DeviceFailed) when no
    report came that can be accepted.

    An error whose `left` is () says that nothing is left running. `keep` leaves the machine only
    where a report came home.
    """
    try:
        progress(f"Colab: asking for a machine with {effect.gpu or 'no GPU'}")
        runtimes.take(effect.session, effect.gpu, high_memory=effect.high_memory)
        files.write(effect.report, _run_cell(effect, runtimes, progress), 0o600)
    except BaseException as error:
        _release_after_error(effect.session, runtimes, progress, error)
        raise
    if not effect.keep_session:
        release_runtime(effect.session, runtimes, progress)


def release_runtime(session: str, runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Give a machine back, a few times if need be; raises WorldError when it may still run."""
    for attempt in range(1, _RELEASE_ATTEMPTS + 1):
        try:
            runtimes.give_back(session, progress)
        except ExternalError as error:
            if attempt == _RELEASE_ATTEMPTS:
                raise ExternalError(
                    error.what, why=error.why, hint=f"run the command again, {_MANUAL_HINT}"
                ) from error
            progress(f"{error.what}: trying again")
            time.sleep(attempt)
        else:
            progress(f"Colab: {session} is stopped")
            return


def _release_after_error(
    session: str, runtimes: RuntimeService, progress: ProgressCallback, error: BaseException
) -> None:
    """Give the machine back after an error, which stays the one that is told."""
    try:
        release_runtime(session, runtimes, progress)
    except ExternalError as failure:
        progress(
            f"{failure.what}; it may still run, and cost: run the command again, {_MANUAL_HINT}"
        )
    else:
        if isinstance(error, ExternalError):
            error.still_running = ()


def _run_cell(effect: RunOnColab, runtimes: RuntimeService, progress: ProgressCallback) -> bytes:
    """Run the cell until it asks for no restart; return its report."""
    status: Mapping[str, Any] = {}
    for turn in range(_RESTARTS + 1):
        progress("Colab: running the cell" + (" again" if turn else ""))
        ended = runtimes.run(effect.session, effect.cell, effect.timeout_s, progress)
        status = _parse_status(runtimes.fetch(effect.session, "status.json"), effect.nonce)
        if not ended:
            last = (
                f"; its last stage: {escape_line(str(status['stage']))[:40]}"
                if status.get("stage")
                else ""
            )
            raise ReportUnavailable(
                "the cell did not end",
                why=f"nothing came within {effect.timeout_s // 60} minutes{last}",
                hint="give `verify.timeout` more time",
            )
        if status.get("outcome") != "restart-needed":
            break
        if turn == _RESTARTS:
            raise ReportUnavailable(
                f"the cell asks for a restart after {turn} restarts",
                why=_status_text(status, "message"),
                hint="try `isolation: venv` at the target",
            )
        progress(
            "Colab: restarting the kernel "
            f"({_status_text(status, 'message') or 'asked for by the cell'})"
        )
        runtimes.restart(effect.session)
    return _validate_report(effect, runtimes.fetch(effect.session, "report.json"), status)


def _validate_report(effect: RunOnColab, report: bytes | None, status: Mapping[str, Any]) -> bytes:
    """Return the report if it answers this run; exit codes of the command line say nothing, as they
    are 0 for a cell that raised.
    """
    if report is None or status.get("outcome") in ("stopped", "error"):
        raise _report_missing(status)
    try:
        document = json.loads(report)
        nonce, lock = document["subject"]["nonce"], document["lock"]["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        nonce = lock = None
    if nonce != effect.nonce:
        raise ReportUnavailable(
            "the report on the machine answers another run",
            why="its nonce is not the one that was sent",
            hint="run the command again",
        )
    if lock != effect.lock_digest:
        raise ReportUnavailable(
            "the report on the machine is of another lock",
            why=f"its lock is {escape_line(str(lock))[:80]}",
            hint="run the command again",
        )
    return report


def _report_missing(status: Mapping[str, Any]) -> ReportUnavailable:
    stage, message, hint = (_status_text(status, key) for key in ("stage", "message", "hint"))
    if not status:
        return ReportUnavailable(
            "the cell left no report",
            why="no status of this run was found on the machine",
            hint="its own lines, above, say why",
        )
    kind = (
        DeviceFailed
        if status.get("outcome") in ("failed", "stopped", "error")
        else ReportUnavailable
    )
    return kind(
        f"the cell stopped at stage {stage}",
        why=message,
        hint=hint or "correct the cause, then run the command again",
    )


def _parse_status(content: bytes | None, nonce: str) -> Mapping[str, Any]:
    """Return what the cell says of itself, {} where that is of another run or not what a cell
    writes.
    """
    try:
        told = json.loads(content) if content and len(content) <= _MAX_STATUS_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return (
        told
        if isinstance(told, dict)
        and told.get("nonce") == nonce
        and told.get("outcome") in _OUTCOMES
        else {}
    )


def _status_text(status: Mapping[str, Any], key: str) -> str:
    return escape_line(redact(str(status.get(key) or "")))[:600]
