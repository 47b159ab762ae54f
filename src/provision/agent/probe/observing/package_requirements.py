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
    winners = active_distributions(inventory(context))
    unmet: set[str] = set()
    unread: set[str] = set()
    of_others: set[str] = set()
    above: dict[str, set[str]] = {}
    active = _active_requirements(winners, marker_environment())
    judged = [
        (
            dist,
            requirement,
            *(
                (False, f"{dist.name}: {problem}")
                if requirement is None
                else _judged(dist, requirement, winners.get(requirement.name))
            ),
        )
        for dist, requirement, problem in active
    ]
    judged += [(dist, None, *_judged_python(dist)) for dist in winners.values() if dist.python]
    for dist, requirement, wrong, text in judged:
        if requirement is not None and (
            requirement.name in context.expected.packages
            and (
                requirement.name not in winners
                or winners[requirement.name].version != context.expected.packages[requirement.name]
            )
        ):
            above.setdefault(requirement.name, set()).add(dist.name)
        if context.expected.shared and dist.name not in context.expected.packages:
            of_others.update([text] if wrong else [])
        elif text:
            (unmet if wrong else unread).add(text)
    others = (
        {"packages.unmet_unlocked": sorted(of_others)[:MAX_NAMED]}
        if context.expected.shared
        else {}
    )
    return {
        "packages.unmet": sorted(unmet)[:MAX_NAMED],
        "packages.unread": sorted(unread)[:MAX_NAMED],
        "_packages.required_by": {name: sorted(names)[:MAX_NAMED] for name, names in above.items()},
        **others,
    }


def _judged_python(dist: Distribution) -> tuple[bool, str]:
    """Return whether a package's Requires-Python excludes this Python, and a message."""
    try:
        fits = specifier_allows(dist.python, platform.python_version())
    except UnreadableVersion as error:
        return False, f"{dist.name}: {error}"
    return (
        (False, "")
        if fits
        else (
            True,
            (
                f"{dist.name} {dist.version} needs Python {dist.python}, this is "
                f"{platform.python_version()}"
            ),
        )
    )


def _judged(
    dist: Distribution, requirement: Requirement, installed: Distribution | None
) -> tuple[bool, str]:
    """Return whether a requirement is unmet, and what is wrong with it ("" for nothing)."""
    needs = f"{dist.name} {dist.version} needs {requirement.name}{requirement.specifier}"
    if installed is None:
        return True, f"{needs}, which is not installed"
    try:
        return (
            (False, "")
            if specifier_allows(requirement.specifier, installed.version)
            else (True, f"{needs}, installed is {installed.version}")
        )
    except UnreadableVersion as error:
        return False, f"{dist.name}: {error}"


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
