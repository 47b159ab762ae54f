"""Colab targets, the packages of their runtimes, and those that a spec replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provision.diagnostics import Edit, Insert, RelatedLocation, Route
from provision.facts import Card
from provision.facts.schema_platforms import ColabRuntime, ProtectedPackage
from provision.facts.versions import implies, parse_version, require_version
from provision.kinds.base import TargetFacts
from provision.rules.edits import yaml_scalar
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import LintContext, related_at
from provision.spec import ColabTarget, Package


class ColabTargetFacts(NamedTuple):
    """A Colab target and its facts."""

    facts: TargetFacts
    target: ColabTarget

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.facts.name

    @property
    def runtime_route(self) -> Route:
        """The route of the runtime, written or not."""
        return (*self.facts.route, "runtime")


class BaseRuntime(NamedTuple):
    """A runtime that a spec is installed on top of, and the versions of its packages by name."""

    colab: ColabTargetFacts
    runtime: ColabRuntime
    packages: Mapping[str, str]

    @property
    def related(self) -> tuple[RelatedLocation, ...]:
        """The second location of a finding about its packages."""
        return related_at(self.colab.facts.route, "on top of this runtime's packages")


class PackageReplacement(NamedTuple):
    """A package of a runtime that a spec replaces.

    Attributes:
        package: the canonical name.
        installed: the version in the runtime.
        requested: the requirement that replaces it, as text.
        version: the new version; None if it is not certain.
        route: the route of the requirement.
        line: the package line; None for a dependency.
    """

    package: str
    installed: str
    requested: str
    version: Version | None
    route: Route
    line: Package | None


def colab_targets(context: LintContext) -> tuple[ColabTargetFacts, ...]:
    """Return the targets of kind colab."""
    return tuple(
        ColabTargetFacts(target, target.target)
        for target in context.targets
        if isinstance(target.target, ColabTarget)
    )


def base_runtimes(context: LintContext) -> Iterator[BaseRuntime]:
    """Yield the runtimes with the spec's Python that it, or the resolved set, is installed on."""
    for colab in colab_targets(context):
        runtime, flavour = colab.facts.runtime, colab.facts.gpu_settings.flavour
        packages = colab.facts.kind.preinstalled(colab.facts)
        if packages is None or runtime is None or runtime.minor != context.spec.python:
            continue
        if context.resolved is not None and not _is_set_for_device(
            context.resolved.flavour, flavour
        ):
            continue
        yield BaseRuntime(colab, runtime, packages)


def replaced_packages(
    context: LintContext, system: BaseRuntime, names: Iterable[str]
) -> Iterator[PackageReplacement]:
    """Yield the packages that are certain to be replaced, of those with a known version."""
    for name in names:
        installed = parse_version(system.packages.get(name, ""))
        if installed is None:
            continue
        public = Version(installed.public)
        if context.resolved is None:
            change = _replaced_by_line(context, name, public)
        else:
            version = context.resolved.versions.get(name)
            change = _replaced_by_resolved(context, name, public, version)
        if change is not None:
            yield change


def set_replaced_version_edit(
    context: LintContext, change: PackageReplacement, specifiers: str
) -> Edit:
    """Return the edit that requests other versions of a package, on its line or on a new one."""
    if change.line:
        return set_version_edit(context, change.route, change.line, specifiers)
    return Insert(("packages",), None, yaml_scalar(f"{change.package}{specifiers}"))


def breaks_kernel(change: PackageReplacement, row: ProtectedPackage) -> bool:
    """Return whether the new version is certain to keep Colab's kernel from starting."""
    if not row.kills.startswith((">", "<", "=")):
        return False
    incompatible = SpecifierSet(row.kills)
    if change.version is not None:
        return incompatible.contains(change.version, prereleases=True)
    return change.line is not None and implies(change.line.specifiers, incompatible)


def named_runtimes(context: LintContext) -> tuple[ColabRuntime, ...]:
    """Return the named runtime versions, oldest first."""
    return tuple(row for name, row in sorted(context.facts.runtimes.items()) if name != "latest")


def pinnable_runtimes(context: LintContext, python: str | None = None) -> tuple[ColabRuntime, ...]:
    """Return the named versions that are still offered, with a Python if given, oldest first."""
    return tuple(
        row
        for row in named_runtimes(context)
        if python in (None, row.minor) and runtime_end_date(context, row) > facts_date(context)
    )


def runtime_end_date(context: LintContext, runtime: ColabRuntime) -> date:
    """Return the day until which Colab probably offers a runtime version."""
    return add_months(
        date.fromisoformat(runtime.released),
        int(context.facts.conditions["runtime lifetime"].value),
    )


def facts_date(context: LintContext) -> date:
    """Return the date of the facts about Colab.

    Rules have no clock, so that an unchanged spec gets the same findings tomorrow.
    """
    return date.fromisoformat(context.facts.conditions["runtime lifetime"].evidence.as_of)


def add_months(day: date, months: int) -> date:
    """Return the day that many months later (the 28th at most)."""
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, min(day.day, 28))


def smallest_sufficient_card(context: LintContext, card: Card | None) -> Card:
    """Return the smallest card of Colab that is not weaker than `card`, or the largest one."""
    offered = [candidate for candidate in context.facts.cards if candidate.colab]
    fitting = offered
    if card is not None:
        memory_gb, capability = card.memory_gb, require_version(card.cc)
        fitting = [
            candidate
            for candidate in offered
            if candidate.memory_gb >= memory_gb and require_version(candidate.cc) >= capability
        ]
    if fitting:
        return min(fitting, key=lambda other: other.memory_gb)
    return max(offered, key=lambda other: other.memory_gb)


def _is_set_for_device(resolved: str | None, flavour: str | None) -> bool:
    """Return whether a resolved set is that of a device; a set without torch is for all devices."""
    if resolved is None:
        return True
    if flavour is None:  # the choice is open, so the device has a card
        return resolved != "cpu"
    return resolved == flavour


def _replaced_by_line(
    context: LintContext, name: str, installed: Version
) -> PackageReplacement | None:
    line = find_line(context, name)
    if line is None or line[1].marker or line[1].source == "conda":
        return None
    specifiers = version_specifiers(line[1])
    if specifiers is None or specifiers.contains(installed, prereleases=True):
        return None
    exact = [
        clause.version
        for clause in specifiers
        if clause.operator == "==" and not clause.version.endswith(".*")
    ]
    return PackageReplacement(
        name,
        str(installed),
        f"{name}{line[1].version}",
        parse_version(exact[0]) if exact else None,
        *line,
    )


def _replaced_by_resolved(
    context: LintContext, name: str, installed: Version, version: str | None
) -> PackageReplacement | None:
    resolved = parse_version(version or "")
    if resolved is None or Version(resolved.public) == installed:
        return None
    route, package = find_line(context, name) or (("packages",), None)
    return PackageReplacement(name, str(installed), f"{name} {version}", resolved, route, package)
