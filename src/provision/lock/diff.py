"""Lock comparison: the differences between two locks as values, in a fixed order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.diagnostics import Diagnostic
from provision.facts.torch_upgrade import Implication
from provision.lock.model import Lock, LockedEnvironment, LockedPackage
from provision.lock.origins import LockedCode

TargetPlatform = tuple[str, str]
"""A target and a platform of it."""


@dataclass(frozen=True, slots=True, order=True)
class LockedVersion:
    """The exact version of a package in a lock, and its index, path or commit."""

    version: str
    index: str
    unconfirmed: bool = False


_Moves = dict[tuple[LockedVersion | None, LockedVersion | None], list[TargetPlatform]]
"""The targets of each change from one version to another."""


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A package that was added (`old` is None), removed (`new` is None) or changed.

    `where` names the targets of the change, () for all that have the package.
    """

    name: str
    old: LockedVersion | None
    new: LockedVersion | None
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesChange:
    """A version whose files changed; `replaced` have the same name and another sha256."""

    name: str
    version: str
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int

    @property
    def suspicious(self) -> bool:
        """True if a file was replaced or none is left: an index only adds files to a release."""
        return bool(self.replaced) or (not self.kept and bool(self.removed))


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A target on a platform that was added, removed, or has another flavour or glibc."""

    target: str
    platform: str
    old: LockedEnvironment | None
    new: LockedEnvironment | None


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A named value of both locks, None for a lock without it."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class LockDiff:
    """The differences between two locks.

    `unchanged` counts the packages that do not differ, `identical` is equality of every byte.
    """

    python: ValueChange | None
    packages: tuple[PackageChange, ...]
    unchanged: int
    files: tuple[FilesChange, ...]
    targets: tuple[TargetChange, ...]
    indexes: tuple[ValueChange, ...]
    inputs: tuple[ValueChange, ...]
    identical: bool

    @property
    def is_empty(self) -> bool:
        """True if nothing differs that decides an environment or was requested."""
        return not (
            self.python
            or self.packages
            or self.files
            or self.targets
            or self.indexes
            or self.inputs
        )


@dataclass(frozen=True, slots=True)
class Consequence:
    """An implication of a comparison for some targets of the spec, by the facts."""

    meaning: Implication
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockReview:
    """A comparison with its implications and the findings of the rules in one lock only.

    `other_cards` are implications for cards that the spec does not name.
    """

    old: str
    new: str
    comparison: LockDiff
    consequences: tuple[Consequence, ...]
    other_cards: tuple[Implication, ...]
    new_findings: tuple[Diagnostic, ...]
    resolved_findings: tuple[Diagnostic, ...]


def diff_locks(old: Lock, new: Lock) -> LockDiff:
    """Return the differences by name; `diff_locks(x, x)` is empty."""
    packages, files = tuple(_package_changes(old, new)), tuple(_files_changes(old, new))
    names = {package.name for package in old.packages} & {package.name for package in new.packages}
    names -= {change.name for change in packages} | {change.name for change in files}
    return LockDiff(
        python=ValueChange("python", old.python, new.python) if old.python != new.python else None,
        packages=packages,
        unchanged=len(names),
        files=files,
        targets=tuple(_target_changes(old, new)),
        indexes=tuple(_value_changes("", old.indexes, new.indexes)),
        inputs=(*_input_changes(old.inputs, new.inputs), *_code_changes(old.code, new.code)),
        identical=old.digest == new.digest,
    )


def environments_by_target_platform(lock: Lock) -> dict[TargetPlatform, LockedEnvironment]:
    """Return the environment of each target on each platform that the lock covers, sorted."""
    platforms = sorted({environment.platform for environment in lock.environments})
    environments = {}
    for target in sorted(lock.targets):
        for platform in platforms:
            environment = lock.environment(target, platform)
            if environment is not None:
                environments[target, platform] = environment
    return environments


def _package_changes(old: Lock, new: Lock) -> Iterator[PackageChange]:
    before, after = _versions_by_target_platform(old), _versions_by_target_platform(new)
    targets = tuple(frozenset(environments_by_target_platform(lock)) for lock in (old, new))
    for name in sorted({*before, *after}):
        yield from _changes_of_package(name, before.get(name, {}), after.get(name, {}), *targets)


def _versions_by_target_platform(lock: Lock) -> dict[str, dict[TargetPlatform, LockedVersion]]:
    versions: dict[str, dict[TargetPlatform, LockedVersion]] = {}
    for target, environment in environments_by_target_platform(lock).items():
        for package in lock.packages_in(environment):
            locked = LockedVersion(
                package.version,
                package.index if package.origin is None else package.origin.description,
                package.unconfirmed,
            )
            versions.setdefault(package.name, {})[target] = locked
        for record in lock.conda_records_in(environment):
            locked = LockedVersion(f"{record.version} {record.build}", record.channel)
            versions.setdefault(f"{record.name} (conda)", {})[target] = locked
    return versions


def _changes_of_package(
    name: str,
    before: Mapping[TargetPlatform, LockedVersion],
    after: Mapping[TargetPlatform, LockedVersion],
    old_targets: frozenset[TargetPlatform],
    new_targets: frozenset[TargetPlatform],
) -> Iterator[PackageChange]:
    """Yield each change of a package once, with its targets if others differ."""
    moves: _Moves = {}
    stays = False
    for target in sorted(old_targets | new_targets):
        was, now = before.get(target), after.get(target)
        if target not in old_targets and now in before.values():
            was = now  # an added target, with the version that others had already
        if target not in new_targets and was in after.values():
            now = was
        if was != now:
            moves.setdefault((was, now), []).append(target)
        stays = stays or (was == now and was is not None)
    moves = _join_renamed_targets(moves, old_targets, new_targets)
    for (was, now), at in moves.items():
        needed = frozenset[TargetPlatform]()
        if was is None:
            needed = new_targets
        elif now is None:
            needed = old_targets
        labels: tuple[str, ...] = ()
        if len(moves) > 1 or stays or not needed <= set(at):
            labels = tuple(_target_labels(at, old_targets | new_targets))
        yield PackageChange(name, was, now, labels)


def _join_renamed_targets(
    moves: _Moves,
    old_targets: frozenset[TargetPlatform],
    new_targets: frozenset[TargetPlatform],
) -> _Moves:
    """Join a removal at one target and an addition at another: it may be a renamed target."""
    went = [(was, at) for (was, now), at in moves.items() if now is None]
    came = [(now, at) for (was, now), at in moves.items() if was is None]
    if (
        len(moves) == 2
        and len(went) == len(came) == 1
        and not set(went[0][1]) & new_targets
        and not set(came[0][1]) & old_targets
    ):
        return {(went[0][0], came[0][0]): came[0][1]}
    return moves


def _target_labels(
    at: list[TargetPlatform], everywhere: frozenset[TargetPlatform]
) -> Iterator[str]:
    for target in dict.fromkeys(target for target, _ in at):
        own = [platform for name, platform in at if name == target]
        whole = len(own) == sum(name == target for name, _ in everywhere)
        yield from [target] if whole else [f"{target} on {platform}" for platform in own]


def _files_changes(old: Lock, new: Lock) -> Iterator[FilesChange]:
    before = {(package.name, package.version): package for package in old.packages}
    for package in new.packages:
        earlier = before.get((package.name, package.version))
        if earlier is None or earlier.files == package.files:
            continue
        was = {file.name: file.sha256 for file in earlier.files}
        now = {file.name: file.sha256 for file in package.files}
        common = sorted(was.keys() & now.keys())
        replaced = tuple(name for name in common if was[name] != now[name])
        added: tuple[str, ...] = ()
        removed: tuple[str, ...] = ()
        if old.python == new.python and _platforms_of(old, earlier) == _platforms_of(new, package):
            added = tuple(sorted(now.keys() - was.keys()))
            removed = tuple(sorted(was.keys() - now.keys()))
        if replaced or added or removed:
            kept = len(common) - len(replaced)
            yield FilesChange(package.name, package.version, replaced, added, removed, kept)


def _platforms_of(lock: Lock, package: LockedPackage) -> frozenset[str]:
    return frozenset(
        environment.platform
        for environment in lock.environments
        if environment.key in package.environments
    )


def _target_changes(old: Lock, new: Lock) -> Iterator[TargetChange]:
    before, after = environments_by_target_platform(old), environments_by_target_platform(new)
    for target, platform in sorted({*before, *after}):
        was, now = before.get((target, platform)), after.get((target, platform))
        if was is None or now is None or (was.flavour, was.glibc) != (now.flavour, now.glibc):
            yield TargetChange(target, platform, was, now)


def _input_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ValueChange]:
    for key in sorted({*old, *new}):
        was, now = old.get(key), new.get(key)
        if key == "python":  # which the locks themselves say
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _value_changes(f"{key}.", was, now)
        elif isinstance(was, list) and isinstance(now, list):
            yield from (ValueChange(key, _to_text(item), None) for item in was if item not in now)
            yield from (ValueChange(key, None, _to_text(item)) for item in now if item not in was)
        elif was != now:
            yield ValueChange(key, _to_text(was), _to_text(now))


def _code_changes(old: LockedCode | None, new: LockedCode | None) -> Iterator[ValueChange]:
    was, now = (code.description if code is not None else None for code in (old, new))
    if was != now:
        yield ValueChange("code at", was, now)


def _value_changes(
    prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[ValueChange]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield ValueChange(prefix + name, _to_text(old.get(name)), _to_text(new.get(name)))


def _to_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)
