"""Runs the checks of a stage in order, and saves each result, so that a crash loses nothing."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import write_atomically
from .catalogue import is_applicable, select_checks
from .context import ObserverContext
from .expectations import Expectations
from .model import JsonObject, SelectedCheck
from .observing import observers_of
from .observing.clock_watch import UNWATCHED_STAGES, ClockWatch
from .redactor import Redactor
from .report_json import to_canonical_json

_LONGEST_TEXT = 1500


@dataclass(slots=True)
class StageProgress:
    """Readings and progress of a stage.

    `running` is the check under observation, `where` its card; `raised` has errors by check.
    """

    seen: JsonObject = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    running: str | None = None
    where: str = ""
    raised: dict[str, dict[str, str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_s: float = 0.0
    maxrss_mb: float = 0.0
    ended: bool = False

    def save(self, path: Path) -> None:
        """Write the progress, whole or not at all."""
        # It has to outlive this process, not the machine.
        write_atomically(
            path,
            to_canonical_json({name: getattr(self, name) for name in self.__slots__}),
            durable=False,
        )

    @classmethod
    def load(cls, path: Path) -> StageProgress:
        """Return what a stage wrote; empty if it died before."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls()


def run_stage(
    name: str, expected: Expectations, progress_file: Path, scratch: Path, only: Sequence[str] = ()
) -> StageProgress:
    """Observe a stage's checks in this process (those in `only`, else all), saving after each."""
    faulthandler.enable()
    began, _ = _usage()
    redactor = Redactor.of(os.environ, expected.secrets)
    progress = StageProgress()
    progress.save(progress_file)

    def report_card(where: str) -> None:
        if where != progress.where:
            progress.where = where
            progress.save(progress_file)

    context = ObserverContext(expected=expected, scratch=scratch, report_progress=report_card)
    checks = [
        check
        for check in select_checks(expected)
        if check.check.stage == name
        and (not only or check.id in only)
        and is_applicable(check.check, expected)
    ]
    has_nvidia_card = expected.gpu_type not in (None, "mps")
    with ClockWatch(has_nvidia_card and name not in UNWATCHED_STAGES, context.environ) as watch:
        for check in checks:
            if progress.raised.keys().isdisjoint(check.check.after):
                _observe(check, context, progress, progress_file, redactor)
    progress.seen.update(watch.readings(name))
    ended, progress.maxrss_mb = _usage()
    progress.cpu_s, progress.ended = ended - began, True
    progress.save(progress_file)
    return progress


def redirect_output(log: Path) -> None:
    """Redirect output of this process and its children, native code included, to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


def truncate_middle(text: str, most: int) -> str:
    """Return at most about `most` characters: the beginning, and twice as much of the end.

    The last line of a traceback is the error.
    """
    if len(text) <= most:
        return text
    first, last = text[: most // 3], text[-(most - most // 3) :]
    return (
        f"{first.rstrip()}\n[{len(text) - len(first) - len(last)} characters "
        f"omitted]\n{last.lstrip()}"
    )


def peak_memory_mb(usage: Any) -> float:
    """Return the peak memory of a resource usage; Linux counts it in KiB, macOS in bytes."""
    return float(usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024))


def _observe(
    check: SelectedCheck,
    context: ObserverContext,
    progress: StageProgress,
    progress_file: Path,
    redactor: Redactor,
) -> None:
    progress.running, progress.where = check.id, ""
    progress.save(progress_file)
    context.subject = check.subject
    began = time.perf_counter()
    try:
        progress.seen.update(observers_of(check.check.stage)[check.check.id](context))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        progress.raised[check.id] = _error_record(error, redactor)
    progress.seconds[check.id] = time.perf_counter() - began
    progress.done.append(check.id)
    progress.running = None
    progress.save(progress_file)


def _usage() -> tuple[float, float]:
    """Return CPU seconds, ended children included, and peak memory in MB; zeros if unknown."""
    try:
        import resource
    except ImportError:
        return 0.0, 0.0
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return cpu_s, peak_memory_mb(own)


def _error_record(error: BaseException, redactor: Redactor) -> dict[str, str]:
    place = ""
    for frame in traceback.extract_tb(error.__traceback__)[-1:]:
        place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    text, cause = redactor.text(_without_traceback(str(error))), error.__cause__
    if cause is not None and str(cause) not in str(error):
        text += f" (from {type(cause).__name__}: {redactor.text(str(cause))})"
    return {
        "type": type(error).__name__,
        "text": truncate_middle(text.strip(), _LONGEST_TEXT),
        "place": redactor.text(place),
    }


def _without_traceback(text: str) -> str:
    """Return a DataLoader worker's error without the traceback in its text."""
    if "Original Traceback (most recent call last)" not in text:
        return text
    first, *_, last = text.strip().splitlines()
    return f"{first.rstrip('.')}: {last}"
