"""The progress of a command: plain lines, a spinner with the elapsed time, notices, downloads."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from provision.cli import progress as module
from provision.cli.progress import Progress, SpinnerProgress, format_elapsed
from provision.effects.system import DownloadProgress, Notice

MB = 1_000_000


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Screen:
    """A spinner whose output is recorded; it draws no frame by itself."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        terminal = Console(file=self.file, width=100, highlight=False)
        self.status = terminal.status("reading the spec")
        self.steps = SpinnerProgress(terminal, self.status)

    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()

    def frame(self) -> str:
        """What is next to the spinner now."""
        drawn = io.StringIO()
        Console(file=drawn, width=60).print(self.status.renderable)
        return " ".join(drawn.getvalue().split()[1:])


def test_a_notice_is_a_line_without_a_time_and_ends_no_step(clock: Clock) -> None:
    screen = Screen()
    screen.steps("locking: there is no lock yet")
    clock.now += 1
    screen.steps(Notice("pip's extra-index-url [2] is not used"))
    clock.now += 1.5
    screen.steps("+ environment")
    clock.now += 3
    screen.steps.finish_step()
    screen.steps.finish_step()
    assert screen.lines() == [
        "pip's extra-index-url [2] is not used",
        "done locking: there is no lock yet 2.5 s",
        "done + environment 3.0 s",
    ]


def test_the_spinner_shows_the_elapsed_time_and_the_download(clock: Clock) -> None:
    screen = Screen()
    screen.steps("+ environment")
    assert screen.frame() == "0s + environment"
    clock.now += 80
    assert screen.frame() == "1m 20s + environment"
    screen.steps(DownloadProgress("downloading", 12, 71, 1200 * MB, 4900 * MB))
    assert screen.frame() == "1m 20s downloading 12 of 71 packages, 1.2 of 4.9 GB"
    assert screen.lines() == []
    screen.steps("verifying")
    assert screen.frame() == "0s verifying"
    assert screen.lines() == ["done + environment 80.0 s"]


def test_a_long_step_is_cut_at_the_width_of_the_terminal(clock: Clock) -> None:
    screen = Screen()
    screen.steps("x" * 200)
    assert re.fullmatch("0s x+…", screen.frame())


def test_without_a_terminal_a_short_download_has_no_lines(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    progress("locking")
    progress(Notice("a notice"))
    for done in range(10):
        progress(DownloadProgress("downloading", done, 10, done * MB, 10 * MB))
        clock.now += 0.9
    assert capsys.readouterr().err == "locking\na notice\n"


def test_without_a_terminal_a_download_has_a_line_per_quarter_or_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    for second in range(201):
        progress(DownloadProgress("downloading", second // 20, 10, second * MB, 200 * MB))
        clock.now += 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "downloading 0 of 10 packages, 0.0 of 200.0 MB, 0s",
        "downloading 2 of 10 packages, 50.0 of 200.0 MB, 50s",
        "downloading 5 of 10 packages, 100.0 of 200.0 MB, 1m 40s",
        "downloading 7 of 10 packages, 150.0 of 200.0 MB, 2m 30s",
        "downloading 10 of 10 packages, 200.0 of 200.0 MB, 3m 20s",
    ]
    for minute in range(1, 4):
        clock.now += 60
        progress(DownloadProgress("installing", minute, None, None, None))
    assert capsys.readouterr().err.splitlines() == [
        "installing 2 packages, 1m 0s",
        "installing 3 packages, 2m 0s",
    ]


def test_quick_quarters_are_ten_seconds_apart(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    for done in range(5):
        progress(DownloadProgress("installing", done, 4, None, None))
        clock.now += 6
    assert capsys.readouterr().err.splitlines() == [
        "installing 2 of 4 packages, 12s",
        "installing 4 of 4 packages, 24s",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (59.9, "59s"), (60, "1m 0s"), (3725, "1h 2m")]
)
def test_elapsed_time(seconds: float, text: str) -> None:
    assert format_elapsed(seconds) == text
