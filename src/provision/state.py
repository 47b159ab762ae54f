"""The ledger of our own deeds: what exists because we made it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from provision.errors import StateError
from provision.plan import Action, Intent

SCHEMA = "provision.state/1"
_START_OVER_HINT = (
    "move .provision/state.json away and run apply again, which adopts whole environments "
    "(instances with --adopt)"
)


class StateRecord(dict[str, Any]):
    """What is recorded of a part of a target; a missing field raises StateError, as nothing writes
    a record without it.
    """

    def __missing__(self, name: str) -> Any:
        title = self.get("title", "a record")
        raise StateError(
            "the state is damaged",
            why=f"{title!r} has no {name!r}",
            hint=f"what it recorded is untouched: {_START_OVER_HINT}",
        )


@dataclass(frozen=True, slots=True)
class StateBinding:
    """Where a state is written: a digest of the machine's identity ("" where it has none), the
    folder's path without links, and its "DEVICE:INODE".
    """

    machine: str
    folder: str
    inode: str


@dataclass(frozen=True, slots=True)
class State:
    """Resources by address and part, with a lineage (which ledger), a serial (which version of it),
    and the machine and folder that it is bound to.

    `projects` are those of Google Cloud in which an instance was ever requested: `orphans` also
    looks where the spec names none of them any more.
    """

    lineage: str
    serial: int
    resources: Mapping[str, Mapping[str, Any]]
    binding: StateBinding | None = None
    projects: tuple[str, ...] = ()

    @property
    def recorded_projects(self) -> set[str]:
        """The projects of Google Cloud that records name."""
        return {
            record["project"]
            for record in self.resources.values()
            if record.get("instance") and isinstance(record.get("project"), str)
        }

    def resource(self, address: str, part: str) -> Mapping[str, Any] | None:
        """Return what is recorded of a part of a target, or None."""
        found = self.resources.get(f"{address}#{part}")
        return StateRecord(found) if found is not None else None

    def parts(self, address: str) -> dict[str, Mapping[str, Any]]:
        """Return all that is recorded of a target, by part."""
        return {
            key.rpartition("#")[2]: StateRecord(value)
            for key, value in self.resources.items()
            if key.rpartition("#")[0] == address
        }

    def after_action(self, action: Action) -> State:
        """Return the state once an action is done: one serial on, its record in place."""
        return self.with_record(action.address, action.part, action.record)

    def with_record(self, address: str, part: str, record: Mapping[str, Any] | None) -> State:
        """Return the state with one part recorded anew, or dropped when `record` is None."""
        rest = {key: value for key, value in self.resources.items() if key != f"{address}#{part}"}
        added = {f"{address}#{part}": record} if record is not None else {}
        return replace(self, serial=self.serial + 1, resources={**rest, **added})


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of our own deeds: the state, and the intents that earlier runs did not close,
    oldest first.

    `foreign` says why the state was written elsewhere, and is "" where it was written here: what
    a foreign one names on a machine is not on this one.
    """

    state: State
    intents: tuple[Intent, ...] = ()
    foreign_reason: str = ""

    def find_interrupted(self, address: str) -> Intent | None:
        """Return the newest intent that was cut short at this address, or None."""
        return next(
            (intent for intent in reversed(self.intents) if intent.address == address), None
        )

    def find_all_interrupted(self, address: str) -> tuple[Intent, ...]:
        """Return every intent that was cut short at this address, oldest first."""
        return tuple(intent for intent in self.intents if intent.address == address)


_BINDING = {field.name for field in fields(StateBinding)}


def to_folder_name(address: str) -> str:
    """Return how folders are called that are made for an address: SPEC.TARGET."""
    stem, _, target = address.rpartition("/")
    return f"{stem}.{target}"


def create_empty_state(lineage: str) -> State:
    """Return the state of a folder in which nothing was made yet."""
    return State(lineage, 0, {})


def dumps(state: State) -> str:
    """Return the state as text, with a checksum over its content."""
    content = {
        "schema": SCHEMA,
        "lineage": state.lineage,
        "serial": state.serial,
        "resources": state.resources,
    }
    if state.binding is not None:
        content["binding"] = asdict(state.binding)
    if state.projects:
        content["projects"] = sorted(state.projects)
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1, sort_keys=True) + "\n"


def loads(text: str, name: str) -> State:
    """Return the state that a text holds; raises StateError when it is damaged, foreign or of a
    newer version. Nothing is ever overwritten then.
    """
    adopts = "which adopts whole environments (instances with --adopt)"
    hint = (
        f"what it recorded is untouched: move the file away (mv {name} {name}.damaged) and run "
        f"apply again, {adopts}"
    )
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"the state file {name} is damaged", why=f"it is not JSON: {error}", hint=hint
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("provision.state/"):
        raise StateError(
            f"{name} is no state file of provision",
            why=f"its schema is {schema!r}",
            hint="move it away; nothing in it was touched",
        )
    if schema != SCHEMA:
        raise StateError(
            f"{name} was written by another version of provision ({schema})",
            hint="upgrade provision; this version would lose what it does not know",
        )
    content = {key: value for key, value in document.items() if key != "checksum"}
    if document.get("checksum") != _checksum(content):
        raise StateError(
            f"the state file {name} is damaged",
            why="its checksum does not fit its content",
            hint=hint,
        )
    lineage, serial, resources = (
        content.get("lineage"),
        content.get("serial"),
        content.get("resources"),
    )
    if not (
        isinstance(lineage, str)
        and lineage
        and type(serial) is int
        and isinstance(resources, dict)
        and _are_records(resources)
    ):
        raise StateError(
            f"the state file {name} is damaged",
            why="its lineage, serial or resources are missing or of the wrong form",
            hint=hint,
        )
    binding = content.get("binding")
    if binding is not None and not (
        isinstance(binding, dict)
        and set(binding) == _BINDING
        and all(isinstance(value, str) for value in binding.values())
    ):
        raise StateError(
            f"the state file {name} is damaged", why="its binding is of the wrong form", hint=hint
        )
    projects = content.get("projects", [])
    if not (isinstance(projects, list) and all(isinstance(project, str) for project in projects)):
        raise StateError(
            f"the state file {name} is damaged",
            why="its projects are not a list of names",
            hint=hint,
        )
    return State(
        lineage,
        serial,
        resources,
        StateBinding(**binding) if binding is not None else None,
        tuple(projects),
    )


def _are_records(resources: Mapping[str, Any]) -> bool:
    return all("#" in key and isinstance(record, dict) for key, record in resources.items())


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
