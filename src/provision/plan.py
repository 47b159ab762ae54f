"""What would be done, in order, and why: data, until someone performs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from provision.effects.system import Effect


class Operation(StrEnum):
    """What happens to a resource; the value is the symbol a plan shows."""

    CREATE = "+"
    CHANGE = "~"
    REPLACE = "-/+"
    DESTROY = "-"
    KEEP = "="


@dataclass(frozen=True, slots=True)
class Action:
    """One step on one resource: what, why, the effects that do it, and what the state records
    afterwards (None: nothing, the resource is gone).

    `address` is "NAME/TARGET", `part` the piece of the target it concerns ("python",
    "environment", "kernel", "instance"). `notes` are what else a person
    should know before saying yes, such as what it costs.
    """

    operation: Operation
    address: str
    part: str
    title: str
    reason: str
    effects: tuple[Effect, ...] = ()
    record: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the probe will run after the actions, and why; `tier` says how thoroughly."""

    needed: bool
    tier: str
    reason: str
    earlier_probe: bool = False
    """The stored verdict, which still counts, is of another version's probe."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions for some targets, bound to the spec, lock and state that it was made from
    (digests and serial).
    """

    actions: tuple[Action, ...]
    verifications: dict[str, Verification]
    spec_digest: str
    lock_digest: str
    lineage: str
    serial: int

    @property
    def changes(self) -> tuple[Action, ...]:
        """The actions that change something."""
        return tuple(action for action in self.actions if action.operation is not Operation.KEEP)

    def summary(self) -> str:
        """Return the plan's last line, as in "1 to create, 0 to change, 0 to destroy"."""
        count = {
            verb: sum(action.operation is verb for action in self.actions) for verb in Operation
        }
        parts = [f"{count[Operation.CREATE]} to create", f"{count[Operation.CHANGE]} to change"]
        parts += [f"{count[Operation.REPLACE]} to replace"] if count[Operation.REPLACE] else []
        return ", ".join([*parts, f"{count[Operation.DESTROY]} to destroy"])

    def fingerprint(self) -> dict[str, Any]:
        """Return what a saved plan must still find when it is applied: the inputs, and every step."""  # noqa: E501
        steps = [[str(a.operation), a.address, a.part, a.title] for a in self.changes]
        return {
            "spec": self.spec_digest,
            "lock": self.lock_digest,
            "lineage": self.lineage,
            "serial": self.serial,
            "steps": steps,
        }
