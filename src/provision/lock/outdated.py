"""What of a lock is withdrawn, near its end, behind or known to be vulnerable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from provision.facts import Facts
from provision.facts.schema_platforms import split_image_name
from provision.lock.index_comparison import IndexComparison, Listings
from provision.lock.model import Lock, LockedPackage
from provision.lock.wheels import parse_file_name
from provision.spec import Spec

_SOON = timedelta(days=90)
"""Our choice: time to move an environment."""


class OutdatedKind(StrEnum):
    """A reason to renew something of a lock."""

    WITHDRAWN = "withdrawn"
    ENDING = "end of support"
    PATCH = "newer patch release"
    VULNERABLE = "known vulnerability"


class OutdatedItem(NamedTuple):
    """One thing to renew: its name with version, what is known about it, and the fix."""

    kind: OutdatedKind
    name: str
    what: str
    help: str = ""


def list_withdrawn(comparison: IndexComparison) -> Iterator[OutdatedItem]:
    """Yield the locked files that were yanked, and those that an index no longer lists."""
    seen = set()
    for note in (*comparison.yanked, *comparison.mismatches):
        item = OutdatedItem(
            OutdatedKind.WITHDRAWN, f"{note.package} {note.version}", note.what, note.help
        )
        if item not in seen:
            seen.add(item)
            yield item


def list_ending(spec: Spec, facts: Facts, today: date) -> Iterator[OutdatedItem]:
    """Yield the Python and the images that end within 90 days, or have ended."""
    ends = {row.version: row for row in facts.pythons}
    row = ends.get(spec.python)
    if row is not None and _ends_soon(row.end_of_life, today):
        text = f"no security fixes after {row.end_of_life} ({row.evidence.source})"
        yield OutdatedItem(
            OutdatedKind.ENDING, f"python {spec.python}", text, "set a newer version for `python`"
        )
    for name, target in spec.targets.items():
        written = getattr(target, "image", None) or ""
        image = facts.images.get(split_image_name(written)[0])
        if image is not None and _ends_soon(image.end_of_support, today):
            text = f"not supported after {image.end_of_support} ({image.evidence.source})"
            title = f"image {written} of {name}"
            yield OutdatedItem(OutdatedKind.ENDING, title, text, "set a newer image for `image`")


def list_patches(lock: Lock, spec: Spec, listings: Listings) -> Iterator[OutdatedItem]:
    """Yield newer releases with the same first two numbers that the spec admits."""
    for package in dict.fromkeys(lock.from_indexes):
        newest = _newest_patch(package, spec, listings)
        if newest is not None:
            name = f"{package.name} {package.version}"
            help_text = f"`provision lock --upgrade {package.name}`"
            yield OutdatedItem(OutdatedKind.PATCH, name, f"{newest} is listed", help_text)


def list_vulnerable(
    found: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[OutdatedItem]:
    """Yield the packages with known vulnerabilities."""
    for (name, version), ids in found.items():
        if ids:
            yield OutdatedItem(OutdatedKind.VULNERABLE, f"{name} {version}", ", ".join(ids))


def public_versions(lock: Lock) -> tuple[tuple[str, str], ...]:
    """Return the packages with versions as the public index has them, without +cpu or +cu128."""
    pairs = ((package.name, package.version.partition("+")[0]) for package in lock.from_indexes)
    return tuple(dict.fromkeys(pairs))


def _ends_soon(month: str, today: date) -> bool:
    """Return whether a month such as 2027-10, or a day, ends within 90 days; False for ""."""
    if not month:
        return False
    year, number, *day = map(int, month.split("-"))
    if day:
        return date(year, number, day[0]) < today + _SOON
    first_after = date(year + number // 12, number % 12 + 1, 1)
    return first_after <= today + _SOON


def _newest_patch(package: LockedPackage, spec: Spec, listings: Listings) -> Version | None:
    try:
        locked = Version(package.version)
    except InvalidVersion:
        return None
    declared = spec.package(package.name)
    newest = locked
    for file in listings.get((package.name, package.index)) or ():
        parsed = parse_file_name(file.name)
        if parsed is None or file.yanked is not None or not file.name.endswith(".whl"):
            continue
        version = parsed[1]
        is_patch = (
            version > newest
            and version.release[:2] == locked.release[:2]
            and version.local == locked.local
            and not version.is_prerelease
        )
        if is_patch and (declared is None or declared.specifiers.contains(version)):
            newest = version
    return newest if newest > locked else None
