"""Records of instances in state and journal: current, replaced, ended, and being created."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from provision.effects.google import DeleteInstance
from provision.effects.system import Effect
from provision.plan import Intent, Operation
from provision.state import State

Record = Mapping[str, Any]

INSTANCE_PART = "instance"
_FORMER = "former-"
"""Prefix of the parts that record replaced instances: former-ZONE.PROJECT."""
_FOUND_BY = ("project", "instance", "lineage", "bucket", "nonce", "on_failure", "title")
"""Fields of a record by which an interrupted creation is found again."""


def is_former_part(part: str) -> bool:
    """Return whether a part records a replaced instance that is still to be deleted."""
    return part.startswith(_FORMER)


def build_resource_name(record: Record) -> str:
    """Return the full name of a recorded instance."""
    return f"projects/{record['project']}/locations/{record['zone']}/instances/{record['instance']}"


def list_zones(record: Record) -> tuple[str, ...]:
    """Return the zone of a recorded instance, else all in which it was requested."""
    if record.get("zone"):
        return (str(record["zone"]),)
    return tuple(str(zone) for zone in record.get("zones", ()))


def expand_zones(record: Record | None) -> tuple[Record, ...]:
    """Return a record once for each zone that its instance may be in."""
    if record is None:
        return ()
    if record.get("zone"):
        return (record,)
    return tuple({**record, "zone": zone} for zone in list_zones(record))


def build_intent(address: str, operation: Operation, record: Record) -> Intent:
    """Return the journal entry of an action on an instance."""
    names = tuple(build_resource_name(possible) for possible in expand_zones(record))
    details = {key: str(record[key]) for key in _FOUND_BY}
    return Intent(address, INSTANCE_PART, str(operation), names=names, details=details)


def find_replaced(
    current: Record | None, effects: tuple[Effect, ...], new_names: tuple[str, ...]
) -> dict[str, Record]:
    """Return, by part, the recorded instances that effects delete and no new one is named like."""
    deleted = {effect.name for effect in effects if isinstance(effect, DeleteInstance)}
    gone = deleted.difference(new_names)
    return {
        _former_part(old): _former_record(old)
        for old in expand_zones(current)
        if build_resource_name(old) in gone
    }


def record_former_instance(state: State, address: str, old: Record) -> State:
    """Return the state in which an instance is recorded as replaced."""
    return state.with_record(address, _former_part(old), _former_record(old))


def forget_former_instance(state: State, address: str, record: Record) -> State:
    """Return the state in which this instance is not recorded as replaced."""
    part = _former_part(record)
    if state.resource(address, part) is None:
        return state
    return state.with_record(address, part, None)


def get_run_location(record: Record) -> tuple[str, str]:
    """Return (nonce, gs:// folder of the run) of a recorded instance."""
    return str(record["nonce"]), f"{record['bucket']}{record['nonce']}/"


def mark_run_ended(record: Record, reason: str) -> dict[str, Any]:
    """Return the record of an instance whose run ended without a lasting verdict.

    Its report is not read again: under another nonce the next apply begins a new run.
    """
    next_nonce = hashlib.sha256(f"after {record['nonce']}".encode()).hexdigest()[:32]
    return {**record, "nonce": next_nonce, "ended": {"nonce": record["nonce"], "why": reason}}


def unmark_run_ended(record: Record) -> dict[str, Any]:
    """Return the record as it was while its last run was waited for."""
    rest = {key: value for key, value in record.items() if key != "ended"}
    if record.get("ended"):
        rest["nonce"] = record["ended"]["nonce"]
    return rest


def _former_part(record: Record) -> str:
    return f"{_FORMER}{record['zone']}.{record['project']}"


def _former_record(old: Record) -> dict[str, Any]:
    where = f"{old['zone']} of {old['project']}"
    return {**old, "title": f"instance {old['instance']} in {where}, whose place another took"}
