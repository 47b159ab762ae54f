"""How a run ends: every error becomes a message with its exit code, and no mistake of the user's a traceback."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn, TextIO

import click

from provision.cli.app import app

_BUG = 70
_INTERRUPTED = 130
_TERMINATED = 143
_BROKEN_PIPE = 141


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived: unwound like Ctrl-C, so that children end and what was begun stays written down."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _terminate)
    _open_missing_streams()
    stdout = sys.stdout
    try:
        return _answer(arguments, stdout)
    except BrokenPipeError:
        return _without_output(_BROKEN_PIPE, stdout)
    finally:
        # Else the interpreter looks through all that was imported for garbage as it ends: a tenth of the time of a short command.
        gc.freeze()


def _answer(arguments: list[str] | None, stdout: TextIO) -> int:
    try:
        code = app.main(arguments, prog_name="provision", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted: what was done is recorded; run the command again to go on", _INTERRUPTED)
    except Terminated:
        return _say("terminated: what was done is recorded; run the command again to go on", _TERMINATED)
    except SystemExit:
        if sys.stdout is stdout:
            raise
        # click met a closed pipe: it has put other streams in place and would end with 1, which is the answer "it does not hold".
        return _without_output(_BROKEN_PIPE, stdout)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last net: what is no ProvisionError is our bug
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return _without_output(_say(f"error: cannot write the output: {os.strerror(error.errno)}", 2), stdout)
        return _failed(error)


def _open_missing_streams() -> None:
    """Put the null device in place of standard streams that the caller has closed, so that no file of ours gets their number."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _without_output(code: int, stdout: TextIO) -> int:
    """Return `code`, and keep Python from writing to that output once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    return code


def _failed(error: Exception) -> int:
    from provision.cli import terminal
    from provision.errors import ProvisionError

    if isinstance(error, ProvisionError):
        terminal.show_error(error)
        return error.exit_code
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return _say(f"error: {error.filename}: {os.strerror(error.errno)}", 2)
    return _say(f"this is a bug in provision: {type(error).__name__}; please report it with the file {terminal.write_crash(error)}", _BUG)


def _say(message: str, code: int) -> int:
    from provision.safe import safe

    sys.stderr.write(safe(message) + "\n")
    return code


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def complete(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    maker: Any = get_completion_class(shell)
    return str(maker(app, {}, "provision", "_PROVISION_COMPLETE").source())
