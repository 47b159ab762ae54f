"""What differs between two locks: values, in one order, and nothing for a lock compared with itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.diagnostics import Diagnostic
from provision.facts.moving import Meaning
from provision.lock.model import Environment, Lock, Package

Seat = tuple[str, str]
"""A target and a platform of it."""


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """A package as a lock holds it: exact version, index, and whether no index has confirmed its hash."""

    version: str
    index: str
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A package that was added (`old` is None), removed (`new` is None) or changed. `where` names the places that this is so at, () for all that hold it."""

    name: str
    old: Held | None
    new: Held | None
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """One version with other files than before, by name: `replaced` have the same name and another sha256."""

    name: str
    version: str
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int

    @property
    def suspicious(self) -> bool:
        """Whether a file is not what it was, or none is left of what there was: an index adds files to a release, and replaces none."""
        return bool(self.replaced) or (not self.kept and bool(self.removed))


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """A target on a platform that came (`old` is None), went (`new` is None), or has another torch flavour or oldest glibc."""

    target: str
    platform: str
    old: Environment | None
    new: Environment | None


@dataclass(frozen=True, slots=True)
class Moved:
    """A named text of the locks: None where there is none."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two locks. `unchanged` counts the packages that do not, `identical` is whether the locks are the same in every byte."""

    python: Moved | None
    packages: tuple[PackageChange, ...]
    unchanged: int
    files: tuple[OtherFiles, ...]
    places: tuple[PlaceChange, ...]
    indexes: tuple[Moved, ...]
    asked: tuple[Moved, ...]
    identical: bool

    @property
    def empty(self) -> bool:
        """Whether nothing differs that decides an environment, or was asked for."""
        return not (self.python or self.packages or self.files or self.places or self.indexes or self.asked)


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows from a comparison at some targets of the spec, by the facts."""

    meaning: Meaning
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """A comparison with what the rules find in the new lock only (`appeared`) and in the old one only (`settled`), and what the facts say follows.

    `elsewhere` is what follows for cards that the spec does not name.
    """

    old: str
    new: str
    comparison: Comparison
    follows: tuple[Consequence, ...]
    elsewhere: tuple[Meaning, ...]
    appeared: tuple[Diagnostic, ...]
    settled: tuple[Diagnostic, ...]


def compare(old: Lock, new: Lock) -> Comparison:
    """Return what differs, by name; `compare(x, x)` is empty."""
    packages, files = tuple(_packages(old, new)), tuple(_files(old, new))
    names = {package.name for package in old.packages} & {package.name for package in new.packages}
    return Comparison(
        python=Moved("python", old.python, new.python) if old.python != new.python else None,
        packages=packages,
        unchanged=len(names - {change.name for change in packages} - {one.name for one in files}),
        files=files,
        places=tuple(_places(old, new)),
        indexes=tuple(_moved("", old.indexes, new.indexes)),
        asked=tuple(_asked(old.asked, new.asked)),
        identical=old.digest == new.digest,
    )


def seats(lock: Lock) -> dict[Seat, Environment]:
    """Return the environment of each target on each platform that the lock covers, sorted."""
    platforms = sorted({environment.platform for environment in lock.environments})
    found = {(target, platform): lock.environment(target, platform) for target in sorted(lock.targets) for platform in platforms}
    return {seat: environment for seat, environment in found.items() if environment is not None}


def _packages(old: Lock, new: Lock) -> Iterator[PackageChange]:
    before, after = _held(old), _held(new)
    places = frozenset(seats(old)), frozenset(seats(new))
    for name in sorted({*before, *after}):
        yield from _changes(name, before.get(name, {}), after.get(name, {}), places)


def _held(lock: Lock) -> dict[str, dict[Seat, Held]]:
    by_key = {e.key: {p.name: Held(p.version, p.index, p.unconfirmed) for p in lock.held_by(e)} for e in lock.environments}
    for environment in lock.environments:
        by_key[environment.key] |= {f"{p.name} (conda)": Held(f"{p.version} {p.build}", p.channel) for p in lock.conda_of(environment)}
    found: dict[str, dict[Seat, Held]] = {}
    for seat, environment in seats(lock).items():
        for name, held in by_key[environment.key].items():
            found.setdefault(name, {})[seat] = held
    return found


def _changes(name: str, before: Mapping[Seat, Held], after: Mapping[Seat, Held], places: tuple[frozenset[Seat], frozenset[Seat]]) -> Iterator[PackageChange]:
    """Yield each change of a package once, with the places it is made at where others differ."""
    old_places, new_places = places
    moves: dict[tuple[Held | None, Held | None], list[Seat]] = {}
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
    moves = _renamed(moves, places)
    for (was, now), at in moves.items():
        needed = new_places if was is None else old_places if now is None else frozenset[Seat]()
        everywhere = len(moves) == 1 and not stays and needed <= set(at)
        yield PackageChange(name, was, now, () if everywhere else tuple(_named(at, old_places | new_places)))


def _renamed(
    moves: dict[tuple[Held | None, Held | None], list[Seat]], places: tuple[frozenset[Seat], frozenset[Seat]]
) -> dict[tuple[Held | None, Held | None], list[Seat]]:
    """Take what left with one place and came with another, in one version each, for a change: a target may have got another name."""
    went = [(was, at) for (was, now), at in moves.items() if now is None]
    came = [(now, at) for (was, now), at in moves.items() if was is None]
    if len(moves) == 2 and len(went) == len(came) == 1 and not set(went[0][1]) & places[1] and not set(came[0][1]) & places[0]:
        return {(went[0][0], came[0][0]): came[0][1]}
    return moves


def _named(at: list[Seat], everywhere: frozenset[Seat]) -> Iterator[str]:
    for target in dict.fromkeys(target for target, _ in at):
        own = [platform for name, platform in at if name == target]
        whole = len(own) == sum(name == target for name, _ in everywhere)
        yield from [target] if whole else [f"{target} on {platform}" for platform in own]


def _files(old: Lock, new: Lock) -> Iterator[OtherFiles]:
    before = {(package.name, package.version): package for package in old.packages}
    for package in new.packages:
        known = before.get((package.name, package.version))
        if known is None or known.files == package.files:
            continue
        was, now = ({file.name: file.sha256 for file in one.files} for one in (known, package))
        replaced = tuple(sorted(name for name in {*was, *now} if name in was and name in now and was[name] != now[name]))
        comparable = old.python == new.python and _platforms(old, known) == _platforms(new, package)
        added, removed = (tuple(sorted({*a} - {*b})) if comparable else () for a, b in ((now, was), (was, now)))
        if replaced or added or removed:
            yield OtherFiles(package.name, package.version, replaced, added, removed, sum(now.get(name) == sha256 for name, sha256 in was.items()))


def _platforms(lock: Lock, package: Package) -> frozenset[str]:
    return frozenset(environment.platform for environment in lock.environments if environment.key in package.environments)


def _places(old: Lock, new: Lock) -> Iterator[PlaceChange]:
    before, after = seats(old), seats(new)
    for target, platform in sorted({*before, *after}):
        was, now = before.get((target, platform)), after.get((target, platform))
        if was is None or now is None or (was.flavour, was.glibc) != (now.flavour, now.glibc):
            yield PlaceChange(target, platform, was, now)


def _asked(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Moved]:
    for key in sorted({*old, *new}):
        was, now = old.get(key), new.get(key)
        if key == "python":  # which the locks themselves say
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _moved(f"{key}.", was, now)
        elif isinstance(was, list) and isinstance(now, list):
            yield from (Moved(key, _text(item), None) for item in was if item not in now)
            yield from (Moved(key, None, _text(item)) for item in now if item not in was)
        elif was != now:
            yield Moved(key, _text(was), _text(now))


def _moved(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Moved]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield Moved(prefix + name, _text(old.get(name)), _text(new.get(name)))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)
