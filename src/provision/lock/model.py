"""The lock as a value, and as a file: sorted, one package a line, no dates and no addresses of this
machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from provision.effects.conda import CondaRecord
from provision.errors import LockError
from provision.lock.document_schema import find_schema_errors

SCHEMA = "provision.lock/2"
_FAMILY = "provision.lock/"
_RELOCK_HINT = "make it again with `provision lock --upgrade`"
REPAIR_HINT = "repair it with `provision lock`, which keeps the versions"
"""The advice for a lock that can be read in part."""
_CONFLICT_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """A distribution file by name and sha256 (hexadecimal)."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One locked package: canonical name, exact version, index, the environments that hold it, what
    it requires, its files.
    """

    name: str
    version: str
    index: str
    environments: tuple[str, ...]
    requires: tuple[str, ...]
    files: tuple[LockedFile, ...]
    unconfirmed: bool = False
    """True when no index and no independent source has confirmed the hash: it is that of a file on
    the locking machine.
    """

    @property
    def built(self) -> bool:
        """Whether it is locked as source, to be built as it is installed."""
        return any(not file.name.endswith(".whl") for file in self.files)


@dataclass(frozen=True, slots=True)
class LockedCondaPackage:
    """One locked file of a conda channel, as it was solved, and the environments that hold it."""

    record: CondaRecord
    environments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockedEnvironment:
    """A platform with a torch flavour, the oldest glibc and NVIDIA driver that its wheels run on
    (None: no such bound), and the digest of all it holds.
    """

    key: str
    platform: str
    flavour: str | None
    glibc: str | None
    driver: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """What was chosen for one target: the environments (keys) that it may use, and why this torch
    flavour.

    Where packages go on top of a Colab runtime's own: which of these are `kept`, which are
    `changed` (with the version there), which are `added`, and the
    changed ones that the kernel has loaded, so that it must be started again.
    """

    environments: tuple[str, ...]
    reason: str
    runtime: str | None = None
    kept: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """Every choice made for one spec. `asked` holds the fields of the spec that decided, `targets`
    what was chosen for each target.
    """

    inputs: Mapping[str, Any]
    python: str
    environments: tuple[LockedEnvironment, ...]
    targets: Mapping[str, TargetChoice]
    indexes: Mapping[str, str]
    packages: tuple[LockedPackage, ...]
    digest: str = field(default="")
    text_digest: str = ""
    """The digest of what the spec's text said about packages (provision.lock.text_digest); "" when
    only the spec itself can tell.
    """
    conda: tuple[LockedCondaPackage, ...] = ()
    """What conda brings where a target asks for it: Python itself, `conda_packages`, packages with
    `source: conda`, and what they need.
    """

    def environment(self, target: str, platform: str) -> LockedEnvironment | None:
        """Return the environment of a target on a platform, or None when the lock does not cover
        it.
        """
        keys = self.targets[target].environments if target in self.targets else ()
        return next(
            (e for e in self.environments if e.key in keys and e.platform == platform), None
        )

    def packages_in(self, environment: LockedEnvironment) -> tuple[LockedPackage, ...]:
        """Return the packages of an environment, by name."""
        return tuple(
            package for package in self.packages if environment.key in package.environments
        )

    def conda_records_in(self, environment: LockedEnvironment) -> tuple[CondaRecord, ...]:
        """Return what conda brings into an environment, by name."""
        return tuple(
            package.record for package in self.conda if environment.key in package.environments
        )

    def versions(self, environment: LockedEnvironment) -> dict[str, str]:
        """Return canonical name to version of all that an environment holds."""
        return {package.name: package.version for package in self.packages_in(environment)}

    def built(self, environment: LockedEnvironment) -> frozenset[str]:
        """Return the names of what an environment holds as source."""
        return frozenset(package.name for package in self.packages_in(environment) if package.built)


def digest_of(value: Any) -> str:
    """Return "sha256:" and the digest of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def environment_digest(
    python: str,
    platform: str,
    flavour: str | None,
    packages: tuple[LockedPackage, ...],
    conda: tuple[CondaRecord, ...] = (),
) -> str:
    """Return the digest of what decides an installed environment: Python, platform, flavour, and
    every package with its files.
    """
    held = [
        [p.name, p.version, p.index, [[f.name, f.sha256] for f in p.files]]
        for p in sorted(packages, key=lambda p: (p.name, p.version))
    ]
    brought = (
        {
            "conda": [
                [p.name, p.channel, p.subdir, p.file, p.sha256]
                for p in sorted(conda, key=lambda p: p.name)
            ]
        }
        if conda
        else {}
    )
    return digest_of(
        {"python": python, "platform": platform, "flavour": flavour, "packages": held, **brought}
    )


def with_digest(lock: Lock) -> Lock:
    """Return the lock with its digest over everything else."""
    document = _document(lock)
    del document["digest"]
    return replace(lock, digest=digest_of(document))


def dumps(lock: Lock) -> str:
    """Return the lock's text: the same bytes for the same choices, and a change of one package
    changes its line and the digests.
    """
    document = _document(lock)
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            parts.append(
                f"{json.dumps(key)}: [\n"
                + ",\n".join("    " + _line(item) for item in value)
                + "\n  ]"
            )
        elif isinstance(value, dict) and value:
            parts.append(
                f"{json.dumps(key)}: {{\n"
                + ",\n".join(
                    f"    {json.dumps(name)}: {_line(item)}" for name, item in value.items()
                )
                + "\n  }"
            )
        else:
            parts.append(f"{json.dumps(key)}: {_line(value)}")
    return "{\n" + ",\n".join("  " + part for part in parts) + "\n}\n"


def loads(text: str, name: str) -> Lock:
    """Return the lock that a text holds; `name` is how messages call the file.

    Raises LockError for conflict markers, another format, a part of the wrong kind, and a digest
    that does not fit. Whether its content can be true is for
    `provision.lock.integrity` and `provision.lock.spec_agreement`.
    """
    if line := find_conflict_line(text):
        why = f"line {line} is a conflict marker of git, left by a merge or a rebase"
        raise LockError(
            f"{name}:{line}: the lock has conflict markers",
            why=why,
            hint=f"once the spec has none, {REPAIR_HINT} of both sides",
        )
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        hint = REPAIR_HINT if f'"{_FAMILY}' in text else _RELOCK_HINT
        raise LockError(f"{name} is damaged", why=f"it is not JSON: {error}", hint=hint) from None
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(_FAMILY):
        raise LockError(
            f"{name} is not a lock of provision", hint=f"move it away, then {_RELOCK_HINT}"
        )
    if document["schema"] != SCHEMA:
        raise _of_another_version(str(document["schema"]), name)
    if found := list(islice(find_schema_errors(document), _MAX_SHOWN)):
        raise LockError(f"{name} is damaged", why="\n".join(found), hint=REPAIR_HINT)
    lock = _lock(document)
    if with_digest(lock).digest != lock.digest:
        raise LockError(
            f"{name} was changed by hand or cut short",
            why="its digest does not fit its content",
            hint=REPAIR_HINT,
        )
    return lock


def find_conflict_line(text: str) -> int | None:
    """Return the number of the first line that is a conflict marker of git, or None."""
    if not any(marker in text for marker in ("<<<<<<<", "=======", ">>>>>>>")):
        return None
    return next(
        (
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.startswith(_CONFLICT_MARKERS)
        ),
        None,
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of two parts with one name a reader of the file sees the first, and JSON
    means the last.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"{next(name for name in names if names.count(name) > 1)!r} appears more than "
            "once in one object"
        )
    return found


def lock_format_version(schema: str) -> int | None:
    """Return the number of a lock format such as "provision.lock/2", or None for another text."""
    number = schema.removeprefix(_FAMILY)
    return int(number) if number != schema and re.fullmatch(r"[0-9]{1,4}", number) else None


def _of_another_version(schema: str, name: str) -> LockError:
    if (number := lock_format_version(schema)) is not None and number < int(
        SCHEMA.removeprefix(_FAMILY)
    ):
        return LockError(
            f"{name} was made by an older provision ({schema})",
            why=f"this one reads {SCHEMA}",
            hint=REPAIR_HINT,
        )
    return LockError(
        f"{name} was made by a newer provision ({schema})",
        why=f"this one reads {SCHEMA}",
        hint="upgrade provision, or " + _RELOCK_HINT,
    )


def _document(lock: Lock) -> dict[str, Any]:
    keys = tuple(environment.key for environment in lock.environments)
    return {
        "schema": SCHEMA,
        "digest": lock.digest,
        **({"written": lock.text_digest} if lock.text_digest else {}),
        "asked": dict(lock.inputs),
        "python": lock.python,
        "environments": {
            e.key: {
                "platform": e.platform,
                "flavour": e.flavour,
                "glibc": e.glibc,
                "driver": e.driver,
                "digest": e.digest,
            }
            for e in lock.environments
        },
        "targets": {
            name: _chosen_document(chosen) for name, chosen in sorted(lock.targets.items())
        },
        "indexes": dict(sorted(lock.indexes.items())),
        "packages": [_package_document(package, keys) for package in lock.packages],
        **({"conda": [_conda_document(package) for package in lock.conda]} if lock.conda else {}),
    }


def _chosen_document(chosen: TargetChoice) -> dict[str, Any]:
    document: dict[str, Any] = {"environments": list(chosen.environments), "because": chosen.reason}
    if chosen.runtime is None:
        return document
    on_top = {
        "restart": list(chosen.restart),
        "changed": dict(sorted(chosen.changed.items())),
        "added": list(chosen.added),
        "kept": list(chosen.kept),
    }
    return {**document, "runtime": chosen.runtime, **on_top}


def _package_document(package: LockedPackage, keys: tuple[str, ...]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": package.name,
        "version": package.version,
        "index": package.index,
    }
    if package.environments != keys:
        document["in"] = list(package.environments)
    if package.unconfirmed:
        document["origin"] = "unconfirmed"
    return {
        **document,
        "requires": list(package.requires),
        "files": {file.name: file.sha256 for file in package.files},
    }


def _conda_document(package: LockedCondaPackage) -> dict[str, Any]:
    said = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in package.record._asdict().items()
    }
    kept = {
        key: value
        for key, value in said.items()
        if value or key in ("name", "version", "build", "depends")
    }
    return {**kept, "in": list(package.environments)}


def _conda(value: Mapping[str, Any]) -> LockedCondaPackage:
    texts = {
        key: str(value[key])
        for key in ("name", "version", "build", "channel", "subdir", "file", "sha256")
    }
    lists = {
        key: tuple(str(item) for item in value.get(key, ())) for key in ("depends", "constrains")
    }
    more = {"noarch": str(value.get("noarch", "")), "md5": str(value.get("md5", ""))}
    record = CondaRecord(number=int(value.get("number", 0)), **texts, **more, **lists)  # type: ignore[arg-type]
    return LockedCondaPackage(record, tuple(value["in"]))


def _lock(document: Mapping[str, Any]) -> Lock:
    environments = tuple(
        LockedEnvironment(key, e["platform"], e["flavour"], e["glibc"], e["driver"], e["digest"])
        for key, e in document["environments"].items()
    )
    keys = tuple(environment.key for environment in environments)
    packages = tuple(
        LockedPackage(
            str(p["name"]),
            str(p["version"]),
            str(p["index"]),
            tuple(p.get("in", keys)),
            tuple(p["requires"]),
            tuple(LockedFile(str(name), str(value)) for name, value in p["files"].items()),
            p.get("origin") == "unconfirmed",
        )
        for p in document["packages"]
    )
    targets = {name: _chosen(value) for name, value in document["targets"].items()}
    written = str(document.get("written", ""))
    conda = tuple(_conda(value) for value in document.get("conda", ()))
    return Lock(
        document["asked"],
        document["python"],
        environments,
        targets,
        document["indexes"],
        packages,
        document["digest"],
        written,
        conda,
    )


def _chosen(value: Mapping[str, Any]) -> TargetChoice:
    names = {
        part: tuple(str(name) for name in value.get(part, ()))
        for part in ("kept", "added", "restart")
    }
    changed = {str(name): str(version) for name, version in value.get("changed", {}).items()}
    return TargetChoice(
        tuple(value["environments"]),
        str(value["because"]),
        value.get("runtime"),
        changed=changed,
        **names,
    )


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
