"""What differs between two locks: values, in one order, and nothing for a lock compared with
itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.diagnostics import Diagnostic
from provision.facts.torch_upgrade import Implication
from provision.lock.model import Lock, LockedEnvironment, LockedPackage

TargetPlatform = tuple[str, str]
"""A target and a platform of it."""


@dataclass(frozen=True, slots=True, order=True)
class LockedVersion:
    """A package as a lock holds it: exact version, index, and whether no index has confirmed its
    hash.
    """

    version: str
    index: str
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A package that was added (`old` is None), removed (`new` is None) or changed. `where` names
    the places that this is so at, () for all that hold it.
    """

    name: str
    old: LockedVersion | None
    new: LockedVersion | None
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesChange:
    """One version with other files than before, by name: `replaced` have the same name and another
    sha256.
    """

    name: str
    version: str
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int

    @property
    def suspicious(self) -> bool:
        """Whether a file is not what it was, or none is left of what there was: an index adds files
        to a release, and replaces none.
        """
        return bool(self.replaced) or (not self.kept and bool(self.removed))


@dataclass(frozen=True, slots=True)
class TargetChange:
    """A target on a platform that came (`old` is None), went (`new` is None), or has another torch
    flavour or oldest glibc.
    """

    target: str
    platform: str
    old: LockedEnvironment | None
    new: LockedEnvironment | None


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A named text of the locks: None where there is none."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class LockDiff:
    """All that differs between two locks. `unchanged` counts the packages that do not, `identical`
    is whether the locks are the same in every byte.
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
        """Whether nothing differs that decides an environment, or was asked for."""
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
    """What follows from a comparison at some targets of the spec, by the facts."""

    meaning: Implication
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockReview:
    """A comparison with what the rules find in the new lock only (`appeared`) and in the old one
    only (`settled`), and what the facts say follows.

    `elsewhere` is what follows for cards that the spec does not name.
    """

    old: str
    new: str
    comparison: LockDiff
    consequences: tuple[Consequence, ...]
    other_cards: tuple[Implication, ...]
    new_findings: tuple[Diagnostic, ...]
    resolved_findings: tuple[Diagnostic, ...]


def diff_locks(old: Lock, new: Lock) -> LockDiff:
    """Return what differs, by name; `compare(x, x)` is empty."""
    packages, files = tuple(_packages(old, new)), tuple(_files(old, new))
    names = {package.name for package in old.packages} & {package.name for package in new.packages}
    return LockDiff(
        python=ValueChange("python", old.python, new.python) if old.python != new.python else None,
        packages=packages,
        unchanged=len(names - {change.name for change in packages} - {one.name for one in files}),
        files=files,
        targets=tuple(_target_changes(old, new)),
        indexes=tuple(_value_changes("", old.indexes, new.indexes)),
        inputs=tuple(_input_changes(old.inputs, new.inputs)),
        identical=old.digest == new.digest,
    )


def environments_by_target_platform(lock: Lock) -> dict[TargetPlatform, LockedEnvironment]:
    """Return the environment of each target on each platform that the lock covers, sorted."""
    platforms = sorted({environment.platform for environment in lock.environments})
    found = {
        (target, platform): lock.environment(target, platform)
        for target in sorted(lock.targets)
        for platform in platforms
    }
    return {seat: environment for seat, environment in found.items() if environment is not None}


def _packages(old: Lock, new: Lock) -> Iterator[PackageChange]:
    before, after = _versions_by_target_platform(old), _versions_by_target_platform(new)
    places = (
        frozenset(environments_by_target_platform(old)),
        frozenset(environments_by_target_platform(new)),
    )
    for name in sorted({*before, *after}):
        yield from _changes(name, before.get(name, {}), after.get(name, {}), places)


def _versions_by_target_platform(lock: Lock) -> dict[str, dict[TargetPlatform, LockedVersion]]:
    by_key = {
        e.key: {
            p.name: LockedVersion(p.version, p.index, p.unconfirmed) for p in lock.packages_in(e)
        }
        for e in lock.environments
    }
    for environment in lock.environments:
        by_key[environment.key] |= {
            f"{p.name} (conda)": LockedVersion(f"{p.version} {p.build}", p.channel)
            for p in lock.conda_records_in(environment)
        }
    found: dict[str, dict[TargetPlatform, LockedVersion]] = {}
    for seat, environment in environments_by_target_platform(lock).items():
        for name, held in by_key[environment.key].items():
            found.setdefault(name, {})[seat] = held
    return found


def _changes(
    name: str,
    before: Mapping[TargetPlatform, LockedVersion],
    after: Mapping[TargetPlatform, LockedVersion],
    places: tuple[frozenset[TargetPlatform], frozenset[TargetPlatform]],
) -> Iterator[PackageChange]:
    """Yield each change of a package once, with the places it is made at where others differ."""
    old_places, new_places = places
    moves: dict[tuple[LockedVersion | None, LockedVersion | None], list[TargetPlatform]] = {}
    stays = False
    for seat in sorted(old_places | new_places):
        was, now = before.get(seat), after.get(seat)
        if seat not in old_places and now in before.values():
            was = now  # a place that came, with what others had already
        if seat not in new_places and was in after.values():
            now = was
        if was != now:
            moves.setdefault((was, now), []).append(seat)
        stays = stays or (was == now and was is not None)
    moves = _join_renamed_targets(moves, places)
    for (was, now), at in moves.items():
        needed = (
            new_places
            if was is None
            else old_places
            if now is None
            else frozenset[TargetPlatform]()
        )
        everywhere = len(moves) == 1 and not stays and needed <= set(at)
        yield PackageChange(
            name, was, now, () if everywhere else tuple(_target_labels(at, old_places | new_places))
        )


def _join_renamed_targets(
    moves: dict[tuple[LockedVersion | None, LockedVersion | None], list[TargetPlatform]],
    places: tuple[frozenset[TargetPlatform], frozenset[TargetPlatform]],
) -> dict[tuple[LockedVersion | None, LockedVersion | None], list[TargetPlatform]]:
    """Take what left with one place and came with another, in one version each, for a change: a
    target may have got another name.
    """
    went = [(was, at) for (was, now), at in moves.items() if now is None]
    came = [(now, at) for (was, now), at in moves.items() if was is None]
    if (
        len(moves) == 2
        and len(went) == len(came) == 1
        and not set(went[0][1]) & places[1]
        and not set(came[0][1]) & places[0]
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


def _files(old: Lock, new: Lock) -> Iterator[FilesChange]:
    before = {(package.name, package.version): package for package in old.packages}
    for package in new.packages:
        known = before.get((package.name, package.version))
        if known is None or known.files == package.files:
            continue
        was, now = ({file.name: file.sha256 for file in one.files} for one in (known, package))
        replaced = tuple(
            sorted(
                name
                for name in {*was, *now}
                if name in was and name in now and was[name] != now[name]
            )
        )
        comparable = old.python == new.python and _platforms(old, known) == _platforms(new, package)
        added, removed = (
            tuple(sorted({*a} - {*b})) if comparable else () for a, b in ((now, was), (was, now))
        )
        if replaced or added or removed:
            yield FilesChange(
                package.name,
                package.version,
                replaced,
                added,
                removed,
                sum(now.get(name) == sha256 for name, sha256 in was.items()),
            )


def _platforms(lock: Lock, package: LockedPackage) -> frozenset[str]:
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
            yield from (ValueChange(key, _text(item), None) for item in was if item not in now)
            yield from (ValueChange(key, None, _text(item)) for item in now if item not in was)
        elif was != now:
            yield ValueChange(key, _text(was), _text(now))


def _value_changes(
    prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[ValueChange]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield ValueChange(prefix + name, _text(old.get(name)), _text(new.get(name)))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)
