"""Combines the lines of a package from several files into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from provision.facts.versions import has_version_in_range
from provision.imports.conda_names import list_names
from provision.imports.model import Conflict, ImportedPackage, Leftover

_ORDER = ("===", "==", "~=", ">=", ">", "!=", "<=", "<")
"""Operators in the order in which people write them: >=1,<2."""


class MergedPackages(NamedTuple):
    """One package per name and marker, the contradictions, and the lines that limit nothing."""

    packages: tuple[ImportedPackage, ...]
    conflicts: tuple[Conflict, ...]
    leftovers: tuple[Leftover, ...]


class _Line(NamedTuple):
    package: ImportedPackage
    requirement: Requirement

    @property
    def marker(self) -> str:
        """The marker with single quotes, which need no escapes in YAML."""
        text = str(self.requirement.marker or "")
        return text if "'" in text else text.replace('"', "'")


def merge_packages(
    chosen: Iterable[ImportedPackage], limits: Iterable[ImportedPackage]
) -> MergedPackages:
    """Return one package per name and marker.

    Args:
        chosen: The packages of the spec.
        limits: Constraints, and versions of a resolved set: they count only for chosen packages.
    """
    groups: dict[tuple[str, str], list[_Line]] = {}
    leftovers: list[Leftover] = []
    for package in chosen:
        line = _parse(package, leftovers)
        if line is not None:
            groups.setdefault((package.name, line.marker), []).append(line)
    unused = _apply_limits(groups, limits, leftovers)
    conflicts: list[Conflict] = []
    merged = tuple(_combine(lines, conflicts) for lines in groups.values())
    constraints = [package for package in unused if package.is_constraint]
    if constraints:
        leftovers.append(
            Leftover(
                constraints[0].span,
                f"{list_names(constraints)}: these constraints were left out",
                "a spec can limit only the packages it lists",
                "add a package to `packages` to keep its limit",
            )
        )
    return MergedPackages(merged, tuple(conflicts), tuple(leftovers))


def _parse(package: ImportedPackage, leftovers: list[Leftover]) -> _Line | None:
    try:
        return _Line(package, Requirement(package.requirement))
    except InvalidRequirement as error:
        why = str(error).splitlines()[0]
        message = f"{package.requirement} was left out"
        leftovers.append(Leftover(package.span, message, why, "write it as NAME==VERSION"))
        return None


def _apply_limits(
    groups: dict[tuple[str, str], list[_Line]],
    limits: Iterable[ImportedPackage],
    leftovers: list[Leftover],
) -> list[ImportedPackage]:
    """Add limits to the lines that they concern; return those that concern none.

    A limit with a marker of its own is a line of its own, which narrows the other lines.
    """
    markers: dict[str, list[str]] = {}
    for name, marker in groups:
        markers.setdefault(name, []).append(marker)
    unused = []
    for package in limits:
        if package.name not in markers:
            unused.append(package)
            continue
        line = _parse(package, leftovers)
        if line is None:
            continue
        for marker in [line.marker] if line.marker else markers[package.name]:
            groups.setdefault((package.name, marker), []).append(line)
    return unused


def _combine(lines: list[_Line], conflicts: list[Conflict]) -> ImportedPackage:
    """Return the lines of one name and marker as one package, at the line of its version.

    A path or a repository counts more than versions.
    """
    sources = [line for line in lines if line.package.source]
    first = sources[0] if sources else lines[0]
    for line in sources[1:]:
        if line.package.source != first.package.source:
            message = f"{first.package.name} comes from two paths or repositories"
            conflicts.append(Conflict(message, first.package.span, line.package.span))
    index = None if sources else first.package.index
    for line in () if sources else lines[1:]:
        if index is None:
            index = line.package.index
        elif line.package.index not in (None, index) and not line.package.is_constraint:
            conflicts.append(
                Conflict(
                    f"{first.package.name} comes from the index {index} and from the index "
                    f"{line.package.index}",
                    first.package.span,
                    line.package.span,
                )
            )
    extras = {extra for line in lines for extra in line.requirement.extras}
    shown_extras = f"[{','.join(sorted(extras))}]" if extras else ""
    shown_marker = f"; {first.marker}" if first.marker else ""
    specifiers = "" if sources else _join_specifiers(lines, conflicts)
    requirement = f"{first.package.name}{shown_extras}{specifiers}"
    pin = None if sources else _find_pin(lines)
    return first.package._replace(
        requirement=f"{requirement}{shown_marker}",
        span=pin[0].package.span if pin else first.package.span,
        index=index,
    )


def _find_pin(lines: list[_Line]) -> tuple[_Line, Specifier] | None:
    """Return the first exact version and its line."""
    for line in lines:
        for specifier in line.requirement.specifier:
            if specifier.operator in ("==", "===") and not specifier.version.endswith(".*"):
                return line, specifier
    return None


def _join_specifiers(lines: list[_Line], conflicts: list[Conflict]) -> str:
    """Return the specifiers of all lines: an exact version alone, else each bound once.

    Of several floors the highest counts. A line that excludes what the lines before it require is
    a conflict and does not count.
    """
    pin = _find_pin(lines)
    if pin is not None:
        conflicts += [
            _contradiction(pin[0], line)
            for line in lines
            if not _admits(line.requirement.specifier, pin[1].version)
        ]
        return str(pin[1])
    combined = SpecifierSet()
    last = lines[0]
    for line in lines:
        if has_version_in_range(combined & line.requirement.specifier, "0"):
            combined &= line.requirement.specifier
            last = line
        else:
            conflicts.append(_contradiction(last, line))
    floors = [clause for clause in combined if clause.operator == ">="]
    highest = max(floors, key=lambda clause: Version(clause.version), default=None)
    clauses = {clause for clause in combined if clause.operator != ">=" or clause == highest}
    ordered = sorted(clauses, key=lambda clause: (_ORDER.index(clause.operator), clause.version))
    return ",".join(map(str, ordered))


def _admits(specifiers: SpecifierSet, version: str) -> bool:
    try:
        return specifiers.contains(Version(version), prereleases=True)
    except ValueError:
        return str(specifiers) == f"==={version}"


def _contradiction(kept: _Line, other: _Line) -> Conflict:
    name = kept.package.name
    return Conflict(
        f"{name}{kept.requirement.specifier} and {name}{other.requirement.specifier} "
        "exclude each other",
        kept.package.span,
        other.package.span,
    )
