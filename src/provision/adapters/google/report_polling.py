"""Waits for the report of a run on a device, and validates it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provision.adapters.google.log_tail import last_console_line, read_log_tail
from provision.adapters.google.retry import format_duration, format_time
from provision.effects.google import AwaitReport, CloudReader
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError
from provision.sanitize import escape_control, escape_line, redact

GUEST_NAMESPACE = "provision"
MAX_REPORT_BYTES = 8 * 2**20
MAX_STATUS_BYTES = 64 * 2**10
_ENDED_STATES = ("STOPPED", "STOPPING", "SUSPENDED", "DELETED", "ORPHANED")
_NO_STATUS_YET = "boot: no status from the device yet"
_CONSOLE_FAILURE_PREFIX = "ended in phase"
"""The program's console text for a failure before its first status (workbench-startup.sh)."""
_VERIFY_PHASES = ("verify", "report")
_PHASES = {
    "start": "boot: the instance is running its program",
    "deadline": (
        "boot: `max_lifetime` is declared, but the shutdown timer could not be set, so the "
        "instance powers itself off"
    ),
    "driver": "driver: waiting for the NVIDIA driver",
    "system": "packages: installing system packages",
    "python": "packages: preparing Python",
    "packages": "packages",
    "kernel": "kernel: registering with Jupyter",
    "verify": "verification: the probe is running on the device",
    "report": "verification: the device is uploading its report",
}


class ReportUnavailable(ExternalError):
    """No acceptable report came: the environment on the device is unverified."""

    exit_code = 3


class ReportTimeout(ReportUnavailable):
    """A limit ended the wait; the device may still be working."""


class DeviceFailed(ReportUnavailable):
    """The device reported that it could not create the environment."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class PollingClock:
    """The clocks of a wait, and its intervals in seconds.

    20 seconds between polls are three requests a minute; all readers of an instance's guest
    attributes share ten (Compute Engine documentation, Guest attributes). `heartbeat_s` is how
    often a wait without news is reported. `silence_limit_s` is how long a device may send nothing
    at all; its program starts some minutes after the instance is ACTIVE. Our choice.
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
    """Return the report of a run. May block for an hour.

    It is accepted if it carries our nonce and has the sha256 that the device announced. If guest
    attributes are unreadable, the status object in the bucket replaces them, at the end only.

    Raises:
        ReportTimeout: the device sent nothing at all, or the verification or the run took too long.
        DeviceFailed: the device reported a failure.
        ReportUnavailable: the instance ended, or the report is not acceptable.
    """
    return _ReportPoller(effect, cloud, progress, clock).report()


class _ReportPoller:
    """The state of one wait: the latest phase of the device, its text, and times."""

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
            report = self._poll_once()
            if report is not None:
                return report
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
        """Poll once, report what is new, and return the report if it is complete."""
        effect, cloud = self._effect, self._cloud
        attributes = cloud.guest_attributes(effect.name, GUEST_NAMESPACE)
        if attributes is None and self._readable:
            self._progress(
                "the instance's guest attributes cannot be read; its status arrives through "
                "the bucket at the end"
            )
        self._readable = attributes is not None
        result = self._parse_own((attributes or {}).get("result"))
        status = self._parse_own((attributes or {}).get("status"))
        if not status:
            uri = f"{effect.bucket_uri}status.json"
            status = self._parse_own(cloud.object(uri, MAX_STATUS_BYTES))
        if status:
            self._show_status(status)
        if result or status.get("s") == "done":
            report = cloud.object(f"{effect.bucket_uri}report.json", MAX_REPORT_BYTES)
            if report is not None:
                return _validate_report(report, effect, result)
        if status.get("s") == "error":
            raise self._error(DeviceFailed, _device_error_text(status))
        if attributes == {}:
            why = (cloud.guest_attributes(effect.name, "sandbox") or {}).get("unbooted")
            if why is not None:
                raise ReportUnavailable(
                    "the startup program was not run because this machine cannot isolate it",
                    why=escape_control(why),
                    hint="all other parts of the sandbox work; to run the startup program, use "
                    "a Linux machine that allows unprivileged user namespaces",
                )
        instance = cloud.instance(effect.name) or {"state": "DELETED"}
        state = str(instance.get("state", ""))
        if state in _ENDED_STATES:
            raise self._error(
                ReportUnavailable, f"the instance is {state} and did not send a report"
            )
        return None

    def _parse_own(self, content: str | bytes | None) -> Mapping[str, Any]:
        """Return a message of the device, {} if it is not of our run."""
        message = parse_message(content)
        return message if message.get("n") == self._effect.nonce else {}

    def _show_status(self, status: Mapping[str, Any]) -> None:
        phase, text = str(status.get("p", "")), _phase_text(status)
        if text == self._status_text:
            return
        if phase != self._phase:
            self._phase, self._since = phase, self._clock.now()
        self._status_text, self._last_status_at = text, self._clock.now()
        self._last_shown_at = self._last_status_at
        self._progress(text)

    def _limit(self) -> tuple[float, str]:
        """Return the time at which the wait ends without news, and the reason to show then."""
        end, clock = self._began + self._effect.timeout_s, self._clock
        whole = f"no report arrived within {format_duration(self._effect.timeout_s)}"
        if self._phase in _VERIFY_PHASES:
            until = self._since + self._effect.verify_s
            why = (
                "the verification did not end within "
                f"{format_duration(self._effect.verify_s)} (verify.timeout plus a "
                "few minutes for the report)"
            )
        elif not self._phase and self._readable and not self._by_console:
            until = self._began + clock.silence_limit_s
            why = (
                f"the device sent no status within {format_duration(clock.silence_limit_s)}: "
                "its program did not start, or its messages do not arrive"
            )
        else:
            return end, whole
        return (until, why) if until < end else (end, whole)

    def _is_running_by_console(self) -> bool:
        """Return whether the console shows that the program of a device without a status runs.

        It cannot write guest attributes then, and its result comes at the end.
        """
        line = last_console_line(self._effect.name, self._cloud)
        self._by_console = bool(line) and not line.startswith(_CONSOLE_FAILURE_PREFIX)
        if self._by_console:
            self._progress(
                "the device does not write guest attributes, but its console shows that its "
                "program is running; its status arrives through the bucket at the end"
            )
        return self._by_console

    def _show_heartbeat(self, until: float) -> None:
        """Report, after a while without news, the phase with its start and its limit."""
        clock = self._clock
        if clock.now() - self._last_shown_at < clock.heartbeat_s:
            return
        self._last_shown_at, ahead = clock.now(), clock.wall_time() - clock.now()
        limits = (
            f"since {format_time(self._since + ahead)}, until {format_time(until + ahead)} UTC "
            "at the latest"
        )
        line = f"still {self._status_text} ({limits})"
        if not self._readable or self._by_console:
            console_line = last_console_line(self._effect.name, self._cloud)
            if console_line:
                line += f"; its console: {console_line}"
        self._progress(line)

    def _error(self, kind: type[ReportUnavailable], why: str) -> ReportUnavailable:
        """Return the error with the latest status and the end of the log."""
        facts = [why]
        if kind is ReportTimeout:
            latest = "none"
            if self._phase:
                age = format_duration(self._clock.now() - self._last_status_at)
                latest = f"{self._status_text}, {age} ago"
            attributes = "not readable (because of a policy or a missing role)"
            if self._readable:
                attributes = "readable"
            facts += [f"last status: {latest}", f"guest attributes: {attributes}"]
        include_console = kind is not DeviceFailed
        facts += read_log_tail(self._effect, self._cloud, include_console=include_console)
        instance = self._effect.name.rpartition("/")[2]
        return kind(f"{instance} was not verified", why="\n".join(facts))


def _validate_report(report: bytes, effect: AwaitReport, result: Mapping[str, Any]) -> bytes:
    advice = "check who has write access, then verify again"
    if result and result.get("sha256") != hashlib.sha256(report).hexdigest():
        raise ReportUnavailable(
            "the report in the bucket is not the one that the device wrote",
            why="its sha256 does not match the sha256 that the device published",
            hint="someone else may have written to the bucket, or the device may have written "
            f"a second report; {advice}",
        )
    subject = parse_message(report, len(report)).get("subject")
    if not isinstance(subject, dict) or subject.get("nonce") != effect.nonce:
        raise ReportUnavailable(
            "the report in the bucket belongs to a different run",
            why="the report's nonce does not match the nonce that was sent",
            hint=f"someone else may have written to the bucket; {advice}",
        )
    return report


def parse_message(content: str | bytes | None, limit: int = MAX_STATUS_BYTES) -> dict[str, Any]:
    """Return the JSON object that a device wrote, {} if it is malformed or too long."""
    if not content or len(content) > limit:
        return {}
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _phase_text(status: Mapping[str, Any]) -> str:
    phase = str(status.get("p", ""))
    if phase == "packages" and isinstance(status.get("of"), int) and status["of"]:
        done = status.get("i")
        return f"packages: {done if isinstance(done, int) else 0} of {status['of']}"
    return _PHASES.get(phase, escape_line(phase)[:80])


def _device_error_text(status: Mapping[str, Any]) -> str:
    text = status.get("e") or f"exit code {status.get('exit')}, line {status.get('line')}"
    reason = escape_line(redact(str(text)))[:600]
    return f"in phase {escape_line(str(status.get('p', '')))[:40]}: {reason}"
