"""Regions without capacity, as the jobs of one run have met them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from typing import Any

from provision.adapters.google.retry import format_duration
from provision.adapters.google.stockouts import VALID_S

_FIELDS = ("machineType", "acceleratorType", "acceleratorCount", "reservationAffinity")


class JobStockouts:
    """The newest lack of capacity by region and machines. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._found: dict[tuple[str, str], tuple[float, str]] = {}

    def record(self, region: str, job: Mapping[str, Any]) -> None:
        """Remember that a region did not give a job its machines."""
        with self._lock:
            self._found[region, _describe_machines(job)] = self._clock(), _name(job)

    def find(self, region: str, job: Mapping[str, Any]) -> str:
        """Return why a job is not tried in a region; "" if no other job has just failed there."""
        with self._lock:
            at, other = self._found.get((region, _describe_machines(job)), (0.0, ""))
        age = self._clock() - at
        if other in ("", _name(job)) or age >= VALID_S:
            return ""
        return (
            f"not tried: {other} found no capacity for the same machines {format_duration(age)} "
            f"ago; jobs try the region again after {format_duration(VALID_S)}"
        )


def _describe_machines(job: Mapping[str, Any]) -> str:
    """Return what a job needs of a region."""
    spec = job.get("jobSpec", {})
    pools = []
    for pool in spec.get("workerPoolSpecs", ()):
        machine = pool.get("machineSpec", {})
        pools.append([str(pool.get("replicaCount")), *(str(machine.get(key)) for key in _FIELDS)])
    return json.dumps([pools, spec.get("scheduling", {}).get("strategy")])


def _name(job: Mapping[str, Any]) -> str:
    return str(job.get("displayName", "")).removeprefix("provision ")
