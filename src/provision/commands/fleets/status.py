"""The status of every spec in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provision.commands.fleets.members import Fleet
from provision.commands.fleets.parallel_run import Job, JobState, ParallelRun, Watcher
from provision.commands.fleets.planning import load_ledgers
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import worst_exit_code
from provision.commands.status import SpecStatus, status
from provision.effects.system import ProgressCallback, System
from provision.errors import ProvisionError


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The status of each spec; `failed` are the errors of specs without one, by path."""

    specs: tuple[tuple[LoadedSpec, SpecStatus], ...]
    failed: Mapping[str, ProvisionError]
    interruption: BaseException | None

    @property
    def exit_code(self) -> int:
        """The worst of all specs: 1 before 2 before 3; else 0."""
        codes = [each.exit_code for _, each in self.specs]
        return worst_exit_code([*codes, *(error.exit_code for error in self.failed.values())])


def get_fleet_status(
    fleet: Fleet, system: System, run: ParallelRun, watcher: Watcher
) -> FleetStatus:
    """Return the status of each spec in a folder; the error of one does not hide the others.

    Raises:
        StateError: a state is damaged.
    """
    ledgers = load_ledgers(fleet, system)

    def job(spec: LoadedSpec) -> Job:
        def work(_: ProgressCallback) -> tuple[LoadedSpec, SpecStatus]:
            return spec, status(spec, ledgers[spec.folder], system)

        return Job(str(spec.path), work)

    result = run.run([job(spec) for spec in fleet.specs], watcher)
    failed = {each.label: each.error for each in result.outcomes if each.error is not None}
    return FleetStatus(
        tuple(each.value for each in result.outcomes if each.state is JobState.DONE),
        {**fleet.failed, **failed},
        result.interruption,
    )
