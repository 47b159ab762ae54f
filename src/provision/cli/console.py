"""The terminal: results on standard output; notes, progress and questions on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from provision.errors import Refused
from provision.sanitize import escape_control, escape_workflow_commands

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


def supports_color(stream: object = None) -> bool:
    """Return whether a stream shows colours: a terminal, unless the environment decides.

    NO_COLOR and TERM=dumb switch colours off, FORCE_COLOR switches them on.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    is_terminal = getattr(stream or sys.stdout, "isatty", bool)()
    return bool(is_terminal) and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return the terminal's width in cells; 100 without a terminal."""
    return get_terminal_size((100, 25)).columns


def print_result(text: str) -> None:
    """Write a result to standard output as it is."""
    sys.stdout.write(_end_line(text))


def print_json(document: object, *, indent: int | None = 1, sort_keys: bool = False) -> None:
    """Write a result for programs to standard output."""
    print_result(json.dumps(document, indent=indent, sort_keys=sort_keys))


def print_view(text: str) -> None:
    """Write a view's text to standard output: harmless already, perhaps with our colours."""
    print_result(escape_for_log(text))


def print_text(text: str) -> None:
    """Write a result in plain words, which may contain foreign text, to standard output."""
    print_view(escape_control(text))


def print_row(label: str, text: str) -> None:
    """Write a label and its text, which may contain foreign text, as one line of a table."""
    print_text(f"{label:<12} {text}")


def escape_for_log(text: str) -> str:
    """Return text without the workflow commands that a log of GitHub Actions would run."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return escape_workflow_commands(text)
    return text


def print_note(text: str) -> None:
    """Write a remark to standard error."""
    print_stderr(escape_control(text) + "\n")
    sys.stderr.flush()


def print_stderr(text: str) -> None:
    """Write a view's text to standard error: harmless already, perhaps with our colours."""
    sys.stderr.write(_end_line(escape_for_log(text)))


def confirm(question: str, *, yes: bool, doing: str) -> None:
    """Ask, and return when the answer is yes.

    Raises:
        Refused: the answer is no, or nobody can answer and the command line has no --yes.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"{doing} changes things, and there is no terminal to ask on",
            hint="say --yes to go ahead",
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("declined: nothing was changed")


class Progress:
    """Shows the steps of a command as plain lines."""

    def __call__(self, text: str) -> None:
        """Show the step that begins."""
        print_note(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        yield


class SpinnerProgress(Progress):
    """Shows the current step next to a spinner, and a line with its time when it is done."""

    def __init__(self, terminal: Console, spinner: Status) -> None:
        self._terminal = terminal
        self._spinner = spinner
        self._step: tuple[str, float] | None = None

    def __call__(self, text: str) -> None:
        """Finish the step before, and show the step that begins."""
        from rich.markup import escape

        self.finish_step()
        markup = escape(escape_control(text))
        self._step = (markup, time.monotonic())
        self._spinner.update(markup)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        self.finish_step()
        self._spinner.stop()
        yield
        self._spinner.start()

    def finish_step(self) -> None:
        """Write the current step with the time that it took."""
        if self._step is None:
            return
        markup, start = self._step
        self._step = None
        seconds = time.monotonic() - start
        self._terminal.print(f"[green]done[/] {markup} [dim]{seconds:.1f} s[/]", soft_wrap=True)


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield what shows each step: a spinner on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Progress()
        return
    from rich.console import Console

    terminal = Console(stderr=True, highlight=False)
    with terminal.status("reading the spec") as spinner:
        steps = SpinnerProgress(terminal, spinner)
        yield steps
        steps.finish_step()


def _end_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
