"""Plans for the targets of a fleet: each by itself, before anything is changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.apply import ApplyOptions, refuse_tier_in_browser
from provision.commands.fleets.members import Fleet, FleetTarget
from provision.commands.fleets.parallel_run import (
    Job,
    JobState,
    ParallelResult,
    ParallelRun,
    Watcher,
)
from provision.commands.lock import LockResult, ensure_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.target_plans import (
    TargetPlans,
    plan_targets,
    refuse_unknown_kinds,
)
from provision.effects.system import ProgressCallback, System
from provision.errors import ProvisionError, Refused, UsageError
from provision.plan import Plan
from provision.state import Ledger
from provision.state_store import LocalStore
from provision.targets import find_driver

THIS_MACHINE = "this machine"
"""What targets on this machine exclude each other from: they are verified by its speed and memory,
and each installation uses all of its cores."""


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """A target with its lock and its plan, whose actions have no effects."""

    target: FleetTarget
    locked: LockResult
    plan: Plan


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The plans of a fleet; `failed` are the errors of what is not planned, by path or label."""

    fleet: Fleet
    planned: tuple[PlannedTarget, ...]
    failed: Mapping[str, ProvisionError]
    interruption: BaseException | None = None

    @property
    def locks(self) -> tuple[tuple[LoadedSpec, LockResult], ...]:
        """The specs with their locks."""
        pairs = {each.target.loaded.path: each for each in self.planned}
        return tuple((each.target.loaded, each.locked) for each in pairs.values())


def plan_fleet(
    fleet: Fleet, options: ApplyOptions, system: System, run: ParallelRun, watcher: Watcher
) -> FleetPlan:
    """Return the plan of each target; nothing is written, new locks stay in memory.

    The error of a target does not stop the others. Two targets that would have the same resource
    are both refused.

    Raises:
        StateError: a state is damaged.
    """
    locks = run.run([_lock_job(spec, options, system) for spec in fleet.specs], watcher)
    failed = {**fleet.failed, **_errors_of(locks)}
    by_path = {outcome.label: outcome.value for outcome in locks.outcomes if outcome.value}
    if locks.interruption is not None:
        return FleetPlan(fleet, (), failed, locks.interruption)
    ledgers = load_ledgers(fleet, system)
    result = run.run(
        [
            Job(
                target.label,
                _PlanWork(target, by_path[str(target.loaded.path)], ledgers, options, system),
                exclusive_use(target),
            )
            for target in fleet.targets
            if str(target.loaded.path) in by_path
        ],
        watcher,
    )
    failed |= _errors_of(result)
    planned = tuple(outcome.value for outcome in result.outcomes if outcome.state is JobState.DONE)
    clashes = _find_clashes(planned)
    kept = tuple(each for each in planned if each.target.label not in clashes)
    return FleetPlan(fleet, kept, {**failed, **clashes}, result.interruption)


def plan_target(
    target: FleetTarget,
    locked: LockResult,
    ledger: Ledger,
    options: ApplyOptions,
    system: System,
    progress: ProgressCallback,
) -> TargetPlans:
    """Return the plan of a single target, as `apply` makes it."""
    names = (target.name,)
    build_wheels(target.loaded, locked.lock, names, system, progress)
    plans = plan_targets(
        *(target.loaded, locked.lock, names, ledger, system),
        verify=options.verify,
        adopt=options.adopt,
    )
    if options.tier:
        refuse_tier_in_browser(plans)
    return plans


def load_ledgers(fleet: Fleet, system: System) -> dict[Path, Ledger]:
    """Return the ledger of each state folder of a fleet; raises StateError for a damaged one."""
    folders = dict.fromkeys(spec.folder for spec in fleet.specs)
    return {folder: LocalStore(folder, system).load_ledger() for folder in folders}


def exclusive_use(target: FleetTarget) -> str:
    """Return what a target uses alone; "" for nothing."""
    driver = find_driver(target.loaded.spec, target.name)
    return THIS_MACHINE if driver is not None and driver.platform is None else ""


def refuse_several_sandboxes(fleet: Fleet) -> None:
    """Raise UsageError if the specs are in several folders, which have a sandbox each."""
    folders = sorted({str(spec.path.parent) for spec in fleet.specs})
    if len(folders) > 1:
        raise UsageError(
            f"the specs in {fleet.path} are in several folders, but a sandbox belongs to a "
            "single folder",
            why=f"folders with specs: {', '.join(folders)}",
            hint="run the command for one folder at a time",
        )


@dataclass(frozen=True, slots=True)
class _PlanWork:
    target: FleetTarget
    locked: LockResult
    ledgers: Mapping[Path, Ledger]
    options: ApplyOptions
    system: System

    def __call__(self, progress: ProgressCallback) -> PlannedTarget:
        target, ledger = self.target, self.ledgers[self.target.loaded.folder]
        refuse_unknown_kinds(target.loaded, (target.name,))
        plans = plan_target(target, self.locked, ledger, self.options, self.system, progress)
        # Effects contain programs and documents: 200 targets would fill the memory.
        actions = tuple(replace(action, effects=()) for action in plans.plan.actions)
        return PlannedTarget(target, self.locked, replace(plans.plan, actions=actions))


def _lock_job(spec: LoadedSpec, options: ApplyOptions, system: System) -> Job:
    def work(progress: ProgressCallback) -> LockResult:
        return ensure_lock(spec, system, progress, frozen=options.frozen)

    return Job(str(spec.path), work)


def _errors_of(result: ParallelResult) -> dict[str, ProvisionError]:
    return {
        outcome.label: outcome.error
        for outcome in result.outcomes
        if outcome.error is not None and outcome.state is JobState.FAILED
    }


def _find_clashes(planned: Sequence[PlannedTarget]) -> dict[str, ProvisionError]:
    """Return an error for each target whose resource another one would have, by label.

    Names depend on project, spec and target alone, so that specs in two folders may have the same.
    """
    users: dict[str, list[PlannedTarget]] = defaultdict(list)
    for each in planned:
        names = {
            name
            for action in each.plan.actions
            if action.intent is not None
            for name in action.intent.names
        }
        for name in names:
            users[name].append(each)
    clashes: dict[str, ProvisionError] = {}
    for name, several in users.items():
        for each in several if len(several) > 1 else ():
            others = ", ".join(other.target.label for other in several if other is not each)
            clashes[each.target.label] = Refused(
                f"{each.target.label} and {others} would have the same name on Google Cloud",
                why=name,
                hint="rename one of the spec files or its target, or use another project",
            )
    return clashes
