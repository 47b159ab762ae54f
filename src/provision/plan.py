"""Plans as data: the actions for each target with their reasons, effects and journal entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from provision.effects.system import Effect


class Operation(StrEnum):
    """Changes to a resource; the value is the symbol that a plan shows."""

    CREATE = "+"
    CHANGE = "~"
    REPLACE = "-/+"
    DESTROY = "-"
    KEEP = "="


REQUESTED_AT = "asked"
"""Detail of an intent: the time since which what it requested elsewhere may appear."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Journal entry of an action: by what an interrupted run of it is found again.

    It is written before the first effect and closed once the state contains the result.

    Attributes:
        paths: What the action creates in the state folder, relative to it.
        began: Time of the entry; "" until the executor writes it.
        names: Full names that what it creates elsewhere may have.
        details: Whatever else finds that again.
    """

    address: str
    part: str
    verb: str
    paths: tuple[str, ...] = ()
    began: str = ""
    names: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def accounts(self) -> set[str]:
        """The accounts of cloud services in its names."""
        return {name.split("/")[1] for name in self.names if name.startswith("projects/")}

    @property
    def key(self) -> tuple[str, str, tuple[str, ...], str]:
        """Identity among open intents: address, part, names, and its nonce or session."""
        run = self.details.get("nonce") or self.details.get("session", "")
        return (self.address, self.part, self.names, str(run))


@dataclass(frozen=True, slots=True)
class Action:
    """One change of one resource, with its reason and the effects that make it.

    Attributes:
        address: "NAME/TARGET".
        part: The piece of the target that changes ("python", "environment", "kernel", "instance").
        record: What the state records afterwards; None when the resource is gone.
        notes: What else a person should know before confirming, such as the cost.
        intent: Its journal entry; None when the record in the state is enough to find it again.
        replaced: By part, what the action deletes after its replacement exists. The state records
            each before the first effect, until the action is done.
        settles: Full names of resources that were observed: what earlier intents began under
            these names is accounted for once this action is in the journal.
    """

    operation: Operation
    address: str
    part: str
    title: str
    reason: str
    effects: tuple[Effect, ...] = ()
    record: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    intent: Intent | None = None
    replaced: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """Decision whether the probe runs after the actions, with its reason, tier and location."""

    needed: bool
    tier: str
    reason: str
    location: str
    earlier_probe: bool = False
    """The stored verdict, which still counts, is of another version's probe."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions for some targets, bound to the digests of spec, lock and files, and to the state."""

    actions: tuple[Action, ...]
    verifications: dict[str, Verification]
    spec_digest: str
    lock_digest: str
    lineage: str
    serial: int
    code: str = ""
    """Digest of the code that the targets get; "" without code."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """The digests of packages from paths and repositories by name."""

    @property
    def changes(self) -> tuple[Action, ...]:
        """The actions that change something."""
        return tuple(action for action in self.actions if action.operation is not Operation.KEEP)

    def summary(self) -> str:
        """Return the plan's last line, as in "1 to create, 0 to change, 0 to destroy"."""
        count = {
            operation: sum(action.operation is operation for action in self.actions)
            for operation in Operation
        }
        parts = [f"{count[Operation.CREATE]} to create", f"{count[Operation.CHANGE]} to change"]
        if count[Operation.REPLACE]:
            parts.append(f"{count[Operation.REPLACE]} to replace")
        return ", ".join([*parts, f"{count[Operation.DESTROY]} to destroy"])

    def fingerprint(self) -> dict[str, Any]:
        """Return the inputs and steps that a saved plan must still match when it is applied."""
        steps = [[str(a.operation), a.address, a.part, a.title] for a in self.changes]
        return {
            "spec": self.spec_digest,
            "lock": self.lock_digest,
            "lineage": self.lineage,
            "serial": self.serial,
            "steps": steps,
            **({"code": self.code} if self.code else {}),
            **{f"files of {name}": digest for name, digest in self.packages.items()},
        }
