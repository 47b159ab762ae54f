"""The life of a job's replicas: faults happen to them, and those that fail start again."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from provision.sandbox.replica_network import ReplicaNetwork
from provision.sandbox.replica_processes import kill_container, terminate_container
from provision.sandbox.running_jobs import JobEnd, Replica, RunningJob

_POLL_S = 0.05
_MAX_RESTARTS = 5
"""Restarts of a replica in the same machine (Vertex AI documentation, Understand the training
service).
"""
_KILL_AFTER_S = 1.0
_DEFAULT_TIMEOUT_S = 7 * 86400.0


class ReplicaWatch:
    """Waits for the end of a job whose replicas have started.

    `processes` are those of the replicas, by task; `start` replaces the one of a replica.
    """

    def __init__(
        self,
        job: RunningJob,
        replicas: Sequence[Replica],
        start: Callable[[Replica], None],
        processes: dict[str, subprocess.Popen[bytes]],
        network: ReplicaNetwork | None,
        grace_s: float,
    ) -> None:
        self._job, self._start, self._processes = job, start, processes
        self._replicas = [replica for replica in replicas if replica.task in processes]
        self._network, self._grace_s = network, grace_s
        self._lost = {*job.killed, *job.silent}
        self._reclaimed = dict(job.reclaimed)
        self._ends: dict[str, float] = {}
        self._restarts = dict.fromkeys(processes, 0)

    def follow(self, stopped: threading.Event) -> JobEnd | None:
        """Wait until the primary replica has ended, or another one has failed for good."""
        scheduling = self._job.spec.get("scheduling", {})
        limit_s = float(scheduling.get("timeout", f"{_DEFAULT_TIMEOUT_S}s")[:-1])
        began = time.monotonic()
        while not stopped.wait(_POLL_S):
            waited = time.monotonic() - began
            if waited > limit_s:
                return JobEnd(f"The job did not end within its timeout of {limit_s:.0f} seconds.")
            for replica in self._replicas:
                if waited > _KILL_AFTER_S:
                    self._lose(replica)
                self._preempt(replica)
                code = self._processes[replica.task].poll()
                if code == 0 and replica.is_primary:
                    return JobEnd("")
                if code in (None, 0):
                    continue
                is_last = self._restarts[replica.task] == _MAX_RESTARTS
                if scheduling.get("disableRetries") or is_last:
                    return JobEnd(replica.describe_failure(code))
                self._repeat(replica)
        return None

    def _lose(self, replica: Replica) -> None:
        """Kill a machine that the faults name, or let its host vanish."""
        if replica.task not in self._lost:
            return
        self._lost.discard(replica.task)
        process = self._processes[replica.task]
        if replica.task not in self._job.silent:
            kill_container(process, replica.home)
            return
        # Its connections stay open, and its process is not seen to end.
        if self._network is not None:
            self._network.silence(replica.task)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGSTOP)

    def _preempt(self, replica: Replica) -> None:
        """Reclaim the machine of a replica that the faults name, once it has something to lose."""
        process, now = self._processes[replica.task], time.monotonic()
        output = self._reclaimed.get(replica.task)
        if output is not None and replica.is_at_work(output):
            del self._reclaimed[replica.task]
            self._ends[replica.task] = now + self._grace_s
            terminate_container(process, replica.home, is_entered=self._network is not None)
        if now > self._ends.get(replica.task, math.inf):
            self._ends[replica.task] = math.inf
            kill_container(process, replica.home)

    def _repeat(self, replica: Replica) -> None:
        """Start a replica again: in the same machine, or in a new one if it was reclaimed."""
        self._restarts[replica.task] += 1
        kill_container(self._processes[replica.task], replica.home)
        if self._ends.pop(replica.task, None) is not None:
            replica.make_disk()
        self._start(replica)
