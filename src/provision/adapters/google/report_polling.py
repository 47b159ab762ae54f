"""Waiting for the report of a run on a device: what it tells on its way, the limits that end it,
and the one report that is accepted in the end.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provision.adapters.durations import format_duration, format_time
from provision.adapters.google.log_tail import last_console_line, read_log_tail
from provision.effects.google import AwaitReport, CloudReader
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError
from provision.sanitize import escape_control, escape_line, redact

GUEST_NAMESPACE = "provision"
MAX_REPORT_BYTES = 8 * 2**20
_MAX_STATUS_BYTES = 64 * 2**10
_ENDED_STATES = ("STOPPED", "STOPPING", "SUSPENDED", "DELETED", "ORPHANED")
_NO_STATUS_YET = "boot: no word from the device yet"
_CONSOLE_FAILURE_PREFIX = "ended in phase"
"""What the program says on the console when it failed before it could tell
(templates/workbench-startup.sh).
"""
_VERIFY_PHASES = ("verify", "report")
_PHASES = {
    "start": "boot: the instance runs its program",
    "deadline": "boot: max_lifetime is declared and no deadline could be armed, so the instance powers "  # noqa: E501
    "itself off",
    "driver": "driver: waiting for the NVIDIA driver",
    "system": "packages: installing system packages",
    "python": "packages: preparing Python",
    "packages": "packages",
    "kernel": "kernel: registering with Jupyter",
    "verify": "verification: the probe runs on the device",
    "report": "verification: the report is on its way",
}


class ReportUnavailable(ExternalError):
    """No report that can be accepted came: the environment there is unverified."""

    exit_code = 3


class ReportTimeout(ReportUnavailable):
    """A limit ended the wait; the device may still be at it."""


class DeviceFailed(ReportUnavailable):
    """The device said that it could not make the environment."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class PollingClock:
    """How waiting is done: seconds between two questions, the clock (never set back), how to sleep,
    and the time of day in seconds.

    20 seconds keep to three questions a minute; all who ask an instance for guest attributes
    have ten (Compute Engine documentation, Guest attributes).
    `beat_s`: nothing new for that long is said too. `silent_s`: a device that says nothing at
    all for that long is given up; it speaks as soon as its program
    runs, some minutes after the instance is ACTIVE. Our choice.
    """

    interval_s: float = 20.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    heartbeat_s: float = 60.0
    silence_limit_s: float = 1200.0
    wall_time: Callable[[], float] = time.time


LOOPBACK_CLOCK = PollingClock(interval_s=0.5, heartbeat_s=15.0, silence_limit_s=60.0)
"""For a device on this machine: nobody counts the questions, and it boots in a second."""


def await_report(
    effect: AwaitReport, cloud: CloudReader, progress: ProgressCallback, clock: PollingClock
) -> bytes:
    """Return the report of one run as soon as it is there: it carries our nonce, and its bytes have
    the sha256 that the device told.

    Where guest attributes cannot be read, the status object in the bucket tells the same, at the
    end only. Raises NoReport with what was seen last: Overdue at
    a limit (the device said nothing at all, its verification takes longer than it may, or the
    whole does), DeviceFailed where it said so itself.
    """
    return _ReportPoller(effect, cloud, progress, clock).report()


class _ReportPoller:
    """One wait: `phase` is what the device told last ("" for nothing yet), `since` when that began,
    `said` the words for it.

    `heard` is when it told something new, `told` when we did.
    """

    def __init__(
        self,
        effect: AwaitReport,
        cloud: CloudReader,
        progress: ProgressCallback,
        clock: PollingClock,
    ) -> None:
        self._effect, self._cloud, self._progress, self._clock = effect, cloud, progress, clock
        self._began = self._since = self._last_status_at = self._last_shown_at = clock.now()
        self._phase, self._status_text = "", _NO_STATUS_YET
        self._readable, self._by_console = True, False

    def report(self) -> bytes:
        while True:
            found = self._poll_once()
            if found is not None:
                return found
            until, why = self._limit()
            if self._clock.now() >= until:
                if (
                    self._readable
                    and not self._phase
                    and not self._by_console
                    and self._is_running_by_console()
                ):
                    continue
                raise self._error(ReportTimeout, why)
            self._show_heartbeat(until)
            self._clock.sleep(min(self._clock.interval_s, max(0.0, until - self._clock.now())))

    def _poll_once(self) -> bytes | None:
        """Ask once, tell what is new, and return the report when it is there."""
        effect, cloud = self._effect, self._cloud
        attributes = cloud.guest_attributes(effect.name, GUEST_NAMESPACE)
        if attributes is None and self._readable:
            self._progress(
                "guest attributes of the instance cannot be read: its status comes through "
                "the bucket, at the end"
            )
        self._readable = attributes is not None
        result = _parse_own_message((attributes or {}).get("result", ""), effect.nonce)
        status = _parse_own_message(
            (attributes or {}).get("status", ""), effect.nonce
        ) or _parse_own_message(
            cloud.object(f"{effect.bucket_uri}status.json", _MAX_STATUS_BYTES) or b"", effect.nonce
        )
        if status:
            self._show_status(status)
        if result is not None or (status or {}).get("s") == "done":
            report = cloud.object(f"{effect.bucket_uri}report.json", MAX_REPORT_BYTES)
            if report is not None:
                return _validate_report(report, effect, result)
        if (status or {}).get("s") == "error":
            raise self._error(DeviceFailed, _device_error_text(status or {}))
        if (
            attributes == {}
            and (why := (cloud.guest_attributes(effect.name, "sandbox") or {}).get("unbooted"))
            is not None
        ):
            raise ReportUnavailable(
                "the startup program was not run: no machine can be isolated here",
                why=escape_control(why),
                hint="the rest of the sandbox works as it is",
            )
        if (
            state := str((cloud.instance(effect.name) or {"state": "DELETED"}).get("state", ""))
        ) in _ENDED_STATES:
            raise self._error(ReportUnavailable, f"the instance is {state}, and it sent no report")
        return None

    def _show_status(self, status: Mapping[str, Any]) -> None:
        phase, said = str(status.get("p", "")), _phase_text(status)
        if said == self._status_text:
            return
        if phase != self._phase:
            self._phase, self._since = phase, self._clock.now()
        self._status_text, self._last_status_at = said, self._clock.now()
        self._last_shown_at = self._last_status_at
        self._progress(said)

    def _limit(self) -> tuple[float, str]:
        """Return until when this may go on without anything new, and what is said when that is
        over.
        """
        end, clock = self._began + self._effect.timeout_s, self._clock
        whole = f"the report did not come within {format_duration(self._effect.timeout_s)}"
        if self._phase in _VERIFY_PHASES:
            until = self._since + self._effect.verify_s
            why = (
                f"the verification did not end within {format_duration(self._effect.verify_s)} "
                "(verify.timeout, and a few minutes for the report)"
            )
        elif not self._phase and self._readable and not self._by_console:
            until = self._began + clock.silence_limit_s
            why = (
                f"the device said nothing within {format_duration(clock.silence_limit_s)}: its "
                "program did not start, or cannot be heard"
            )
        else:
            return end, whole
        return (until, why) if until < end else (end, whole)

    def _is_running_by_console(self) -> bool:
        """Tell whether the console shows that the program of a silent device runs: then it cannot
        write guest attributes, and is heard at the end.
        """
        line = last_console_line(self._effect.name, self._cloud)
        self._by_console = bool(line) and not line.startswith(_CONSOLE_FAILURE_PREFIX)
        if self._by_console:
            self._progress(
                "the device writes no guest attributes, but its console shows that its "
                "program runs: its status comes through the bucket, at the end"
            )
        return self._by_console

    def _show_heartbeat(self, until: float) -> None:
        """Say that nothing is new, where nothing was said for a while: what is waited for, since
        when, and until when at most.
        """
        clock = self._clock
        if clock.now() - self._last_shown_at < clock.heartbeat_s:
            return
        self._last_shown_at, ahead = clock.now(), clock.wall_time() - clock.now()
        limits = (
            f"since {format_time(self._since + ahead)}, until {format_time(until + ahead)} UTC "
            "at the latest"
        )
        heard = (
            ""
            if self._readable and not self._by_console
            else last_console_line(self._effect.name, self._cloud)
        )
        self._progress(f"still {self._status_text} ({limits}){heard and f'; its console: {heard}'}")

    def _error(self, kind: type[ReportUnavailable], why: str) -> ReportUnavailable:
        """Return the error with what was seen last."""
        seen = (
            f"last word: {self._status_text}, "
            f"{format_duration(self._clock.now() - self._last_status_at)} ago"
            if self._phase
            else "last word: none"
        )
        heard = (
            "readable" if self._readable else "cannot be read (a policy, or a role that is missing)"
        )
        facts = [why, seen, f"guest attributes: {heard}"] if kind is ReportTimeout else [why]
        text = "\n".join(
            [
                *facts,
                *read_log_tail(self._effect, self._cloud, include_console=kind is not DeviceFailed),
            ]
        )
        return kind(f"{self._effect.name.rpartition('/')[2]} was not verified", why=text)


def _validate_report(report: bytes, effect: AwaitReport, result: Mapping[str, Any] | None) -> bytes:
    if result is not None and result.get("sha256") != hashlib.sha256(report).hexdigest():
        hint = (
            "someone else can write to the bucket, or the run was repeated: look at who may, "
            "then have it verify itself again"
        )
        raise ReportUnavailable(
            "the report in the bucket is not the one that the device told of",
            why="its sha256 differs",
            hint=hint,
        )
    try:
        nonce = json.loads(report)["subject"]["nonce"]
    except (ValueError, KeyError, TypeError, RecursionError):
        nonce = None
    if nonce != effect.nonce:
        hint = (
            "someone else can write to the bucket: look at who may, then have it verify itself "
            "again"
        )
        raise ReportUnavailable(
            "the report in the bucket answers another run",
            why="its nonce is not the one that was sent",
            hint=hint,
        )
    return report


def _parse_own_message(text: str | bytes, nonce: str) -> dict[str, Any] | None:
    """Return what a device told, where it is of our run; anything else is nobody's."""
    try:
        told = json.loads(text) if text and len(text) <= _MAX_STATUS_BYTES else None
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and told.get("n") == nonce else None


def _phase_text(status: Mapping[str, Any]) -> str:
    phase = str(status.get("p", ""))
    if phase == "packages" and isinstance(status.get("of"), int) and status["of"]:
        done = status.get("i")
        return f"packages: {done if isinstance(done, int) else 0} of {status['of']}"
    return _PHASES.get(phase, escape_line(phase)[:80])


def _device_error_text(status: Mapping[str, Any]) -> str:
    reason = escape_line(
        redact(str(status.get("e") or f"exit code {status.get('exit')}, line {status.get('line')}"))
    )[:600]
    return f"in phase {escape_line(str(status.get('p', '')))[:40]}: {reason}"
