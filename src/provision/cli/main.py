"""Runs a command line: every error becomes a message with an exit code, never a traceback."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO, TypeGuard

import click

from provision.cli.app import app
from provision.cli.signals import Terminated, end_on_signals, last_signal, raise_on_signals

if TYPE_CHECKING:
    from provision.kinds import Registry

_BUG = 70
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_RESUMABLE = ("apply", "destroy", "verify", "attach")


@dataclass(frozen=True, slots=True)
class ErrorOutput:
    """The form of errors, read from the arguments before click parses them.

    With `as_json` an error is also a document on standard output; with `reserves_exit_2` the exit
    code 2 means that a plan has changes.
    """

    as_json: bool
    reserves_exit_2: bool

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Self:
        """Return the form that the arguments before the first `--` name; the last format counts."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        own = arguments[:end]
        parts = " ".join(own).replace("--output-format=", "--output-format ").split(" ")
        formats = [value for option, value in pairwise(parts) if option == "--output-format"]
        return cls(formats[-1:] == ["json"], "--detailed-exitcode" in own)

    def exit_code_for(self, code: int) -> int:
        """Return the exit code of an error with the usual exit code `code`."""
        return 1 if self.reserves_exit_2 and code == 2 else code

    def fail(self, what: str, hint: str = "") -> int:
        """Write an error for people and programs; return the exit code."""
        help_line = f"\n  = help: {hint}" if hint else ""
        _print_message(f"error: {what}{help_line}")
        return self.report(2, {"what": what, "help": hint})

    def report(
        self,
        code: int,
        error: Mapping[str, Any],
        errors: Sequence[Mapping[str, Any]] = (),
        findings: Mapping[str, Any] | None = None,
    ) -> int:
        """Write an error that people have read for programs, if they want it; return the code.

        `errors` lists the single errors if `error` sums them up; `error` is kept for programs that
        read the form of earlier versions.
        """
        code = self.exit_code_for(code)
        if not self.as_json:
            return code
        error = {"what": "", "why": "", "help": "", **error}
        document = {
            "version": 1,
            **(findings or {}),
            "errors": errors or [error],
            "error": {**error, "exit_code": code},
        }
        try:
            sys.stdout.write(json.dumps(document, indent=1) + "\n")
            sys.stdout.flush()
        except OSError:
            _discard_output(sys.stdout)
        return code


def main(arguments: list[str] | None = None, registry: Registry | None = None) -> int:
    """Run the command line and return the exit code.

    With `registry`, the commands of this process use its kinds of target, not the built-in ones.
    """
    # A command is short, and collecting garbage during the imports takes a tenth of its time.
    gc.disable()
    _open_missing_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the encoding does not have is not an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    stdout = sys.stdout
    if registry is not None:
        from provision.kinds import registry_in_use

        registry_in_use.set(registry)
    try:
        code = _invoke(sys.argv[1:] if arguments is None else arguments, stdout)
    except BrokenPipeError:
        _discard_output(stdout)
        code = _BROKEN_PIPE
    finally:
        # Without it the interpreter collects garbage in all imported modules as it ends: a tenth
        # of the time of a short command.
        gc.freeze()
    if arguments is None and "rattler" in sys.modules:
        _exit_now(code)
    return code


def _exit_now(code: int) -> NoReturn:
    """End this process without shutting the interpreter down.

    py-rattler 0.28 leaves threads that still call Python during the shutdown: one run in six then
    ended by a signal.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _invoke(arguments: list[str], stdout: TextIO) -> int:
    output = ErrorOutput.from_arguments(arguments)
    try:
        return _run_command(arguments)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _print_message(shown.getvalue().rstrip("\n"))  # it quotes words of the command line
        return output.report(2, {"what": error.format_message(), "help": _usage_hint(error)})
    except (KeyboardInterrupt, click.Abort) as interrupt:
        _print_interrupt("interrupted", arguments, interrupt)
        return _INTERRUPTED
    except Terminated as interrupt:
        _print_interrupt("terminated", arguments, interrupt)
        return 128 + interrupt.number
    except SystemExit:
        if sys.stdout is stdout:
            raise
        # click met a closed pipe: it has replaced the streams, and would end with 1, the exit
        # code of a check that does not hold.
        _discard_output(stdout)
        return _BROKEN_PIPE
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001
        if _is_full_output(error):
            _print_message(f"error: cannot write the output: {os.strerror(error.errno or 0)}")
            _discard_output(stdout)
            return output.exit_code_for(2)
        number = last_signal()
        if number is not None:
            return _report_signal(error, number, arguments)
        return _handle_error(error, output)


def _run_command(arguments: list[str]) -> int:
    raise_on_signals()
    try:
        code = app.main(arguments, prog_name="provision", standalone_mode=False)
        sys.stdout.flush()
    except click.NoSuchOption as error:
        raise _with_suggestion(error) from None
    finally:
        end_on_signals()
    return code if isinstance(code, int) else 0


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"see `{context.command_path} --help`" if context is not None else ""


def _with_suggestion(error: click.NoSuchOption) -> click.UsageError:
    """Return an error with the option that the mistyped one may stand for."""
    from provision.spelling import did_you_mean

    parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    names = [name for option in parameters for name in (*option.opts, *option.secondary_opts)]
    options = [name for name in names if name.startswith("--")]
    suggestion = did_you_mean(error.option_name, options).replace("did", "Did", 1)
    return click.UsageError(
        f"No such option '{error.option_name}'. {suggestion}".rstrip(), error.ctx
    )


def _is_full_output(error: Exception) -> TypeGuard[OSError]:
    """Return whether a write to a stream failed: files have names."""
    return (
        isinstance(error, OSError)
        and error.filename is None
        and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    )


def _report_signal(error: Exception, number: int, arguments: Sequence[str]) -> int:
    """Return the exit code of a signal that ended a command as another error.

    Before 3.12, Python makes a RuntimeError of an exception in `__set_name__`, thus in an import.
    """
    from provision.cli.console import print_error
    from provision.errors import ProvisionError

    if isinstance(error, ProvisionError):
        print_error(error)
    word = "interrupted" if number == signal.SIGINT else "terminated"
    _print_interrupt(word, arguments, error)
    return 128 + number


def _print_interrupt(word: str, arguments: Sequence[str], interrupt: BaseException) -> None:
    """Write how a command ended, how to resume it, and its notes about what still runs."""
    message = word
    if arguments and arguments[0] in _RESUMABLE:
        message += ": completed steps are recorded; run the command again to continue"
    # click raises another error for Ctrl-C.
    for cause in (interrupt, interrupt.__cause__):
        message += "".join(f"\n{note}" for note in getattr(cause, "__notes__", ()))
    _print_message(message)


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller has closed.

    Otherwise a file that provision opens would get the number of the stream.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _discard_output(stdout: TextIO) -> None:
    """Keep Python from writing to an output once more as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _handle_error(error: Exception, output: ErrorOutput) -> int:
    if shortage := _resource_shortage(error):
        # Reported without imports, which open files and take memory.
        return output.fail(*shortage)
    import traceback

    from provision.cli import console
    from provision.errors import ProvisionError

    if isinstance(error, ProvisionError):
        console.print_error(error)
        return output.report(
            error.exit_code,
            console.error_to_json(error),
            console.list_errors(error),
            console.error_findings(error),
        )
    if isinstance(error, FileNotFoundError) and _is_working_folder_removed():
        return output.fail(
            "the current folder was removed",
            "change to an existing folder, and run the command again",
        )
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return output.fail(f"{error.filename}: {os.strerror(error.errno)}")
    trace = "".join(traceback.format_exception(error))
    what = (
        f"this is a bug in provision: {type(error).__name__}; please report it with the file "
        + console.write_temporary_file("provision-bug-", trace)
    )
    _print_message(what)
    return output.report(_BUG, {"what": what})


def _resource_shortage(error: BaseException) -> tuple[str, str] | None:
    """Return the resource that this process ran out of, with a hint; None for another error."""
    causes = (error, error.__cause__, error.__context__)
    numbers = {cause.errno for cause in causes if isinstance(cause, OSError)}
    if errno.ENOMEM in numbers or any(isinstance(cause, MemoryError) for cause in causes):
        return (
            "there is not enough memory for this command",
            (
                "close other programs, or raise the memory limit (`ulimit -v`, or the container's "
                "limit)"
            ),
        )
    if numbers & {errno.EMFILE, errno.ENFILE}:
        return "this process cannot open enough files", "raise the limit with `ulimit -n 1024`"
    return None


def _is_working_folder_removed() -> bool:
    """Return whether the working folder of this process was removed."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _print_message(message: str) -> None:
    from provision.sanitize import escape_control

    sys.stderr.write(escape_control(message) + "\n")
