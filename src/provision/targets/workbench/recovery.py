"""Recovery of interrupted creations: instances that may exist although no state records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from provision.effects.system import Reader, System
from provision.errors import ExternalError
from provision.plan import REQUESTED_AT, Intent
from provision.targets.base import Journal
from provision.targets.workbench.records import (
    InstanceRecord,
    forget_former_instance,
    record_former_instance,
    zone_of,
)
from provision.targets.workbench.resource_names import LINEAGE_LABEL

_CREATION_GRACE_S = 15 * 60
"""Seconds after which a requested instance that is not listed was never created. Our choice: new
instances are listed within seconds."""


def recover_instance(
    intent: Intent, journal: Journal, *, planned: bool, still_running: tuple[str, ...]
) -> None:
    """Record the instance that an intent began and close the intent.

    If no instance is listed, the intent is closed only once none can appear any more. With
    `planned`, the target already has its instance, and the listed one is deleted later.
    """
    record = find_interrupted_instance(intent, journal.system)
    if record is not None:
        _record_instance(intent, record, journal, planned=planned)
        journal.close_intent(intent)
        return
    reported = still_running and set(still_running) <= set(intent.names)
    if reported and journal.state.resource(intent.address, intent.part) is None:
        zones = tuple(map(zone_of, still_running))
        record = replace(InstanceRecord.from_intent(intent, zones), zone="")
        journal.record(intent.address, intent.part, record.to_json())
        journal.close_intent(intent)
    elif may_still_appear(intent, journal.system):
        name = intent.details.get("instance", "its instance")
        journal.progress(
            f"an earlier run was interrupted: {name} is not listed yet and stays in the journal"
        )
    else:
        journal.close_intent(intent)


def _record_instance(
    intent: Intent, record: InstanceRecord, journal: Journal, *, planned: bool
) -> None:
    current = InstanceRecord.find(journal.state, intent.address)
    if current is not None and current.resource_name == record.resource_name:
        return
    journal.progress(
        f"an earlier run was interrupted: {record.instance} exists and is now recorded"
    )
    after = journal.state
    if planned and current is not None:
        journal.save(record_former_instance(after, intent.address, record))
        return
    for former in current.candidates if current is not None else ():
        after = record_former_instance(after, intent.address, former)
    after = forget_former_instance(after, intent.address, record)
    journal.save(after.with_record(intent.address, record.part, record.to_json()))


def find_interrupted_instance(intent: Intent, reader: Reader) -> InstanceRecord | None:
    """Return a record of the instance that an interrupted action began; None if not listed."""
    cloud = reader.cloud()
    shown: dict[str, Mapping[str, Any] | None]
    shown = {name: cloud.instance(name) for name in intent.names}
    # A list may have an instance that a single query does not return yet, and vice versa.
    for project in intent.accounts:
        for instance in cloud.instances(project):
            name = str(instance.get("name", ""))
            if name in intent.names:
                shown[name] = instance
    for name, listed in shown.items():
        if has_lineage(listed, intent.details.get("lineage")):
            return InstanceRecord.from_intent(intent, (zone_of(name),))
    return None


def may_still_appear(intent: Intent, system: System) -> bool:
    """Return whether an instance that is not listed may still appear.

    Its creation is running, or was requested a short while ago and has not failed.
    """
    if REQUESTED_AT not in intent.details:
        return False
    operations = [system.cloud().last_operation(name) for name in intent.names]
    latest = [operation for operation in operations if operation is not None]
    if any(not operation.get("done") for operation in latest):
        return True
    failed = [
        operation
        for operation in latest
        if "error" in operation and operation.get("metadata", {}).get("verb") == "create"
    ]
    if len(failed) >= len(intent.names):
        return False
    return _seconds_between(intent.details[REQUESTED_AT], system.now()) < _CREATION_GRACE_S


def refuse_pending_creation(intents: Sequence[Intent], system: System) -> None:
    """Raise ExternalError if a requested instance may still appear, and escape its deletion."""
    for intent in intents:
        if not intent.names or find_interrupted_instance(intent, system) is not None:
            continue
        if may_still_appear(intent, system):
            raise ExternalError(
                f"{intent.details.get('instance', 'an instance')} was requested at "
                f"{intent.details[REQUESTED_AT]} and is not listed yet",
                why="a run was interrupted while creating it; Google Cloud may list it only after "
                "a delay, and it cannot be deleted before then",
                hint="run the command again in a few minutes; if it is still not listed "
                f"{_CREATION_GRACE_S // 60} minutes after the request, it is treated as "
                "never created",
            )


def has_lineage(instance: object, lineage: object) -> bool:
    """Return whether an instance exists and has the label of a state."""
    if not lineage or not isinstance(instance, Mapping):
        return False
    return bool(instance.get("labels", {}).get(LINEAGE_LABEL) == lineage)


def _seconds_between(began: str, now: str) -> float:
    """Return the seconds between two times; infinite if one of them is not a time."""
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(began)).total_seconds()
    except ValueError:
        return float("inf")
