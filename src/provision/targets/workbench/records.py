"""Records of instances in state and journal: current, replaced, ended, and being created."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from provision.effects.google import DeleteInstance
from provision.effects.system import Effect
from provision.plan import Intent, Operation
from provision.state import Record, State

_FORMER = "former-"
"""Prefix of the parts that record replaced instances: former-ZONE.PROJECT."""
_FOUND_BY = ("project", "instance", "lineage", "bucket", "nonce", "on_failure", "title")
"""Fields of a record by which an interrupted creation is found again."""


@dataclass(frozen=True, slots=True)
class InstanceRecord(Record):
    """An instance: what identifies it, what was requested, and its last run.

    Attributes:
        zone: Its zone; "" if it may be in each of `zones`.
        bucket: gs:// address of the objects of its state.
        nonce: Its run, or the run of the next start once its run has `ended`.
        image: Project, name and family of its image.
        body: The body that was sent last.
        digest: Digest of the locked environment.
        ended: Nonce and reason ("why") of a run that ended without a lasting verdict.
    """

    part: ClassVar[str] = "instance"

    title: str
    project: str
    zones: tuple[str, ...]
    zone: str
    instance: str
    lineage: str
    bucket: str
    nonce: str
    on_failure: str
    kind: str = "workbench"
    image: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    digest: str = ""
    lock: str = ""
    labels: Mapping[str, str] | None = None
    ended: Mapping[str, str] | None = None

    @classmethod
    def from_intent(cls, intent: Intent, zones: tuple[str, ...]) -> Self:
        """Return the record of an instance whose creation was begun, in one of some zones."""
        values: dict[str, Any] = {name: intent.details.get(name, "") for name in _FOUND_BY}
        values["on_failure"] = values["on_failure"] or "stop"
        return cls(zone=zones[0] if len(zones) == 1 else "", zones=zones, **values)

    @property
    def machine_type(self) -> str:
        """The machine type that was requested last; "" if no body was sent."""
        setup = (self.body or {}).get("gceSetup", {})
        return str(setup.get("machineType", "")).rpartition("/")[2]

    @property
    def resource_name(self) -> str:
        """The full name of the instance."""
        return f"projects/{self.project}/locations/{self.zone}/instances/{self.instance}"

    @property
    def possible_zones(self) -> tuple[str, ...]:
        """The zone of the instance, else all in which it was requested."""
        return (self.zone,) if self.zone else self.zones

    @property
    def candidates(self) -> tuple[Self, ...]:
        """The record once for each zone that the instance may be in."""
        return tuple(replace(self, zone=zone) for zone in self.possible_zones)

    @property
    def run_folder(self) -> str:
        """The gs:// address of the objects of the run."""
        return f"{self.bucket}{self.nonce}/"

    @property
    def former_part(self) -> str:
        """The part that records the instance once it is replaced."""
        return f"{_FORMER}{self.zone}.{self.project}"

    def as_former(self) -> Self:
        """Return the record of the instance once it is replaced."""
        title = f"replaced instance {self.instance} in {self.zone} in project {self.project}"
        return replace(self, title=title)

    def with_ended_run(self, reason: str) -> Self:
        """Return the record once the run has ended without a lasting verdict.

        Its report is not read again: the next apply begins a new run under another nonce.
        """
        next_nonce = hashlib.sha256(f"after {self.nonce}".encode()).hexdigest()[:32]
        return replace(self, nonce=next_nonce, ended={"nonce": self.nonce, "why": reason})

    def without_ended_run(self) -> Self:
        """Return the record as it was before its last run ended."""
        if self.ended is None:
            return self
        return replace(self, nonce=self.ended["nonce"], ended=None)


def zone_of(name: str) -> str:
    """Return the zone in the full name of an instance."""
    return name.split("/")[3]


def is_former_part(part: str) -> bool:
    """Return whether a part records a replaced instance that is still to be deleted."""
    return part.startswith(_FORMER)


def is_instance_part(part: str) -> bool:
    """Return whether a part is the current instance of a target, or a replaced one."""
    return part == InstanceRecord.part or is_former_part(part)


def build_intent(address: str, operation: Operation, record: InstanceRecord) -> Intent:
    """Return the journal entry of an action on an instance."""
    names = tuple(candidate.resource_name for candidate in record.candidates)
    details = {key: str(getattr(record, key)) for key in _FOUND_BY}
    return Intent(address, record.part, str(operation), names=names, details=details)


def find_replaced(
    current: InstanceRecord | None, effects: tuple[Effect, ...], new_names: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Return, by part, the recorded instances that effects delete and that no new one replaces."""
    deleted = {effect.name for effect in effects if isinstance(effect, DeleteInstance)}
    replaced = deleted.difference(new_names)
    return {
        former.former_part: former.as_former().to_json()
        for former in (current.candidates if current is not None else ())
        if former.resource_name in replaced
    }


def record_former_instance(state: State, address: str, former: InstanceRecord) -> State:
    """Return the state in which an instance is recorded as replaced."""
    return state.with_record(address, former.former_part, former.as_former().to_json())


def forget_former_instance(state: State, address: str, record: InstanceRecord) -> State:
    """Return the state in which this instance is not recorded as replaced."""
    if state.resource(address, record.former_part) is None:
        return state
    return state.with_record(address, record.former_part, None)
