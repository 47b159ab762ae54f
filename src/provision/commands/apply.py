"""Make places as declared and prove them: intent, effects, state, and at the end the probe's
verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from provision.commands.adopt import refuse_foreign_removals
from provision.commands.colab_session import (
    stop_interrupted_session,
    uses_colab_cli,
    verify_on_colab,
)
from provision.commands.instance_notices import leftover_notice, note_on_interrupt
from provision.commands.instance_verification import (
    await_report,
    build_instance_intent,
    discard_intent,
    recover_instance_intent,
    request_verification,
    with_zone,
)
from provision.commands.lock import LockResult, ensure_lock, write_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.multi_target import ErrorsByTarget, collect_errors
from provision.commands.shared.target_plans import (
    NOTEBOOK_PART,
    TargetPlans,
    check_saved_plan,
    plan_targets,
    refuse_unknown_kinds,
    runs_in_browser,
)
from provision.commands.verify import VerificationResult, run_probe_locally
from provision.effects import (
    CreateCondaPrefix,
    CreateInstance,
    CreateVenv,
    Effect,
    InstallPackages,
    MakeFolder,
    ProgressCallback,
    RemoveTree,
    ReplaceSymlink,
    System,
)
from provision.errors import ExternalError, ProvisionError
from provision.plan import Action, Operation, Plan
from provision.state import Intent, Ledger, State
from provision.state_store import LocalStore
from provision.targets import DRIVERS, TargetContext
from provision.targets.base import Interpreter
from provision.targets.colab import SESSION_PART
from provision.targets.local.conda_link import CONDA_LINK_PART as NAME
from provision.targets.local.conda_link import build_activation_command
from provision.targets.workbench import (
    build_resource_name,
    find_deleted_last,
    forget_former_instance,
    record_former_instance,
)
from provision.verification import Report, read_report
from provision.verification.report import MAX_REPORT_BYTES

Confirm = Callable[[Plan, LockResult], None]
"""Shows the plan and asks; raises Refused when the answer is no."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How apply is to go about it."""

    verify: bool = False
    frozen: bool = False
    saved_plan: Path | None = None
    lock_wait_s: float = 0
    detach: bool = False
    keep: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What became of one target: its place and seat, the report with its files, whether it is
    fresh, what was changed, the kernel.

    `changed` says whether this run changed anything, `installed` whether it installed the
    packages: else what is told of how they came there is older.
    `compared` says with what this run compared the files of a local environment.
    `activation` is the command by which the user's own conda finds it by name; "" where there is
    none. Of an instance: its record, and in words what
    became of it when it was not verified. Of a notebook: its record, and the session that still
    runs at Colab.
    """

    context: TargetContext
    interpreter: Interpreter
    report: Report
    json_path: Path
    html_path: Path
    fresh: bool
    changed: bool
    installed: bool
    kernel: str | None
    instance: Mapping[str, Any] | None = None
    on_failure_note: str = ""
    notebook: Mapping[str, Any] | None = None
    session: str = ""
    activation: str = ""
    compared: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict; in a sandbox `simulated` is all that can be expected."""
        return (
            self.report.exit_code_in_sandbox
            if self.context.sandbox_sources is not None
            else self.report.exit_code
        )


@dataclass(frozen=True, slots=True)
class PendingTarget:
    """A target that was made and not waited for: its place, and the record of its instance or of
    its notebook; `because` says why it has no verdict.
    """

    context: TargetContext
    instance: Mapping[str, Any] | None
    notebook: Mapping[str, Any] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What became of every target; the exit code is that of the worst. `failed` are the errors that
    stopped one of several, by its name.
    """

    results: tuple[TargetResult, ...]
    lock_path: Path
    pending: tuple[PendingTarget, ...] = ()
    failed: ErrorsByTarget = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 when a verification failed, else 2 when one had no verdict, else 3 when one is
        unverified or not waited for, else 0.
        """
        errors = (error.exit_code for error in self.failed.values())
        codes = {
            *(result.exit_code for result in self.results),
            *(3 for _ in self.pending),
            *errors,
        }
        return next((code for code in (1, 2, 3) if code in codes), 0)


def apply(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    options: ApplyOptions,
    system: System,
    confirm: Confirm,
    progress: ProgressCallback,
) -> ApplyResult:
    """Make the named targets as the spec says, and verify them.

    Raises Refused (declined, not available, stale plan), LockError, Findings, WorldError,
    StateError. Whatever was done before an error is in the state,
    what was being done is in the journal, and running the command again goes on from there. An
    error of one target among several stops that one alone.
    """
    refuse_unknown_kinds(loaded, names)
    store = LocalStore(loaded.folder, system)
    locked = ensure_lock(loaded, system, progress, frozen=options.frozen)
    shown = plan_targets(
        loaded,
        locked.lock,
        names,
        store.load_ledger(),
        system,
        verify=options.verify,
        adopt=options.adopt,
    )
    if options.saved_plan is not None:
        check_saved_plan(options.saved_plan, shown.plan, system)
    confirm(shown.plan, locked)
    with store.exclusive(options.lock_wait_s, progress):
        ledger = store.load_or_create_ledger()
        proposal = plan_targets(
            loaded, locked.lock, names, ledger, system, verify=options.verify, adopt=options.adopt
        )
        if options.saved_plan is not None:
            check_saved_plan(options.saved_plan, proposal.plan, system)
        elif proposal.plan.fingerprint() != shown.plan.fingerprint():
            confirm(
                proposal.plan, locked
            )  # another run changed something while this one was waiting
        if locked.fresh:
            write_lock(loaded, locked.lock, system, progress)
        begun_with = _recover_intents(
            ledger,
            {context.address for context in proposal.contexts.values()},
            store,
            system,
            progress,
        )
        failed: ErrorsByTarget = {}
        found: list[TargetResult | PendingTarget] = []
        with note_on_interrupt(
            lambda: leftover_notice(proposal.contexts.values(), store.load_ledger())
        ):
            for name in names:
                with collect_errors(
                    name,
                    names,
                    failed,
                    progress,
                    lambda error: _recover_after_error(error, begun_with, store, system, progress),
                ):
                    _apply_target(
                        proposal, name, _current_state(begun_with, store), store, system, progress
                    )
            for intent in (
                one
                for one in ledger.intents
                if one in store.read_intents() and one.address.rpartition("/")[2] not in failed
            ):
                _close_planned_intent(
                    intent, _current_state(begun_with, store), store, system, progress
                )
            for name in (name for name in names if name not in failed):
                with collect_errors(name, names, failed, progress):
                    found.append(
                        _verify_target(
                            name,
                            proposal,
                            _current_state(begun_with, store),
                            store,
                            system,
                            progress,
                            options,
                        )
                    )
    results = tuple(one for one in found if isinstance(one, TargetResult))
    return ApplyResult(
        results,
        loaded.lock_path,
        tuple(one for one in found if isinstance(one, PendingTarget)),
        failed,
    )


def _current_state(begun_with: State, store: LocalStore) -> State:
    """Return the state as it is saved; as long as none is, the one that this run began with, whose
    lineage is that of all it makes.
    """
    saved = store.load()
    return saved if saved.serial else begun_with


def _apply_target(
    proposal: TargetPlans,
    name: str,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> None:
    context = proposal.contexts[name]
    for action in proposal.plan.actions:
        if action.address == context.address:
            state = _perform_action(action, state, store, system, progress)


def _recover_after_error(
    error: ProvisionError,
    begun_with: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> None:
    """See to what an error left half-made, as the next run would: what may be there is in the
    state, and the journal is free for the next target.
    """
    ledger = (
        store.load_ledger() if store.load().serial else Ledger(begun_with, store.read_intents())
    )
    state, left = (
        _recover_intents(ledger, set(), store, system, progress),
        getattr(error, "still_running", ()) or (),
    )
    for intent in ledger.intents:
        if (
            left
            and set(left) <= set(intent.names)
            and state.resource(intent.address, intent.part) is None
        ):
            record = {
                **intent.details,
                "kind": "workbench",
                "zone": "",
                "zones": [name.split("/")[3] for name in left],
            }
            store.save(
                after := state.with_record(intent.address, intent.part, record),
                expecting=state.serial,
            )
            state = after
            store.close_intent(intent)


def _recover_intents(
    ledger: Ledger,
    addresses: set[str],
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> State:
    """Close intents that earlier runs left open, and return the state after.

    What they had begun on this machine, and the state does not hold, is removed. An instance
    that one had begun is adopted by the plan of its own address,
    where that is among `addresses`; else it is recorded here as soon as it is shown, so that it
    is never running unknown.
    """
    state = ledger.state
    for intent in ledger.intents:
        if not intent.names or intent.address not in addresses:
            state = _recover_intent(intent, replace(ledger, state=state), store, system, progress)
    return state


def _close_planned_intent(
    intent: Intent, state: State, store: LocalStore, system: System, progress: ProgressCallback
) -> None:
    """Close an intent whose address was planned and made anew: the state holds its result, or what
    it had begun is looked for once more.
    """
    if intent.names:
        recover_instance_intent(intent, state, store, system, progress, planned=True)
    else:
        store.close_intent(intent)


def _recover_intent(
    intent: Intent, ledger: Ledger, store: LocalStore, system: System, progress: ProgressCallback
) -> State:
    state = ledger.state
    if intent.part == SESSION_PART:
        stop_interrupted_session(intent, store, system, progress)
        return state
    if (
        intent.part == NAME and intent.details
    ):  # what it makes lies elsewhere: it is in the state, whether it was made or not
        after = state.with_record(intent.address, intent.part, dict(intent.details))
        store.save(after, expecting=state.serial)
        store.close_intent(intent)
        return after
    if intent.names:
        return recover_instance_intent(intent, state, store, system, progress)
    refuse_foreign_removals(
        ledger, (RemoveTree(store.folder / path) for path in intent.paths), store.folder
    )
    recorded = {path for record in state.resources.values() for path in record.get("paths", ())}
    for path in intent.paths:
        if path not in recorded and path.startswith("envs/") and ".." not in Path(path).parts:
            system.perform(RemoveTree(store.folder / path), progress)
    store.close_intent(intent)
    return state


def _perform_action(
    action: Action, state: State, store: LocalStore, system: System, progress: ProgressCallback
) -> State:
    if not action.effects and state.resource(action.address, action.part) == action.record:
        return state
    progress(
        f"{action.operation} "
        f"{action.title}{f': {action.reason}' if action.operation is Operation.KEEP else ''}"
    )
    named = (
        {key: str(value) for key, value in (action.record or {}).items()}
        if action.part == NAME
        else {}
    )
    here = Intent(
        action.address,
        action.part,
        str(action.operation),
        _created_paths(action.effects, store.folder),
        system.now(),
        details=named,
    )
    intent = build_instance_intent(action, system.now()) or here
    formers = find_deleted_last(state, action, intent.names)
    for former in formers:
        store.save(
            after := record_former_instance(state, action.address, former), expecting=state.serial
        )
        state = after
    store.open_intent(intent)
    if (
        intent.names and action.record is not None and action.record.get("zone")
    ):  # it was seen there: what was begun for it earlier is accounted for
        for earlier in store.read_intents():
            if (
                earlier.address == action.address
                and earlier.key != intent.key
                and build_resource_name(action.record) in earlier.names
            ):
                store.close_intent(earlier)
    try:
        for effect in action.effects:
            if isinstance(effect, CreateInstance):  # from here on an instance may come to be
                store.open_intent(
                    intent := replace(intent, details={**intent.details, "asked": system.now()})
                )
            system.perform(effect, progress)
    except ExternalError as error:
        if error.still_running == ():  # no zone took it, and what a try had left is deleted
            discard_intent(action, intent, state, store)
        raise
    after = state.after_action(done := with_zone(action, system))
    for record in (*formers, *(one for one in (done.record,) if one is not None)):
        if record.get("zone"):
            after = forget_former_instance(after, action.address, record)
    stored = state.resource(action.address, "verification")
    if stored is not None and any(isinstance(effect, InstallPackages) for effect in action.effects):
        after = after.with_record(
            action.address, "verification", {**stored, "verdict": ""}
        )  # it was of what this action replaced
    store.save(after, expecting=state.serial)
    store.close_intent(intent)
    return after


def _created_paths(effects: tuple[Effect, ...], folder: Path) -> tuple[str, ...]:
    paths = [
        effect.path
        for effect in effects
        if isinstance(effect, CreateCondaPrefix | CreateVenv | ReplaceSymlink)
    ]
    paths += [effect.environment for effect in effects if isinstance(effect, InstallPackages)]
    return tuple(
        dict.fromkeys(
            path.relative_to(folder).as_posix() for path in paths if path.is_relative_to(folder)
        )
    )


def _verify_target(
    name: str,
    proposal: TargetPlans,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
    options: ApplyOptions,
) -> TargetResult | PendingTarget:
    context = proposal.contexts[name]
    interpreter = DRIVERS[context.spec.targets[name].kind].get_interpreter(context)
    ours = [action for action in proposal.plan.changes if action.address == context.address]
    changed, installed = (
        bool(ours),
        any(isinstance(effect, InstallPackages) for action in ours for effect in action.effects),
    )
    kernel = (state.resource(context.address, "kernel") or {}).get("name")
    activation = build_activation_command(state.resource(context.address, NAME))
    instance, notebook = (
        state.resource(context.address, "instance"),
        state.resource(context.address, NOTEBOOK_PART),
    )
    if not proposal.plan.verifications[name].needed:
        record = state.resource(context.address, "verification") or {}
        path = context.folder / str(record.get("report"))
        report = _read_stored_report(path, system)
        if report is not None:
            page = context.folder / str(record.get("html"))
            told = TargetResult(
                context,
                interpreter,
                report,
                path,
                page,
                fresh=False,
                changed=changed,
                installed=installed,
                kernel=kernel,
                instance=instance,
            )
            session = str((state.resource(context.address, SESSION_PART) or {}).get("session", ""))
            return replace(
                told,
                notebook=notebook,
                session=session,
                activation=activation,
                compared=_file_comparison(proposal, context, installed=installed),
            )
    if notebook is not None and runs_in_browser(context):
        system.perform(
            MakeFolder(context.folder / "reports" / f"{context.stem}.{context.target}", 0o700),
            progress,
        )  # to drop the report into
        return PendingTarget(context, None, notebook, _pending_reason(proposal, name))
    if uses_colab_cli(context):
        ran = verify_on_colab(context, state, store, system, progress, keep=options.keep)
        told = TargetResult(
            context,
            interpreter,
            ran.report,
            ran.json_path,
            ran.html_path,
            fresh=True,
            changed=changed,
            installed=True,
            kernel=None,
            notebook=notebook,
        )
        return replace(told, session=ran.running_session)
    if instance is not None:
        stored = state.resource(context.address, "verification")
        if stored is not None and stored.get("nonce") == instance.get("nonce"):
            state = request_verification(context, store, state, system, progress)
            instance = state.resource(context.address, "instance") or {}
        if options.detach:
            return PendingTarget(context, instance)
        proven = await_report(context, state, store, system, progress)
        paths = (proven.report, proven.json_path, proven.html_path)
        return TargetResult(
            context,
            interpreter,
            *paths,
            fresh=True,
            changed=changed,
            installed=installed,
            kernel=None,
            instance=instance,
            on_failure_note=proven.on_failure_note,
        )
    done: VerificationResult = run_probe_locally(context, state, store, system, progress)
    told = TargetResult(
        context,
        interpreter,
        done.report,
        done.json_path,
        done.html_path,
        fresh=True,
        changed=changed,
        installed=installed,
        kernel=kernel,
    )
    return replace(
        told,
        activation=activation,
        compared=_file_comparison(proposal, context, installed=installed),
    )


def _file_comparison(proposal: TargetPlans, context: TargetContext, *, installed: bool) -> str:
    """Return what the files of a local environment were compared with; "" for another target, and
    when conda compares files by itself.
    """
    made = next(
        (
            action
            for action in proposal.plan.actions
            if action.address == context.address and action.part == "environment"
        ),
        None,
    )
    if made is None or (made.record or {}).get("manager") != "uv":
        return ""
    if installed:
        return "downloads with the lock, installed files with their RECORDs: all by sha256"
    return made.reason if made.operation is Operation.KEEP else ""


def _pending_reason(proposal: TargetPlans, name: str) -> str:
    check = proposal.plan.verifications[name]
    return check.reason if check.needed else "its report is gone"


def _read_stored_report(path: Path, system: System) -> Report | None:
    """Return the stored report, or None when it is gone or damaged: then the device is asked again."""  # noqa: E501
    try:
        return read_report(system.read(path, MAX_REPORT_BYTES), str(path))
    except ExternalError:
        return None
