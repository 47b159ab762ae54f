"""Progress of a command: a spinner with the elapsed time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from provision.cli.console import print_note
from provision.effects.system import DownloadProgress, Notice
from provision.sanitize import escape_control

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

_MIN_INTERVAL_S, _MAX_INTERVAL_S = 10, 60
"""Between two plain lines of a download, with and without another quarter of it. Our choice."""
_LARGE_BYTES = 100_000_000
"""A download that takes some ten seconds or more. Our choice."""


class Progress:
    """Shows the steps of a command as plain lines."""

    def __init__(self) -> None:
        self._phase = ""
        self._quarter = 0
        self._is_large = False
        self._phase_start = self._last_line = 0.0

    def __call__(self, text: str) -> None:
        """Show a notice, the step that begins, or how far the current one has come."""
        if isinstance(text, DownloadProgress):
            self._show_download(text)
        else:
            print_note(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        yield

    def _show_download(self, event: DownloadProgress) -> None:
        """Write a line at most every 10 seconds, so that a short download has none.

        Another quarter is shown after 10 seconds, other progress after a minute, and a large
        download as soon as its size is known: the next event may come minutes later.
        """
        now = time.monotonic()
        if event.phase != self._phase:
            self._phase, self._quarter, self._phase_start = event.phase, 0, now
            self._last_line, self._is_large = now, False
        quarter = _count_quarters(event)
        interval = _MIN_INTERVAL_S if quarter > self._quarter else _MAX_INTERVAL_S
        becomes_large = not self._is_large and (event.bytes_total or 0) >= _LARGE_BYTES
        if becomes_large or now - self._last_line >= interval:
            self._is_large = self._is_large or becomes_large
            self._quarter, self._last_line = quarter, now
            print_note(f"{event}, {format_elapsed(now - self._phase_start)}")


class SpinnerProgress(Progress):
    """Shows the current step with its elapsed time next to a spinner, and then as a line."""

    def __init__(self, terminal: Console, spinner: Status) -> None:
        super().__init__()
        self._terminal = terminal
        self._spinner = spinner
        self._step: _Step | None = None

    def __call__(self, text: str) -> None:
        """Show a notice above the spinner, how far the step has come, or the step that begins."""
        line = escape_control(text)
        if isinstance(text, Notice):
            self._terminal.print(line, markup=False)
            return
        if isinstance(text, DownloadProgress) and self._step is not None:
            self._step.detail = line
            return
        self.finish_step()
        self._step = _Step(line)
        self._spinner.update(self._step)

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
        from rich.markup import escape

        line, seconds = escape(self._step.line), self._step.seconds
        self._step = None
        self._terminal.print(f"[green]done[/] {line} [dim]{seconds:.1f} s[/]")


class _Step:
    """The text next to the spinner; rich renders it again for each frame."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.detail = ""
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def __rich__(self) -> Text:
        from rich.text import Text

        text = f"{format_elapsed(self.seconds)}  {self.detail or self.line}"
        return Text(text, no_wrap=True, overflow="ellipsis")


@contextmanager
def show_progress() -> Iterator[Progress]:
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


def format_elapsed(seconds: float) -> str:
    """Return a duration such as "8s", "1m 20s" or "1h 2m"."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60}h {minutes % 60}m"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"


def _count_quarters(event: DownloadProgress) -> int:
    """Return how many quarters of a download are done, in bytes if they are known."""
    if event.bytes_done is not None and event.bytes_total:
        return 4 * event.bytes_done // event.bytes_total
    return 4 * event.packages_done // event.packages_total if event.packages_total else 0
