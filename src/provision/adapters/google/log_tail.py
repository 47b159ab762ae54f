"""What is left of a run without a report: the end of its log and of its instance's console, made
harmless; and times in words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from provision.effects import AwaitReport, CloudReader
from provision.errors import ExternalError
from provision.sanitize import escape_control, escape_line, redact

MAX_LOG_BYTES = 4 * 2**20
_LAST_LINES = 12
_CONSOLE_LINES = 6
_LONGEST = 300
_CONSOLE_PREFIX = "provision: "
"""How each line of our program begins on the console (templates/workbench-startup.sh)."""


def read_log_tail(effect: AwaitReport, cloud: CloudReader, *, console: bool) -> Iterator[str]:
    """Yield the last lines of the run's log, as far as they can be read; without one, or with
    `console`, those of the serial console, and the state.
    """
    from provision.adapters.google.reader import read_serial_console as read_console

    log = cloud.object(f"{effect.bucket_uri}log.txt", MAX_LOG_BYTES)
    if console or not log:
        state = (cloud.instance(effect.name) or {}).get("state")
        yield f"instance: {state or 'gone'}"
        lines = _last_lines(read_console(cloud.serial_output, effect.name), _CONSOLE_LINES)
        yield from (f"console: {line}" for line in lines or ["nothing, or it cannot be read"])
    yield from (
        f"log: {line}" for line in _last_lines((log or b"").decode("utf-8", "replace"), _LAST_LINES)
    )


def last_console_line(name: str, cloud: CloudReader) -> str:
    """Return what our program wrote last on the instance's console; "" for nothing."""
    from provision.adapters.google.reader import read_serial_console

    ours = [
        line.partition(_CONSOLE_PREFIX)[2]
        for line in read_serial_console(cloud.serial_output, name).splitlines()
        if _CONSOLE_PREFIX in line
    ]
    return escape_line(redact(ours[-1]))[:_LONGEST] if ours else ""


def read_run_log(uri: str, cloud: CloudReader) -> str:
    """Return the log of a run, made harmless; "" where there is none, or it cannot be read."""
    try:
        return escape_control(
            redact((cloud.object(f"{uri}log.txt", MAX_LOG_BYTES) or b"").decode("utf-8", "replace"))
        )
    except ExternalError:
        return ""


def format_duration(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes"


def format_time(seconds: float) -> str:
    """Return a time of day as 18:05 (UTC)."""
    return time.strftime("%H:%M", time.gmtime(seconds))


def _last_lines(text: str, lines: int) -> list[str]:
    return [line[:_LONGEST] for line in escape_control(redact(text)).splitlines() if line.strip()][
        -lines:
    ]
