"""Shares tasks with forked processes, which return their results over pipes. Linux only."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from provision.errors import ExternalError

MAX_PROCESSES = 8
"""Processes, this one included. Our choice."""
MAX_TASKS = 1024
"""Tasks of one call: their numbers must fit into the smallest pipe, which has 4096 bytes (pipe(7)).
"""
_NUMBER_BYTES = 4
_READ_BYTES = 1 << 20
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class _Child:
    pid: int
    results: int
    has_ended: bool = False


def count_usable_processes() -> int:
    """Return how many processes can run at the same time; 1 if forking is not safe.

    A fork copies only the thread that calls it, so a lock that another thread has is never
    released. On macOS, system libraries start threads. Windows has no fork.
    """
    if sys.platform != "linux" or not _has_one_thread():
        return 1
    from provision.agent.probe.observing.cgroups import cpu_quota

    cores = len(os.sched_getaffinity(0))
    quota = cpu_quota(Path("/"))
    if quota is not None:
        cores = min(cores, int(quota))
    return max(1, min(cores, MAX_PROCESSES))


def share_tasks(
    count: int, own: Callable[[int], Any], sent: Callable[[int], Any], processes: int
) -> list[Any]:
    """Return the results of the tasks 0 to `count` - 1, in this order.

    Each process takes the next task when it has finished one. The other processes have ended when
    this function returns or raises.

    Args:
        count: the number of tasks, at most `MAX_TASKS`.
        own: performs a task in this process.
        sent: performs a task in another process; the result is copied with pickle.
        processes: the number of processes, this one included.

    Raises:
        ExternalError: a process ended before it had sent its results.
    """
    tasks, write_end = os.pipe()
    results: dict[int, Any] = {}
    try:
        try:
            os.write(write_end, b"".join(n.to_bytes(_NUMBER_BYTES, "big") for n in range(count)))
        finally:
            os.close(write_end)
        with _started_children(tasks, sent, processes - 1) as children:
            for number in _take_tasks(tasks):
                results[number] = own(number)
            for child in children:
                results |= _receive_results(child)
    finally:
        os.close(tasks)
    return [results[number] for number in range(count)]


def _has_one_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 (only names are needed)
    except OSError:
        return False


def _take_tasks(tasks: int) -> Iterator[int]:
    """Yield the numbers of tasks that no other process has taken."""
    # The kernel locks a pipe while it is read, so that no other process gets a part of a number.
    while number := os.read(tasks, _NUMBER_BYTES):
        yield int.from_bytes(number, "big")


@contextmanager
def _started_children(
    tasks: int, sent: Callable[[int], Any], count: int
) -> Iterator[tuple[_Child, ...]]:
    """Start processes that perform tasks, and kill those that have not ended at the end.

    There are fewer if the system refuses more: the tasks are performed all the same.
    """
    children: list[_Child] = []
    try:
        # A signal that arrives earlier would leave an unknown child, or unwind the child.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            with suppress(OSError):
                for _ in range(count):
                    # Not `extend`: those that were started before an error must be known.
                    children.append(_start_child(tasks, sent, mask))  # noqa: PERF401
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield tuple(children)
    finally:
        for child in children:
            if not child.has_ended:
                os.kill(child.pid, signal.SIGKILL)
        for child in children:
            if not child.has_ended:
                os.waitpid(child.pid, 0)
            os.close(child.results)


def _start_child(tasks: int, sent: Callable[[int], Any], mask: set[int]) -> _Child:
    read_end, write_end = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        _run_child(tasks, sent, write_end, parent, mask)
    os.close(write_end)
    return _Child(pid, read_end)


def _run_child(
    tasks: int, sent: Callable[[int], Any], write_end: int, parent: int, mask: set[int]
) -> NoReturn:
    """Perform tasks until none is left, send the results, and end this process."""
    code = 1
    try:
        for number in _SIGNALS:  # the parent reports Ctrl-C, which the terminal sends to both
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        results = {}
        for task in _take_tasks(tasks):
            if os.getppid() != parent:
                break
            results[task] = sent(task)
        with os.fdopen(write_end, "wb") as file:
            pickle.dump(results, file, pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)


def _receive_results(child: _Child) -> dict[int, Any]:
    """Return the results of a child, which has ended afterwards.

    Raises:
        ExternalError: it ended before it had sent its results.
    """
    parts = []
    while part := os.read(child.results, _READ_BYTES):
        parts.append(part)
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    child.has_ended = True
    if code != 0:
        why = f"it ended with exit code {code}"
        if code < 0:
            why = f"it was killed by {signal.Signals(-code).name}"
        raise ExternalError(
            "a process of this command ended before it had finished",
            why=why,
            hint="if memory was short, use only one process: `taskset -c 0 provision ...`",
        )
    results: dict[int, Any] = pickle.loads(b"".join(parts))  # noqa: S301 (our own child)
    return results
