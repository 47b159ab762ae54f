"""The system and the spec that a command works with: real, or Google Cloud as a sandbox here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.cli.sandbox_hints import adapt_hint_to_sandbox
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.errors import ProvisionError, UsageError

_WRONG_GPU_FAULT = "wrong-gpu"
SANDBOX_BANNER = (
    "SANDBOX: nothing here is real, and nothing costs money; its store lies in .provision/sandbox/"
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
        try:
            yield RealSystem(offline=offline, endpoints=running.endpoints)
        except ProvisionError as error:
            error.hint = adapt_hint_to_sandbox(error.hint, path)
            raise


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


def silence_grpc() -> None:
    """Set the variables that gRPC reads when it is imported."""
    # gRPC writes notices to the terminal, one for every process that is started.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # uv is started while gRPC's threads run: gRPC's handlers of a fork may end the child.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
