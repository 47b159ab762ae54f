"""The end of the log and of the serial console of a run that sent no report."""

from __future__ import annotations

from collections.abc import Iterator

from provision.effects.google import AwaitReport, CloudReader
from provision.errors import ExternalError
from provision.sanitize import escape_control, escape_line, redact

_MAX_LOG_BYTES = 4 * 2**20
_LOG_LINES = 12
_CONSOLE_LINES = 6
_MAX_LINE_LENGTH = 300
_CONSOLE_PREFIX = "provision: "
"""The start of each line that templates/workbench-startup.sh writes to the console."""


def read_log_tail(
    effect: AwaitReport, cloud: CloudReader, *, include_console: bool
) -> Iterator[str]:
    """Yield the last lines of a run's log.

    The state of the instance and the last lines of its console precede them if `include_console`
    is true or the log is empty.
    """
    log = _read_log(effect.bucket_uri, cloud)
    if include_console or not log:
        state = (cloud.instance(effect.name) or {}).get("state")
        yield f"instance: {state or 'gone'}"
        lines = _last_lines(cloud.console(effect.name), _CONSOLE_LINES)
        for line in lines or ["empty or not readable"]:
            yield f"console: {line}"
    for line in _last_lines(log, _LOG_LINES):
        yield f"log: {line}"


def last_console_line(name: str, cloud: CloudReader) -> str:
    """Return the last line of our startup program on an instance's console, "" for none."""
    last = ""
    for line in cloud.console(name).splitlines():
        if _CONSOLE_PREFIX in line:
            last = line.partition(_CONSOLE_PREFIX)[2]
    return escape_line(redact(last))[:_MAX_LINE_LENGTH]


def read_run_log(uri: str, cloud: CloudReader) -> str:
    """Return the sanitized log of a run, "" if it does not exist or cannot be read."""
    try:
        return escape_control(redact(_read_log(uri, cloud)))
    except ExternalError:
        return ""


def _read_log(folder_uri: str, cloud: CloudReader) -> str:
    return (cloud.object(f"{folder_uri}log.txt", _MAX_LOG_BYTES) or b"").decode("utf-8", "replace")


def _last_lines(text: str, count: int) -> list[str]:
    lines = [line for line in escape_control(redact(text)).splitlines() if line.strip()]
    return [line[:_MAX_LINE_LENGTH] for line in lines[-count:]]
