"""Runs of the probe on devices in the cloud: running, or reported in the stored verdict."""

from __future__ import annotations

from typing import Protocol, TypeVar

from provision.state import State
from provision.targets.context import TargetContext
from provision.targets.stored_verdict import VerificationRecord


class RecordedRun(Protocol):
    """The record of a run: the request that its report answers, and why it ended without one."""

    @property
    def nonce(self) -> str:
        """The nonce of the request."""

    @property
    def ended(self) -> str:
        """Why it ended without a report; "" if it has one or still runs."""


RunT = TypeVar("RunT", bound=RecordedRun)


def is_reported(record: RecordedRun | None, stored: VerificationRecord | None) -> bool:
    """Return whether the stored verdict is that of a recorded run."""
    return record is not None and stored is not None and stored.nonce == record.nonce


def find_unreported(record: RunT | None, context: TargetContext, state: State) -> RunT | None:
    """Return a recorded run if it may still run; None if it has ended or reported."""
    stored = VerificationRecord.find(state, context.address)
    if record is None or record.ended or is_reported(record, stored):
        return None
    return record


def describe_running(context: TargetContext, run: str) -> str:
    """Return the notice about a run that may still cost money."""
    return (
        f"{run} and costing money; wait for it: {context.command('attach')}; "
        f"end it: {context.command('destroy')}"
    )
