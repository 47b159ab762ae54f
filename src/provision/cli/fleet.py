"""Folders in place of a spec: opens the fleet of a command, and lists it if `--all` is missing."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from provision.cli import console
from provision.cli.session import import_dropped_reports, open_system
from provision.errors import ProvisionError, UsageError
from provision.spelling import format_command, pluralize

if TYPE_CHECKING:
    from provision.adapters import RealSystem
    from provision.commands.fleets.members import Fleet
    from provision.commands.fleets.parallel_run import ParallelRun
    from provision.commands.shared.load import LoadedSpec

_SHOW_CURSOR = "\x1b[?25h"


class FleetOptions(NamedTuple):
    """Options of every command for a fleet."""

    parallel: int
    keep_going: bool = False
    sandbox: bool = False
    faults: tuple[str, ...] = ()
    offline: bool = False
    apart: bool = False


def start_run(parallel: int) -> ParallelRun:
    """Return the run of a command for several targets."""
    from provision.commands.fleets.parallel_run import ParallelRun

    gc.enable()  # a fleet runs for hours, and reads more than a command that ends soon
    return ParallelRun(parallel, abort)


def abort(interruption: BaseException) -> NoReturn:
    """End this process at once: its threads may be writing, which SIGKILL would end too."""
    if sys.stderr.isatty():
        console.print_stderr(_SHOW_CURSOR)
    console.print_note("ended at once: the journal contains what was begun; run the command again")
    number = getattr(interruption, "number", signal.SIGINT)
    os._exit(128 + number)


@contextmanager
def open_fleet(
    folder: Path,
    options: FleetOptions,
    change: Callable[[LoadedSpec], LoadedSpec] = lambda loaded: loaded,
) -> Iterator[tuple[Fleet, RealSystem, ParallelRun]]:
    """Yield the specs in a folder, the system of a command, and its run.

    `change` is applied to each spec.

    Raises:
        UsageError: the folder contains no spec, or with a sandbox specs in several folders.
    """
    from provision.adapters import RealSystem
    from provision.commands.fleets.members import load_fleet
    from provision.commands.fleets.planning import refuse_several_sandboxes
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.sandbox_spec import build_sandbox_spec

    reader, run = RealSystem(offline=options.offline), start_run(options.parallel)

    def load(path: Path) -> LoadedSpec:
        loaded = load_spec(path, reader, apart=options.apart)
        return change(build_sandbox_spec(loaded, reader) if options.sandbox else loaded)

    fleet = load_fleet(folder, load, reader)
    if fleet.skipped:
        skipped = pluralize(len(fleet.skipped), "file")
        console.print_note(f"skipped {skipped} without the fields of a spec")
    place = folder / "provision.yaml"
    if options.sandbox:
        refuse_several_sandboxes(fleet)
        place = next((spec.path for spec in fleet.specs), place)
    with open_system(
        place,
        sandbox=options.sandbox,
        faults=options.faults,
        offline=options.offline,
        run=run,
        shown=folder,
    ) as system:
        yield fleet, system, run


def require_all(fleet: Fleet, verb: str, *, all_targets: bool, sandbox: bool) -> None:
    """Raise UsageError with the targets and their prices if `--all` is missing."""
    if all_targets:
        return
    from provision.views.fleet import format_listing, format_total

    listing = format_listing((each.label, each.kind, each.offer) for each in fleet.targets)
    total = format_total(each.offer for each in fleet.targets)
    broken = [f"{name}: {error.what}" for name, error in fleet.failed.items()]
    example = next((str(spec.path) for spec in fleet.specs), str(fleet.path / "NAME.yaml"))
    raise UsageError(
        f"{fleet.path} contains {pluralize(len(fleet.targets), 'target')} "
        f"in {pluralize(len(fleet.specs), 'spec')}",
        why="\n".join(filter(None, [listing, total and f"in total {total}", *broken])),
        hint=f"select all of them with --all, or one spec: "
        f"{format_command(verb, Path(example), sandbox=sandbox)}",
    )


def refuse_folder_options(folder: Path, **given: object) -> None:
    """Raise UsageError for an option that has no meaning for a folder; `given` are the values."""
    for name, value in given.items():
        if value:
            raise UsageError(
                f"--{name.replace('_', '-')} applies to a single spec, but {folder} is a folder",
                hint="use the path of a spec in the folder, or omit the option",
            )


def import_reports_of_fleet(fleet: Fleet, system: RealSystem, lock_timeout: float = 0) -> None:
    """Import the reports in the inboxes of a fleet's targets."""
    for spec in fleet.specs:
        import_dropped_reports(spec, system, lock_timeout=lock_timeout)


def print_failures(failed: Mapping[str, ProvisionError]) -> None:
    """Write the errors of specs and targets for people."""
    for name, error in failed.items():
        console.print_note(f"\n{name}:")
        console.print_error(error)
