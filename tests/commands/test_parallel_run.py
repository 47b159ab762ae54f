"""Runs of several jobs in threads, and the one writer of a state that they share."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from provision.adapters import RealSystem
from provision.commands.fleets.parallel_run import (
    Job,
    JobState,
    ParallelRun,
)
from provision.commands.shared.state_writer import StateWriter
from provision.effects.local import WriteFile
from provision.effects.system import Effect, ProgressCallback
from provision.errors import ExternalError, Refused, StateError
from provision.kinds import registry_in_use
from provision.plan import Intent
from provision.state_store import LocalStore


class Watcher:
    """Records what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.interrupts = 0

    def begin(self, jobs: Sequence[Job]) -> None: ...

    def change(self, label: str, state: JobState) -> None:
        self.lines.append((label, str(state)))

    def progress(self, label: str, text: str) -> None:
        self.lines.append((label, text))

    def interrupt(self) -> None:
        self.interrupts += 1


def never(_: BaseException) -> NoReturn:
    raise AssertionError("there was no second interrupt")


def most_at_once(parallel: int, uses: Sequence[str]) -> int:
    """Return how many jobs with these exclusive uses ran at the same time."""
    lock, running, most = threading.Lock(), 0, 0

    def work(_: ProgressCallback) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.03)
        with lock:
            running -= 1

    jobs = [Job(str(number), work, use) for number, use in enumerate(uses)]
    result = ParallelRun(parallel, never).run(jobs, Watcher())
    assert [each.state for each in result.outcomes] == [JobState.DONE] * len(uses)
    return most


def test_a_bounded_number_runs_and_exclusive_jobs_run_alone() -> None:
    assert most_at_once(3, [""] * 9) == 3
    assert most_at_once(1, [""] * 3) == 1
    assert most_at_once(4, ["machine"] * 4) == 1
    assert most_at_once(4, ["machine", "machine", "", ""]) == 3


def test_an_error_is_kept_apart_and_a_bug_ends_the_run() -> None:
    watcher = Watcher()

    def fail(_: ProgressCallback) -> None:
        raise Refused("no capacity")

    jobs = [Job("one", fail), Job("two", lambda _: 2)]
    one, two = ParallelRun(1, never).run(jobs, watcher).outcomes
    assert (one.state, str(one.error), two.value) == (JobState.FAILED, "no capacity", 2)
    assert ("one", "failed: no capacity") in watcher.lines

    started = []

    def crash(_: ProgressCallback) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ParallelRun(1, never).run([Job("a", crash), Job("b", started.append)], watcher)
    assert started == []


def test_the_registry_of_the_caller_is_that_of_the_jobs() -> None:
    (outcome,) = ParallelRun(1, never).run([Job("a", lambda _: registry_in_use.get())], Watcher())[
        0
    ]
    assert outcome.value is registry_in_use.get()


INTERRUPTED = """
import signal, threading
from provision.commands.fleets.parallel_run import JobInterrupted, Job, ParallelRun
from tests.commands.test_parallel_run import Watcher, never

signal.signal(signal.SIGINT, signal.default_int_handler)
run, waiting, watcher = ParallelRun(1, never), threading.Event(), Watcher()

def work(_):
    try:
        waiting.set()
        run.pause(600)
    except JobInterrupted as interruption:
        interruption.add_note("an instance may be running")
        raise
    finally:
        run.pause(0.01)
        print("cleaned up")

threading.Thread(target=lambda: waiting.wait() and signal.raise_signal(signal.SIGINT)).start()
result = run.run([Job(name, work) for name in "abc"], watcher)
print(type(result.interruption).__name__, watcher.interrupts)
print([str(each.state) for each in result.outcomes], result.outcomes[0].notes)
"""


def test_an_interrupt_ends_waits_and_starts_nothing() -> None:
    # In a process of its own: the workers of the suite have another use for the signal.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert done.stdout.splitlines() == [
        "cleaned up",
        "KeyboardInterrupt 1",
        "['interrupted', 'not started', 'not started'] ('an instance may be running',)",
    ]


class FullDisk(RealSystem):
    """A system whose disk is full for a while."""

    is_full = False

    def perform(self, effect: Effect, progress: ProgressCallback) -> None:
        if self.is_full and isinstance(effect, WriteFile) and effect.path.name == "state.json":
            raise ExternalError("the disk is full")
        super().perform(effect, progress)


def test_a_writer_loses_no_change_of_its_threads(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / ".provision", RealSystem())
    with store.exclusive(0, lambda _: None):
        writer = StateWriter(store, store.load_or_create_ledger())

        unsaved = []

        def work(number: int) -> None:
            address = f"spec/{number}"
            intent = Intent(address, "one", "+", began="now")
            writer.open_intent(intent)
            writer.change(lambda state: state.with_record(address, "one", {"title": "x"}))
            if LocalStore(store.folder, RealSystem()).load().resource(address, "one") is None:
                unsaved.append(address)
            writer.close_intent(intent)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        saved = store.load_ledger()
        assert unsaved == [], "a change is on disk when the call returns"
        assert (len(saved.state.resources), saved.intents) == (24, ())
        assert saved.state.serial == writer.state.serial == 24


def test_an_intent_stays_open_until_the_state_is_written(tmp_path: Path) -> None:
    system = FullDisk()
    store = LocalStore(tmp_path / ".provision", system)
    with store.exclusive(0, lambda _: None):
        writer = StateWriter(store, store.load_or_create_ledger())
        intent = Intent("spec/a", "one", "+", began="now")
        writer.open_intent(intent)
        system.is_full = True
        with pytest.raises(ExternalError):
            writer.change(lambda state: state.with_record("spec/a", "one", {"title": "x"}))
        with pytest.raises(ExternalError):
            writer.close_intent(intent)
        assert len(store.read_intents()) == 1
        system.is_full = False
        writer.close_intent(intent)
        assert (len(store.load().resources), store.read_intents()) == (1, ())
        store.bind(store.load().with_record("spec/b", "one", {"title": "x"}))
        with pytest.raises(StateError, match="changed by another process"):
            writer.change(lambda state: state.with_record("spec/c", "one", {"title": "x"}))
