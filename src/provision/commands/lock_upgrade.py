"""Packages of a lock to choose anew, and the lock without them, which keeps the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from packaging.utils import InvalidName, canonicalize_name

from provision.commands.shared.load import LoadedSpec
from provision.errors import UsageError
from provision.lock import Lock
from provision.spelling import nearest_words

CODE = "code"
"""The name by which the commit of the code is chosen anew, if it is from a repository."""


def canonical_upgrade_names(
    names: Iterable[str], loaded: LoadedSpec, old: Lock | None
) -> frozenset[str]:
    """Return canonical names; raise UsageError for a name in neither the spec nor the lock."""
    known = {package.key for package in loaded.spec.packages}
    if loaded.spec.code is not None and loaded.spec.code.git is not None:
        known.add(CODE)
    if old is not None:
        known.update(package.name for package in old.packages)
        known.update(package.record.name for package in old.conda)
    return frozenset(_canonical_name(name, known) for name in names)


def remove_packages(lock: Lock, names: frozenset[str], loaded: LoadedSpec) -> Lock:
    """Return the lock without these packages.

    The packages that are built for one torch go together: each requires an exact version of
    another, so a kept one would prevent the upgrade of the rest.
    """
    flavoured = loaded.facts.flavoured
    gone = names | (flavoured if names & flavoured else frozenset())
    return replace(
        lock,
        packages=tuple(package for package in lock.packages if package.name not in gone),
        conda=tuple(package for package in lock.conda if package.record.name not in gone),
    )


def _canonical_name(name: str, known: set[str]) -> str:
    try:
        canonical = str(canonicalize_name(name, validate=True))
    except InvalidName:
        raise UsageError(
            f"--upgrade {name}: not a valid package name",
            why="--upgrade accepts only names without versions; the spec sets the allowed versions",
        ) from None
    if canonical not in known:
        hint = (
            "use a package from the spec or its lock; --upgrade without a name upgrades all "
            "packages"
        )
        if near := nearest_words(canonical, sorted(known), most=1):
            hint = f"did you mean {near[0]}?"
        raise UsageError(
            f"--upgrade {name}: no such package",
            why="neither the spec nor its lock contains it",
            hint=hint,
        )
    return canonical
