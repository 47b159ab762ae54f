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
        """Write the fragment, whole or not at all."""
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
    name: str, expected: Expectations, fragment_path: Path, scratch: Path, only: Sequence[str] = ()
) -> StageProgress:
    """Observe a stage's checks in this process (those in `only`, else all), saving after each."""
    faulthandler.enable()
    began, _ = _usage()
    redactor = Redactor.of(os.environ, expected.secrets)
    fragment = StageProgress()
    fragment.save(fragment_path)

    def tell(where: str) -> None:
        if where != fragment.where:
            fragment.where = where
            fragment.save(fragment_path)

    context = ObserverContext(expected=expected, scratch=scratch, report_progress=tell)
    with ClockWatch(
        expected.gpu_type not in (None, "mps") and name not in UNWATCHED_STAGES, context.environ
    ) as watch:
        for one in select_checks(expected):
            if (
                one.check.stage == name
                and (not only or one.id in only)
                and is_applicable(one.check, expected)
            ):
                if any(before in fragment.raised for before in one.check.after):
                    continue
                _observe(one, context, fragment, fragment_path, redactor)
    fragment.seen.update(watch.readings(name))
    ended, fragment.maxrss_mb = _usage()
    fragment.cpu_s, fragment.ended = ended - began, True
    fragment.save(fragment_path)
    return fragment


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

    A traceback says in its last line what happened.
    """
    if len(text) <= most:
        return text
    first, last = text[: most // 3], text[-(most - most // 3) :]
    return (
        f"{first.rstrip()}\n[{len(text) - len(first) - len(last)} characters left "
        f"out]\n{last.lstrip()}"
    )


def _observe(
    one: SelectedCheck,
    context: ObserverContext,
    fragment: StageProgress,
    path: Path,
    redactor: Redactor,
) -> None:
    fragment.running, fragment.where = one.id, ""
    fragment.save(path)
    context.subject = one.subject
    began = time.perf_counter()
    try:
        fragment.seen.update(observers_of(one.check.stage)[one.check.id](context))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        fragment.raised[one.id] = _told(error, redactor)
    fragment.seconds[one.id] = time.perf_counter() - began
    fragment.done.append(one.id)
    fragment.running = None
    fragment.save(path)


def _usage() -> tuple[float, float]:
    """Return CPU seconds, ended children included, and peak memory in MB; zeros if unknown."""
    try:
        import resource
    except ImportError:
        return 0.0, 0.0
    own, children = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, own.ru_maxrss / unit


def _told(error: BaseException, redactor: Redactor) -> dict[str, str]:
    frames = traceback.extract_tb(error.__traceback__)
    place = (
        f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}"
        if frames
        else ""
    )
    text = redactor.text(_without_traceback(str(error)))
    if error.__cause__ is not None and str(error.__cause__) not in str(error):
        text += f" (from {type(error.__cause__).__name__}: {redactor.text(str(error.__cause__))})"
    return {
        "type": type(error).__name__,
        "text": truncate_middle(text.strip(), _LONGEST_TEXT),
        "place": redactor.text(place),
    }


def _without_traceback(text: str) -> str:
    """Return a DataLoader worker's error without the traceback that its text holds."""
    if "Original Traceback (most recent call last)" not in text:
        return text
    first, *_, last = text.strip().splitlines()
    return f"{first.rstrip('.')}: {last}"
