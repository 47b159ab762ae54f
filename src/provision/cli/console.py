"""Streams of a command: results on standard output; notes, errors and questions on stderr."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

from provision.errors import ExternalError, ProvisionError, Refused
from provision.sanitize import escape_control, escape_line, escape_workflow_commands, redact

if TYPE_CHECKING:
    from provision.commands.lock import LockResult
    from provision.commands.shared.load import LoadedSpec
    from provision.diagnostics import Diagnostic
    from provision.effects.system import System
    from provision.source import Source

_POSITION = re.compile(r"([^:\n]+):(\d+):(\d+): ")
_ROW_INDENT = 13
"""Columns of the label of a row, with the blank after it."""
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


def text_width(stream: TextIO) -> int:
    """Return the width at which running text wraps: the terminal's; none in files and pipes."""
    return width() if stream.isatty() else sys.maxsize


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
    if text:
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


def print_prose_row(label: str, text: str) -> None:
    """Write a label and a sentence, wrapped between words on a terminal, as a row of a table.

    A command that a person may copy belongs in `print_row`, which never breaks it.
    """
    from provision.views.formatting import indent_rest, wrap

    rows = wrap(escape_control(text), text_width(sys.stdout) - _ROW_INDENT)
    print_view("\n".join(indent_rest(f"{label:<12} ", rows, _ROW_INDENT)))


def escape_for_log(text: str) -> str:
    """Return text without the workflow commands that a log of GitHub Actions would run."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return escape_workflow_commands(text)
    return text


def print_note(text: str) -> None:
    """Write a remark to standard error, wrapped between words on a terminal."""
    text = escape_control(text)
    if sys.stderr.isatty():
        from provision.views.formatting import wrap

        text = "\n".join(wrap(text, width()))
    print_stderr(text + "\n")
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


def print_lock_findings(lock: LockResult, loaded: LoadedSpec) -> None:
    """Write the findings on a spec and its lock; those of a lock that was there are known."""
    if lock.fresh:
        print_brief_findings(lock.warnings, loaded.source)
    else:
        print_known_findings(lock.warnings, loaded)


def print_brief_findings(diagnostics: Sequence[Diagnostic], source: Source) -> None:
    """Write findings next to the result of a command: notes have one line each."""
    from provision.diagnostics import Severity

    notes = [finding for finding in diagnostics if finding.severity is Severity.INFO]
    print_findings([finding for finding in diagnostics if finding not in notes], source)
    for note in notes:
        print_note(f"note[{note.id}] {note.message}: see `provision explain {note.id}`")


def print_known_findings(diagnostics: Sequence[Diagnostic], loaded: LoadedSpec) -> None:
    """Write findings that another command has shown: notes are only counted."""
    from provision.diagnostics import Severity
    from provision.spelling import pluralize

    notes = [finding for finding in diagnostics if finding.severity is Severity.INFO]
    print_findings([finding for finding in diagnostics if finding not in notes], loaded.source)
    if notes:
        # `lint` does not show what the rules find in the locked versions.
        verb = "lint" if all(note in loaded.diagnostics for note in notes) else "lock"
        print_note(f"{pluralize(len(notes), 'note')} (see `{loaded.command(verb)}`)")


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


def failures_to_json(
    failed: Mapping[str, ProvisionError], kind: str = "target"
) -> dict[str, list[dict[str, Any]]]:
    """Return the errors of single targets (or projects, as `kind` names them) as data.

    `failed` has an item for each target; `errors` has the form that the errors of all commands
    have, and is left out if there is none.
    """
    documents, errors = [], []
    for name, error in failed.items():
        document = {kind: name, **error_to_json(error), "exit_code": error.exit_code}
        if findings := error_findings(error):
            document["diagnostics"] = findings["diagnostics"]
        documents.append(document)
        errors += [{kind: name, **each} for each in list_errors(error)]
    return {"failed": documents, "errors": errors} if failed else {"failed": []}


def list_errors(error: ProvisionError) -> list[dict[str, Any]]:
    """Return an error as a list of data: the findings that it consists of, else itself."""
    findings = error_findings(error).get("diagnostics", ())
    return [
        {
            "what": finding["message"],
            "why": finding["why"],
            "help": finding["help"],
            "id": finding["id"],
            "file": finding["file"],
            **{key: finding["range"]["start"][key] for key in ("line", "column")},
        }
        for finding in findings
        if finding["severity"] == "error"
    ] or [error_to_json(error)]


def error_to_json(error: ProvisionError) -> dict[str, Any]:
    """Return an error as data, with the position in a file that its message begins with."""
    document = {"what": redact(error.what), "why": redact(error.why), "help": redact(error.hint)}
    if position := _POSITION.match(document["what"]):
        numbers = {"line": int(position[2]), "column": int(position[3])}
        return {**document, "file": position[1], **numbers}
    return document


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
            f"{doing} requires confirmation, but there is no terminal",
            hint="add --yes to continue without confirmation",
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    _wait_for_answer()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("cancelled: nothing was changed")


def _wait_for_answer() -> None:
    """Wait until standard input has a line, or a signal ends this process.

    Python runs the handlers of signals between two instructions: one that arrives right before
    `read` blocks would be noticed after the answer only.
    """
    if sys.platform == "win32":  # there, only sockets can be waited for
        return
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    previous = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        while sys.stdin not in select.select([sys.stdin, woken], [], [])[0]:
            os.read(woken, 1)
    finally:
        signal.set_wakeup_fd(previous)
        os.close(woken)
        os.close(wake)


def _last_lines(paragraph: str) -> list[str]:
    """Return the end of a long text, where a resolver concludes, and the file with all of it."""
    lines = paragraph.splitlines()
    if len(lines) <= _MAX_REASON_LINES:
        return lines
    path = write_temporary_file("provision-uv-", paragraph + "\n")
    return [
        f"... {len(lines) - _MAX_REASON_LINES} earlier lines are in {path}",
        *lines[-_MAX_REASON_LINES:],
    ]


def _end_line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
