"""Diagnostic logging to stderr, to a file, and to a rotating file next to the state.

Events are kept in memory until a handler is attached. A command that logs nowhere (`lint`,
`--version`) thus never imports the logging package, and the file next to the state, which is opened
when the state is locked, still begins with the command line.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provision.errors import UsageError
from provision.sanitize import escape_line, redact

if TYPE_CHECKING:
    import logging

_DEBUG, _INFO = 10, 20  # logging.DEBUG and logging.INFO, without importing logging
_MAX_PENDING_EVENTS = 2000
MAX_FILE_BYTES = 512 * 2**10
_BACKUP_FILES = 2
_MAX_LINE_LENGTH = 4000
_SECRET_NAME = re.compile(r"(?i)token|key|secret|passw|credential|auth")
_SHORTEST_SECRET = 6


class _Event(NamedTuple):
    created: float
    level: int
    message: str
    arguments: tuple[object, ...]


class EventLog:
    """The log of this process. Messages are %-formatted like those of the logging package."""

    def __init__(self) -> None:
        self._events: deque[_Event] = deque(maxlen=_MAX_PENDING_EVENTS)
        self._handlers: list[logging.Handler] = []

    def info(self, message: str, *arguments: object) -> None:
        """Log an action on the outside: a program, a request, a retry, a write."""
        self._log(_INFO, message, arguments)

    def debug(self, message: str, *arguments: object) -> None:
        """Log the outcome of an action."""
        self._log(_DEBUG, message, arguments)

    def attach(self, handler: logging.Handler, level: int, secrets: Sequence[str]) -> None:
        """Add a handler, and give it the events so far; secrets are removed from its output."""
        handler.setLevel(level)
        handler.addFilter(_redaction_filter(secrets))
        # A full disk or a closed stream must not end the command, nor print a traceback.
        handler.handleError = lambda record: None  # type: ignore[method-assign]  # noqa: ARG005
        self._handlers.append(handler)
        for event in tuple(self._events):
            _handle(event, handler)

    def writes_to(self, path: Path) -> bool:
        """Return whether a handler writes to the file that is at a path now."""
        if not self._handlers:
            return False
        from logging import FileHandler

        with suppress(OSError, ValueError):  # there is no file, or its stream is closed
            file = path.stat()
            return any(
                os.path.samestat(file, os.fstat(handler.stream.fileno()))
                for handler in self._handlers
                if isinstance(handler, FileHandler) and handler.stream
            )
        return False

    @property
    def handler_count(self) -> int:
        """How many files and streams each event is written to."""
        return len(self._handlers)

    def reset(self) -> None:
        """Forget all events, and close the handlers."""
        for handler in self._handlers:
            with suppress(OSError):  # a full disk
                handler.close()
        self._handlers.clear()
        self._events.clear()

    def _log(self, level: int, message: str, arguments: tuple[object, ...]) -> None:
        event = _Event(time.time(), level, message, arguments)
        self._events.append(event)
        for handler in self._handlers:
            _handle(event, handler)


_MAX_HANDLERS = 8
"""Files and streams of one log. Our choice."""
log = EventLog()


def configure_logging(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    verbosity: int = 0,
    log_file: Path | None = None,
) -> None:
    """Start the log of a command with its version and command line. Called once per command.

    Args:
        argv: the arguments of the command line.
        environment: the variables of the process; values of secret variables are never logged.
        verbosity: 1 shows actions on stderr, 2 their outcome too.
        log_file: a file to append everything to.

    Raises:
        UsageError: the log file cannot be written.
    """
    from provision import __version__

    log.reset()
    secrets = secret_values(environment)
    log.info("provision %s, Python %s", __version__, sys.version.split()[0])
    log.info("command line: %s", format_argv(["provision", *_without_program_arguments(argv)]))
    if verbosity:
        from logging import StreamHandler

        stream = StreamHandler(sys.stderr)
        stream.setFormatter(_formatter("%H:%M:%S"))
        log.attach(stream, _INFO if verbosity == 1 else _DEBUG, secrets)
    if log_file is not None:
        try:
            log.attach(_file_handler(log_file), _DEBUG, secrets)
        except OSError as error:
            raise UsageError(
                f"cannot write the log file {log_file}",
                why=os.strerror(error.errno or 0),
                hint="use a file in an existing folder, for example --log-file provision.log",
            ) from error


def open_state_log(
    folder: Path, environment: Mapping[str, str], max_bytes: int = MAX_FILE_BYTES
) -> None:
    """Log to logs/provision.log below the state's folder, which exists; never fails.

    Called when the state is locked, thus only by commands that change something. A file that the
    log writes to already is not opened again, and one above `max_bytes` is rotated. A command for
    many folders logs in the first ones, since each line goes to all files.
    """
    logs = folder / "logs"
    try:
        logs.mkdir(mode=0o700, exist_ok=True)
        if logs.is_symlink() or log.writes_to(logs / "provision.log"):
            return
        if log.handler_count >= _MAX_HANDLERS:
            return
        handler = _file_handler(logs / "provision.log", max_bytes)
    except OSError:
        return
    log.attach(handler, _DEBUG, secret_values(environment))


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names mark them as secret, but not paths of files."""
    return [
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name)
        and len(value) >= _SHORTEST_SECRET
        and not os.path.exists(value)  # noqa: PTH110
    ]


def format_argv(argv: Sequence[str]) -> str:
    """Return a command line as text."""
    import shlex

    return shlex.join(argv)


def _without_program_arguments(argv: Sequence[str]) -> list[str]:
    """Return a command line up to the program after `--`: its arguments may be secrets."""
    end = argv.index("--") + 2 if "--" in argv else len(argv)
    return [*argv[:end], "..."] if len(argv) > end else list(argv)


def _handle(event: _Event, handler: logging.Handler) -> None:
    import logging

    if event.level < handler.level:
        return
    record = logging.LogRecord(
        "provision", event.level, "", 0, event.message, event.arguments, None
    )
    record.created = event.created
    handler.handle(record)


def _formatter(date_format: str) -> logging.Formatter:
    import logging

    formatter = logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s", date_format)
    formatter.converter = time.gmtime
    return formatter


def _redaction_filter(secrets: Sequence[str]) -> logging.Filter:
    """Return a filter that makes each record one line without control characters and secrets."""
    import logging

    class RedactionFilter(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            try:
                message = record.getMessage()
            except (TypeError, ValueError):  # a message that does not fit its arguments
                message = f"{record.msg} {record.args}"
            # Redacted before it is cut: half of a secret has no recognizable shape.
            record.msg = escape_line(redact(message, secrets))[:_MAX_LINE_LENGTH]
            record.args = ()
            return True

    return RedactionFilter()


def _file_handler(path: Path, max_bytes: int = 0) -> logging.Handler:
    """Return the handler of a file. With `max_bytes` it is ours: rotated, and never a link."""
    from logging.handlers import RotatingFileHandler

    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    if max_bytes:
        flags |= os.O_NOFOLLOW

    class PrivateFileHandler(RotatingFileHandler):
        def _open(self) -> Any:
            descriptor = os.open(self.baseFilename, flags, 0o600)
            return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    handler = PrivateFileHandler(path, maxBytes=max_bytes, backupCount=_BACKUP_FILES)
    handler.setFormatter(_formatter("%Y-%m-%dT%H:%M:%SZ"))
    return handler
