"""Compares what releases use with what releases of the other package have."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from windows.confirming import Confirmation
from windows.definitions import State
from windows.reading import Located, Name, NeededName, Needs, Release

SEVERITIES = ("error", "warning")
_AHEAD = 45
"""Days after its own upload in which a release may rely on the next release of another package."""


class Limit(NamedTuple):
    """One bound that a name sets: ">=" the first release that has it, or "<" the first without.

    `has` is its definition in release `at_has`; the next release on that side is `lacks`.
    """

    specifier: str
    bound: Version
    name: NeededName
    has: Located
    at_has: Version
    lacks: Version

    @property
    def is_floor(self) -> bool:
        """Whether it is a lower bound."""
        return self.specifier.startswith(">=")


class Window(NamedTuple):
    """The releases `first` to `last` of a package need `specifier` of another one.

    `limits` are the names that set the bound, as release `first` uses them; `declared` is what
    release `last` requires of the other package.
    """

    package: str
    first: Version
    last: Version
    is_newest: bool
    of: str
    specifier: str
    severity: str
    limits: tuple[Limit, ...]
    declared: str


@cache
def states_of(states: tuple[str, ...]) -> tuple[int | None, int | None]:
    """Return the index of the first release that has a name, and of the first that lost it.

    None if every release that was read has it on that side, or if any release there is undecided.
    """
    kinds = [State(item) for item in states]
    removed = [index for index, kind in enumerate(kinds) if kind is State.REMOVED]
    if removed:  # what says that it removed a name had it before
        kinds[: removed[-1]] = [
            State.PRESENT if kind is State.UNDECIDED else kind for kind in kinds[: removed[-1]]
        ]
    present = [index for index, kind in enumerate(kinds) if kind is State.PRESENT]
    if not present:
        return None, None
    first, last = present[0], present[-1]
    lacking = (State.ABSENT, State.REMOVED)
    floor = first if first and all(kind in lacking for kind in kinds[:first]) else None
    rest = kinds[last + 1 :]
    ceiling = last + 1 if rest and all(kind in lacking for kind in rest) else None
    return floor, ceiling


def compare(
    releases: Sequence[Release],
    needs: Mapping[Version, Needs],
    others: Sequence[Release],
    located: Mapping[Version, Mapping[Name, Located]],
    confirmation: Confirmation,
) -> list[Window]:
    """Return the windows between one package and another.

    Args:
        releases: the releases of the package, oldest first.
        needs: what each of them needs.
        others: the releases of the other package, oldest first.
        located: where each of these has the needed names.
        confirmation: a second look at the names that would set a bound.
    """
    windows: list[Window] = []
    of = others[0].package
    names = {
        (name.path, name.argument)
        for release in needs.values()
        for name in release.names
        if name.of == of
    }
    states = {name: [located[other.version][name] for other in others] for name in names}
    for is_floor in (True, False):
        limits = {
            release.version: _binding(
                release, needs[release.version], others, states, is_floor, confirmation
            )
            for release in releases
        }
        for severity in SEVERITIES:
            binding = [(release, limits[release.version].get(severity)) for release in releases]
            for specifier, group in groupby(binding, key=lambda item: item[1] and item[1][0][0]):
                run = list(group)
                if specifier is None or run[0][1] is None:
                    continue
                first, last = run[0][0].version, run[-1][0].version
                windows.append(
                    Window(
                        releases[0].package,
                        first,
                        last,
                        last == releases[-1].version,
                        of,
                        specifier,
                        severity,
                        tuple(run[0][1]),
                        needs[last].declared.get(of, ""),
                    )
                )
    return windows


def _binding(
    release: Release,
    needs: Needs,
    others: Sequence[Release],
    states: Mapping[Name, Sequence[Located]],
    is_floor: bool,
    confirmation: Confirmation,
) -> dict[str, list[Limit]]:
    """Return by severity the names that set the strictest bound on one side.

    A bound of a lower severity counts only if it is stricter than those of higher ones.
    """
    of = others[0].package
    declared = SpecifierSet(needs.declared.get(of, ""))
    admitted = [index for index, other in enumerate(others) if declared.contains(other.version)]
    candidates = _newest_at_upload(release, others, admitted)
    limits: dict[str, list[Limit]] = {}
    for name in needs.names:
        if name.of != of or (is_floor and name.if_present):
            continue  # what asks whether the package is there may ask for its version too
        found = states[name.path, name.argument]
        limit = _limit(name, found, others, is_floor)
        if limit is None or not any(_may_have(found[index]) for index in candidates):
            continue
        is_admitted = any((others[index].version < limit.bound) is is_floor for index in admitted)
        if not is_admitted or not confirmation.is_needed(release, name):
            continue
        lacking = next(other for other in others if other.version == limit.lacks)
        if name.argument or confirmation.is_missing(lacking, name.path):
            limits.setdefault(name.severity, []).append(limit)
    strictest: dict[str, list[Limit]] = {}
    known: list[Version] = []
    pick = max if is_floor else min
    for severity in SEVERITIES:
        bounds = [limit.bound for limit in limits.get(severity, ())]
        if bounds and pick(*bounds, *known, bounds[0]) not in known:
            known = [pick(bounds)]
            strictest[severity] = [limit for limit in limits[severity] if limit.bound == known[0]]
    return strictest


def _limit(
    name: NeededName, states: Sequence[Located], others: Sequence[Release], is_floor: bool
) -> Limit | None:
    floor, ceiling = states_of(tuple(item.state for item in states))
    if is_floor and floor is not None:
        if not states[floor].file:
            return None  # what listed it first may not be what defined it first
        bound = others[floor].version
        return Limit(f">={bound}", bound, name, states[floor], bound, others[floor - 1].version)
    if not is_floor and ceiling is not None:
        bound = others[ceiling].version
        has, at = states[ceiling - 1], others[ceiling - 1].version
        return Limit(f"<{bound}", bound, name, has, at, bound)
    return None


def _newest_at_upload(
    release: Release, others: Sequence[Release], admitted: Sequence[int]
) -> list[int]:
    """Return the newest other releases at the day of the upload, and those shortly after it.

    A release that did not work with any of them was misread, or asks for their version in a way
    that was not recognized.
    """
    day = datetime.date.fromisoformat(release.uploaded)
    until = (day + datetime.timedelta(days=_AHEAD)).isoformat()
    before = [index for index in admitted if others[index].uploaded <= release.uploaded]
    ahead = [
        index for index, other in enumerate(others) if release.uploaded < other.uploaded <= until
    ]
    return [*before[-1:], *ahead]


def _may_have(located: Located) -> bool:
    return located.state in (State.PRESENT, State.UNDECIDED)


def describe(windows: Iterable[Window]) -> Iterator[str]:
    """Yield a line for each window, for people."""
    for window in windows:
        last = "" if window.is_newest else str(window.last)
        name = min((limit.name for limit in window.limits), key=lambda name: len(name.path))
        argument = f"({name.argument}=)" if name.argument else ""
        yield (
            f"{window.severity:8}{window.package} {window.first}..{last} needs "
            f"{window.of}{window.specifier}: {name.path}{argument} at {name.file}:{name.line}"
            f" (+{len(window.limits) - 1})"
        )
