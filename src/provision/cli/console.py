"""What a person sees while waiting and at the end: progress, questions, frames, and errors with
their way out.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from provision.errors import ProvisionError, Refused
from provision.sanitize import escape_control, escape_line, escape_workflow_commands, redact
from provision.views.terminal_text import Style, Styler

if TYPE_CHECKING:
    from provision.effects.system import ProgressCallback

_MAX_REASON_LINES = 40
"""Lines of a reason that are shown. Our choice."""


def supports_color(stream: object = None) -> bool:
    """Tell whether colours fit: a terminal, and neither NO_COLOR nor TERM=dumb says otherwise
    (FORCE_COLOR says so in any case).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    target = stream or sys.stdout
    return bool(getattr(target, "isatty", bool)()) and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return the terminal's width in cells, 100 where there is none."""
    return get_terminal_size((100, 25)).columns


def print_result(text: str) -> None:
    """Write a result to standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def print_text(text: str) -> None:
    """Write a result of plain words, which may hold foreign text such as paths, to standard output."""  # noqa: E501
    print_result(escape_for_log(escape_control(text)))


def escape_for_log(text: str) -> str:
    """Return harmless text as it may stand in a log: where that is read for commands, without any."""  # noqa: E501
    return escape_workflow_commands(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def print_note(text: str) -> None:
    """Write something said beside the result to standard error."""
    sys.stderr.write(escape_for_log(escape_control(text)) + "\n")
    sys.stderr.flush()


def print_stderr(text: str) -> None:
    """Write a view's text, which is harmless already and may hold our colours, to standard error."""  # noqa: E501
    text = escape_for_log(text)
    sys.stderr.write(text if text.endswith("\n") else text + "\n")


def print_error(error: ProvisionError) -> None:
    """Write an error to standard error: findings as frames, anything else as what, why and the way
    out.
    """
    from provision.commands.shared.load import SpecHasErrors

    if isinstance(error, SpecHasErrors):
        from provision.views.diagnostics import text

        print_stderr(
            text.render_findings(
                error.diagnostics, error.source, supports_color(sys.stderr), width()
            )
        )
        print_note(error.what)
        return
    pen = Styler(supports_color(sys.stderr))
    print_stderr(f"{pen('error', Style.ERROR)}: {escape_line(redact(error.what))}")
    for label, words in (("why", error.why), ("help", error.hint)):
        for number, line in enumerate(_last_lines(escape_control(redact(words)))):
            print_stderr(
                "  "
                f"{pen(label + ':', Style.INFO) if number == 0 else ' ' * (len(label) + 1)} "
                f"{line}"
            )


def print_errors(failed: Mapping[str, ProvisionError], kind: str = "target") -> None:
    """Write the errors of single targets (or projects, as `kind` names them) among several to
    standard error.
    """
    for name, error in failed.items():
        print_note(f"\n{kind} {name}:")
        print_error(error)


def errors_to_json(
    failed: Mapping[str, ProvisionError], kind: str = "target"
) -> list[dict[str, Any]]:
    """Return the errors of single targets (or projects) as data, findings of the spec with it."""
    documents = []
    for name, error in failed.items():
        found = error_findings(error)
        documents.append(
            {
                kind: name,
                **error_to_json(error),
                "exit_code": error.exit_code,
                **({"diagnostics": found["diagnostics"]} if found else {}),
            }
        )
    return documents


def _last_lines(words: str) -> list[str]:
    """Return the lines of a long text's end, where a resolver concludes, with the name of the file
    that the whole of it is written to.
    """
    lines = words.splitlines()
    if len(lines) <= _MAX_REASON_LINES:
        return lines
    import tempfile  # here: few errors are long

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="provision-uv-", suffix=".txt", delete=False
    ) as file:
        file.write(words + "\n")
    return [
        f"... {len(lines) - _MAX_REASON_LINES} lines come before these; all of it: {file.name}",
        *lines[-_MAX_REASON_LINES:],
    ]


def error_to_json(error: ProvisionError) -> dict[str, str]:
    """Return an error as data for other programs."""
    return {"what": redact(error.what), "why": redact(error.why), "help": redact(error.hint)}


def error_findings(error: ProvisionError) -> dict[str, Any] | None:
    """Return the findings that an error carries as data, None when it is of another kind."""
    from provision.commands.shared.load import SpecHasErrors
    from provision.views.diagnostics import json as data

    return (
        data.findings_to_json(error.diagnostics, error.source)
        if isinstance(error, SpecHasErrors)
        else None
    )


def confirm(question: str, *, yes: bool, doing: str) -> None:
    """Return when the answer is yes; raises Refused when it is no, or when there is nobody to ask
    and --yes was not given.
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


@contextmanager
def progress(
    ask: Callable[..., None] = print_note,
) -> Iterator[tuple[ProgressCallback, Callable[..., None]]]:
    """Give a `tell` that shows each step (a spinner and its time on a terminal, plain lines
    elsewhere), and `ask` with the spinner out of its way.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield print_note, ask
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    began: list[tuple[str, float]] = []

    def close() -> None:
        if began:
            text, start = began.pop()
            console.print(
                f"[green]done[/] {escape(text)} [dim]{time.monotonic() - start:.1f} s[/]",
                soft_wrap=True,
            )

    with console.status("reading the spec") as spinner:

        def tell(text: str) -> None:
            close()
            began.append((escape_control(text), time.monotonic()))
            spinner.update(escape(escape_control(text)))

        def asked(*words: object) -> None:
            close()
            spinner.stop()
            ask(*words)
            spinner.start()

        yield tell, asked
        close()


def write_crash_report(error: Exception) -> str:
    """Write what is needed to find our bug to a file and return its path; known secret shapes are
    left out.
    """
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="provision-bug-", suffix=".txt", delete=False
    ) as file:
        file.write(redact("".join(traceback.format_exception(error))))
        return file.name
