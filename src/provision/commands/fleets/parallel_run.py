"""Runs the work of several targets in threads: a bounded number at a time, stopped by Ctrl-C."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, NoReturn, Protocol

from provision.adapters.process import terminate_piped_programs
from provision.effects.system import Notice, ProgressCallback
from provision.errors import ProvisionError

_POLL_S = 0.2


class JobInterrupted(BaseException):
    """The run was interrupted, and a target stops between two of its steps.

    It unwinds like Ctrl-C, so that children end and the journal keeps its intents.
    """


class JobState(StrEnum):
    """How far a job has come; the values are part of the JSON output."""

    WAITING = "not started"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Job:
    """The work for one target, which is given the callback for its progress.

    Of the jobs with the same `exclusive`, one runs at a time.
    """

    label: str
    work: Callable[[ProgressCallback], Any]
    exclusive: str = ""


@dataclass(slots=True)
class JobOutcome:
    """What became of a job: its value or its error, and notes about what it left running."""

    label: str
    state: JobState = JobState.WAITING
    value: Any = None
    error: ProvisionError | None = None
    notes: tuple[str, ...] = ()


class Watcher(Protocol):
    """Shows the jobs of a run. Every method is called in the threads of the jobs."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """Called before the first job starts."""

    def change(self, label: str, state: JobState) -> None:
        """Called when a job starts and when it ends."""

    def progress(self, label: str, text: str) -> None:
        """Called with each line of progress of a job."""

    def interrupt(self) -> None:
        """Called in the main thread when the run is interrupted."""


class ParallelResult(NamedTuple):
    """The outcomes in the order of the jobs, and the interrupt that ended the run, if one did."""

    outcomes: tuple[JobOutcome, ...]
    interruption: BaseException | None


class ParallelRun:
    """Threads for at most `parallel` jobs.

    After the first interrupt no job starts, and each that runs stops before its next step or wait:
    no call is cut off, so that its answer is recorded. The second interrupt calls `abort`, which
    ends the process: its threads may be writing.
    """

    def __init__(self, parallel: int, abort: Callable[[BaseException], NoReturn]) -> None:
        self.parallel = parallel
        self._abort = abort
        self._stopping = threading.Event()
        self._current = threading.local()

    def pause(self, seconds: float) -> None:
        """Sleep in a job, until the run is interrupted; the sleep of the adapters."""
        self._stop_here()
        if self._stopping.is_set():
            time.sleep(seconds)  # this job cleans up after its interruption
            return
        self._stopping.wait(seconds)
        self._stop_here()

    def run(self, jobs: Sequence[Job], watcher: Watcher) -> ParallelResult:
        """Run the jobs, and return their outcomes.

        Raises:
            BaseException: a bug in a job, once the others have ended.
        """
        batch = _Batch(jobs)
        watcher.begin(jobs)
        ended: SimpleQueue[None] = SimpleQueue()

        def work() -> None:
            while not self._stopping.is_set() and (job := batch.take()) is not None:
                bug = self._perform(job, batch.outcomes[job.label], watcher)
                if bug is not None:
                    batch.bugs.append(bug)
                    self._stop(batch)
                batch.release(job)
            ended.put(None)

        threads = [
            # Variables such as the registry of kinds are those of the caller.
            threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
            for _ in range(min(self.parallel, len(jobs)))
        ]
        interruption = self._wait(threads, ended, batch, watcher)
        if batch.bugs:
            raise batch.bugs[0]
        return ParallelResult(tuple(batch.outcomes[job.label] for job in jobs), interruption)

    def _wait(
        self,
        threads: Sequence[threading.Thread],
        ended: SimpleQueue[None],
        batch: _Batch,
        watcher: Watcher,
    ) -> BaseException | None:
        """Start the threads and wait until all have ended; return the interrupt if one came."""
        interruption: BaseException | None = None
        waiting = list(threads)

        def wait() -> None:
            """All loops are in here: an interrupt may come between any two instructions."""
            if interruption is not None:
                watcher.interrupt()
                terminate_piped_programs()
            while waiting and interruption is None:
                waiting.pop().start()
            while any(thread.is_alive() for thread in threads):
                with suppress(Empty):
                    ended.get(timeout=_POLL_S)

        while True:
            try:
                wait()
                return interruption
            except Exception:
                raise
            except BaseException as signal:  # noqa: BLE001 (raised by the caller)
                if interruption is not None:
                    self._abort(signal)
                interruption = signal
                self._stop(batch)

    def _stop(self, batch: _Batch) -> None:
        self._stopping.set()
        batch.close()

    def _perform(self, job: Job, outcome: JobOutcome, watcher: Watcher) -> BaseException | None:
        """Perform a job and note its outcome; return an exception that is a bug."""
        self._current.is_interruptible = True

        def progress(text: str) -> None:
            self._stop_here()
            watcher.progress(job.label, text)

        outcome.state = JobState.RUNNING
        watcher.change(job.label, outcome.state)
        try:
            outcome.value = job.work(progress)
            outcome.state = JobState.DONE
        except JobInterrupted as interruption:
            outcome.state = JobState.INTERRUPTED
            outcome.notes = tuple(getattr(interruption, "__notes__", ()))
        except ProvisionError as error:
            # A program that the interrupt ended is not a failure of the target.
            stopped = self._stopping.is_set()
            outcome.state = JobState.INTERRUPTED if stopped else JobState.FAILED
            outcome.error = error
            watcher.progress(job.label, Notice(f"{outcome.state}: {error.what}"))
        except BaseException as bug:  # noqa: BLE001 (raised by `run`)
            outcome.state = JobState.FAILED
            return bug
        finally:
            self._current.is_interruptible = False
            watcher.change(job.label, outcome.state)
        return None

    def _stop_here(self) -> None:
        """Raise JobInterrupted in a job of an interrupted run, once."""
        if self._stopping.is_set() and getattr(self._current, "is_interruptible", False):
            self._current.is_interruptible = False
            raise JobInterrupted


@dataclass
class _Batch:
    """The jobs of a run that have not started, and what the running ones exclude."""

    jobs: Sequence[Job]
    outcomes: dict[str, JobOutcome] = field(init=False)

    def __post_init__(self) -> None:
        self.outcomes = {job.label: JobOutcome(job.label) for job in self.jobs}
        self._left = list(self.jobs)
        self._busy: set[str] = set()
        self.bugs: list[BaseException] = []
        self._changed = threading.Condition()

    def take(self) -> Job | None:
        """Return the next job that may start, once there is one; None if none is left."""
        with self._changed:
            while self._left:
                for job in self._left:
                    if not job.exclusive or job.exclusive not in self._busy:
                        self._left.remove(job)
                        self._busy.add(job.exclusive)
                        return job
                self._changed.wait()
            return None

    def release(self, job: Job) -> None:
        """Let a job start that an ended one excluded."""
        with self._changed:
            self._busy.discard(job.exclusive)
            self._changed.notify_all()

    def close(self) -> None:
        """Start no further job."""
        with self._changed:
            self._left.clear()
            self._changed.notify_all()
