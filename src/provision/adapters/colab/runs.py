"""One run on Colab: allocate a runtime, run the cell, fetch its report, release the runtime."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

from provision.adapters import files
from provision.adapters.colab.cli_client import ColabCli
from provision.adapters.google.report_polling import DeviceFailed, ReportUnavailable, parse_message
from provision.effects.colab import RunOnColab, StopColabSession
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError
from provision.facts import load_facts
from provision.sanitize import escape_line, redact
from provision.spelling import with_article

_RESTARTS = 2
"""Restarts of the kernel in one run: one is needed at most, as all is installed before it. Our
choice.
"""
_RELEASE_ATTEMPTS = 3
"""Attempts to release a runtime. Our choice."""
_MANUAL_HINT = "or end the session manually: colab.research.google.com, Runtime > Manage sessions"
_NO_REPORT = ("stopped", "interrupted", "error")
_OUTCOMES = ("verified", "failed", "unverified", "restart-needed", *_NO_REPORT)


def perform(
    effect: ServiceEffect, environment: Mapping[str, str], progress: ProgressCallback
) -> None:
    """Perform one effect through Google's `colab` program. May block for hours.

    Raises:
        ExternalError: the program is missing, is not signed in, or Colab refused.
        ReportUnavailable: no acceptable report came.
    """
    match effect:
        case RunOnColab():
            files.make_folder(effect.folder, 0o700)
            try:
                refuse_unknown_machine(effect.gpu, high_memory=effect.high_memory)
                runtimes = ColabCli.from_environment(environment, effect.folder)
                show_balance(runtimes, progress)
            except ExternalError as error:
                error.still_running = ()
                raise
            perform_run(effect, runtimes, progress)
        case StopColabSession(session, folder):
            files.make_folder(folder, 0o700)
            runtimes = ColabCli.from_environment(environment, folder)
            release_runtime(session, runtimes, progress)
        case _:
            raise AssertionError(f"internal error: unexpected effect for Colab: {effect!r}")


class RuntimeService(Protocol):
    """Allocates Colab runtimes by name. All methods raise ExternalError and may block for minutes.

    Implemented by Google's command line today; the public API (runtimes.create ...) can be another
    implementation once it is open to all.
    """

    def balance(self) -> str:
        """Return the remaining balance of the account as text, "" if unknown.

        Raises:
            ExternalError: nobody is signed in.
        """

    def take(self, session: str, gpu: str, *, high_memory: bool) -> None:
        """Allocate a runtime; it is known by its name even if we end before the answer."""

    def run(self, session: str, cell: bytes, timeout_s: int, progress: ProgressCallback) -> bool:
        """Run a cell, report its output, and return whether it ended in time.

        Its result is in its files only.
        """

    def restart(self, session: str) -> None:
        """Restart the kernel."""

    def fetch(self, session: str, name: str) -> bytes | None:
        """Return a file of the cell's folder, None if it cannot be fetched."""

    def give_back(self, session: str, progress: ProgressCallback) -> None:
        """Release a runtime; nothing happens if it does not exist."""


def refuse_unknown_machine(gpu: str, *, high_memory: bool) -> None:
    """Raise ExternalError for an accelerator that Colab does not offer.

    Its command line allocates an A100 for any name that it does not know.
    """
    offered = {(shape.colab, shape.shape == "high") for shape in load_facts().shapes}
    if (gpu, high_memory) not in offered:
        names = ", ".join(sorted({name for name, _ in offered if name}))
        machine = f"machine with {with_article(escape_line(gpu))}" if gpu else "CPU machine"
        more = " in the high shape" if high_memory else ""
        raise ExternalError(
            f"Colab has no {machine}{more}",
            why=f"Colab offers {names}",
            hint="change `gpu` or `shape` for the target",
        )


def show_balance(runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Report the balance of the account before anything is allocated.

    Raises:
        ExternalError: nobody is signed in.
    """
    if left := runtimes.balance():
        progress(f"Colab account: {left}")


def perform_run(effect: RunOnColab, runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Perform a run. May block for hours.

    `still_running` of an error is () if nothing is left running. `keep_session` leaves the runtime
    running only after an accepted report.

    Raises:
        ReportUnavailable: no acceptable report came; DeviceFailed if the cell failed.
        ExternalError: the runtime was not allocated, or not released.
    """
    try:
        machine = f"machine with {with_article(effect.gpu)}" if effect.gpu else "CPU machine"
        progress(f"Colab: requesting a {machine}")
        runtimes.take(effect.session, effect.gpu, high_memory=effect.high_memory)
        files.write(effect.report, _run_cell(effect, runtimes, progress), 0o600)
    except BaseException as error:
        _release_after_error(effect.session, runtimes, progress, error)
        raise
    if not effect.keep_session:
        release_runtime(effect.session, runtimes, progress)


def release_runtime(session: str, runtimes: RuntimeService, progress: ProgressCallback) -> None:
    """Release a runtime, with a few attempts.

    Raises:
        ExternalError: it may still be running.
    """
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
            progress(f"Colab: {session} has been stopped")
            return


def _release_after_error(
    session: str, runtimes: RuntimeService, progress: ProgressCallback, error: BaseException
) -> None:
    """Release the runtime after an error, which stays the one that is reported."""
    try:
        release_runtime(session, runtimes, progress)
    except ExternalError as failure:
        progress(
            f"{failure.what}; it may still be running and costing money: run the command again, "
            f"{_MANUAL_HINT}"
        )
    else:
        if isinstance(error, ExternalError):
            error.still_running = ()


def _run_cell(effect: RunOnColab, runtimes: RuntimeService, progress: ProgressCallback) -> bytes:
    """Run the cell until it requires no restart, and return its report."""
    status: Mapping[str, Any] = {}
    for turn in range(_RESTARTS + 1):
        progress("Colab: running the cell" + (" again" if turn else ""))
        ended = runtimes.run(effect.session, effect.cell, effect.timeout_s, progress)
        status = _parse_status(runtimes.fetch(effect.session, "status.json"), effect.nonce)
        if not ended:
            last = ""
            if status.get("stage"):
                last = f"; last stage: {escape_line(str(status['stage']))[:40]}"
            raise ReportUnavailable(
                "the cell did not finish in time",
                why=f"`verify.timeout` expired after {effect.timeout_s // 60} minutes{last}",
                hint="increase `verify.timeout`",
            )
        if status.get("outcome") != "restart-needed":
            break
        if turn == _RESTARTS:
            raise ReportUnavailable(
                f"the cell still requires a restart after {turn} restarts",
                why=_status_text(status, "message"),
                hint="set `isolation: venv` for the target",
            )
        reason = _status_text(status, "message") or "requested by the cell"
        progress(f"Colab: restarting the kernel ({reason})")
        runtimes.restart(effect.session)
    return _validate_report(effect, runtimes.fetch(effect.session, "report.json"), status)


def _validate_report(effect: RunOnColab, report: bytes | None, status: Mapping[str, Any]) -> bytes:
    """Return the report if it is of this run.

    Exit codes of the command line are useless: they are 0 for a cell that raised.
    """
    if report is None or status.get("outcome") in _NO_REPORT:
        raise _report_missing(status)
    try:
        document = json.loads(report)
        nonce, lock = document["subject"]["nonce"], document["lock"]["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        nonce = lock = None
    if nonce != effect.nonce:
        raise ReportUnavailable(
            "the report found on the machine belongs to a different run",
            why="the report's nonce does not match the nonce that was sent",
            hint="run the command again",
        )
    if lock != effect.lock_digest:
        raise ReportUnavailable(
            "the report found on the machine is for a different lock",
            why=f"the report is for the lock with digest {escape_line(str(lock))[:80]}",
            hint="run the command again",
        )
    return report


def _report_missing(status: Mapping[str, Any]) -> ReportUnavailable:
    if not status:
        return ReportUnavailable(
            "the cell did not write a report",
            why="no status for this run was found on the machine",
            hint="see the cell's output above",
        )
    stage, message, hint = (_status_text(status, key) for key in ("stage", "message", "hint"))
    has_failed = status["outcome"] in ("failed", "stopped", "error")
    kind = DeviceFailed if has_failed else ReportUnavailable
    hint = hint or "fix the cause, then run the command again"
    return kind(f"the cell stopped at stage {stage}", why=message, hint=hint)


def _parse_status(content: bytes | None, nonce: str) -> Mapping[str, Any]:
    """Return the status of the cell, {} if it is of another run or malformed."""
    status = parse_message(content)
    is_own = status.get("nonce") == nonce and status.get("outcome") in _OUTCOMES
    return status if is_own else {}


def _status_text(status: Mapping[str, Any], key: str) -> str:
    return escape_line(redact(str(status.get(key) or "")))[:600]
