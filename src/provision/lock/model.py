"""The lock as a value and as a file: sorted, one package a line, without dates."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

from provision.effects.conda import CondaRecord
from provision.errors import LockError
from provision.lock.conda_package import LockedCondaPackage
from provision.lock.document_schema import find_schema_errors
from provision.lock.origins import LockedCode, LockedOrigin
from provision.lock.window_bounds import WindowBound

_FAMILY = "provision.lock/"
FORMAT_VERSION = 2
SCHEMA = f"{_FAMILY}{FORMAT_VERSION}"
_RELOCK_HINT = "write it again with `provision lock --upgrade`"
REPAIR_HINT = "repair the lock with `provision lock`, which keeps the versions"
"""The advice for a lock that can be read in part."""
_CONFLICT_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """A distribution file by name and sha256 (hexadecimal)."""

    name: str
    sha256: str
    size: int | None = field(default=None, compare=False)
    """Bytes to download, if the index listed them when it was resolved; not in the file."""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One locked package of an index, a path or a repository, under its canonical name.

    `environments` are the keys of the environments that have it, `requires` the names of the
    packages it needs there.
    """

    name: str
    version: str
    index: str
    environments: tuple[str, ...]
    requires: tuple[str, ...]
    files: tuple[LockedFile, ...]
    unconfirmed: bool = False
    """The hash is that of a file on the locking machine, and no other source has confirmed it."""
    origin: LockedOrigin | None = None
    """The path or repository that it comes from; its `index` is "" then."""

    @property
    def built(self) -> bool:
        """True for a package that is locked as source and built when it is installed."""
        return any(not file.name.endswith(".whl") for file in self.files)


@dataclass(frozen=True, slots=True)
class LockedEnvironment:
    """A platform with a torch flavour and the digest of its content.

    `glibc` and `driver` are the oldest versions that its wheels run on, None without a bound.
    """

    key: str
    platform: str
    flavour: str | None
    glibc: str | None
    driver: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The environments (keys) of one target, and the reason for their torch flavour.

    On top of a Colab runtime, its packages are `kept` or `changed` (with the runtime's version);
    others are `added`. After a change of those in `restart` the kernel must be started again.
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
    """Every choice made for one spec: `inputs` of the spec decided, `bounds` were added."""

    inputs: Mapping[str, Any]
    python: str
    environments: tuple[LockedEnvironment, ...]
    targets: Mapping[str, TargetChoice]
    indexes: Mapping[str, str]
    packages: tuple[LockedPackage, ...]
    digest: str = field(default="")
    text_digest: str = ""
    """The digest of the spec's text about packages (see `text_digest`), "" if it has none."""
    conda: tuple[LockedCondaPackage, ...] = ()
    """Packages of conda targets: Python, `conda_packages`, `source: conda`, and their needs."""
    bounds: tuple[WindowBound, ...] = ()
    code: LockedCode | None = None
    """The commit of the project's code; None unless it is from a repository."""

    @property
    def from_indexes(self) -> tuple[LockedPackage, ...]:
        """The packages that are not from a path or a repository."""
        return tuple(package for package in self.packages if package.origin is None)

    def environment(self, target: str, platform: str) -> LockedEnvironment | None:
        """Return the environment of a target on a platform, None if the lock does not cover it."""
        keys = self.targets[target].environments if target in self.targets else ()
        for environment in self.environments:
            if environment.key in keys and environment.platform == platform:
                return environment
        return None

    def environments_of(self, target: str) -> tuple[LockedEnvironment, ...]:
        """Return the environments that a target may use, in the lock's order."""
        return tuple(
            environment
            for environment in self.environments
            if self.environment(target, environment.platform) == environment
        )

    def packages_in(self, environment: LockedEnvironment) -> tuple[LockedPackage, ...]:
        """Return the packages of an environment, by name."""
        key = environment.key
        return tuple(package for package in self.packages if key in package.environments)

    def conda_records_in(self, environment: LockedEnvironment) -> tuple[CondaRecord, ...]:
        """Return the conda packages of an environment, by name."""
        key = environment.key
        return tuple(package.record for package in self.conda if key in package.environments)

    def versions(self, environment: LockedEnvironment) -> dict[str, str]:
        """Return the versions of the packages of an environment by canonical name."""
        return {package.name: package.version for package in self.packages_in(environment)}

    def built(self, environment: LockedEnvironment) -> frozenset[str]:
        """Return the names of the packages that an environment builds from source."""
        return frozenset(package.name for package in self.packages_in(environment) if package.built)


def reachable_names(
    start: Iterable[str], requires: Mapping[str, Iterable[str]], leave_out: Collection[str] = ()
) -> set[str]:
    """Return the names that `start` and their requirements lead to, without those to leave out."""
    reachable: set[str] = set()
    pending = list(start)
    while pending:
        name = pending.pop()
        if name in requires and name not in reachable and name not in leave_out:
            reachable.add(name)
            pending += requires[name]
    return reachable


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
    """Return the digest of all that decides an installed environment."""
    rows = [
        (
            package.name,
            package.version,
            package.index,
            [(file.name, file.sha256) for file in package.files],
            *([package.origin.to_document()] if package.origin is not None else []),
        )
        for package in packages
    ]
    content: dict[str, Any] = {
        "python": python,
        "platform": platform,
        "flavour": flavour,
        "packages": sorted(rows, key=lambda row: row[:2]),
    }
    if conda:
        content["conda"] = [
            [record.name, record.channel, record.subdir, record.file, record.sha256]
            for record in sorted(conda, key=lambda record: record.name)
        ]
    return digest_of(content)


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
            why=f"line {line} is a Git conflict marker left by a merge or rebase",
            hint=f"resolve the conflicts in the spec first, then {REPAIR_HINT} from both sides",
        )
    try:
        document = json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        hint = REPAIR_HINT if f'"{_FAMILY}' in text else _RELOCK_HINT
        raise LockError(
            f"{name} is damaged", why=f"it is not valid JSON: {error}", hint=hint
        ) from None
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(_FAMILY):
        raise LockError(
            f"{name} is not a provision lock",
            hint="move the file elsewhere, then create a lock with `provision lock --upgrade`",
        )
    if document["schema"] != SCHEMA:
        raise _other_format_error(str(document["schema"]), name)
    errors = list(islice(find_schema_errors(document), _MAX_SHOWN))
    if errors:
        raise LockError(f"{name} is damaged", why="\n".join(errors), hint=REPAIR_HINT)
    lock = _from_document(document)
    if with_digest(lock).digest != lock.digest:
        what = f"{name} was edited by hand or truncated"
        raise LockError(what, why="its digest does not match its content", hint=REPAIR_HINT)
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
            raise ValueError(f"duplicate key {name!r}")
        content[name] = value
    return content


def _other_format_error(schema: str, name: str) -> LockError:
    age, hint = "a newer", f"upgrade provision, or {_RELOCK_HINT}"
    number = lock_format_version(schema)
    if number is not None and number < FORMAT_VERSION:
        age, hint = "an older", REPAIR_HINT
    what = f"{name} was written by {age} version of provision ({schema})"
    return LockError(what, why=f"this version can read only {SCHEMA}", hint=hint)


def _to_document(lock: Lock) -> dict[str, Any]:
    keys = tuple(environment.key for environment in lock.environments)
    document: dict[str, Any] = {"schema": SCHEMA, "digest": lock.digest}
    if lock.text_digest:
        document["written"] = lock.text_digest
    document |= {"asked": dict(lock.inputs), "python": lock.python, "environments": {}}
    for environment in lock.environments:
        content = asdict(environment)
        document["environments"][content.pop("key")] = content
    document["targets"] = {
        name: _choice_to_document(choice) for name, choice in sorted(lock.targets.items())
    }
    document["indexes"] = dict(sorted(lock.indexes.items()))
    document["packages"] = [_package_to_document(package, keys) for package in lock.packages]
    if lock.code is not None:
        document["code"] = lock.code.to_document()
    if lock.bounds:
        document["bounds"] = [asdict(bound) for bound in lock.bounds]
    if lock.conda:
        document["conda"] = [package.to_document() for package in lock.conda]
    return document


def _choice_to_document(choice: TargetChoice) -> dict[str, Any]:
    document: dict[str, Any] = {"environments": choice.environments, "because": choice.reason}
    if choice.runtime is not None:
        document["runtime"] = choice.runtime
        document["restart"] = choice.restart
        document["changed"] = dict(sorted(choice.changed.items()))
        document["added"] = choice.added
        document["kept"] = choice.kept
    return document


def _package_to_document(package: LockedPackage, keys: tuple[str, ...]) -> dict[str, Any]:
    document: dict[str, Any] = {key: getattr(package, key) for key in ("name", "version", "index")}
    if package.environments != keys:
        document["in"] = package.environments
    if package.unconfirmed:
        document["origin"] = "unconfirmed"
    if package.origin is not None:
        document["source"] = package.origin.to_document()
    document["requires"] = package.requires
    document["files"] = {file.name: file.sha256 for file in package.files}
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
        tuple(map(LockedCondaPackage.from_document, document.get("conda", ()))),
        tuple(WindowBound(**part) for part in document.get("bounds", ())),
        LockedCode(**document["code"]) if "code" in document else None,
    )


def _to_package(part: Mapping[str, Any], keys: tuple[str, ...]) -> LockedPackage:
    return LockedPackage(
        part["name"],
        part["version"],
        part["index"],
        tuple(part.get("in", keys)),
        tuple(part["requires"]),
        tuple(LockedFile(name, sha256) for name, sha256 in part["files"].items()),
        part.get("origin") == "unconfirmed",
        LockedOrigin.from_document(part["source"]) if "source" in part else None,
    )


def _to_choice(part: Mapping[str, Any]) -> TargetChoice:
    return TargetChoice(
        tuple(part["environments"]),
        part["because"],
        part.get("runtime"),
        tuple(part.get("kept", ())),
        part.get("changed", {}),
        tuple(part.get("added", ())),
        tuple(part.get("restart", ())),
    )


def _to_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
