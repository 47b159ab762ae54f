"""Say what exists for a spec, whether it is current, and what its last verification found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.commands.lock import read_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.multi_target import ErrorsByTarget, worst_exit_code
from provision.commands.shared.target_plans import (
    NOTEBOOK_PART,
    get_driver_and_context,
    is_notebook,
    plan_verification,
)
from provision.effects import Reader
from provision.errors import ProvisionError
from provision.lock import Lock
from provision.lock.inputs import list_changed_inputs
from provision.plan import Operation
from provision.state import Intent, Ledger
from provision.targets import DRIVERS, Driver, TargetContext
from provision.targets.colab import SESSION_PART
from provision.targets.local.environment_drift import join_limited

_MAIN_PARTS = ("environment", "instance", NOTEBOOK_PART)
"""The parts of which a target has one: what was made of it."""


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """How one target stands: absent, half-made, changed by hand, outdated, rendered or current,
    where it is, and its verdict, if it has one.
    """

    target: str
    kind: str
    condition: str
    path: str
    verdict: str
    verified_at: str
    report: str
    outdated: str = ""
    """Why the verdict no longer counts; "" when it does."""


@dataclass(frozen=True, slots=True)
class SpecStatus:
    """How a spec stands: what moved since the lock (None: there is no lock), and every target.
    `failed` are the errors that stopped a target, by its name.
    """

    lock_differences: tuple[str, ...] | None
    targets: tuple[TargetStatus, ...]
    accepted_verdicts: tuple[str, ...] = ("verified",)
    foreign_reason: str = ""
    """Why the state was written elsewhere; "" when it was written here."""
    failed: ErrorsByTarget = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """That of what stopped a target; else 0 when the lock holds and every target is current and
        verified, else 1.
        """
        if self.failed:
            return worst_exit_code(self.failed)
        fine = self.lock_differences == () and all(
            t.condition in ("current", "current, stopped", "rendered")
            and t.verdict in self.accepted_verdicts
            and not t.outdated
            for t in self.targets
        )
        return 0 if fine else 1


def status(loaded: LoadedSpec, ledger: Ledger, reader: Reader) -> SpecStatus:
    """Return how a spec and its targets stand; looks, changes nothing. Raises LockError when the
    lock is damaged.

    What stops one target does not hide the others.
    """
    lock = read_lock(loaded, reader)
    moved = list_changed_inputs(loaded.spec, lock) if lock is not None else None
    proven = ("verified",) if loaded.sandbox_sources is None else ("verified", "simulated")
    failed: ErrorsByTarget = dict(loaded.target_errors)
    standings = []
    for name in loaded.spec.targets:
        try:
            standings.append(_target_status(loaded, lock, name, ledger, reader))
        except ProvisionError as error:
            failed[name] = error
            standings.append(_unknown_status(loaded, name, ledger, error))
    return SpecStatus(moved, tuple(standings), proven, ledger.foreign_reason, failed)


def _target_status(
    loaded: LoadedSpec, lock: Lock | None, name: str, ledger: Ledger, reader: Reader
) -> TargetStatus:
    kind = loaded.spec.targets[name].kind
    address = f"{loaded.stem}/{name}"
    record = ledger.state.resource(address, "verification") or {}
    made = _recorded_resource(ledger, address)
    told = _verdict(loaded, ledger, address)
    if kind not in DRIVERS:
        return TargetStatus(name, kind, "not made by this version", "", *told)
    if lock is None or lock.environment(name, DRIVERS[kind].platform or reader.platform()) is None:
        return TargetStatus(
            name, kind, "outdated" if made else "absent", _where(loaded, made), *told
        )
    target, context = get_driver_and_context(loaded, lock, name, reader)
    check = plan_verification(context, ledger.state, reader)
    outdated = check.reason if record and check.needed else ""
    if is_notebook(context):
        return TargetStatus(
            name,
            kind,
            _notebook_condition(target, context, ledger, reader),
            _where(loaded, made),
            *told,
            outdated,
        )
    if made is not None and "instance" in made:
        return TargetStatus(
            name,
            kind,
            str(target.observe(context, ledger, reader).condition),
            _where(loaded, made),
            *told,
            outdated,
        )
    observed = target.observe(context, ledger, reader) if target.platform is None else None
    if observed is not None:
        if observed.is_complete and observed.differences:
            outdated = f"the environment was changed since: {join_limited(observed.differences)}"
        return TargetStatus(
            name,
            kind,
            _environment_condition(observed, made),
            str(target.get_interpreter(context).stable_prefix),
            *told,
            outdated,
        )
    intent = ledger.find_interrupted(address)
    return TargetStatus(
        name, kind, "half-made" if intent else "absent", _requested(intent), *told, outdated
    )


def _unknown_status(
    loaded: LoadedSpec, name: str, ledger: Ledger, error: ProvisionError
) -> TargetStatus:
    """Return the standing of a target that could not be looked at: what is recorded of its verdict,
    if the record can be read.
    """
    try:
        made, told = (
            _recorded_resource(ledger, f"{loaded.stem}/{name}"),
            _verdict(loaded, ledger, f"{loaded.stem}/{name}"),
        )
        path = _where(loaded, made)
    except ProvisionError:
        path, told = "", ("", "", "")
    return TargetStatus(
        name, loaded.spec.targets[name].kind, f"not known: {error.what}", path, *told
    )


def _recorded_resource(ledger: Ledger, address: str) -> Mapping[str, Any] | None:
    return next(
        (
            found
            for part in _MAIN_PARTS
            if (found := ledger.state.resource(address, part)) is not None
        ),
        None,
    )


def _verdict(loaded: LoadedSpec, ledger: Ledger, address: str) -> tuple[str, str, str]:
    """Return the stored verdict of a target, when it was verified, and its report; "" for what is
    not recorded.
    """
    record = ledger.state.resource(address, "verification") or {}
    report = str(loaded.folder / str(record["report"])) if record else ""
    return str(record.get("verdict", "")), str(record.get("at", "")), report


def _where(loaded: LoadedSpec, made: Any) -> str:
    """Return the path of an environment that was made, or the name and zone of an instance; "" for
    none.
    """
    if not made:
        return ""
    if "files" in made:
        notebooks = [name for name in made["files"] if str(name).endswith(".ipynb")]
        return str(loaded.folder.parent / notebooks[0]) if notebooks else ""
    return (
        f"{made['instance']} in {made['zone']}"
        if "instance" in made
        else str(loaded.folder / str(made["paths"][-1]))
    )


def _requested(intent: Intent | None) -> str:
    """Return the name of an instance that was requested, and the zones that it may be in; "" for
    anything else.
    """
    if intent is None or not intent.names:
        return ""
    return (
        f"{intent.names[0].rpartition('/')[2]} in "
        f"{' or '.join(name.split('/')[3] for name in intent.names)}"
    )


def _notebook_condition(
    target: Driver, context: TargetContext, ledger: Ledger, reader: Reader
) -> str:
    """Return how the files of a notebook stand: rendered when they are as spec and lock make them."""  # noqa: E501
    observed, intent = (
        target.observe(context, ledger, reader),
        ledger.find_interrupted(context.address),
    )
    if intent is not None and intent.part == SESSION_PART:
        return (
            f"half-made: {intent.details['session']} may be running at Colab, and cost; apply "
            "or destroy gives it back"
        )
    if observed.recorded is None:
        return "half-made" if intent else "absent"
    if target.refusals(context, observed):
        return "outdated"
    return (
        "rendered"
        if all(step.operation is Operation.KEEP for step in target.plan(context, observed))
        else "outdated"
    )


def _environment_condition(observed: Any, recorded: Any) -> str:
    if observed.is_complete:
        return "changed by hand" if observed.differences else "current"
    if observed.exists or observed.interrupted:
        return "half-made"
    return "outdated" if recorded else "absent"
