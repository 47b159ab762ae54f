"""Runs the user's program in an environment, with its variables, paths and secrets."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import NamedTuple

from provision.commands.shared.executor import Executor
from provision.commands.shared.launch import build_launch, single_process_warning
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import require_lock
from provision.commands.shared.run_records import run_records_folder
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.local import MonitorRequest
from provision.effects.system import ProgressCallback, System
from provision.errors import Refused
from provision.lock.inputs import list_changed_inputs
from provision.state_store import LocalStore
from provision.targets.capabilities import RunsPrograms


class RunResult(NamedTuple):
    """Exit code of a program (negative: the signal that ended it), and the path of its record."""

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
    """Run `argv` in the target's environment; without `monitor` this process may become it.

    A spec that changed since the lock was made is only reported.

    Raises:
        LockError: there is no lock.
        Refused: programs run elsewhere, the environment is not complete, or a secret is not set.
    """
    apply = loaded.command("apply")
    lock = require_lock(loaded, system, hint=f"create the environment with `{apply}`")
    if changes := list_changed_inputs(loaded.spec, lock):
        progress(
            f"the spec has changed since the environment was created ({'; '.join(changes)}); "
            f"update it with `{apply}`"
        )
    driver, context = get_driver_and_context(loaded, lock, target, system)
    if not isinstance(driver, RunsPrograms):
        refusal = driver.refuse_program(context)
        raise Refused(
            refusal.why,
            why="`run` starts and records programs on this machine",
            hint=refusal.hint,
        )
    store = LocalStore(loaded.folder, system)
    writer = StateWriter(store, store.load_ledger())
    journal = Executor(writer, system, progress, loaded.spec.registry)
    request = _monitor_request(loaded, target, argv, system) if monitor else None
    program = driver.start(context, argv, journal, request)
    if warning := single_process_warning(build_launch(context.spec, target, lock), argv):
        progress(warning)
    return RunResult(program.follow(), request.record if request is not None else None)


def _monitor_request(
    loaded: LoadedSpec, target: str, argv: tuple[str, ...], system: System
) -> MonitorRequest:
    now = system.now()
    record = run_records_folder(loaded, target) / _record_name(loaded, now, system)
    # Arguments may contain secrets; the script's name is what distinguishes runs.
    scripts = (argument for argument in argv[1:] if argument.endswith(".py"))
    script = next((PurePath(path).name for path in scripts if "=" not in path), "")
    program: dict[str, str | int] = {
        "name": PurePath(argv[0]).name,
        "script": script,
        "arguments": len(argv) - 1,
    }
    return MonitorRequest(
        record,
        {"spec": loaded.spec.name, "target": target, "created_utc": now},
        program,
        tuple(sorted(loaded.spec.with_settings_of(target).secrets)),
    )


def _record_name(loaded: LoadedSpec, now: str, system: System) -> str:
    """Return a name that sorts after those of the spec's earlier runs, also of the same second."""
    second = now.replace(":", "").replace("-", "")
    folders = (run_records_folder(loaded, name) for name in loaded.spec.targets)
    names = [name for folder in folders for name in system.list_folder(folder)]
    earlier = sum(name.startswith(second) for name in names)
    return f"{second}-{earlier:03}-{system.token()[:6]}.json"
