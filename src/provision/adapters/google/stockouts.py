"""Zones without capacity, as the targets of one run have met them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Any

from provision.adapters.google.errors import CloudError, CloudFailure
from provision.adapters.google.retry import format_duration

VALID_S = 600.0
"""Seconds for which a zone without capacity is not tried again. Our choice: an attempt takes
minutes, and capacity seldom comes back sooner."""


class Stockouts:
    """The newest failure for lack of capacity by zone and machine. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures: dict[tuple[str, str], tuple[float, str, CloudFailure]] = {}

    def record(self, zone: str, instance: str, body: Mapping[str, Any], error: CloudError) -> None:
        """Remember that a zone had no capacity for an instance; other failures are ignored."""
        if error.failure.kind == "capacity":
            with self._lock:
                self._failures[zone, _machine(body)] = (self._clock(), instance, error.failure)

    def require_capacity(self, zone: str, instance: str, body: Mapping[str, Any]) -> None:
        """Check that another target has not just found the zone without capacity.

        Raises:
            CloudError: it has; the zone is to be left out.
        """
        with self._lock:
            known = self._failures.get((zone, _machine(body)))
        if known is None:
            return
        at, other, failure = known
        age = self._clock() - at
        if other == instance or age >= VALID_S:
            return
        what = (
            f"not tried: {other} found no capacity for this machine {format_duration(age)} ago; "
            f"targets try the zone again after {format_duration(VALID_S)}"
        )
        raise CloudError(replace(failure, what=what, zones_available=()))


def _machine(body: Mapping[str, Any]) -> str:
    """Return what an instance needs of a zone: its machine type and GPUs."""
    setup = body.get("gceSetup", {})
    gpus = [
        f"{item.get('coreCount')} x {item.get('type')}"
        for item in setup.get("acceleratorConfigs") or ()
    ]
    return ", ".join([str(setup.get("machineType", "")), *gpus])
