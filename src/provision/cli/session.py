"""The system and the spec that a command works with: real, or Google Cloud as a sandbox here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.shared.load import LoadedSpec, command_line, load_spec, sandbox_folder
from provision.commands.shared.report_inbox import InboxResult, process_inbox
from provision.effects.system import System
from provision.errors import ProvisionError, StateError, UsageError

if TYPE_CHECKING:
    from provision.adapters.google.instance_commands import InstanceCommand

_WRONG_GPU_FAULT = "wrong-gpu"
SANDBOX_BANNER = (
    "SANDBOX: nothing here is real, and nothing costs money; its store lies in .provision/sandbox/"
)
_SANDBOX_NOTE = (
    "SANDBOX: on Google Cloud the gcloud commands above would help; here, leave the --fault out"
)


@contextmanager
def open_session(
    path: Path,
    *,
    sandbox: bool,
    faults: tuple[str, ...] = (),
    offline: bool = False,
    apart: bool = False,
) -> Iterator[tuple[LoadedSpec, RealSystem]]:
    """Yield a spec (in a sandbox its substitute) and the system of one command.

    With `apart`, errors of the spec that concern single targets do not stop the others.
    """
    with open_system(path, sandbox=sandbox, faults=faults, offline=offline) as system:
        yield load_session_spec(path, system, sandbox=sandbox, faults=faults, apart=apart), system


@contextmanager
def open_system(
    path: Path, *, sandbox: bool, faults: tuple[str, ...] = (), offline: bool = False
) -> Iterator[RealSystem]:
    """Yield the system of one command.

    Raises:
        UsageError: faults without a sandbox.
        ExternalError: the extra `sandbox` is not installed.
    """
    if not sandbox:
        if faults:
            raise UsageError("--fault is for a sandbox", hint="say --sandbox too")
        yield RealSystem(offline=offline)
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
            console.print_note(f"SANDBOX: used as it runs already ({running.holder})")
        with render_commands_with(lambda command: render_for_sandbox(command, path)):
            try:
                yield RealSystem(offline=offline, endpoints=running.endpoints)
            except ProvisionError as error:
                if "gcloud " in error.hint:
                    error.hint += f"\n{_SANDBOX_NOTE}"
                raise


def render_for_sandbox(command: InstanceCommand, path: Path) -> str:
    """Return the substitute for a gcloud command: gcloud does not know instances of a sandbox."""
    folder = sandbox_folder(path)
    match command.verb:
        case "delete":
            return command_line("destroy", path, sandbox=True)
        case "describe":
            return command_line("status", path, sandbox=True)
        case "list":
            return command_line("orphans", path, sandbox=True)
        case "diagnose":
            return f"its disk lies below {folder}/machines/"
        case "read-console":
            return f"it lies in {folder}/serial/"
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
    declared = substitute.declared
    if (
        _WRONG_GPU_FAULT in faults
        and declared is not None
        and all(declared.for_target(name).gpu.is_none for name in declared.targets)
    ):
        raise UsageError(
            f"--fault {_WRONG_GPU_FAULT}: there is no GPU to put another in the place of",
            why="the spec says gpu: none",
            hint="name a card, or another fault",
        )
    return substitute


def import_dropped_reports(
    loaded: LoadedSpec, system: System, *, lock_timeout: float = 0
) -> InboxResult:
    """Import the reports in the folders of a spec's targets, and print the outcome for each file.

    A state that another provision locks is left alone.
    """
    try:
        result = process_inbox(loaded, system, console.print_note, lock_wait_s=lock_timeout)
    except StateError as error:
        console.print_note(
            f"what was dropped into the folder of reports is not looked at now: {error.what}"
        )
        return InboxResult()
    for report in result.imported:
        console.print_note(f"filed the report that was dropped for {report.context.address}")
    for path, reason in result.rejected:
        console.print_error(reason)
        console.print_note(f"  it lies in {os.path.relpath(path)} now, and is not looked at again")
    return result


def silence_grpc() -> None:
    """Set the variables that gRPC reads when it is imported."""
    # gRPC writes notices to the terminal, one for every process that is started.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # uv is started while gRPC's threads run: gRPC's handlers of a fork may end the child.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
