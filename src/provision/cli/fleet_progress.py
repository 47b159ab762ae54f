"""Progress of several targets: one live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from provision.cli.console import print_note
from provision.cli.progress import format_elapsed
from provision.commands.fleets.parallel_run import Job, JobState
from provision.effects.system import DownloadProgress, Notice
from provision.sanitize import escape_control, escape_line
from provision.spelling import pluralize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_FRAMES_PER_S = 4
_MARGIN_ROWS = 4
"""Rows of the terminal that the table leaves free."""
_ENDED = (JobState.DONE, JobState.FAILED, JobState.INTERRUPTED)


class LineWatcher:
    """Shows each step of each target as a line that begins with the target's name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Guards the states. It is not held while something is printed: rich renders the table,
        which reads them, under a lock of its own."""
        self._printing = threading.Lock()
        self._states: dict[str, JobState] = {}

    def begin(self, jobs: Sequence[Job]) -> None:
        """See Watcher."""
        with self._lock:
            self._states = {job.label: JobState.WAITING for job in jobs}

    def change(self, label: str, state: JobState) -> None:
        """See Watcher."""
        with self._lock:
            self._states[label] = state

    def progress(self, label: str, text: str) -> None:
        """See Watcher; downloads have no lines, since those of several targets would mix."""
        if not isinstance(text, DownloadProgress):
            self._print("\n".join(f"{label}: {line}" for line in text.splitlines()))

    def interrupt(self) -> None:
        """See Watcher."""
        with self._lock:
            running = sum(state is JobState.RUNNING for state in self._states.values())
        self._print(
            f"interrupted: waiting until {pluralize(running, 'running target')} can stop; "
            "Ctrl-C again ends at once"
        )

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        yield

    def _count(self) -> str:
        ended = sum(state in _ENDED for state in self._states.values())
        return f"{ended} of {len(self._states)} ended"

    def _print(self, line: str) -> None:
        with self._printing:
            self._show(line)

    def _show(self, line: str) -> None:
        print_note(line)


class TableWatcher(LineWatcher):
    """Shows the running targets as a table, each with its current step and its time."""

    def __init__(self, terminal: Console, live: Live) -> None:
        super().__init__()
        self._terminal, self._live = terminal, live
        self._steps: dict[str, str] = {}
        self._starts: dict[str, float] = {}

    def change(self, label: str, state: JobState) -> None:
        """See Watcher."""
        if state is JobState.RUNNING:
            self._starts[label] = time.monotonic()
        super().change(label, state)

    def progress(self, label: str, text: str) -> None:
        """See Watcher."""
        self._steps[label] = escape_line(text)
        if isinstance(text, Notice):
            super().progress(label, text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        self._live.stop()
        yield
        self._live.start()

    def __rich__(self) -> Table:
        """Return the table as it is now; rich calls this for each frame."""
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            running = [name for name, state in self._states.items() if state is JobState.RUNNING]
            title = self._count()
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        rows = max(1, self._terminal.height - _MARGIN_ROWS)
        now = time.monotonic()
        for name in running[:rows]:
            elapsed = format_elapsed(now - self._starts.get(name, now))
            table.add_row(*map(Text, (escape_line(name), elapsed, self._steps.get(name, ""))))
        more = f", {len(running) - rows} more running" if len(running) > rows else ""
        table.add_row(Text(f"{title}{more}", style="dim"), "", "")
        return table

    def _show(self, line: str) -> None:
        self._terminal.print(escape_control(line), markup=False)


@contextmanager
def watch_fleet() -> Iterator[LineWatcher]:
    """Yield what shows the targets of a run."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield LineWatcher()
        return
    from rich.console import Console
    from rich.live import Live

    terminal = Console(stderr=True, highlight=False)
    live = Live(console=terminal, refresh_per_second=_FRAMES_PER_S, transient=True)
    watcher = TableWatcher(terminal, live)
    live.update(watcher)
    with live:
        yield watcher
