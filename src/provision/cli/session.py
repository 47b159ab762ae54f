"""The real World, or one in which Google Cloud is a sandbox on this machine: opened for one
command, and closed after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
def open_system(
    path: Path, *, sandbox: bool, faults: tuple[str, ...] = (), offline: bool = False
) -> Iterator[RealSystem]:
    """Give the World of one command. Raises UsageError for faults without a sandbox, WorldError
    where the extra `sandbox` is missing.
    """
    if not sandbox:
        if faults:
            raise UsageError("--fault is for a sandbox", hint="say --sandbox too")
        yield RealSystem(offline=offline)
        return
    silence_grpc()
    from provision.sandbox.serve import serve

    ours = path.resolve().parent / ".provision"
    ours.mkdir(mode=0o700, exist_ok=True)
    if not (ours / ".gitignore").exists():
        (ours / ".gitignore").write_text("*\n")
    console.print_note(SANDBOX_BANNER)
    with serve(ours / "sandbox", faults, booter=create_device_booter(ours / "sandbox")) as running:
        if running.holder:
            console.print_note(f"SANDBOX: used as it runs already ({running.holder})")
        try:
            yield RealSystem(offline=offline, endpoints=running.endpoints)
        except ProvisionError as error:
            error.hint = adapt_hint_to_sandbox(error.hint, path)
            raise


def load_session_spec(
    path: Path,
    world: RealSystem,
    *,
    sandbox: bool,
    faults: tuple[str, ...] = (),
    apart: bool = False,
) -> LoadedSpec:
    """Return the spec at `path`, as `load` does; in a sandbox its substitute. Raises UsageError for
    a fault that nothing of the spec can have.
    """
    loaded = load_spec(path, world, apart=apart)
    if not sandbox:
        return loaded
    from provision.commands.shared.sandbox_spec import build_sandbox_spec

    found = build_sandbox_spec(loaded, world)
    if (
        _WRONG_GPU_FAULT in faults
        and found.declared is not None
        and all(found.declared.for_target(name).gpu.is_none for name in found.declared.targets)
    ):
        raise UsageError(
            f"--fault {_WRONG_GPU_FAULT}: there is no GPU to put another in the place of",
            why="the spec says gpu: none",
            hint="name a card, or another fault",
        )
    return found


def silence_grpc() -> None:
    """Set what gRPC reads when it is imported: a sandbox starts programs beside its threads."""
    # It writes notices of its own to the terminal, among them one for every process that is
    # started.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault(
        "GRPC_ENABLE_FORK_SUPPORT", "0"
    )  # uv is started beside gRPC's threads: its handlers of a fork may end the child


def create_device_booter(folder: Path) -> Any:
    """Return what boots the devices of a sandbox in a folder; None where this machine has no such
    thing.
    """
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("provision.sandbox.namespace_booter") is None:
        return None
    return import_module("provision.sandbox.namespace_booter").Booter(folder)
