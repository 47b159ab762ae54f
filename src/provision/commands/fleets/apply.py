"""Makes the targets of a fleet as they were planned, several at a time, and verifies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from provision.commands.apply import ApplyOptions, PendingTarget, TargetResult, verify_target
from provision.commands.fleets.members import Fleet
from provision.commands.fleets.parallel_run import (
    Job,
    JobState,
    ParallelResult,
    ParallelRun,
    Watcher,
)
from provision.commands.fleets.planning import (
    FleetPlan,
    PlannedTarget,
    exclusive_use,
    plan_target,
)
from provision.commands.lock import write_lock
from provision.commands.shared.executor import (
    Executor,
    recover_interrupted,
    settle_planned_intents,
)
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import (
    leftover_notice,
    note_on_interrupt,
    worst_exit_code,
)
from provision.effects.system import ProgressCallback, System
from provision.errors import ProvisionError, Refused
from provision.plan import Plan
from provision.state_store import LocalStore
from provision.targets import get_driver


@dataclass(frozen=True, slots=True)
class FleetResult:
    """The outcomes of a fleet; `failed` are the errors of specs and targets that did not start."""

    fleet: Fleet
    run: ParallelResult
    failed: Mapping[str, ProvisionError]

    @property
    def errors(self) -> dict[str, ProvisionError]:
        """Every error, by path or label."""
        return {
            **self.failed,
            **{
                outcome.label: outcome.error
                for outcome in self.run.outcomes
                if outcome.error is not None and outcome.state is JobState.FAILED
            },
        }

    @property
    def exit_code(self) -> int:
        """The worst of all: 1 failed, then 2 could not run, then 3 unverified, else 0."""
        codes = [error.exit_code for error in self.errors.values()]
        for outcome in self.run.outcomes:
            match outcome.value:
                case PendingTarget():
                    codes.append(3)
                case None:
                    pass
                case value:
                    codes.append(value.exit_code)
        return worst_exit_code(codes)


def apply_fleet(
    plan: FleetPlan,
    options: ApplyOptions,
    system: System,
    run: ParallelRun,
    watcher: Watcher,
    reduce: Callable[[TargetResult | PendingTarget], Any],
) -> FleetResult:
    """Perform a plan and verify its targets; the error of one does not stop the others.

    One process writes each state, whose lock is kept until the last target has ended. `reduce`
    returns what is kept of a result.

    Raises:
        StateError: a state is damaged, foreign, or locked by another run.
    """
    with ExitStack() as stack:
        writers = {}
        for folder in sorted({each.target.loaded.folder for each in plan.planned}):
            store = LocalStore(folder, system)
            progress = partial(watcher.progress, str(folder))
            stack.enter_context(store.exclusive(options.lock_wait_s, progress))
            writers[folder] = StateWriter(store, store.load_or_create_ledger())
            targets = [each.target for each in plan.planned if each.target.loaded.folder == folder]
            registry = targets[0].loaded.spec.registry
            executor = Executor(writers[folder], system, progress, registry)
            recover_interrupted(executor, {target.address for target in targets})
        for loaded, locked in plan.locks:
            if locked.fresh:
                write_lock(locked, system, partial(watcher.progress, str(loaded.path)))
        result = run.run(
            [
                Job(
                    each.target.label,
                    _ApplyWork(each, writers[each.target.loaded.folder], options, system, reduce),
                    exclusive_use(each.target),
                )
                for each in plan.planned
            ],
            watcher,
        )
    return FleetResult(plan.fleet, result, plan.failed)


@dataclass(frozen=True, slots=True)
class _ApplyWork:
    """The work for one target, which a thread performs."""

    planned: PlannedTarget
    writer: StateWriter
    options: ApplyOptions
    system: System
    reduce: Callable[[TargetResult | PendingTarget], Any]

    def __call__(self, progress: ProgressCallback) -> Any:
        target, locked = self.planned.target, self.planned.locked
        registry = target.loaded.spec.registry
        executor = Executor(self.writer, self.system, progress, registry, target.address)
        earlier = executor.ledger
        # Planned again: the plan that was confirmed may be an hour old.
        plans = plan_target(target, locked, earlier, self.options, self.system, progress)
        if _steps(plans.plan) != _steps(self.planned.plan):
            raise Refused(
                f"the plan for {target.label} has changed since it was confirmed",
                why=f"it is now: {plans.plan.summary()}",
                hint="run the command again to review the new plan",
            )
        context = plans.contexts[target.name]
        with note_on_interrupt(lambda: leftover_notice((context,), executor.ledger)):
            for action in plans.plan.actions:
                executor.perform(get_driver(context), action)
            settle_planned_intents(executor, earlier, ())
            return self.reduce(verify_target(target.name, plans, self.options, executor))


def _steps(plan: Plan) -> tuple[Any, ...]:
    """Return what a plan changes, without the serial of the state: other targets change that."""
    steps = tuple((str(a.operation), a.part, a.title) for a in plan.changes)
    return (plan.spec_digest, plan.lock_digest, plan.code, steps)
