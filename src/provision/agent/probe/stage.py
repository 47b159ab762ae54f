"""The inside of a stage: observes its checks in order and writes down each as soon as it is known,
so a crash loses nothing.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import write_atomically
from .canonical_json import to_canonical_json
from .catalogue import is_applicable, select_checks
from .expectations import Expectations
from .model import SelectedCheck
from .observing import ObserverContext, observers_of
from .observing.clock_watch import UNWATCHED_STAGES, ClockWatch
from .redactor import Redactor

_LONGEST_TEXT = 1500
_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


@dataclass(slots=True)
class StageProgress:
    """What one stage found so far. `running` names the check under observation and `where` its
    card, of several; `raised` is what observing raised.
    """

    seen: dict[str, Any] = field(default_factory=dict)
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
        text = to_canonical_json({name: getattr(self, name) for name in self.__slots__})
        # It has to outlive this process, not the machine.
        write_atomically(path, text, durable=False)

    @classmethod
    def load(cls, path: Path) -> StageProgress:
        """What a stage wrote; empty when it died before it wrote anything."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls()


def run_stage(
    name: str, expected: Expectations, fragment_path: Path, scratch: Path, only: Sequence[str] = ()
) -> StageProgress:
    """Observe the checks of one stage (those in `only`, else all) in this process, saving the
    fragment before and after each.
    """
    faulthandler.enable()
    began, _ = _usage()
    redactor = Redactor.of(os.environ, expected.secrets)
    fragment = StageProgress()
    fragment.save(fragment_path)

    def tell(where: str) -> None:
        if where != fragment.where:
            fragment.where = where
            fragment.save(fragment_path)

    bench = ObserverContext(expected=expected, scratch=scratch, report_progress=tell)
    with ClockWatch(
        expected.gpu_type not in (None, "mps") and name not in UNWATCHED_STAGES, bench.environ
    ) as watch:
        for one in select_checks(expected):
            if (
                one.check.stage == name
                and (not only or one.id in only)
                and is_applicable(one.check, expected)
            ):
                if any(before in fragment.raised for before in one.check.after):
                    continue
                _observe(one, bench, fragment, fragment_path, redactor)
    fragment.seen.update(watch.readings(name))
    ended, fragment.maxrss_mb = _usage()
    fragment.cpu_s, fragment.ended = ended - began, True
    fragment.save(fragment_path)
    return fragment


def die_with_parent() -> None:
    """Let the kernel end this process when the probe itself is killed; only Linux has that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def redirect_output(log: Path) -> None:
    """Make everything this process and its children print from now on go to a file, what native
    code writes included.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


def truncate_middle(text: str, most: int) -> str:
    """Return at most about `most` characters of a text: its beginning and, as a traceback says what
    happened in its last line, twice as much of its end.
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
    bench: ObserverContext,
    fragment: StageProgress,
    path: Path,
    redactor: Redactor,
) -> None:
    fragment.running, fragment.where = one.id, ""
    fragment.save(path)
    bench.subject = one.subject
    began = time.perf_counter()
    try:
        fragment.seen.update(observers_of(one.check.stage)[one.check.id](bench))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        fragment.raised[one.id] = _told(error, redactor)
    fragment.seconds[one.id] = time.perf_counter() - began
    fragment.done.append(one.id)
    fragment.running = None
    fragment.save(path)


def _usage() -> tuple[float, float]:
    """CPU seconds so far with those of ended children, and peak memory in MB; zeros where the
    system does not tell.
    """
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
    """A worker of a DataLoader sends its whole traceback as the text of its error: who failed, and
    the last line, which says how.
    """
    if "Original Traceback (most recent call last)" not in text:
        return text
    first, *_, last = text.strip().splitlines()
    return f"{first.rstrip('.')}: {last}"
