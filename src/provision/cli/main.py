"""How a run ends: every error becomes a message with its exit code, and no mistake of the user's a
traceback.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NoReturn, Self, TextIO

import click

from provision.cli import entry
from provision.cli.app import app
from provision.cli.entry import Terminated

_BUG = 70
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_RESUMABLE = ("apply", "destroy", "verify", "attach")


@dataclass(frozen=True, slots=True)
class ErrorOutput:
    """How errors are told, read from the words before click has understood them: as JSON too, and
    whether 2 is kept for a plan's changes.
    """

    as_json: bool
    reserves_exit_2: bool

    @classmethod
    def from_arguments(cls, words: Sequence[str]) -> Self:
        """Return what the words before the first `--` ask for; of several formats the last one
        counts.
        """
        own = list(words[: words.index("--")] if "--" in words else words)
        joined = " ".join(own).replace("--output-format=", "--output-format ").split(" ")
        forms = [after for word, after in pairwise(joined) if word == "--output-format"]
        return cls(forms[-1:] == ["json"], "--detailed-exitcode" in own)

    def exit_code_for(self, code: int) -> int:
        """Return the exit code of an error whose own is `code`."""
        return 1 if self.reserves_exit_2 and code == 2 else code


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    # a command is short, and looking for garbage while everything is imported takes a tenth of its
    # time
    gc.disable()
    _open_missing_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a name that the encoding cannot say is no error
    stdout = sys.stdout
    try:
        code = _invoke(sys.argv[1:] if arguments is None else arguments, stdout)
    except BrokenPipeError:
        code = _discard_output(_BROKEN_PIPE, stdout)
    finally:
        # Else the interpreter looks through all that was imported for garbage as it ends: a tenth
        # of the time of a short command.
        gc.freeze()
    if arguments is None and "rattler" in sys.modules:
        _exit_now(code)
    return code


def _exit_now(code: int) -> NoReturn:
    """End at once. py-rattler 0.28 leaves threads that still call Python while the interpreter is
    taken down: one run in six then ended by a signal.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _invoke(words: list[str], stdout: TextIO) -> int:
    manner = ErrorOutput.from_arguments(words)
    try:
        _preload_command(words)
        entry.raise_on_signals()
        try:
            code = app.main(words, prog_name="provision", standalone_mode=False)
            sys.stdout.flush()
        finally:
            entry.end_on_signals()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return _report_error(manner, 2, {"what": error.format_message()})
    except (KeyboardInterrupt, click.Abort) as cut:
        return _print_message(f"interrupted{_resume_note(words)}{_error_notes(cut)}", _INTERRUPTED)
    except Terminated as cut:
        return _print_message(
            f"terminated{_resume_note(words)}{_error_notes(cut)}", 128 + cut.number
        )
    except SystemExit:
        if sys.stdout is stdout:
            raise
        # click met a closed pipe: it has put other streams in place and would end with 1, which is
        # the answer "it does not hold".
        return _discard_output(_BROKEN_PIPE, stdout)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001
        if (
            isinstance(error, OSError)
            and error.filename is None
            and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
        ):
            return _discard_output(
                _print_message(
                    f"error: cannot write the output: {os.strerror(error.errno)}",
                    manner.exit_code_for(2),
                ),
                stdout,
            )
        return (
            _handle_error(error, manner)
            if (number := entry.last_signal()) is None
            else _report_signal(error, number, words)
        )


def _report_signal(error: Exception, number: int, words: Sequence[str]) -> int:
    """Return the code of a signal that ended as an error: before 3.12, Python makes a RuntimeError
    of what is raised in `__set_name__`, thus in an import.
    """
    from provision.cli import console
    from provision.errors import ProvisionError

    if isinstance(error, ProvisionError):
        console.print_error(error)
    return _print_message(
        f"{'interrupted' if number == signal.SIGINT else 'terminated'}{_resume_note(words)}{_error_notes(error)}",  # noqa: E501
        128 + number,
    )


def _resume_note(words: Sequence[str]) -> str:
    """Return what a command that changes things leaves behind when it is cut short; "" for one that
    leaves nothing.
    """
    return (
        ": what was done is recorded; run the command again to go on"
        if words and words[0] in _RESUMABLE
        else ""
    )


def _error_notes(cut: BaseException) -> str:
    """Return what was noted of a command on its way out: what still runs, and how to go on. click
    raises an error of its own for Ctrl-C.
    """
    known = [cut, *([cut.__cause__] if cut.__cause__ is not None else [])]
    return "".join(f"\n{note}" for one in known for note in getattr(one, "__notes__", ()))


def _preload_command(words: Sequence[str]) -> None:
    """Import what a verb works with before click is deep in its calls.

    CPython keeps frames in chunks of 16 KiB, and maps and unmaps one anew at each call that
    crosses into it; what is imported at such a depth, where every
    class and annotation calls something, takes 7 % more of the time of a lint
    (python/cpython#142183).
    """
    if not words or words[0] not in app.commands or {"-h", "--help"}.intersection(words):
        return
    verb = (
        "holding"
        if words[0] == "lock" and "--check" in words
        else "receiving"
        if list(words[:2]) == ["report", "add"]
        else words[0]
    )
    if find_spec(room := f"provision.commands.{verb}"):
        import_module(room)


def _open_missing_streams() -> None:
    """Put the null device in place of standard streams that the caller has closed, so that no file
    of ours gets their number.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _discard_output(code: int, stdout: TextIO) -> int:
    """Return `code`, and keep Python from writing to that output once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    return code


def _handle_error(error: Exception, manner: ErrorOutput) -> int:
    if (
        short := _resource_shortage(error)
    ) is not None:  # reported without imports, which open files and take memory
        what, hint = short
        return _report_error(
            manner,
            _print_message(f"error: {what}\n  = help: {hint}", 2),
            {"what": what, "help": hint},
        )
    from provision.cli import console
    from provision.errors import ProvisionError

    if isinstance(error, ProvisionError):
        console.print_error(error)
        return _report_error(
            manner, error.exit_code, console.error_to_json(error), console.error_findings(error)
        )
    if isinstance(error, FileNotFoundError) and _is_working_folder_removed():
        said = {
            "what": "the folder that you are in was removed",
            "help": "go to a folder that exists (cd), and run the command again",
        }
        return _report_error(
            manner, _print_message("error: {what}\n  = help: {help}".format_map(said), 2), said
        )
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        what = f"{error.filename}: {os.strerror(error.errno)}"
        return _report_error(manner, _print_message(f"error: {what}", 2), {"what": what})
    what = (
        f"this is a bug in provision: {type(error).__name__}; please report it with the file "
        f"{console.write_crash_report(error)}"
    )
    return _report_error(manner, _print_message(what, _BUG), {"what": what})


def _resource_shortage(error: BaseException) -> tuple[str, str] | None:
    """Return what this process was not given enough of, and what to do; None for any other error."""  # noqa: E501
    causes = [error, error.__cause__, error.__context__]
    if any(
        isinstance(cause, MemoryError)
        or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM)
        for cause in causes
    ):
        return (
            "there is not enough memory for this command",
            "end other programs, or allow more (ulimit -v, the memory limit of the container)",
        )
    if any(
        isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE)
        for cause in causes
    ):
        return "this process may not open as many files as it needs", "allow more: ulimit -n 1024"
    return None


def _is_working_folder_removed() -> bool:
    """Tell whether the working folder of this process was removed."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _report_error(
    manner: ErrorOutput, code: int, told: dict[str, str], findings: dict[str, Any] | None = None
) -> int:
    """Return the exit code of an error that was said to the person; with JSON asked for, tell it to
    the program too.
    """
    code = manner.exit_code_for(code)
    if manner.as_json:
        document = {
            "version": 1,
            **(findings or {}),
            "error": {"why": "", "help": "", **told, "exit_code": code},
        }
        try:
            sys.stdout.write(json.dumps(document, indent=1) + "\n")
            sys.stdout.flush()
        except OSError:
            return _discard_output(code, sys.stdout)
    return code


def _print_message(message: str, code: int) -> int:
    from provision.sanitize import escape_control

    sys.stderr.write(escape_control(message) + "\n")
    return code


def completion_script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    maker: Any = get_completion_class(shell)
    return str(maker(app, {}, "provision", "_PROVISION_COMPLETE").source())
