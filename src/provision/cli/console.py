"""Streams of a command: results on standard output; notes, errors and questions on stderr."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from provision.errors import ExternalError, ProvisionError, Refused
from provision.sanitize import escape_control, escape_line, escape_workflow_commands, redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.status import Status

    from provision.diagnostics import Diagnostic
    from provision.effects.system import System
    from provision.source import Source

_MAX_REASON_LINES = 40
"""Longest reason that is shown whole, in lines. Our choice."""


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


def print_document(**fields: object) -> None:
    """Write the fields of a result for programs, after the version of their form."""
    print_json({"version": 1, **fields})


def print_view(text: str) -> None:
    """Write a view's text to standard output: harmless already, perhaps with our colours."""
    print_result(escape_for_log(text))


def print_rendered(render: Callable[..., str], *values: object) -> None:
    """Write values as a view renders them for the colours and the width of this terminal."""
    print_view(render(*values, supports_color(), width()))


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


def print_findings(diagnostics: Sequence[Diagnostic], source: Source) -> None:
    """Write findings of a spec, if there are any, to standard error as frames."""
    if not diagnostics:
        return
    from provision.views.diagnostics import text

    print_stderr(text.render_findings(diagnostics, source, supports_color(sys.stderr), width()))


def print_error(error: ProvisionError) -> None:
    """Write an error to standard error: findings as frames, others as what, why and help."""
    from provision.commands.shared.load import SpecHasErrors
    from provision.views.formatting import Style, Styler

    if isinstance(error, SpecHasErrors):
        print_findings(error.diagnostics, error.source)
        print_note(error.what)
        return
    pen = Styler(supports_color(sys.stderr))
    print_stderr(f"{pen('error', Style.ERROR)}: {escape_line(redact(error.what))}")
    for label, paragraph in (("why:", error.why), ("help:", error.hint)):
        margin = pen(label, Style.INFO)
        for line in _last_lines(escape_control(redact(paragraph))):
            print_stderr(f"  {margin} {line}")
            margin = " " * len(label)


def print_errors(failed: Mapping[str, ProvisionError], kind: str = "target") -> None:
    """Write the errors of single targets (or projects, as `kind` names them) to standard error."""
    for name, error in failed.items():
        print_note(f"\n{kind} {name}:")
        print_error(error)


def errors_to_json(
    failed: Mapping[str, ProvisionError], kind: str = "target"
) -> list[dict[str, Any]]:
    """Return the errors of single targets (or projects) as data, with the findings of the spec."""
    documents = []
    for name, error in failed.items():
        document = {kind: name, **error_to_json(error), "exit_code": error.exit_code}
        if findings := error_findings(error):
            document["diagnostics"] = findings["diagnostics"]
        documents.append(document)
    return documents


def error_to_json(error: ProvisionError) -> dict[str, str]:
    """Return an error as data."""
    return {"what": redact(error.what), "why": redact(error.why), "help": redact(error.hint)}


def error_findings(error: ProvisionError) -> dict[str, Any]:
    """Return the findings that an error carries as data; {} for an error of another class."""
    from provision.commands.shared.load import SpecHasErrors

    if not isinstance(error, SpecHasErrors):
        return {}
    from provision.views.diagnostics import json as view

    return view.findings_to_json(error.diagnostics, error.source)


def write_temporary_file(prefix: str, text: str) -> str:
    """Write text without known shapes of secrets to a temporary file; return its path."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=prefix, suffix=".txt", delete=False
    ) as file:
        file.write(redact(text))
        return file.name


def write_output_file(path: Path, text: str, system: System, mode: int = 0o600) -> None:
    """Write a result to the file that the command line names for it."""
    from provision.effects.local import WriteFile

    system.perform(WriteFile(path, text, mode), print_note)
    print_note(f"wrote {path}")


def read_standard_input(limit: int, *, hint: str) -> bytes:
    """Return standard input: at most `limit` bytes, and one more if it is longer.

    Raises:
        ExternalError: it cannot be read; `hint` helps to fix that.
    """
    try:
        return sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        raise ExternalError(
            "cannot read standard input", why=error.strerror or str(error), hint=hint
        ) from error


def confirm(question: str, *, yes: bool, doing: str) -> None:
    """Request a confirmation on the terminal.

    Raises:
        Refused: declined, or there is no terminal and the command line has no --yes.
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


def _last_lines(paragraph: str) -> list[str]:
    """Return the end of a long text, where a resolver concludes, and the file with all of it."""
    lines = paragraph.splitlines()
    if len(lines) <= _MAX_REASON_LINES:
        return lines
    path = write_temporary_file("provision-uv-", paragraph + "\n")
    return [
        f"... {len(lines) - _MAX_REASON_LINES} lines come before these; all of it: {path}",
        *lines[-_MAX_REASON_LINES:],
    ]


def _end_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
