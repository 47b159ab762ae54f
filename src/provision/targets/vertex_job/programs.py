"""The user's programs as jobs: started, followed by this command or a later one, and recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Any

import provision
from provision.adapters.google.custom_jobs import JobUnplaced
from provision.adapters.google.program_polling import ProgramNotFinished
from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.effects.local import MakeFolder, MonitorRequest, RemoveTree, WriteFile
from provision.effects.system import Reader, System
from provision.effects.vertex import FollowProgram
from provision.errors import ExternalError, Refused
from provision.kinds import VertexJobTarget
from provision.state import State
from provision.targets.base import AnyDriver, Journal
from provision.targets.context import TargetContext
from provision.targets.job_programs import JobResult
from provision.targets.vertex_job.job_starts import (
    JobRequest,
    end_job,
    find_attempts,
    move_job,
    read_limits,
    record_end,
    start_job,
)
from provision.targets.vertex_job.observation import observe_job
from provision.targets.vertex_job.planning import describe_price, plan_programs
from provision.targets.vertex_job.records import JobRecord, ProgramRecord
from provision.targets.vertex_job.resource_names import get_job_target, list_replicas
from provision.targets.vertex_job.run_record import merge_records

OpenJournal = Callable[[], AbstractContextManager[Journal]]
_PYTHONS = ("python", "python3")
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
_MAX_FILE_BYTES = 4 << 20


def find_running_program(context: TargetContext, state: State) -> ProgramRecord | None:
    """Return the recorded job of a program if it may still run."""
    record = ProgramRecord.find(state, context.address)
    return None if record is None or record.ended else record


def start_program(
    driver: AnyDriver,
    context: TargetContext,
    argv: tuple[str, ...],
    journal: Journal,
    monitor: MonitorRequest | None,
) -> None:
    """Create the job of a program, in the first region that takes it.

    Raises:
        Refused: a program runs already, or this one cannot be started in a job.
        NoRegionLeft: no region takes the job.
    """
    running = find_running_program(context, journal.state)
    if running is not None:
        raise Refused(
            f"a program is already running for {context.address}, in {running.title}",
            hint=f"run {context.command('attach')} to follow its output, or "
            f"{context.command('destroy')} to end it",
        )
    _require_script(context, argv)
    program = _build_program(context, argv, monitor)
    observed = observe_job(context, journal.ledger, journal.system)
    journal.perform(driver, plan_programs(context, observed), announce=False)
    journal.progress(describe_price(context, observed))
    run = monitor.record.name if monitor is not None else ""
    attempts = find_attempts(journal, ProgramRecord.find(journal.state, context.address))
    start_job(driver, context, journal, JobRequest("it runs the program", program, run), attempts)


def follow_program(
    driver: AnyDriver,
    context: TargetContext,
    open_journal: OpenJournal,
    shown: tuple[int, ...] | None,
) -> JobResult:
    """Show the output of the recorded program until it ends. May block for days.

    The ledger is locked only while it is changed. A job without machines is moved to the next
    region.

    Raises:
        Refused: no program is recorded.
        ExternalError: the job ended without the end of its program.
    """
    while True:
        with open_journal() as journal:
            record = _require_program(context, journal.state)
            system, progress = journal.system, journal.progress
        replicas = list_replicas(record.replicas)
        names = replicas if shown is None else tuple(replicas[rank] for rank in shown)
        folder = context.reports_folder / "program"
        for effect in (RemoveTree(folder), MakeFolder(folder, 0o700)):
            system.perform(effect, progress)
        limit_s, pending_s = read_limits(context)
        is_repeated = bool(get_job_target(context).restarts)
        places = (record.parent, record.nonce, record.folder, replicas, names, folder)
        try:
            system.perform(FollowProgram(*places, limit_s, pending_s, is_repeated), progress)
        except JobUnplaced as error:
            _move(driver, context, open_journal, record, error)
        except (ProgramNotFinished, ReportUnavailable) as error:
            _close(driver, context, open_journal, record, error)
            raise
        except ExternalError as error:  # the job goes on
            error.hint = f"{error.hint}\n{describe_program(context, record)}".lstrip()
            raise
        else:
            return _finish(driver, context, open_journal, record, system)


def _require_program(context: TargetContext, state: State) -> ProgramRecord:
    record = find_running_program(context, state)
    if record is None:
        raise Refused(
            f"no running program is recorded for {context.address}",
            hint=f"start one with `{context.command('run')} -- python train.py`",
        )
    return record


def _move(
    driver: AnyDriver,
    context: TargetContext,
    open_journal: OpenJournal,
    record: ProgramRecord,
    error: JobUnplaced,
) -> None:
    """Cancel a job without machines, and start its program in the next region."""
    with open_journal() as journal:
        _require_same(context, journal, record)
        program = _read_program(record, journal.system)
        request = JobRequest("it runs the program", program, record.run)
        move_job(driver, context, journal, record, error, request)


def _close(
    driver: AnyDriver,
    context: TargetContext,
    open_journal: OpenJournal,
    record: ProgramRecord,
    error: ExternalError,
) -> None:
    """Record that a job has ended without its program's end; one that takes too long is ended."""
    with open_journal() as journal:
        _require_same(context, journal, record)
        end = end_job if isinstance(error, ReportTimeout) else record_end
        end(driver, context, journal, record, error.why or error.what)


def _finish(
    driver: AnyDriver,
    context: TargetContext,
    open_journal: OpenJournal,
    record: ProgramRecord,
    system: System,
) -> JobResult:
    """Record the end of a program, and write the record of what it used."""
    folder = context.reports_folder / "program"
    end = json.loads(system.read(folder / "end.json", _MAX_FILE_BYTES))
    code, replica = int(end["code"]), str(end["replica"])
    with open_journal() as journal:
        _require_same(context, journal, record)
        path = None
        if record.run:
            merged = merge_records(_read_records(context, record, system))
            if merged is not None:
                path = context.reports_folder / "runs" / record.run
                for effect in (MakeFolder(path.parent, 0o700), WriteFile(path, merged, 0o600)):
                    system.perform(effect, journal.progress)
        record_end(driver, context, journal, record, f"exit code {code} of {replica}")
    system.perform(RemoveTree(folder), lambda _: None)
    return JobResult(code, path)


def _require_same(context: TargetContext, journal: Journal, record: ProgramRecord) -> None:
    current = ProgramRecord.find(journal.state, context.address)
    if current is None or current.nonce != record.nonce or current.ended:
        raise ExternalError(
            f"{record.title} was ended by another command",
            why="its record has since been removed or replaced",
        )


def _read_records(
    context: TargetContext, record: ProgramRecord, reader: Reader
) -> dict[str, Mapping[str, Any]]:
    """Return the records of the replicas by their names; malformed ones are left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in list_replicas(record.replicas):
        path = context.reports_folder / "program" / f"{name}.json"
        if reader.exists(path):
            try:
                document = json.loads(reader.read(path, _MAX_FILE_BYTES))
            except (ValueError, RecursionError):
                continue
            if isinstance(document, dict):
                found[name] = document
    return found


def _read_program(record: ProgramRecord, reader: Reader) -> Mapping[str, Any]:
    """Return the program in the document of a job: its arguments are in no file of this machine."""
    content = reader.cloud().object(f"{record.folder}document.json", _MAX_FILE_BYTES)
    try:
        program = json.loads(content or b"")["program"]
    except (ValueError, KeyError, TypeError):
        program = None
    if not isinstance(program, dict):
        raise ExternalError(
            f"the program of {record.title} cannot be started in another region",
            why=f"{record.folder}document.json is missing or damaged",
            hint="run the program again",
        )
    return program


def _build_program(
    context: TargetContext, argv: tuple[str, ...], monitor: MonitorRequest | None
) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if monitor is not None:
        about = {
            "secrets": list(monitor.secrets),
            "tool": {"name": "provision", "version": provision.__version__},
            "subject": dict(monitor.subject),
            "program": dict(monitor.program),
        }
    return {
        "argv": list(argv),
        "processes": _count_processes(context, argv),
        "restarts": get_job_target(context).restarts,
        "about": about,
    }


def _count_processes(context: TargetContext, argv: tuple[str, ...]) -> int:
    """Return how many processes torchrun starts on each machine; 0 starts the program itself.

    Raises:
        Refused: the declared launcher does not start programs on several machines.
    """
    spec, target = context.effective_spec, get_job_target(context)
    training = spec.training
    is_script = argv[0] in _PYTHONS and len(argv) > 1 and not argv[1].startswith("-")
    is_module = argv[0] in _PYTHONS and argv[1:2] == ("-m",) and argv[2:3] not in _as_words()
    each = 1 if spec.gpu.is_none else spec.gpu.count
    if training.strategy == "none" or not (is_script or is_module) or target.replicas * each == 1:
        return 0
    if training.launcher == "python":
        return 0
    if training.launcher == "accelerate":
        raise Refused(
            f"{context.address} cannot start programs with `launcher: accelerate`",
            why="only torchrun can start the processes of a job",
            hint="set `training: {launcher: torchrun}`; a program that uses Trainer runs "
            "under either launcher",
        )
    return each


def _as_words() -> tuple[tuple[str], ...]:
    return tuple((name,) for name in _LAUNCHERS)


def _require_script(context: TargetContext, argv: tuple[str, ...]) -> None:
    """Raise Refused for a script that is not part of the job's code."""
    script = argv[1] if argv[0] in _PYTHONS and len(argv) > 1 else argv[0]
    if not script.endswith((".py", ".sh")) or PurePath(script).is_absolute():
        return
    if context.code is None:
        raise Refused(
            f"{script} is not on the job's machines",
            why="the spec declares no `code`",
            hint="add `code: .` to the spec to include the tracked files in its folder",
        )
    path = str(PurePath(script))
    if path not in {file.path for file in context.code.manifest.files}:
        raise Refused(
            f"{script} is not part of the code of {context.address}",
            why=f"the program starts in the code folder, {context.code.folder}, where git "
            "tracks no such file",
            hint="add it with `git add`, or give its path relative to this folder",
        )


def describe_program(context: TargetContext, record: JobRecord) -> str:
    """Return the notice about a program that keeps running."""
    return (
        f"{record.title} keeps running and costs money; run "
        f"{context.command('attach')} to follow it, or {context.command('destroy')} to end it"
    )


def read_ranks(text: str, target: VertexJobTarget) -> tuple[int, ...] | None:
    """Return the ranks of the machines to show; None for all.

    Raises:
        Refused: there is no machine of this rank.
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) >= target.replicas:
        raise Refused(
            f"--rank {text}: there is no machine with this rank",
            hint=f"use a number from 0 to {target.replicas - 1}, or all",
        )
    return (int(text),)
