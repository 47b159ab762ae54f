"""The attempts to create an instance, zone by zone, and the error when none succeeds."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope
from provision.adapters.google.instance_commands import instance_command
from provision.effects.system import ProgressCallback
from provision.sanitize import escape_line


class ZoneAttempt(NamedTuple):
    """The outcome in one zone: "created", "adopted" or the kind of the failure, and the reason."""

    zone: str
    outcome: str
    why: str


class InstanceNotCreated(CloudError):
    """No zone took the instance; `still_running` names what may still exist and cost money."""

    def __init__(
        self, failure: CloudFailure, attempts: tuple[ZoneAttempt, ...], left: tuple[str, ...]
    ) -> None:
        super().__init__(failure)
        self.attempts = attempts
        self.still_running = left


class CreationAttempts:
    """Collects the attempts of one creation, and reports each as progress."""

    def __init__(self, progress: ProgressCallback, replaced_instance: str) -> None:
        self._progress = progress
        self._replaced_instance = replaced_instance
        self._attempts: list[ZoneAttempt] = []
        self._failures: list[CloudFailure] = []

    def record(self, zone: str, outcome: str, why: str) -> None:
        """Record a failed attempt."""
        self._attempts.append(ZoneAttempt(zone, outcome, why))
        self._progress(f"{zone}: {outcome}: {escape_line(why)}")

    def record_failure(self, zone: str, failure: CloudFailure) -> None:
        """Record the failure that ends the attempts in a zone."""
        self._failures.append(failure)
        self.record(zone, failure.kind, failure.what)

    def finish(self, zone: str, outcome: str, why: str) -> tuple[ZoneAttempt, ...]:
        """Return all attempts with the successful one; earlier failures are shown as a table."""
        attempts = (*self._attempts, ZoneAttempt(zone, outcome, why))
        if self._attempts:
            self._progress(f"zones tried:\n{format_attempts(attempts)}")
        return attempts

    def error(
        self,
        failure: CloudFailure,
        *,
        left: str = "",
        remains: str = "nothing was left running",
    ) -> InstanceNotCreated:
        """Return the final error: the outcome of every zone, each hint once, and what remains.

        `left` is the full name of an instance that may still exist.
        """
        attempts = tuple(self._attempts)
        zones = {attempt.zone for attempt in attempts}
        what = failure.what
        if len(zones) > 1 and failure.scope in (FailureScope.ZONE, FailureScope.REGION):
            what = f"none of {len(zones)} zones had the machine"
        others = [other for other in self._failures if other.kind != failure.kind]
        why = [*(other.why for other in others), failure.why]
        if len(attempts) > 1:
            why.insert(0, format_attempts(attempts))
        if self._replaced_instance:
            why.append(f"{self._replaced_instance} and its disks were deleted before this attempt")
        if left:
            command = instance_command("describe", left)
            remains = f"{left} may exist and be costing money: {command}"
        hints = [*(other.hint for other in others), failure.hint, remains]
        return InstanceNotCreated(
            replace(
                failure,
                what=what,
                why="\n".join(filter(None, dict.fromkeys(why))),
                hint="\n".join(dict.fromkeys(hints)),
            ),
            attempts,
            (left,) if left else (),
        )


def format_attempts(attempts: tuple[ZoneAttempt, ...]) -> str:
    """Return the attempts as a table of zone, outcome and reason."""
    zone_width = max((len(attempt.zone) for attempt in attempts), default=0)
    outcome_width = max((len(attempt.outcome) for attempt in attempts), default=0)
    return "\n".join(
        f"{zone:<{zone_width}}  {outcome:<{outcome_width}}  {escape_line(why)}"
        for zone, outcome, why in attempts
    )
