"""Reports what exists for a spec, whether it is current, and its last verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    get_driver_and_context,
    worst_exit_code,
)
from provision.commands.shared.verified_tier import with_verified_tier
from provision.effects.system import Reader
from provision.errors import ProvisionError
from provision.lock import Lock
from provision.lock.inputs import list_changed_inputs
from provision.state import Ledger
from provision.targets import find_driver, load_drivers
from provision.targets.capabilities import AcceptsReports
from provision.targets.stored_verdict import VerificationRecord


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """Condition of one target, its location, and its verdict if it has one.

    Attributes:
        condition: A word such as "absent", "gone", "incomplete", "outdated" or "current".
        outdated: Why the verdict no longer applies; "" when it does.
    """

    target: str
    kind: str
    condition: str
    path: str
    verdict: str
    verified_at: str
    report: str
    outdated: str = ""
    earlier_probe: bool = False
    """The verdict still counts, and is of another version's probe."""
    report_arrival: str = ""
    """How the report of a notebook arrives without a download; "" if it does not."""


@dataclass(frozen=True, slots=True)
class SpecStatus:
    """Condition of a spec and of its targets.

    Attributes:
        lock_differences: Inputs that changed since the lock; None without a lock.
        foreign_reason: Why the state was written elsewhere; "" if it was written here.
        failed: Errors that stopped a target, by its name.
    """

    lock_differences: tuple[str, ...] | None
    targets: tuple[TargetStatus, ...]
    accepted_verdicts: tuple[str, ...]
    foreign_reason: str
    failed: ErrorsByTarget

    @property
    def exit_code(self) -> int:
        """That of the errors; else 0 if the lock matches and every target is verified, else 1."""
        if self.failed:
            return worst_exit_code(error.exit_code for error in self.failed.values())
        fine = self.lock_differences == () and all(
            target.condition in ("current", "current, stopped", "rendered")
            and target.verdict in self.accepted_verdicts
            and not target.outdated
            for target in self.targets
        )
        return 0 if fine else 1


def status(loaded: LoadedSpec, ledger: Ledger, reader: Reader) -> SpecStatus:
    """Return the condition of a spec and its targets; an error of one does not hide the others.

    Raises:
        LockError: the lock is damaged.
    """
    lock = read_lock(loaded, reader)
    changes = list_changed_inputs(loaded.spec, lock) if lock is not None else None
    accepted = ("verified",) if loaded.sandbox_sources is None else ("verified", "simulated")
    failed: ErrorsByTarget = dict(loaded.target_errors)
    targets = []
    for name in loaded.spec.targets:
        try:
            targets.append(_target_status(loaded, lock, name, ledger, reader))
        except ProvisionError as error:
            failed[name] = error
            targets.append(_unknown_status(loaded, name, ledger, error))
    return SpecStatus(changes, tuple(targets), accepted, ledger.foreign_reason, failed)


def _target_status(
    loaded: LoadedSpec, lock: Lock | None, name: str, ledger: Ledger, reader: Reader
) -> TargetStatus:
    kind = loaded.spec.targets[name].kind
    driver = find_driver(loaded.spec, name)
    if driver is None:
        verdict = _stored_verdict(loaded, ledger, name)
        return TargetStatus(name, kind, "this version cannot create it", "", *verdict)
    platform = driver.platform or reader.platform()
    if lock is None or lock.environment(name, platform) is None:
        is_absent = _recorded_location(loaded, ledger, name) is None
        condition = "absent" if is_absent else "outdated"
        return _recorded_status(loaded, name, ledger, condition)
    driver, context = get_driver_and_context(loaded, lock, name, reader)
    context = with_verified_tier(driver, context, ledger.state, reader)
    current = driver.condition(context, ledger, reader)
    outdated, earlier_probe = current.drift, False
    stored = VerificationRecord.find(ledger.state, context.address)
    if stored is not None and stored.verdict and not outdated:
        planned = driver.plan_verification(context, ledger.state, reader)
        outdated, earlier_probe = planned.reason if planned.needed else "", planned.earlier_probe
    verdict = _stored_verdict(loaded, ledger, name)
    request = None
    if isinstance(driver, AcceptsReports):
        request = driver.report_request(context.address, ledger.state)
    return TargetStatus(
        *(name, kind, current.condition, current.location, *verdict, outdated, earlier_probe),
        report_arrival=request.arrival if request is not None else "",
    )


def _unknown_status(
    loaded: LoadedSpec, name: str, ledger: Ledger, error: ProvisionError
) -> TargetStatus:
    """Return the status of a target that cannot be observed, with what is recorded of it."""
    condition = f"unknown: {error.what}"
    try:
        return _recorded_status(loaded, name, ledger, condition)
    except ProvisionError:
        return TargetStatus(name, loaded.spec.targets[name].kind, condition, "", "", "", "")


def _recorded_status(loaded: LoadedSpec, name: str, ledger: Ledger, condition: str) -> TargetStatus:
    """Return the status of a target by what is recorded of it."""
    location = _recorded_location(loaded, ledger, name) or ""
    verdict = _stored_verdict(loaded, ledger, name)
    return TargetStatus(name, loaded.spec.targets[name].kind, condition, location, *verdict)


def _recorded_location(loaded: LoadedSpec, ledger: Ledger, name: str) -> str | None:
    """Return the location of the recorded target, of whatever kind it is; None for nothing."""
    address = f"{loaded.stem}/{name}"
    for driver in load_drivers(loaded.spec.registry):
        if (location := driver.location(address, loaded.folder, ledger.state)) is not None:
            return location
    return None


def _stored_verdict(loaded: LoadedSpec, ledger: Ledger, name: str) -> tuple[str, str, str]:
    """Return the stored verdict of a target, its time and its report; "" for what is missing."""
    record = VerificationRecord.find(ledger.state, f"{loaded.stem}/{name}")
    if record is None:
        return "", "", ""
    return record.verdict, record.at, str(loaded.folder / record.report)
