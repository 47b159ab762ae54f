"""Observes what installed packages require and do not find."""

from __future__ import annotations

import platform

from ...core.versions import UnreadableVersion, specifier_allows
from ..context import ObserverContext
from ..inventory import Distribution, active_distributions
from ..model import Readings
from ..requirements import Requirement, evaluate_marker, marker_environment, parse_requirement
from .installed_set import MAX_NAMED, inventory


def observe_requirements(context: ObserverContext) -> Readings:
    """Return unmet requirements; those of an image's other packages apart."""
    expected = context.expected
    winners = active_distributions(inventory(context))
    unmet: set[str] = set()
    unread: set[str] = set()
    of_others: set[str] = set()
    required_by: dict[str, set[str]] = {}

    def add(dist: Distribution, problem: str, is_unmet: bool) -> None:
        if not expected.shared or dist.name in expected.packages:
            (unmet if is_unmet else unread).add(problem)
        elif is_unmet:
            of_others.add(problem)

    for dist, requirement, problem in _active_requirements(winners, marker_environment()):
        if requirement is None:
            add(dist, f"{dist.name}: {problem}", is_unmet=False)
            continue
        name, installed = requirement.name, winners.get(requirement.name)
        locked = expected.packages.get(name)
        if locked is not None and (installed is None or installed.version != locked):
            required_by.setdefault(name, set()).add(dist.name)
        needs = f"{dist.name} {dist.version} needs {name}{requirement.specifier}"
        if installed is None:
            add(dist, f"{needs}, which is not installed", is_unmet=True)
            continue
        try:
            if not specifier_allows(requirement.specifier, installed.version):
                add(dist, f"{needs}, but {installed.version} is installed", is_unmet=True)
        except UnreadableVersion as error:
            add(dist, f"{dist.name}: {error}", is_unmet=False)
    python = platform.python_version()
    for dist in winners.values():
        needs = f"{dist.name} {dist.version} needs Python {dist.python}, but this is {python}"
        try:
            if dist.python and not specifier_allows(dist.python, python):
                add(dist, needs, is_unmet=True)
        except UnreadableVersion as error:
            add(dist, f"{dist.name}: {error}", is_unmet=False)
    readings: Readings = {
        "packages.unmet": sorted(unmet)[:MAX_NAMED],
        "packages.unread": sorted(unread)[:MAX_NAMED],
        "_packages.required_by": {
            name: sorted(names)[:MAX_NAMED] for name, names in required_by.items()
        },
    }
    if expected.shared:
        readings["packages.unmet_unlocked"] = sorted(of_others)[:MAX_NAMED]
    return readings


def _active_requirements(
    winners: dict[str, Distribution], environment: dict[str, str]
) -> list[tuple[Distribution, Requirement | None, str]]:
    """All requirements in force, with those of the extras that other requirements ask for."""
    pending = [(dist, "") for dist in winners.values()]
    known = {(dist.name, "") for dist, _ in pending}
    active: list[tuple[Distribution, Requirement | None, str]] = []
    while pending:
        dist, extra = pending.pop()
        for line in dist.requires:
            try:
                requirement = parse_requirement(line)
                holds = evaluate_marker(requirement.marker, environment, extra) and (
                    not extra or not evaluate_marker(requirement.marker, environment)
                )
            except UnreadableVersion as error:
                active.append((dist, None, str(error)))
                continue
            if holds:
                active.append((dist, requirement, ""))
                target = winners.get(requirement.name)
                fresh = [
                    (target, name)
                    for name in requirement.extras
                    if target is not None and (target.name, name) not in known
                ]
                pending += [(dist, name) for dist, name in fresh if dist is not None]
                known |= {(requirement.name, name) for _, name in fresh}
    return active
