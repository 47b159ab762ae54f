"""Run the probe in a made environment, bring its report home, and record the verdict."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from provision.agent.probe.checks import CHECKS
from provision.commands.colab_session import (
    stop_interrupted_session,
    uses_colab_cli,
    verify_on_colab,
)
from provision.commands.instance_notices import leftover_notice, note_on_interrupt
from provision.commands.instance_verification import await_report, is_remote, request_verification
from provision.commands.lock import read_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.multi_target import ErrorsByTarget, collect_errors
from provision.commands.shared.report_store import store_report, write_report_page
from provision.commands.shared.target_plans import get_driver_and_context, runs_in_browser
from provision.effects import (
    MakeFolder,
    MoveFile,
    ProgressCallback,
    Reader,
    RemoveTree,
    RunProbe,
    System,
    WriteFile,
)
from provision.errors import LockError, Refused, UsageError
from provision.lock.inputs import list_changed_inputs
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import DRIVERS, TargetContext
from provision.targets.base import Interpreter
from provision.verification import Report, expectations_of, probe_zipapp, read_report
from provision.verification.report import MAX_REPORT_BYTES


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """A report with the files that hold it, and the state that records it."""

    report: Report
    json_path: Path
    html_path: Path
    state: State
    partial: bool = False
    sandbox: bool = False
    on_failure_note: str = ""
    """What became of an instance that was not verified; "" where nothing was done."""

    @property
    def exit_code(self) -> int:
        """The verdict's exit code; of a partial run: 1 when a check that was asked for failed, 3
        when it could not be observed, else 0.
        """
        if not self.partial:
            return self.report.exit_code_in_sandbox if self.sandbox else self.report.exit_code
        found = {check.get("status") for check in self.report.document["checks"]}
        return 1 if "fail" in found else 3 if "unknown" in found else 0


def verify(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    only: tuple[str, ...] = (),
    lock_wait_s: float = 0,
    failed: ErrorsByTarget | None = None,
) -> tuple[VerificationResult, ...]:
    """Verify environments that exist. Raises LockError without a lock or when the spec moved since,
    Refused without a whole environment.

    With `failed`, an error of one target among several is kept there, and the others are verified.
    """
    _refuse_unknown_checks(only)
    lock = read_lock(loaded, system)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path}",
            hint=f"make the environment with `provision apply {loaded.path}`",
        )
    if moved := list_changed_inputs(loaded.spec, lock):
        raise LockError(
            "the spec moved since the environment was made",
            why="; ".join(moved),
            hint=f"bring it up to date: provision apply {loaded.path}",
        )
    store = LocalStore(loaded.folder, system)
    done: list[VerificationResult] = []
    with store.exclusive(lock_wait_s, progress):
        for intent in store.read_intents():
            stop_interrupted_session(intent, store, system, progress)
        contexts = {name: get_driver_and_context(loaded, lock, name, system)[1] for name in names}
        with note_on_interrupt(lambda: leftover_notice(contexts.values(), store.load_ledger())):
            for name, context in contexts.items():
                with collect_errors(name, names, failed, progress):
                    done.append(_verify_target(context, loaded, only, store, system, progress))
    return tuple(done)


def _verify_target(
    context: TargetContext,
    loaded: LoadedSpec,
    only: tuple[str, ...],
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> VerificationResult:
    ledger = store.load_ledger()
    _refuse_notebook(context, loaded)
    if only and (is_remote(context) or uses_colab_cli(context)):
        raise Refused(
            "single checks are repeated on this machine only",
            why=f"{context.address} verifies itself as a whole",
            hint="leave --only out",
        )
    if uses_colab_cli(context):
        ran = verify_on_colab(context, ledger.state, store, system, progress)
        return VerificationResult(ran.report, ran.json_path, ran.html_path, ran.state)
    if is_remote(context):
        proven = await_report(
            context,
            request_verification(context, store, ledger.state, system, progress),
            store,
            system,
            progress,
        )
        sandbox = context.sandbox_sources is not None
        return VerificationResult(
            proven.report,
            proven.json_path,
            proven.html_path,
            proven.state,
            sandbox=sandbox,
            on_failure_note=proven.on_failure_note,
        )
    kind = DRIVERS[context.spec.targets[context.target].kind]
    if not kind.observe(context, ledger, system).is_complete:
        raise Refused(
            f"there is no whole environment for {context.address}",
            why=_incomplete_reason(kind.get_interpreter(context), system),
            hint=context.command("apply"),
        )
    return run_probe_locally(context, ledger.state, store, system, progress, only=only)


def run_probe_locally(
    context: TargetContext,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
    *,
    only: tuple[str, ...] = (),
) -> VerificationResult:
    """Verify a place with a whole environment; raises WorldError when the probe itself fails. With
    `only`, nothing is recorded as its verdict.
    """
    kind = DRIVERS[context.spec.targets[context.target].kind]
    interpreter = kind.get_interpreter(context)
    promised = expectations_of(
        context.spec, context.target, context.lock, context.environment, interpreter.prefix
    )
    nonce = system.token()
    folder = context.folder / "reports" / f"{context.stem}.{context.target}"
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(WriteFile(folder / "probe.pyz", probe_zipapp(), 0o600), progress)
    system.perform(
        WriteFile(
            folder / "expectations.json",
            json.dumps({**promised, "nonce": nonce}, indent=1, sort_keys=True),
            0o600,
        ),
        progress,
    )
    report_path = folder / ("report-only.json" if only else "report.json")
    if only or not (state.resource(context.address, "verification") or {}).get("verdict"):
        system.perform(
            RemoveTree(report_path), progress
        )  # nothing records it: it is of single checks, or of what was replaced since
    fresh = (
        folder / "report-new.json"
    )  # beside the last one, which stays the verdict until this run has ended
    system.perform(RemoveTree(fresh), progress)
    caller = system.environment()
    variables = tuple(
        {
            **kind.get_environment_variables(context, caller, partial=True),
            **activation_variables(interpreter.prefix, caller),
        }.items()
    )
    timeout_s = promised["timeout_s"]
    system.perform(
        RunProbe(
            interpreter.python,
            folder / "probe.pyz",
            folder / "expectations.json",
            fresh,
            timeout_s,
            variables,
            only,
        ),
        _format_events(progress),
    )
    report = read_report(system.read(fresh, MAX_REPORT_BYTES), str(fresh), nonce=nonce)
    system.perform(MoveFile(fresh, report_path), progress)
    if only:
        return VerificationResult(
            report,
            report_path,
            write_report_page(report, report_path, context, system, progress),
            state,
            partial=True,
        )
    filed = store_report(report, report_path, context, state, store, system, progress)
    return VerificationResult(report, report_path, filed.html_path, filed.state)


def activation_variables(prefix: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that activate an environment: its programs first on the PATH."""
    return {
        "VIRTUAL_ENV": str(prefix),
        "PATH": f"{prefix / 'bin'}:{caller.get('PATH', '/usr/bin:/bin')}",
    }


def _incomplete_reason(interpreter: Interpreter, reader: Reader) -> str:
    """Return what is known of an environment that is not whole: that its Python went away is the
    usual cause where its folder is there.
    """
    if reader.exists(interpreter.prefix) and not reader.exists(interpreter.python):
        reason = "is missing, or leads to a Python that was removed or upgraded since"
        return f"{interpreter.python} {reason}"
    return f"looked in {interpreter.prefix}"


def _refuse_notebook(context: TargetContext, loaded: LoadedSpec) -> None:
    if not runs_in_browser(context):
        return
    words = f"{shlex.quote(str(loaded.path))} --target {context.target}"
    hint = (
        f"open the notebook (`provision apply {words}` says how), run all of it, and file what "
        "it offers: provision report add FILE"
    )
    raise Refused(
        f"{context.address} is verified in its notebook",
        why="provision reaches no runtime that a browser holds",
        hint=hint,
    )


def _refuse_unknown_checks(only: tuple[str, ...]) -> None:
    known = [check.id for check in CHECKS]
    for wanted in only:
        if wanted.partition(":")[0] not in known:
            near = (
                [wanted.upper()]
                if wanted.upper() in known
                else get_close_matches(wanted.upper(), known, n=3, cutoff=0.3)
            )
            raise UsageError(
                f"there is no check {wanted}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"checks: {', '.join(known)}",
            )


def _format_events(progress: ProgressCallback) -> ProgressCallback:
    """Turn the probe's events into sentences; other lines of it are shown as they are."""

    def told(line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            progress(line)
            return
        if (
            isinstance(event, dict)
            and event.get("event") == "stage"
            and event.get("status") == "started"
        ):
            progress(f"verifying: {event.get('title', event.get('stage'))}")

    return told
