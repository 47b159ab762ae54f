"""What is left of a run without a report: the end of its log and of its instance's console, made harmless; and times in words."""

from __future__ import annotations

import time
from collections.abc import Iterator

from provision.effects import AwaitReport, CloudReader
from provision.errors import WorldError
from provision.safe import redact, safe, safe_line

LOG_LIMIT = 4 * 2**20
_LAST_LINES = 12
_CONSOLE_LINES = 6
_LONGEST = 300
_OURS = "provision: "
"""How each line of our program begins on the console (templates/workbench-startup.sh)."""


def last_words(effect: AwaitReport, cloud: CloudReader, *, console: bool) -> Iterator[str]:
    """Yield the last lines of the run's log, as far as they can be read; without one, or with `console`, those of the serial console, and the state."""
    from provision.world.cloud.reader import console as read_console

    log = cloud.object(f"{effect.bucket_uri}log.txt", LOG_LIMIT)
    if console or not log:
        state = (cloud.instance(effect.name) or {}).get("state")
        yield f"instance: {state or 'gone'}"
        lines = _ends(read_console(cloud.serial_output, effect.name), _CONSOLE_LINES)
        yield from (f"console: {line}" for line in lines or ["nothing, or it cannot be read"])
    yield from (f"log: {line}" for line in _ends((log or b"").decode("utf-8", "replace"), _LAST_LINES))


def console_line(name: str, cloud: CloudReader) -> str:
    """Return what our program wrote last on the instance's console; "" for nothing."""
    from provision.world.cloud.reader import console

    ours = [line.partition(_OURS)[2] for line in console(cloud.serial_output, name).splitlines() if _OURS in line]
    return safe_line(redact(ours[-1]))[:_LONGEST] if ours else ""


def log_of(uri: str, cloud: CloudReader) -> str:
    """Return the log of a run, made harmless; "" where there is none, or it cannot be read."""
    try:
        return safe(redact((cloud.object(f"{uri}log.txt", LOG_LIMIT) or b"").decode("utf-8", "replace")))
    except WorldError:
        return ""


def lasting(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes"


def clock_time(seconds: float) -> str:
    """Return a time of day as 18:05 (UTC)."""
    return time.strftime("%H:%M", time.gmtime(seconds))


def _ends(text: str, lines: int) -> list[str]:
    return [line[:_LONGEST] for line in safe(redact(text)).splitlines() if line.strip()][-lines:]
