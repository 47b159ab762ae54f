"""A process of several stages is followed to its end, and every way to end is told."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from provision.agent.probe.redactor import Redactor
from provision.agent.probe.stage import truncate_middle
from provision.agent.probe.supervisor import StageProcess, StageRun, StageTask

ENDED = (
    "import json, pathlib; one = pathlib.Path(sys.argv[1]); two = "
    "pathlib.Path(sys.argv[2])\none.write_text(json.dumps({'cpu_s': 0.5, 'ended': True}))\n"
)


def follow(
    tmp_path: Path, code: str, timeouts: tuple[float, ...] = (20,), deadline_s: float = 60
) -> tuple[list[StageRun], list[str]]:
    legs = [
        StageTask(f"s{place}", timeout, tmp_path / f"s{place}.json", tmp_path / f"s{place}.log")
        for place, timeout in enumerate(timeouts)
    ]
    said: list[str] = []
    process = StageProcess(
        legs,
        time.monotonic() + deadline_s,
        Redactor(["hidden-word"]),
        lambda name: said.append(f"+{name}"),
        lambda run: said.append(f"-{run.name}"),
    )
    command = [
        sys.executable,
        "-u",
        "-c",
        "import os, signal, sys, time\n" + code,
        *(str(leg.progress_file) for leg in legs),
    ]
    return process.run(command, {}), said


@pytest.mark.parametrize(
    ("code", "exit_code", "signal_name"),
    [
        ("pass", 0, None),
        ("sys.exit(7)", 7, None),
        ("os.kill(os.getpid(), signal.SIGKILL)", None, "SIGKILL"),
        ("os.abort()", None, "SIGABRT"),
    ],
)
def test_endings(tmp_path: Path, code: str, exit_code: int | None, signal_name: str | None) -> None:
    (run,), said = follow(tmp_path, code)
    assert (run.exit, run.signal, run.timed_out) == (exit_code, signal_name, False)
    assert run.maxrss_mb > 1
    assert said == ["+s0", "-s0"]


@pytest.mark.parametrize(("timeout", "deadline"), [(0.6, 60.0), (60.0, 0.6)])
def test_time_limits_of_a_stage_and_of_the_whole(
    tmp_path: Path, timeout: float, deadline: float
) -> None:
    (run,), _ = follow(tmp_path, "time.sleep(60)", (timeout,), deadline)
    assert (run.timed_out, run.signal) == (True, "SIGKILL")
    assert run.wall_s < 20
    assert "did not end within" in run.how


def test_a_stage_begins_when_its_fragment_is_there_and_the_death_is_its_own(tmp_path: Path) -> None:
    runs, said = follow(
        tmp_path,
        ENDED + "time.sleep(0.2); two.write_text('{}'); time.sleep(0.2); os.kill(os.getpid(), "
        "signal.SIGSEGV)",
        (20, 20, 20),
    )
    assert [(run.name, run.exit, run.signal) for run in runs] == [
        ("s0", 0, None),
        ("s1", None, "SIGSEGV"),
    ]
    assert runs[0].cpu_s == 0.5
    assert said == ["+s0", "-s0", "+s1", "-s1"]


def test_a_stage_that_came_and_went_unnoticed_is_still_told(tmp_path: Path) -> None:
    runs, _ = follow(tmp_path, ENDED + "two.write_text('{}')", (20, 20))
    assert [(run.name, run.exit) for run in runs] == [("s0", 0), ("s1", 0)]


def test_the_tail_is_the_redacted_end(tmp_path: Path) -> None:
    (run,), _ = follow(
        tmp_path,
        "print('x' * 100000); print('the hidden-word is here'); os.write(2, b'\\xff bytes')",
    )
    assert len(run.tail.encode()) <= 2048
    assert "the <redacted> is here" in run.tail
    assert "hidden-word" not in run.tail


def test_of_a_long_error_both_ends_are_kept() -> None:
    """A DataLoader worker's traceback says what happened in its last line."""
    text = "\n".join(
        [
            "Caught RuntimeError in DataLoader worker process 0.",
            *["  File somewhere"] * 300,
            "RuntimeError: unable to allocate shared memory(shm)",
        ]
    )

    told = truncate_middle(text, 1500)
    assert told.startswith("Caught RuntimeError in DataLoader worker process 0.\n")
    assert told.endswith("\nRuntimeError: unable to allocate shared memory(shm)")
    assert 1500 <= len(told) <= 1540
    assert f"[{len(text) - 1500} characters omitted]" in told
    assert truncate_middle(text[:1500], 1500) == text[:1500]
