"""Watches, while a stage works on the cards, whether they slow themselves down."""

from __future__ import annotations

import threading
from types import TracebackType

from ..checks.driver import slowdown_faults
from ..model import Environ
from .nvml import Nvml, NvmlError
from .visible_devices import find_visible_devices

UNWATCHED_STAGES = frozenset({"host", "driver", "packages", "diagnosis", "loaders"})
"""Stages that do not use the cards, and the one that forks: another thread may have a lock that the
child waits for.
"""
_PAUSE_S = 0.2


class ClockWatch:
    """Queries NVML five times a second in a thread, while the `with` block runs.

    Only the cards that CUDA shows to programs with the variables `environ` are watched.
    """

    def __init__(self, on: bool, environ: Environ) -> None:
        self._on = on
        self._environ = dict(
            environ
        )  # as it is now: a training run hides all cards but one from itself
        self._faults: set[str] = set()
        self._read_count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="clocks")

    def __enter__(self) -> ClockWatch:
        """Start the thread."""
        if self._on:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the thread."""
        self._over.set()
        if self._on:
            self._thread.join(timeout=2)

    def readings(self, stage: str) -> dict[str, list[str]]:
        """Return what slowed a card down in the meantime; {} if NVML gave no reading."""
        return {f"nvml.slowed_during.{stage}": sorted(self._faults)} if self._read_count else {}

    def _look(self) -> None:
        try:
            with Nvml() as library:
                shown = find_visible_devices(library.identities(), self._environ).indices
                while True:
                    masks = [
                        mask
                        for index, mask in enumerate(library.clock_reasons())
                        if shown is None or index in shown
                    ]
                    if any(mask is not None for mask in masks):
                        self._read_count += 1
                    self._faults.update(slowdown_faults(masks))
                    if self._over.wait(_PAUSE_S):
                        return
        except NvmlError:
            return
