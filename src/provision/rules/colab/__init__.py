"""What rules about Colab share: the targets, what a runtime already holds, and which of it a spec
or a resolved set changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provision.diagnostics import Route
from provision.facts import Card
from provision.facts.schema_platforms import ColabRuntime, ProtectedPackage
from provision.facts.versions import implies, parse_version, require_version
from provision.kinds import kind_of
from provision.rules.package_lines import find_line, version_specifiers
from provision.rules.rule import LintContext
from provision.spec import ColabTarget, Package
from provision.target_facts import TargetFacts


class ColabTargetFacts(NamedTuple):
    """A Colab target with what is known of its runtime, None for an unknown one."""

    site: TargetFacts
    target: ColabTarget

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.site.name

    @property
    def runtime_route(self) -> Route:
        """Where the runtime is written, or would be."""
        return (*self.site.route, "runtime")


class BaseRuntime(NamedTuple):
    """A runtime on top of whose own packages a spec is installed, and these packages: canonical
    name to version.
    """

    colab: ColabTargetFacts
    runtime: ColabRuntime
    packages: Mapping[str, str]


class PackageReplacement(NamedTuple):
    """A package of a runtime that is replaced: the version there, what takes its place in words,
    the version where it is known, and where that is asked for.
    """

    package: str
    installed: str
    requested: str
    version: Version | None
    route: Route
    line: Package | None


def colab_targets(case: LintContext) -> tuple[ColabTargetFacts, ...]:
    """Return the targets of kind colab."""
    return tuple(
        ColabTargetFacts(site, site.target)
        for site in case.targets
        if isinstance(site.target, ColabTarget)
    )


def base_runtimes(case: LintContext) -> Iterator[BaseRuntime]:
    """Yield the runtimes that a spec, or the resolved set that is asked about, is installed on top
    of.

    One whose Python is another than the spec's is left out: nothing can be said of packages there.
    """
    for colab in colab_targets(case):
        runtime, flavour = colab.site.runtime, colab.site.gpu_settings.flavour
        held = kind_of(colab.target).preinstalled(colab.site)
        if held is None or runtime is None or runtime.minor != case.spec.python:
            continue
        if case.resolved is not None and not _serves(case.resolved.flavour, flavour):
            continue
        yield BaseRuntime(colab, runtime, held)


def replaced_packages(
    case: LintContext, system: BaseRuntime, names: Iterable[str]
) -> Iterator[PackageReplacement]:
    """Yield those of the packages that are replaced for sure, among those the runtime holds in a
    known version.
    """
    for name in names:
        held = parse_version(system.packages.get(name, ""))
        if held is None:
            continue
        public = Version(held.public)
        change = (
            _asked(case, name, public)
            if case.resolved is None
            else _resolved(case, name, public, case.resolved.versions.get(name))
        )
        if change is not None:
            yield change


def breaks_kernel(change: PackageReplacement, row: ProtectedPackage) -> bool:
    """Tell whether what takes the place of a package is certain to keep Colab's kernel from
    starting.
    """
    if not row.kills.startswith((">", "<", "=")):
        return False
    deadly = SpecifierSet(row.kills)
    if change.version is not None:
        return deadly.contains(change.version, prereleases=True)
    return change.line is not None and implies(change.line.specifiers, deadly)


def named_runtimes(case: LintContext) -> tuple[ColabRuntime, ...]:
    """Return the runtime versions that Colab has named, oldest first."""
    return tuple(row for name, row in sorted(case.facts.runtimes.items()) if name != "latest")


def pinnable_runtimes(case: LintContext, python: str | None = None) -> tuple[ColabRuntime, ...]:
    """Return the named versions that are still offered, as far as the facts know, oldest first;
    those with that Python only, where one is given.
    """
    return tuple(
        row
        for row in named_runtimes(case)
        if python in (None, row.minor) and runtime_end_date(case, row) > facts_date(case)
    )


def runtime_end_date(case: LintContext, runtime: ColabRuntime) -> date:
    """Return the day until which Colab offers a runtime version, about."""
    return add_months(
        date.fromisoformat(runtime.released), int(case.facts.conditions["runtime lifetime"].value)
    )


def facts_date(case: LintContext) -> date:
    """Return the day of the facts about Colab: rules have no clock, so that an unchanged spec is
    judged the same tomorrow.
    """
    return date.fromisoformat(case.facts.conditions["runtime lifetime"].evidence.as_of)


def add_months(day: date, months: int) -> date:
    """Return the day that many months later (the 28th at most)."""
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, min(day.day, 28))


def smallest_sufficient_card(case: LintContext, card: Card | None) -> Card:
    """Return the smallest card that Colab offers and that is no weaker than `card`, or the largest
    there is.
    """
    offered = [other for other in case.facts.cards if other.colab]
    fitting = [
        other
        for other in offered
        if card is None
        or (
            other.memory_gb >= card.memory_gb
            and require_version(other.cc) >= require_version(card.cc)
        )
    ]
    return (
        min(fitting, key=lambda other: other.memory_gb)
        if fitting
        else max(offered, key=lambda other: other.memory_gb)
    )


def _serves(resolved: str | None, flavour: str | None) -> bool:
    """Tell whether a set of one flavour is that of a device; a set without torch is everyone's, and
    a device that leaves the choice open has a card.
    """
    return resolved is None or (resolved == flavour if flavour is not None else resolved != "cpu")


def _asked(case: LintContext, name: str, held: Version) -> PackageReplacement | None:
    asked = find_line(case, name)
    if asked is None or asked[1].marker or asked[1].source == "conda":
        return None
    specifiers = version_specifiers(asked[1])
    if specifiers is None or specifiers.contains(held, prereleases=True):
        return None
    exact = [
        clause.version
        for clause in specifiers
        if clause.operator == "==" and not clause.version.endswith(".*")
    ]
    return PackageReplacement(
        name,
        str(held),
        f"{name}{asked[1].version}",
        parse_version(exact[0]) if exact else None,
        *asked,
    )


def _resolved(
    case: LintContext, name: str, held: Version, version: str | None
) -> PackageReplacement | None:
    wanted = parse_version(version or "")
    if wanted is None or Version(wanted.public) == held:
        return None
    route, package = find_line(case, name) or (("packages",), None)
    return PackageReplacement(name, str(held), f"{name} {version}", wanted, route, package)
