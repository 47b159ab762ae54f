"""The system and the spec of a command: real, or with an emulated Google Cloud."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.shared.load import LoadedSpec, load_spec, sandbox_folder
from provision.commands.shared.report_inbox import InboxResult, process_inbox
from provision.effects.system import System
from provision.errors import ProvisionError, StateError, UsageError
from provision.spelling import format_command

if TYPE_CHECKING:
    from provision.adapters.google.instance_commands import InstanceCommand
    from provision.commands.fleets.parallel_run import ParallelRun

_WRONG_GPU_FAULT = "wrong-gpu"
SANDBOX_BANNER = "SANDBOX: nothing here is real or costs money; its data is in .provision/sandbox/"
_SANDBOX_NOTE = (
    "SANDBOX: the gcloud commands above are for Google Cloud; in the sandbox, leave --fault out"
)


@contextmanager
def open_session(
    path: Path,
    *,
    sandbox: bool,
    faults: tuple[str, ...] = (),
    offline: bool = False,
    apart: bool = False,
    run: ParallelRun | None = None,
) -> Iterator[tuple[LoadedSpec, RealSystem]]:
    """Yield a spec (in a sandbox its substitute) and the system of one command.

    With `apart`, errors of the spec that concern single targets do not stop the others.
    """
    with open_system(path, sandbox=sandbox, faults=faults, offline=offline, run=run) as system:
        yield load_session_spec(path, system, sandbox=sandbox, faults=faults, apart=apart), system


@contextmanager
def open_system(
    path: Path,
    *,
    sandbox: bool,
    faults: tuple[str, ...] = (),
    offline: bool = False,
    run: ParallelRun | None = None,
    shown: Path | None = None,
) -> Iterator[RealSystem]:
    """Yield the system of one command.

    With `run`, its threads use the system. `shown` is what commands in hints name instead of the
    spec.

    Raises:
        UsageError: faults without a sandbox.
        ExternalError: the extra `sandbox` is not installed.
    """
    if not sandbox:
        if faults:
            raise UsageError("--fault needs --sandbox", hint="add --sandbox")
        if run is not None:
            silence_grpc()
        yield _create_system(run, offline=offline)
        return
    silence_grpc()
    from provision.adapters.google.instance_commands import render_commands_with
    from provision.sandbox.namespace_booter import NamespaceBooter
    from provision.sandbox.serve import serve

    folder = path.resolve().parent / ".provision"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n")
    console.print_note(SANDBOX_BANNER)
    store = folder / "sandbox"
    with serve(store, faults, booter=NamespaceBooter(store)) as running:
        if running.holder:
            console.print_note(
                f"SANDBOX: using the sandbox that is already running ({running.holder})"
            )
        with render_commands_with(lambda command: render_for_sandbox(command, path, shown)):
            try:
                yield _create_system(run, offline=offline, endpoints=running.endpoints)
            except ProvisionError as error:
                if "gcloud " in error.hint:
                    error.hint += f"\n{_SANDBOX_NOTE}"
                raise


def _create_system(
    run: ParallelRun | None, *, offline: bool, endpoints: Mapping[str, str] | None = None
) -> RealSystem:
    """Return a system; with `run`, its threads use it, and an interrupt ends their waits."""
    if run is None:
        return RealSystem(offline=offline, endpoints=endpoints)
    from provision.adapters.google.report_polling import LOOPBACK_CLOCK, PollingClock
    from provision.adapters.google.retry import LOOPBACK_POLICY, RetryPolicy

    clock, pace = PollingClock(), RetryPolicy()
    if endpoints is not None:
        clock, pace = LOOPBACK_CLOCK, LOOPBACK_POLICY
    return RealSystem(
        offline=offline,
        endpoints=endpoints,
        clock=replace(clock, sleep=run.pause),
        pace=replace(pace, sleep=run.pause),
        shared=True,
    )


def render_for_sandbox(command: InstanceCommand, path: Path, shown: Path | None = None) -> str:
    """Return the substitute for a gcloud command: gcloud does not know instances of a sandbox.

    `shown` is the folder that the command names instead of the spec.
    """
    folder, spec = sandbox_folder(path), shown or path
    match command.verb:
        case "delete":
            return format_command("destroy", spec, sandbox=True)
        case "describe":
            return format_command("status", spec, sandbox=True)
        case "list":
            return format_command("orphans", path, sandbox=True)
        case "delete-objects":
            return f"rm -r {shlex.quote(folder)}"
        case "diagnose":
            return f"its disk is in {folder}/machines/"
        case "read-console":
            return f"it is in {folder}/serial/"
        case _:
            assert_never(command.verb)


def load_session_spec(
    path: Path,
    system: RealSystem,
    *,
    sandbox: bool,
    faults: tuple[str, ...] = (),
    apart: bool = False,
) -> LoadedSpec:
    """Return the spec at `path`, as `load_spec` does; in a sandbox its substitute.

    Raises:
        UsageError: a fault that cannot happen with this spec.
    """
    loaded = load_spec(path, system, apart=apart)
    if not sandbox:
        return loaded
    from provision.commands.shared.sandbox_spec import build_sandbox_spec

    substitute = build_sandbox_spec(loaded, system)
    if omitted := sorted(loaded.spec.targets.keys() - substitute.spec.targets.keys()):
        console.print_note(
            f"SANDBOX: only targets on Google Cloud are emulated; left out: {', '.join(omitted)}"
        )
    declared = substitute.declared
    if (
        _WRONG_GPU_FAULT in faults
        and declared is not None
        and all(declared.for_target(name).gpu.is_none for name in declared.targets)
    ):
        raise UsageError(
            f"--fault {_WRONG_GPU_FAULT} needs a GPU to replace",
            why="the spec declares gpu: none",
            hint="declare a GPU, or choose another fault",
        )
    return substitute


def import_dropped_reports(
    loaded: LoadedSpec, system: System, *, lock_timeout: float = 0
) -> InboxResult:
    """Import the reports in the inbox of each target, and print the outcome for each file.

    Does nothing if another provision has locked the state.
    """
    try:
        result = process_inbox(loaded, system, console.print_note, lock_wait_s=lock_timeout)
    except StateError as error:
        console.print_note(f"the reports in the inbox were not processed: {error.what}")
        return InboxResult()
    for report in result.imported:
        console.print_note(f"imported the report in the inbox of {report.context.address}")
    for path, reason in result.rejected:
        console.print_error(reason)
        console.print_note(f"  moved to {os.path.relpath(path)}; it will not be processed again")
    return result


def silence_grpc() -> None:
    """Set the variables that gRPC reads when it is imported."""
    # gRPC writes notices to the terminal, one for every process that is started.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # uv is started while gRPC's threads run: gRPC's handlers of a fork may end the child.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def print_fit(loaded: LoadedSpec, names: tuple[str, ...], system: RealSystem) -> None:
    """Print how the newest recorded run fits some targets, a note each; nothing without one."""
    from provision.cli.console import print_note
    from provision.commands.fit import fit_of_recorded_run
    from provision.views.fit import summarize_target

    if loaded.sandbox_sources is not None:
        return
    for target in fit_of_recorded_run(loaded, names, system):
        if not target.resources:  # the program ended before anything was measured
            continue
        label = "warning: the recorded run does not fit on " if target.fits is False else "fit: "
        print_note(label + summarize_target(target))
