"""Runs the user's program in an environment, with its variables, paths and secrets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

from provision.commands.shared.executor import Executor, open_executor, recover_interrupted
from provision.commands.shared.launch import build_launch, single_process_warning
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import read_lock, require_lock
from provision.commands.shared.project_code import find_code_refusals
from provision.commands.shared.run_records import run_records_folder
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import (
    get_driver_and_context,
    note_on_interrupt,
    raise_refusals,
)
from provision.effects.local import MonitorRequest
from provision.effects.system import ProgressCallback, System
from provision.errors import Refused, UsageError
from provision.lock.inputs import list_changed_inputs
from provision.state_store import LocalStore
from provision.targets.capabilities import RunsPrograms
from provision.targets.context import TargetContext
from provision.targets.job_programs import RunsJobs


class RunResult(NamedTuple):
    """Exit code of a program (negative: the signal that ended it), and the path of its record.

    `notice` is about a job that goes on; "" if the program has ended.
    """

    code: int
    record: Path | None
    notice: str = ""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `run` and, for a program that runs as a job, of `attach`.

    Attributes:
        monitor: Record what the program uses; without it this process may become the program.
        detach: Do not wait for the end of a job.
        rank: The machine of a job whose output is shown, or "all".
        lock_wait_s: Seconds to wait for another command.
    """

    monitor: bool = True
    detach: bool = False
    rank: str = ""
    lock_wait_s: float = 0


_DEFAULTS = RunOptions()
_CHANGE_WAIT_S = 30.0
"""Seconds to wait for another command to record the end of a job. Our choice."""


def run(
    loaded: LoadedSpec,
    target: str,
    argv: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    options: RunOptions = _DEFAULTS,
) -> RunResult:
    """Run `argv` in the target's environment, here or as a job.

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
    request = _monitor_request(loaded, target, argv, system) if options.monitor else None
    if isinstance(driver, RunsJobs):
        ranks = driver.select_ranks(context, options.rank or "0")
        with (
            open_executor(loaded, system, progress, lock_wait_s=options.lock_wait_s) as executor,
            note_on_interrupt(lambda: driver.running_notice(context, executor.ledger)),
        ):
            refusals = driver.find_job_refusals(context, executor.ledger, system)
            raise_refusals(loaded, (*find_code_refusals(context), *refusals))
            recover_interrupted(executor, ())
            driver.start_job(context, argv, executor, request)
            notice = driver.find_job(context, executor.state)
        if options.detach:
            return RunResult(0, None, notice)
        return _follow_job(loaded, driver, context, system, progress, ranks)
    _refuse_job_options(context, options)
    if not isinstance(driver, RunsPrograms):
        refusal = driver.refuse_program(context)
        raise Refused(
            refusal.why,
            why="`run` starts and records programs on this machine and in jobs",
            hint=refusal.hint,
        )
    store = LocalStore(loaded.folder, system)
    writer = StateWriter(store, store.load_ledger())
    journal = Executor(writer, system, progress, loaded.spec.registry)
    program = driver.start(context, argv, journal, request)
    if warning := single_process_warning(build_launch(context.spec, target, lock), argv):
        progress(warning)
    return RunResult(program.follow(), request.record if request is not None else None)


def find_running_job(loaded: LoadedSpec, names: tuple[str, ...], system: System) -> str:
    """Return the first of some targets with a recorded program that may still run; "" for none."""
    lock = read_lock(loaded, system)
    if lock is None:
        return ""
    state = LocalStore(loaded.folder, system).load_ledger().state
    for name in names:
        driver, context = get_driver_and_context(loaded, lock, name, system)
        if isinstance(driver, RunsJobs) and driver.find_job(context, state):
            return name
    return ""


def attach_job(
    loaded: LoadedSpec, target: str, system: System, progress: ProgressCallback, rank: str
) -> RunResult:
    """Follow the program of a target that runs as a job, from the beginning of its output.

    Raises:
        Refused: no program of the target runs.
        ExternalError: the job ended without the end of its program.
    """
    lock = require_lock(loaded, system, hint=f"run `{loaded.command('lock')}`")
    driver, context = get_driver_and_context(loaded, lock, target, system)
    assert isinstance(driver, RunsJobs)  # noqa: S101
    return _follow_job(
        loaded, driver, context, system, progress, driver.select_ranks(context, rank or "0")
    )


def _follow_job(
    loaded: LoadedSpec,
    driver: RunsJobs,
    context: TargetContext,
    system: System,
    progress: ProgressCallback,
    ranks: tuple[int, ...] | None,
) -> RunResult:
    def open_journal() -> AbstractContextManager[Executor]:
        return open_executor(loaded, system, progress, lock_wait_s=_CHANGE_WAIT_S)

    def notice() -> str:
        state = LocalStore(loaded.folder, system).load_ledger().state
        return driver.find_job(context, state)

    with note_on_interrupt(notice):
        end = driver.follow_job(context, open_journal, ranks)
    return RunResult(end.code, end.record)


def _refuse_job_options(context: TargetContext, options: RunOptions) -> None:
    given = {"--detach": options.detach, "--rank": options.rank}
    for name in filter(given.get, given):
        raise UsageError(
            f"{name} applies only to programs that run as jobs",
            why=f"{context.address} is not a custom job",
            hint=f"omit {name}",
        )


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
