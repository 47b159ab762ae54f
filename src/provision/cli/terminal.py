"""What a person sees while waiting and at the end: progress, questions, frames, and errors with their way out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from provision.errors import ProvisionError, Refused
from provision.safe import disarmed, redact, safe, safe_line
from provision.views.ink import Ink, Pen

if TYPE_CHECKING:
    from provision.effects import Tell

_MOST_LINES = 40
"""Lines of a reason that are shown. Our choice."""


def colored(stream: object = None) -> bool:
    """Tell whether colours fit: a terminal, and neither NO_COLOR nor TERM=dumb says otherwise (FORCE_COLOR says so in any case)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    target = stream or sys.stdout
    return bool(getattr(target, "isatty", bool)()) and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return the terminal's width in cells, 100 where there is none."""
    return get_terminal_size((100, 25)).columns


def show(text: str) -> None:
    """Write a result to standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def say(text: str) -> None:
    """Write a result of plain words, which may hold foreign text such as paths, to standard output."""
    show(for_log(safe(text)))


def for_log(text: str) -> str:
    """Return harmless text as it may stand in a log: where that is read for commands, without any."""
    return disarmed(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def note(text: str) -> None:
    """Write something said beside the result to standard error."""
    sys.stderr.write(for_log(safe(text)) + "\n")
    sys.stderr.flush()


def beside(text: str) -> None:
    """Write a view's text, which is harmless already and may hold our colours, to standard error."""
    text = for_log(text)
    sys.stderr.write(text if text.endswith("\n") else text + "\n")


def show_error(error: ProvisionError) -> None:
    """Write an error to standard error: findings as frames, anything else as what, why and the way out."""
    from provision.commands.loading import Findings

    if isinstance(error, Findings):
        from provision.views import text

        beside(text.findings(error.diagnostics, error.source, colored(sys.stderr), width()))
        note(error.what)
        return
    pen = Pen(colored(sys.stderr))
    beside(f"{pen('error', Ink.ERROR)}: {safe_line(redact(error.what))}")
    for label, words in (("why", error.why), ("help", error.hint)):
        for number, line in enumerate(_shortened(safe(redact(words)))):
            beside(f"  {pen(label + ':', Ink.INFO) if number == 0 else ' ' * (len(label) + 1)} {line}")


def show_failed(failed: Mapping[str, ProvisionError], kind: str = "target") -> None:
    """Write the errors of single targets (or projects, as `kind` names them) among several to standard error."""
    for name, error in failed.items():
        note(f"\n{kind} {name}:")
        show_error(error)


def failed_document(failed: Mapping[str, ProvisionError], kind: str = "target") -> list[dict[str, Any]]:
    """Return the errors of single targets (or projects) as data, findings of the spec with it."""
    documents = []
    for name, error in failed.items():
        found = findings_of(error)
        documents.append({kind: name, **told(error), "exit_code": error.exit_code, **({"diagnostics": found["diagnostics"]} if found else {})})
    return documents


def _shortened(words: str) -> list[str]:
    """Return the lines of a long text's end, where a resolver concludes, with the name of the file that the whole of it is written to."""
    lines = words.splitlines()
    if len(lines) <= _MOST_LINES:
        return lines
    import tempfile  # here: few errors are long

    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="provision-uv-", suffix=".txt", delete=False) as file:
        file.write(words + "\n")
    return [f"... {len(lines) - _MOST_LINES} lines come before these; all of it: {file.name}", *lines[-_MOST_LINES:]]


def told(error: ProvisionError) -> dict[str, str]:
    """Return an error as data for other programs."""
    return {"what": redact(error.what), "why": redact(error.why), "help": redact(error.hint)}


def findings_of(error: ProvisionError) -> dict[str, Any] | None:
    """Return the findings that an error carries as data, None when it is of another kind."""
    from provision.commands.loading import Findings
    from provision.views import json as data

    return data.findings(error.diagnostics, error.source) if isinstance(error, Findings) else None


def agree(question: str, *, yes: bool, doing: str) -> None:
    """Return when the answer is yes; raises Refused when it is no, or when there is nobody to ask and --yes was not given."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{doing} changes things, and there is no terminal to ask on", hint="say --yes to go ahead")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("declined: nothing was changed")


@contextmanager
def progress(ask: Callable[..., None] = note) -> Iterator[tuple[Tell, Callable[..., None]]]:
    """Give a `tell` that shows each step (a spinner and its time on a terminal, plain lines elsewhere), and `ask` with the spinner out of its way."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield note, ask
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True, highlight=False)
    began: list[tuple[str, float]] = []

    def close() -> None:
        if began:
            text, start = began.pop()
            console.print(f"[green]done[/] {escape(text)} [dim]{time.monotonic() - start:.1f} s[/]", soft_wrap=True)

    with console.status("reading the spec") as spinner:

        def tell(text: str) -> None:
            close()
            began.append((safe(text), time.monotonic()))
            spinner.update(escape(safe(text)))

        def asked(*words: object) -> None:
            close()
            spinner.stop()
            ask(*words)
            spinner.start()

        yield tell, asked
        close()


def write_crash(error: Exception) -> str:
    """Write what is needed to find our bug to a file and return its path; known secret shapes are left out."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="provision-bug-", suffix=".txt", delete=False) as file:
        file.write(redact("".join(traceback.format_exception(error))))
        return file.name
