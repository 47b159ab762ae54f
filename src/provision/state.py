"""The ledger: what exists because provision made it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from provision.effects.code import RemoveCode
from provision.effects.local import RemoveFileIfUnmodified, RemoveSymlink, RemoveTree
from provision.effects.system import Effect
from provision.errors import Refused, StateError
from provision.plan import Action, Intent

SCHEMA = "provision.state/1"
_START_OVER_HINT = (
    "move .provision/state.json elsewhere and run apply again, which adopts complete environments "
    "(and instances with --adopt)"
)
FOREIGN_RECORD_HINT = "restore the state file from a backup: provision did not write this entry"
REMOVAL_EFFECTS = (RemoveSymlink, RemoveTree, RemoveFileIfUnmodified, RemoveCode)
"""Effects that remove something on this machine."""


class StateRecord(dict[str, Any]):
    """A record of a part; a missing field raises StateError, as every writer sets all of them."""

    def __missing__(self, name: str) -> Any:
        title = self.get("title", "a record")
        raise StateError(
            "the state is damaged",
            why=f"{title!r} has no {name!r}",
            hint=f"{_START_OVER_HINT}; the recorded resources were not changed",
        )


@dataclass(frozen=True, slots=True)
class Record:
    """A part of a target as the state records it; each kind of target has subclasses.

    Fields with a default are left out of the JSON while they are empty.
    """

    part: ClassVar[str]

    @classmethod
    def find(cls, state: State, address: str) -> Self | None:
        """Return the record of this part at an address, or None."""
        document = state.resource(address, cls.part)
        return cls.from_json(document) if document is not None else None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the record in a document; fields of other versions are left out.

        Raises:
            StateError: a field without a default is missing.
        """
        record, values = StateRecord(document), dict[str, Any]()
        for field in fields(cls):
            if field.name in record or not _has_default(field):
                value = record[field.name]
                values[field.name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        document = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value or not _has_default(field):
                document[field.name] = list(value) if isinstance(value, tuple) else value
        return document


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


@dataclass(frozen=True, slots=True)
class StateBinding:
    """Machine and folder of a state.

    Attributes:
        machine: Digest of the machine's identity; "" if it has none.
        folder: The folder's path without links.
        inode: Its "DEVICE:INODE".
    """

    machine: str
    folder: str
    inode: str


@dataclass(frozen=True, slots=True)
class State:
    """Records by address and part, with lineage (which ledger), serial (its version) and binding.

    `accounts` are the accounts of cloud services in which a machine was ever requested: `orphans`
    looks there even if no spec names them any more. Google Cloud calls them projects.
    """

    lineage: str
    serial: int
    resources: Mapping[str, Mapping[str, Any]]
    binding: StateBinding | None = None
    accounts: tuple[str, ...] = ()

    @property
    def recorded_accounts(self) -> set[str]:
        """The accounts in records of machines."""
        return {
            record["project"]
            for record in self.resources.values()
            if record.get("instance") and isinstance(record.get("project"), str)
        }

    def resource(self, address: str, part: str) -> Mapping[str, Any] | None:
        """Return the record of a part of a target, or None."""
        record = self.resources.get(f"{address}#{part}")
        return StateRecord(record) if record is not None else None

    def parts(self, address: str) -> dict[str, Mapping[str, Any]]:
        """Return all records of a target by part."""
        return {
            key.rpartition("#")[2]: StateRecord(value)
            for key, value in self.resources.items()
            if key.rpartition("#")[0] == address
        }

    def after_action(self, action: Action) -> State:
        """Return the state once an action is done: the next serial, with its record."""
        return self.with_record(action.address, action.part, action.record)

    def with_record(self, address: str, part: str, record: Mapping[str, Any] | None) -> State:
        """Return the next state with one part recorded anew, or dropped when `record` is None."""
        rest = {key: value for key, value in self.resources.items() if key != f"{address}#{part}"}
        added = {f"{address}#{part}": record} if record is not None else {}
        return replace(self, serial=self.serial + 1, resources={**rest, **added})

    def with_target(self, address: str, other: State) -> State:
        """Return the next state, with the records of one target as another state has them."""
        own = {k: v for k, v in self.resources.items() if k.rpartition("#")[0] != address}
        new = {k: v for k, v in other.resources.items() if k.rpartition("#")[0] == address}
        return replace(self, serial=self.serial + 1, resources={**own, **new})


@dataclass(frozen=True, slots=True)
class Ledger:
    """The state, and the intents that earlier runs did not close, oldest first.

    `foreign_reason` is why the state counts as written elsewhere; "" if it was written here. The
    paths in a foreign state are not on this machine.
    """

    state: State
    intents: tuple[Intent, ...] = ()
    foreign_reason: str = ""

    def find_interrupted(self, address: str) -> Intent | None:
        """Return the newest interrupted intent of an address, or None."""
        return next(
            (intent for intent in reversed(self.intents) if intent.address == address), None
        )

    def find_all_interrupted(self, address: str) -> tuple[Intent, ...]:
        """Return the interrupted intents of an address, oldest first."""
        return tuple(intent for intent in self.intents if intent.address == address)

    def refuse_foreign_removals(self, effects: Iterable[Effect], folder: Path) -> None:
        """Raise StateError for removals on this machine that a state from elsewhere implies."""
        removed = [effect.path for effect in effects if isinstance(effect, REMOVAL_EFFECTS)]
        if self.foreign_reason and removed:
            raise StateError(
                f"refusing to remove {removed[0]}: the state that lists it was written on "
                "another machine or in another folder",
                why=self.foreign_reason,
                hint="review the resources in the state and take it over with `provision "
                "adopt`; or, if none of the resources are on this machine, move "
                f"{folder / 'state.json'} elsewhere",
            )


_BINDING = {field.name for field in fields(StateBinding)}


def to_folder_name(address: str) -> str:
    """Return the name of the folders of an address: SPEC.TARGET."""
    stem, _, target = address.rpartition("/")
    return f"{stem}.{target}"


def build_kernel_prefix(address: str) -> str:
    """Return the prefix of the names of an address's Jupyter kernels."""
    return re.sub(r"[^a-z0-9._-]", "-", f"provision-{to_folder_name(address)}".lower())


def build_kernel_name(address: str, folder: Path) -> str:
    """Return the name of the Jupyter kernel of an address in this state folder.

    Kernels of all folders share one namespace, so it contains a digest of the folder too.
    """
    return f"{build_kernel_prefix(address)}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def unpacked_code_parent(folder: Path, address: str) -> Path:
    """Return the folder below which the code of an address is unpacked on this machine."""
    return folder / "code" / to_folder_name(address)


def resolve_own_folder(folder: Path, relative: str, address: str) -> Path:
    """Return a recorded path in our own folder.

    Raises:
        Refused: it is not an environment or the reports of this address.
    """
    top, _, name = relative.partition("/")
    own = to_folder_name(address)
    is_environment = top == "envs" and re.fullmatch(rf"{re.escape(own)}(-[0-9a-f]{{12}})?", name)
    if not is_environment and (top != "reports" or name != own):
        raise Refused(
            f"{relative} is not a folder that provision creates for {address}",
            why=f"the state in {folder} lists it as a folder of {address}",
            hint=FOREIGN_RECORD_HINT,
        )
    return folder / relative


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
    if state.accounts:
        content["projects"] = sorted(state.accounts)
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1, sort_keys=True) + "\n"


def loads(text: str, name: str) -> State:
    """Return the state in a text. Nothing is ever overwritten if it is invalid.

    Raises:
        StateError: it is damaged, foreign or of a newer version.
    """
    adopts = "which adopts complete environments (and instances with --adopt)"
    hint = (
        f"rename the file (mv {name} {name}.damaged) and run apply again, {adopts}; the recorded "
        "resources were not changed"
    )
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"the state file {name} is damaged", why=f"it is not valid JSON: {error}", hint=hint
        ) from None
    _check_schema(document, name)
    content = {key: value for key, value in document.items() if key != "checksum"}
    if document.get("checksum") != _checksum(content):
        why = "its checksum does not match its content"
        raise StateError(f"the state file {name} is damaged", why=why, hint=hint)
    if why := _find_wrong_form(content):
        raise StateError(f"the state file {name} is damaged", why=why, hint=hint)
    binding = content.get("binding")
    return State(
        content["lineage"],
        content["serial"],
        content["resources"],
        StateBinding(**binding) if binding is not None else None,
        tuple(content.get("projects", ())),
    )


def _check_schema(document: object, name: str) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("provision.state/"):
        raise StateError(
            f"{name} is not a provision state file",
            why=f"its schema is not {SCHEMA}",
            hint="move the file elsewhere; it was not changed",
        )
    if schema != SCHEMA:
        raise StateError(
            f"{name} was written by a different version of provision ({schema})",
            hint="upgrade provision; this version would lose the data that it does not support",
        )


def _find_wrong_form(content: Mapping[str, Any]) -> str:
    """Return which fields have the wrong form; "" if all are right."""
    lineage, resources = content.get("lineage"), content.get("resources")
    named = isinstance(lineage, str) and lineage and type(content.get("serial")) is int
    if not named or not isinstance(resources, dict) or not _are_records(resources):
        return "its lineage, serial or resources are missing or have the wrong type"
    binding = content.get("binding")
    if binding is not None:
        complete = isinstance(binding, dict) and set(binding) == _BINDING
        if not complete or not all(isinstance(value, str) for value in binding.values()):
            return "its binding has the wrong type"
    projects = content.get("projects", [])
    if not isinstance(projects, list) or not all(isinstance(name, str) for name in projects):
        return "its projects are not a list of names"
    return ""


def _are_records(resources: Mapping[str, Any]) -> bool:
    return all("#" in key and isinstance(record, dict) for key, record in resources.items())


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
