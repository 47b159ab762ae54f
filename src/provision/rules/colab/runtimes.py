"""The runtimes of Colab targets, and the packages of a runtime that a spec replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provision.diagnostics import Edit, Fix, Insert, RelatedLocation, Route
from provision.facts import Card
from provision.facts.schema_platforms import ColabRuntime, ProtectedPackage
from provision.facts.versions import implies, parse_version, require_version
from provision.kinds.base import TargetFacts
from provision.rules.edits import replace_fix, set_field_edit, unsafe_fix, yaml_scalar
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import LintContext, ResolvedSet, related_at
from provision.spec import ColabTarget, Package


class BaseRuntime(NamedTuple):
    """A runtime that a spec is installed on top of, and the versions of its packages by name."""

    target: TargetFacts
    packages: Mapping[str, str]

    @property
    def related(self) -> tuple[RelatedLocation, ...]:
        """The second location of a finding about its packages."""
        return related_at(self.target.route, "installed on top of this runtime's packages")


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


def base_runtimes(context: LintContext) -> Iterator[BaseRuntime]:
    """Yield the runtimes with the spec's Python that it, or the resolved set, is installed on."""
    for target, _ in context.targets_of(ColabTarget):
        runtime = target.runtime
        packages = target.kind.preinstalled(target)
        if packages is None or runtime is None or runtime.minor != context.spec.python:
            continue
        if _is_set_for_device(context.resolved, target.gpu_settings.flavour):
            yield BaseRuntime(target, packages)


def replaced_packages(
    context: LintContext, system: BaseRuntime, names: Iterable[str]
) -> Iterator[PackageReplacement]:
    """Yield the packages that are certain to be replaced, of those with a known version."""
    for name in names:
        installed = parse_version(system.packages.get(name, ""))
        if installed is None:
            continue
        change = _replacement(context, name, Version(installed.public))
        if change is not None:
            yield change


def request_fix(context: LintContext, *changes: PackageReplacement, specifiers: str = "") -> Fix:
    """Return the fix that requests versions of replaced packages, by default the runtime's own."""
    title = []
    edits: list[Edit] = []
    for change in changes:
        version = specifiers or f"=={change.installed}"
        title.append(f"{change.package}{version}")
        if change.line:
            edits.append(set_version_edit(context, change.route, change.line, version))
        else:
            edits.append(Insert(("packages",), None, yaml_scalar(title[-1])))
    return unsafe_fix(f"use {', '.join(title)}", *edits)


def set_runtime_fix(context: LintContext, target: TargetFacts, runtime: str) -> Fix:
    """Return the fix that sets the runtime version of a target."""
    edit = set_field_edit(context, target.route_to("runtime"), f'"{runtime}"')
    return unsafe_fix(f'set `runtime: "{runtime}"`', edit)


def set_gpu_fix(context: LintContext, target: TargetFacts, card: str) -> Fix | None:
    """Return the fix that sets the GPU of a target; None if its `gpu` is written as a mapping."""
    route = target.route_to("gpu")
    title = f"set `gpu: {card}`"
    if target.target.gpu is None:
        return unsafe_fix(title, Insert(target.route, "gpu", card))
    if context.source.text(route) is None:
        return None
    return replace_fix(title, route, card)


def gpu_location(target: TargetFacts) -> Route:
    """Return the route of the `gpu` of a target, or of the target if it uses the spec's."""
    return target.route_to("gpu") if target.target.gpu else target.route


def kernel_replacements(
    context: LintContext, *, is_fatal: bool
) -> Iterator[tuple[BaseRuntime, PackageReplacement, ProtectedPackage]]:
    """Yield the replaced packages that Colab's kernel imports when it starts.

    Args:
        context: the spec and the facts.
        is_fatal: True for those that keep the kernel from starting, False for the others.
    """
    rows = context.facts.protected.values()
    for system in base_runtimes(context):
        for row in rows:
            if row.kills if is_fatal else row.critical:
                for change in replaced_packages(context, system, (row.package,)):
                    if breaks_kernel(change, row) == is_fatal:
                        yield system, change, row


def route_of_line(changes: Sequence[PackageReplacement]) -> Route:
    """Return the first line that replaces a package, or `packages` if only dependencies do."""
    return next((change.route for change in changes if change.line), changes[0].route)


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
    offered = sorted(
        (candidate for candidate in context.facts.cards if candidate.colab),
        key=lambda candidate: candidate.memory_gb,
    )
    for candidate in offered:
        if card is None or (
            candidate.memory_gb >= card.memory_gb
            and require_version(candidate.cc) >= require_version(card.cc)
        ):
            return candidate
    return offered[-1]


def _is_set_for_device(resolved: ResolvedSet | None, flavour: str | None) -> bool:
    """Return whether a resolved set is that of a device; a set without torch is for all devices."""
    if resolved is None or resolved.flavour is None:
        return True
    if flavour is None:  # the choice is open, so the device has a card
        return resolved.flavour != "cpu"
    return resolved.flavour == flavour


def _replacement(context: LintContext, name: str, installed: Version) -> PackageReplacement | None:
    route, line = find_line(context, name) or (("packages",), None)
    if context.resolved is not None:
        text = context.resolved.versions.get(name, "")
        version = parse_version(text)
        if version is None or Version(version.public) == installed:
            return None
        return PackageReplacement(name, str(installed), f"{name} {text}", version, route, line)
    if line is None or line.marker or line.source == "conda":
        return None
    specifiers = version_specifiers(line)
    if specifiers is None or specifiers.contains(installed, prereleases=True):
        return None
    exact = [clause.version for clause in specifiers if clause.operator == "=="]
    version = parse_version(exact[0]) if exact else None
    return PackageReplacement(name, str(installed), f"{name}{line.version}", version, route, line)
