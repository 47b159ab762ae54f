"""Show what apply would do, without doing any of it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.commands.lock import LockResult, ensure_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    TargetPlans,
    plan_targets,
    refuse_unknown_kinds,
    worst_exit_code,
)
from provision.effects.system import ProgressCallback, System
from provision.state_store import LocalStore


@dataclass(frozen=True, slots=True)
class PlanResult:
    """Plans and the lock that they are based on; `failed` are the errors by target."""

    target_plans: TargetPlans
    locked: LockResult
    failed: ErrorsByTarget

    @property
    def has_changes(self) -> bool:
        """True if apply would change anything, the lock included, or would wait for a report."""
        return (
            bool(self.target_plans.plan.changes)
            or self.locked.fresh
            or self.target_plans.awaits_report
        )

    @property
    def exit_code(self) -> int:
        """The worst exit code of the errors that stopped a target; 0 without one."""
        return worst_exit_code(error.exit_code for error in self.failed.values())


def plan(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    frozen: bool = False,
    adopt: bool = False,
) -> PlanResult:
    """Return the plan for some targets; nothing is written, a new lock stays in memory.

    An error of one target among several is in `failed`. Raises what `apply` raises.
    """
    if len(names) == 1:
        refuse_unknown_kinds(loaded, names)
    locked = ensure_lock(loaded, system, progress, frozen=frozen)
    ledger = LocalStore(loaded.folder, system).load_ledger()
    failed: ErrorsByTarget = dict(loaded.target_errors)
    plans = plan_targets(
        loaded,
        locked.lock,
        tuple(name for name in names if name not in failed),
        ledger,
        system,
        adopt=adopt,
        failed=failed if len(names) > 1 else None,
    )
    return PlanResult(plans, locked, failed)
