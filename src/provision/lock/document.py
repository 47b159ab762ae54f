"""The lock as a file: sorted, one package a line, no dates and no addresses of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from provision.effects.conda import CondaRecord
from provision.errors import LockError
from provision.lock.document_schema import find_schema_errors
from provision.lock.model import (
    Lock,
    LockedCondaPackage,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
    digest_of,
)

SCHEMA = "provision.lock/2"
_FAMILY = "provision.lock/"
_RELOCK_HINT = "make it again with `provision lock --upgrade`"
REPAIR_HINT = "repair it with `provision lock`, which keeps the versions"
"""The advice for a lock that can be read in part."""
_CONFLICT_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
_MAX_SHOWN = 5


def with_digest(lock: Lock) -> Lock:
    """Return the lock with its digest over everything else."""
    document = _to_document(lock)
    del document["digest"]
    return replace(lock, digest=digest_of(document))


def dumps(lock: Lock) -> str:
    """Return the lock's text: the same bytes for the same choices.

    A change of one package changes its line and the digests.
    """
    parts = []
    for key, value in _to_document(lock).items():
        name = json.dumps(key)
        if isinstance(value, list) and value:
            lines = ",\n".join(f"    {_to_line(item)}" for item in value)
            parts.append(f"  {name}: [\n{lines}\n  ]")
        elif isinstance(value, dict) and value:
            lines = ",\n".join(f"    {json.dumps(k)}: {_to_line(v)}" for k, v in value.items())
            parts.append(f"  {name}: {{\n{lines}\n  }}")
        else:
            parts.append(f"  {name}: {_to_line(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def loads(text: str, name: str) -> Lock:
    """Return the lock in a text; messages call the file `name`.

    Whether the content can be true is for `integrity` and `spec_agreement`.

    Raises:
        LockError: conflict markers, another format, a part of the wrong type, or a digest that
            does not match.
    """
    line = find_conflict_line(text)
    if line is not None:
        raise LockError(
            f"{name}:{line}: the lock has conflict markers",
            why=f"line {line} is a conflict marker of git, left by a merge or a rebase",
            hint=f"once the spec has none, {REPAIR_HINT} of both sides",
        )
    try:
        document = json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        hint = REPAIR_HINT if f'"{_FAMILY}' in text else _RELOCK_HINT
        raise LockError(f"{name} is damaged", why=f"it is not JSON: {error}", hint=hint) from None
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(_FAMILY):
        raise LockError(
            f"{name} is not a lock of provision", hint=f"move it away, then {_RELOCK_HINT}"
        )
    if document["schema"] != SCHEMA:
        raise _other_format_error(str(document["schema"]), name)
    errors = list(islice(find_schema_errors(document), _MAX_SHOWN))
    if errors:
        raise LockError(f"{name} is damaged", why="\n".join(errors), hint=REPAIR_HINT)
    lock = _from_document(document)
    if with_digest(lock).digest != lock.digest:
        raise LockError(
            f"{name} was changed by hand or cut short",
            why="its digest does not fit its content",
            hint=REPAIR_HINT,
        )
    return lock


def find_conflict_line(text: str) -> int | None:
    """Return the number of the first line that is a conflict marker of git, or None."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_CONFLICT_MARKERS):
            return number
    return None


def lock_format_version(schema: str) -> int | None:
    """Return the number of a lock format such as "provision.lock/2", or None for another text."""
    match = re.fullmatch(rf"{re.escape(_FAMILY)}([0-9]{{1,4}})", schema)
    return int(match[1]) if match else None


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a reader would see the first of two values, and JSON takes the last."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"{name!r} appears more than once in one object")
        content[name] = value
    return content


def _other_format_error(schema: str, name: str) -> LockError:
    number, own = lock_format_version(schema), lock_format_version(SCHEMA)
    age, hint = "newer", f"upgrade provision, or {_RELOCK_HINT}"
    if number is not None and own is not None and number < own:
        age, hint = "older", REPAIR_HINT
    return LockError(
        f"{name} was made by {'an' if age == 'older' else 'a'} {age} provision ({schema})",
        why=f"this one reads {SCHEMA}",
        hint=hint,
    )


def _to_document(lock: Lock) -> dict[str, Any]:
    keys = tuple(environment.key for environment in lock.environments)
    document: dict[str, Any] = {"schema": SCHEMA, "digest": lock.digest}
    if lock.text_digest:
        document["written"] = lock.text_digest
    document["asked"] = dict(lock.inputs)
    document["python"] = lock.python
    document["environments"] = {}
    for environment in lock.environments:
        content = asdict(environment)
        document["environments"][content.pop("key")] = content
    document["targets"] = {
        name: _choice_to_document(choice) for name, choice in sorted(lock.targets.items())
    }
    document["indexes"] = dict(sorted(lock.indexes.items()))
    document["packages"] = [_package_to_document(package, keys) for package in lock.packages]
    if lock.conda:
        document["conda"] = [_conda_to_document(package) for package in lock.conda]
    return document


def _choice_to_document(choice: TargetChoice) -> dict[str, Any]:
    document: dict[str, Any] = {"environments": list(choice.environments), "because": choice.reason}
    if choice.runtime is not None:
        document["runtime"] = choice.runtime
        document["restart"] = list(choice.restart)
        document["changed"] = dict(sorted(choice.changed.items()))
        document["added"] = list(choice.added)
        document["kept"] = list(choice.kept)
    return document


def _package_to_document(package: LockedPackage, keys: tuple[str, ...]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "index": package.index,
    }
    if package.environments != keys:
        document["in"] = list(package.environments)
    if package.unconfirmed:
        document["origin"] = "unconfirmed"
    document["requires"] = list(package.requires)
    document["files"] = {file.name: file.sha256 for file in package.files}
    return document


def _conda_to_document(package: LockedCondaPackage) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in package.record._asdict().items():
        if value or key in ("name", "version", "build", "depends"):
            document[key] = list(value) if isinstance(value, tuple) else value
    document["in"] = list(package.environments)
    return document


def _from_document(document: Mapping[str, Any]) -> Lock:
    keys = tuple(document["environments"])
    return Lock(
        document["asked"],
        document["python"],
        tuple(LockedEnvironment(key, **part) for key, part in document["environments"].items()),
        {name: _to_choice(part) for name, part in document["targets"].items()},
        document["indexes"],
        tuple(_to_package(part, keys) for part in document["packages"]),
        document["digest"],
        str(document.get("written", "")),
        tuple(_to_conda_package(part) for part in document.get("conda", ())),
    )


def _to_package(part: Mapping[str, Any], keys: tuple[str, ...]) -> LockedPackage:
    return LockedPackage(
        str(part["name"]),
        str(part["version"]),
        str(part["index"]),
        tuple(part.get("in", keys)),
        tuple(part["requires"]),
        tuple(LockedFile(str(name), str(sha256)) for name, sha256 in part["files"].items()),
        part.get("origin") == "unconfirmed",
    )


def _to_conda_package(part: Mapping[str, Any]) -> LockedCondaPackage:
    fields = {"number": 0, "noarch": "", "md5": "", "constrains": (), **part}
    environments = tuple(fields.pop("in"))
    for key in ("depends", "constrains"):
        fields[key] = tuple(fields[key])
    return LockedCondaPackage(CondaRecord(**fields), environments)


def _to_choice(part: Mapping[str, Any]) -> TargetChoice:
    return TargetChoice(
        tuple(part["environments"]),
        str(part["because"]),
        part.get("runtime"),
        tuple(part.get("kept", ())),
        dict(part.get("changed", {})),
        tuple(part.get("added", ())),
        tuple(part.get("restart", ())),
    )


def _to_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
