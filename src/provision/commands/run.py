"""Run the user's own program in a made environment, with its variables, paths and secrets."""

from __future__ import annotations

from pathlib import Path, PurePath
from shlex import quote
from typing import NamedTuple

from provision.commands.instance_verification import is_remote
from provision.commands.lock import read_lock
from provision.commands.shared.launch import build_launch, single_process_warning
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import get_driver_and_context, is_notebook
from provision.commands.verify import activation_variables
from provision.effects import MonitorRequest, ProgressCallback, System
from provision.errors import LockError, Refused
from provision.lock.inputs import list_changed_inputs
from provision.state_store import LocalStore


class RunResult(NamedTuple):
    """How a program ended (negative: by that signal), and where its record is; None where none was
    asked for.
    """

    code: int
    record: Path | None


def run(
    loaded: LoadedSpec,
    target: str,
    argv: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    monitor: bool = True,
) -> RunResult:
    """Run `argv` in the target's environment; without `monitor` this process may become the
    program.

    Raises LockError without a lock, Refused when the environment is not there or not whole, or
    when a secret's variable is not set. When the spec has moved
    since the lock was made, it says so and runs in what was made.
    """
    lock = read_lock(loaded, system)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path}",
            hint=f"make the environment with `provision apply {quote(str(loaded.path))}`",
        )
    if moved := list_changed_inputs(loaded.spec, lock):
        progress(
            f"the spec moved since the environment was made ({'; '.join(moved)}); "
            f"`provision apply {quote(str(loaded.path))}` brings it up to date"
        )
    kind, context = get_driver_and_context(loaded, lock, target, system)
    if is_remote(context):
        hint = (
            f"open it, and run the program there: provision open {quote(str(loaded.path))} "
            f"--target {quote(target)}"
        )
        raise Refused(
            f"{context.address} is an instance, and programs run on it",
            why="`run` starts and records programs on this machine",
            hint=hint,
        )
    if is_notebook(context):
        hint = "run it there: in a cell of its own below those that make the environment"
        raise Refused(
            f"{context.address} is a notebook, and programs run in it",
            why="`run` starts and records programs on this machine",
            hint=hint,
        )
    store = LocalStore(loaded.folder, system)
    observed = kind.observe(context, store.load_ledger(), system)
    if not observed.is_complete:
        hint = f"make it with `provision apply {quote(str(loaded.path))}`"
        raise Refused(
            f"there is no whole environment for {context.address}",
            why=f"looked in {kind.get_interpreter(context).prefix}",
            hint=hint,
        )
    if said := single_process_warning(build_launch(context.spec, target, lock), argv):
        progress(said)
    interpreter = kind.get_interpreter(context)
    caller = {key: value for key, value in system.environment().items() if key != "PYTHONHOME"}
    environment = {
        **caller,
        **kind.get_environment_variables(context, caller),
        **activation_variables(interpreter.prefix, caller),
    }
    if not monitor:
        return RunResult(system.run(argv, environment, prefix=interpreter.prefix), None)
    watch = _monitor_request(loaded, target, argv, system)
    return RunResult(system.run(argv, environment, watch, prefix=interpreter.prefix), watch.record)


def run_records_folder(loaded: LoadedSpec, target: str) -> Path:
    """Return where the records of a target's runs are."""
    return loaded.folder / "reports" / f"{loaded.stem}.{target}" / "runs"


def _monitor_request(
    loaded: LoadedSpec, target: str, argv: tuple[str, ...], system: System
) -> MonitorRequest:
    now = system.now()
    record = (
        run_records_folder(loaded, target)
        / f"{now.replace(':', '').replace('-', '')}-{system.token()[:6]}.json"
    )
    # Arguments may hold secrets, and a script's name is what tells one run from another.
    script = next(
        (PurePath(word).name for word in argv[1:] if word.endswith(".py") and "=" not in word), ""
    )
    program: dict[str, str | int] = {
        "name": PurePath(argv[0]).name,
        "script": script,
        "arguments": len(argv) - 1,
    }
    return MonitorRequest(
        record,
        {"spec": loaded.spec.name, "target": target, "created_utc": now},
        program,
        tuple(sorted(loaded.spec.secrets)),
    )
