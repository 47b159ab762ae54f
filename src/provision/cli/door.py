"""How a run ends: every error becomes a message with its exit code, and no mistake of the user's a traceback."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last net: what is no ProvisionError is our bug
        return _failed(error)


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
