"""Verifying where the device is elsewhere: its program does it at each start, we wait for the
report and file it; and what happens when there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from provision.adapters.google.log_tail import read_run_log
from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.commands.instance_notices import add_hint_on_error, running_notice
from provision.commands.shared.report_store import store_report
from provision.effects import (
    AwaitReport,
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    MakeFolder,
    ProgressCallback,
    RemoveTree,
    StopInstance,
    System,
    WriteFile,
)
from provision.errors import ExternalError, Refused
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import Intent, Ledger, State
from provision.state_store import LocalStore
from provision.targets import DRIVERS, TargetContext
from provision.targets.workbench import (
    INSTANCE_PART,
    LINEAGE_LABEL,
    WorkbenchDriver,
    build_resource_name,
    expand_zones,
    forget_former_instance,
    get_run_location,
    record_former_instance,
)
from provision.verification import Report
from provision.verification.report import MAX_REPORT_BYTES, read_report

_BOOT_AND_INSTALL_S = 75 * 60
"""Seconds beside the verification's own: the driver has 15 minutes, the packages an hour. Our
choice.
"""
_CREATION_GRACE_S = 15 * 60
"""Seconds after which an instance that was asked for and is shown nowhere was never made. Our
choice: new ones are shown within seconds.
"""
_REPORT_GRACE_S = 4 * 60
"""Seconds beside `verify.timeout`: the device gives the probe two minutes to end, and then sends
its report. Our choice.
"""


class InstanceVerification(NamedTuple):
    """The report with its files and the state that records it; `taken` says what became of an
    instance that was not verified.
    """

    report: Report
    json_path: Path
    html_path: Path
    state: State
    on_failure_note: str = ""


def is_remote(context: TargetContext) -> bool:
    """Tell whether the device is elsewhere."""
    return isinstance(DRIVERS[context.spec.targets[context.target].kind], WorkbenchDriver)


def build_instance_intent(action: Action, now: str) -> Intent | None:
    """Return the intent of an action on an instance: the names that it may have, and what finds its
    run again; None for other actions.
    """
    record = action.record
    if action.part != INSTANCE_PART or record is None:
        return None
    zones = [record["zone"]] if record["zone"] else record["zones"]
    names = tuple(
        f"projects/{record['project']}/locations/{zone}/instances/{record['instance']}"
        for zone in zones
    )
    details = {
        key: str(record[key])
        for key in ("project", "instance", "lineage", "bucket", "nonce", "on_failure", "title")
    }
    return Intent(action.address, action.part, str(action.operation), (), now, names, details)


def find_interrupted_instance(intent: Intent, system: System) -> dict[str, Any] | None:
    """Return a record of what an intent that was cut short had begun, where the instance is shown;
    None where it is not.
    """
    cloud = system.cloud()
    shown = {name: cloud.instance(name) for name in intent.names}
    for project in {
        name.split("/")[1] for name in intent.names
    }:  # a list may show what a single question does not yet, and the other way round
        shown |= {
            name: one
            for one in cloud.instances(project)
            if (name := str(one.get("name", ""))) in intent.names
        }
    for name, instance in shown.items():
        if _has_lineage(instance, intent.details.get("lineage")):
            zone = name.split("/")[3]
            return {**intent.details, "kind": "workbench", "zone": zone, "zones": [zone]}
    return None


def may_still_appear(intent: Intent, system: System) -> bool:
    """Tell whether an instance that is not shown may still come to be: its creation is at work, or
    was asked for a short while ago and did not fail.
    """
    if "asked" not in intent.details:
        return False
    latest = [
        one for name in intent.names if (one := system.cloud().last_operation(name)) is not None
    ]
    if any(not one.get("done") for one in latest):
        return True
    failed = [
        one for one in latest if one.get("metadata", {}).get("verb") == "create" and "error" in one
    ]
    return (
        len(failed) < len(intent.names)
        and _age_s(intent.details["asked"], system.now()) < _CREATION_GRACE_S
    )


def refuse_pending_creation(intents: tuple[Intent, ...], system: System) -> None:
    """Raise WorldError where an instance that an interrupted run asked for may still appear: what
    is removed before that would come back unseen.
    """
    for intent in intents:
        if (
            intent.names
            and find_interrupted_instance(intent, system) is None
            and may_still_appear(intent, system)
        ):
            raise ExternalError(
                f"{intent.details.get('instance', 'an instance')} was asked for at "
                f"{intent.details['asked']}, and is not shown yet",
                why="a run was cut short while it was being made, and Google Cloud may show a "
                "new instance late; until then it cannot be deleted",
                hint=f"run the command again in some minutes; {_CREATION_GRACE_S // 60} minutes "
                "after it was asked for it counts as never made",
            )


def recover_instance_intent(
    intent: Intent,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
    *,
    planned: bool = False,
) -> State:
    """Record the instance that an intent had begun and close it; where nothing is shown, close it
    only once nothing can appear. Returns the state after.

    With `planned`, the instance of its target has been made as the spec says now: another one is
    to go.
    """
    record = find_interrupted_instance(intent, system)
    if record is None:
        if may_still_appear(intent, system):
            progress(
                "an earlier run was cut short: "
                f"{intent.details.get('instance', 'its instance')} is not shown yet, and "
                "stays in the journal"
            )
        else:
            store.close_intent(intent)
        return state
    current = state.resource(intent.address, INSTANCE_PART)
    if (
        current is None
        or not current.get("zone")
        or build_resource_name(current) != build_resource_name(record)
    ):
        progress(f"an earlier run was cut short: {record['instance']} is there, and recorded now")
        if planned and current is not None:
            after = record_former_instance(state, intent.address, record)
        else:
            after = state
            for old in expand_zones(current):
                after = record_former_instance(after, intent.address, old)
            after = forget_former_instance(after, intent.address, record).with_record(
                intent.address, INSTANCE_PART, record
            )
        store.save(after, expecting=state.serial)
        state = after
    store.close_intent(intent)
    return state


def _age_s(began: str, now: str) -> float:
    """Return the seconds between two times; endless where one is none."""
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(began)).total_seconds()
    except ValueError:
        return float("inf")


def request_verification(
    context: TargetContext,
    store: LocalStore,
    state: State,
    system: System,
    progress: ProgressCallback,
) -> State:
    """Have the instance verify itself again under a new nonce; returns the state that records it.
    Raises Refused where there is none.
    """
    kind = DRIVERS[context.spec.targets[context.target].kind]
    assert isinstance(kind, WorkbenchDriver)  # noqa: S101
    observed = kind.observe(context, Ledger(state), system)
    if not observed.exists:
        raise Refused(
            f"there is no instance for {context.address}",
            hint=f"make it: provision apply --target {context.target}",
        )
    effects, record = kind.plan_rerun(context, observed, system.token())
    action = Action(
        Operation.CHANGE,
        context.address,
        INSTANCE_PART,
        record["title"],
        "it is to verify itself again",
        effects,
        dict(record),
    )
    progress(f"~ {action.title}: {action.reason}")
    intent = build_instance_intent(action, system.now())
    assert intent is not None  # noqa: S101
    store.open_intent(intent)
    for effect in effects:
        system.perform(effect, progress)
    after = state.after_action(action)
    store.save(after, expecting=state.serial)
    store.close_intent(intent)
    return after


def await_report(
    context: TargetContext,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> InstanceVerification:
    """Wait for the report of the run that is recorded, file it, and do what `on_failure` says where
    the instance is not verified.

    Whatever else ends the wait (the network, Ctrl-C) says nothing of the device: it runs on, and
    is told so.
    """
    found = state.resource(context.address, INSTANCE_PART)
    if found is None or not found.get("zone"):
        raise Refused(
            f"nothing is recorded of an instance for {context.address}",
            hint=f"make it with `{context.command('apply')}`",
        )
    record = unmark_run_ended(found)
    nonce, uri = get_run_location(record)
    folder = context.folder / "reports" / f"{context.stem}.{context.target}"
    path = folder / "report.json"
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(RemoveTree(path), progress)
    proving = parse_duration(context.spec.verify.timeout) + _REPORT_GRACE_S
    limits = (_BOOT_AND_INSTALL_S + proving, proving)
    missing: ReportUnavailable | None = None
    with add_hint_on_error(lambda: running_notice(context, record)):
        try:
            system.perform(
                AwaitReport(
                    build_resource_name(record),
                    record["project"],
                    record["zone"],
                    uri,
                    nonce,
                    path,
                    *limits,
                ),
                progress,
            )
            report = _read(path, nonce, system)
        except ReportUnavailable as error:
            missing = error
    if missing is not None:
        raise _missing_report_error(
            missing, folder / "log.txt", context, record, state, store, system, progress
        ) from missing
    if record != found:
        state = _record_instance(context, record, state, store)
    filed = store_report(report, path, context, state, store, system, progress, nonce=nonce)
    fine = report.verdict == "verified" or (
        report.verdict == "simulated" and context.sandbox_sources is not None
    )
    if fine:
        return InstanceVerification(report, path, filed.html_path, filed.state)
    taken, after = apply_on_failure(context, record, filed.state, store, system, progress)
    if record.get("on_failure", "stop") == "stop":
        after = _record_instance(
            context, mark_run_ended(record, report.verdict, system), after, store
        )
    return InstanceVerification(report, path, filed.html_path, after, taken)


def mark_run_ended(record: Mapping[str, Any], why: str, system: System) -> dict[str, Any]:
    """Return the record of an instance whose run is over without a verdict that holds: what it told
    is not read again, the next apply begins a new run.
    """
    return {**record, "nonce": system.token(), "ended": {"nonce": record["nonce"], "why": why}}


def unmark_run_ended(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record as it was while its last run was waited for."""
    last = record.get("ended")
    rest = {key: value for key, value in record.items() if key != "ended"}
    return {**rest, "nonce": last["nonce"]} if last else rest


def _record_instance(
    context: TargetContext, record: Mapping[str, Any], state: State, store: LocalStore
) -> State:
    after = state.with_record(context.address, INSTANCE_PART, record)
    store.save(after, expecting=state.serial)
    return after


def _missing_report_error(
    error: ReportUnavailable,
    log: Path,
    context: TargetContext,
    record: Mapping[str, Any],
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> ReportUnavailable:
    """Bring the log home, do what `on_failure` says, and return the error with what is left and how
    to go on.
    """
    text = read_run_log(get_run_location(record)[1], system.cloud())
    system.perform(WriteFile(log, text, 0o600) if text else RemoveTree(log), progress)
    try:
        taken, after = apply_on_failure(context, record, state, store, system, progress)
    except ExternalError as trouble:
        taken, after = f"{trouble.what}: {trouble.why}\n{running_notice(context, record)}", state
    if after.resource(context.address, INSTANCE_PART) is not None:
        _record_instance(
            context,
            mark_run_ended(record, error.why.partition("\n")[0] or error.what, system),
            after,
            store,
        )
    late = isinstance(error, ReportTimeout) and record.get("on_failure") == "keep"
    again = "" if late else f"try it again, as a new run: {context.command('apply')}"
    hints = (error.hint, taken, again, f"the whole log: {log}" if text else "")
    return type(error)(error.what, why=error.why, hint="\n".join(filter(None, hints)))


def _read(path: Path, nonce: str, system: System) -> Report:
    try:
        return read_report(system.read(path, MAX_REPORT_BYTES), str(path), nonce=nonce)
    except ExternalError as error:
        raise ReportUnavailable(error.what, why=error.why, hint=error.hint) from error


def apply_on_failure(
    context: TargetContext,
    record: Any,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> tuple[str, State]:
    """Do with an instance that was not verified what the spec says; returns it in words, and the
    state after.
    """
    name, wish = build_resource_name(record), str(record.get("on_failure", "stop"))
    instance = record["instance"]
    if system.cloud().instance(name) is None:
        return f"{instance} is gone", state
    if wish == "keep":
        return f"on_failure: keep: {running_notice(context, record)}", state
    if wish == "stop":
        system.perform(StopInstance(name), progress)
        return (
            (
                f"{instance} is "
                f"stopped{'' if context.sandbox_sources else '; its disks still cost'} "
                "(on_failure: stop)"
            ),
            state,
        )
    system.perform(DeleteInstance(name, str(record["lineage"])), progress)
    system.perform(DeleteObjects(str(record["bucket"])), progress)
    after = state.with_record(context.address, INSTANCE_PART, None)
    store.save(after, expecting=state.serial)
    return f"{instance} is deleted (on_failure: delete)", after


def discard_intent(action: Action, intent: Intent, state: State, store: LocalStore) -> None:
    """Close the intent of an action that left no instance; one that was deleted to be replaced is
    no longer recorded.
    """
    old, after = state.resource(action.address, INSTANCE_PART), state
    if any(isinstance(effect, CreateInstance) and effect.instead_of for effect in action.effects):
        after = state.with_record(action.address, action.part, None)
    for context in expand_zones(old):
        after = forget_former_instance(after, action.address, context)
    if after is not state:
        store.save(after, expecting=state.serial)
    store.close_intent(intent)


def with_zone(action: Action, system: System) -> Action:
    """Return an action with its record completed by what only the world knows once it is done: the
    zone that an instance is in.
    """
    record = action.record
    if action.part != INSTANCE_PART or record is None or record.get("zone"):
        return action
    zones = [
        zone
        for zone in record["zones"]
        if _has_lineage(
            system.cloud().instance(build_resource_name({**record, "zone": zone})),
            record["lineage"],
        )
    ]
    return replace(action, record={**record, "zone": zones[0]}) if zones else action


def _has_lineage(instance: Any, lineage: object) -> bool:
    """Tell whether an instance is there and bears the label of a state."""
    return (
        bool(lineage)
        and isinstance(instance, Mapping)
        and instance.get("labels", {}).get(LINEAGE_LABEL) == lineage
    )
