"""Runs the declared command, and observes its end, its output, its files and its memory."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from ..context import ObserverContext
from ..expectations import DeclaredCommand
from ..model import Readings
from .resource_usage import CardSampler, process_tree_memory

_INTERVAL_S = 0.2
_MAX_OUTPUT = 2**20
"""Bytes of the end of the output in which the expression is looked for. Our choice."""
_TAIL = 2000
_CLOCK_S = 2.0
"""Seconds by which the clock of a file system may differ from ours (FAT has steps of 2 s)."""
_PYTHONS = ("python", "python3")


def _run(context: ObserverContext) -> Readings:
    command = context.expected.command
    assert command is not None
    folder = Path(context.expected.code.folder) if context.expected.code else context.scratch
    own_bin = os.path.dirname(sys.executable)
    path = os.pathsep.join(filter(None, (own_bin, context.environ.get("PATH"))))
    environ = {**context.environ, "PATH": path}
    first, *arguments = command.argv
    program = sys.executable if first in _PYTHONS else shutil.which(first, path=path)
    if program is None and "/" in first:
        program = str(folder / first)
    if program is None:
        return _not_started(f"the program {first} is neither in the environment nor on the PATH")
    out, errors = context.scratch / "command.out", context.scratch / "command.err"
    began, began_at = time.monotonic(), time.time()
    try:
        with open(out, "wb") as stdout, open(errors, "wb") as stderr:
            process = subprocess.Popen(
                [program, *arguments],
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
    except OSError as error:
        return _not_started(f"{first}: {error.strerror or error}")
    peak, card_peak = _follow(process)
    output, problems = _end_of(out), _end_of(errors)
    code = process.returncode
    return {
        "command.error": None,
        "command.exit": code if code >= 0 else None,
        "command.signal": signal.Signals(-code).name if code < 0 else None,
        "command.wall_s": round(time.monotonic() - began, 1),
        "command.matches": _matches(command, output),
        "command.missing": _find_missing(command, folder, environ, began_at - _CLOCK_S),
        "command.tail": (_as_shown(problems) or _as_shown(output))[-_TAIL:],
        "command.peak_bytes": peak,
        "command.card_peak_bytes": card_peak,
    }


def _as_shown(text: str) -> str:
    """Return what a terminal shows of a text: of lines that are written over, the last state."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return "\n".join(lines).strip()


def _not_started(error: str) -> Readings:
    return {"command.error": error, "command.exit": None, "command.signal": None}


def _follow(process: subprocess.Popen[bytes]) -> tuple[int | None, int | None]:
    """Wait for a process; return the peaks of its memory and on one card (None if unknown)."""
    memory: list[int] = []
    card_memory: list[int] = []
    cards = CardSampler()
    before = [card["used_bytes"] or 0 for card in cards.sample()]
    while process.poll() is None:
        try:
            memory.append(sum(process_tree_memory(process.pid)))
        except OSError:  # there is no /proc
            memory.clear()
        used = (card["used_bytes"] or 0 for card in cards.sample())
        card_memory += (now - then for now, then in zip(used, before, strict=False))
        time.sleep(_INTERVAL_S)
    if (largest := _largest_child_bytes()) is not None:
        memory.append(largest)
    return max(memory, default=0) or None, max(card_memory, default=0) or None


def _largest_child_bytes() -> int | None:
    """Return the peak memory of the largest program that this process has waited for."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return int(peak * (1 if sys.platform == "darwin" else 1024))


def _matches(command: DeclaredCommand, output: str) -> bool | None:
    return None if command.stdout is None else re.search(command.stdout, output) is not None


def _find_missing(
    command: DeclaredCommand, folder: Path, environ: dict[str, str], since: float
) -> list[str]:
    """Return the declared files that do not exist, or are older than the command."""
    missing = []
    for declared in command.files:
        path = folder / _expand(declared, environ)
        try:
            changed = os.stat(path).st_mtime
        except OSError:
            missing.append(declared)
            continue
        if changed < since:
            missing.append(f"{declared} (not written by this run)")
    return missing


def _expand(text: str, environ: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return environ.get(match[1] or match[2], match[0])

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, text)


def _end_of(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _MAX_OUTPUT))
        return file.read().decode("utf-8", "replace")


OBSERVERS = {"V02": _run}
