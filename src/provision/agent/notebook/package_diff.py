"""The changes that a lock makes: packages kept, changed and added, and the kernel's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..core.installed_packages import InstalledPackage, find_flaw
from ..core.versions import is_same_version


@dataclass(frozen=True, slots=True)
class PackageDiff:
    """Comparison of installed packages with a lock.

    `changed` maps a name to installed and locked version, `damaged` to what is wrong with its
    files.
    """

    kept: tuple[str, ...]
    changed: dict[str, tuple[str, str]]
    damaged: dict[str, str]
    added: tuple[str, ...]
    other_count: int

    @property
    def to_install(self) -> tuple[str, ...]:
        """The packages that something has to be done about."""
        return tuple(sorted([*self.changed, *self.damaged, *self.added]))

    @property
    def summary(self) -> str:
        """As one line for a person."""
        parts = [
            f"{len(self.kept)} kept",
            f"{len(self.changed)} changed",
            f"{len(self.added)} added",
        ]
        parts += [f"{len(self.damaged)} damaged"] if self.damaged else []
        return ", ".join(parts) + f"; {self.other_count} others stay as they are"


def compare_packages(
    wanted: Mapping[str, str], there: Mapping[str, InstalledPackage], unfit: Collection[str] = ()
) -> PackageDiff:
    """Compare locked packages with installed ones; the RECORDs of `unfit` packages are not used.

    The installer noted those as wrong from the start.
    """
    same = {
        name
        for name, version in wanted.items()
        if name in there and is_same_version(there[name].version, version)
    }
    damaged = {
        name: flaw
        for name in sorted(same)
        if name not in unfit and (flaw := find_flaw(there[name]))
    }
    changed = {
        name: (there[name].version, version)
        for name, version in sorted(wanted.items())
        if name in there and name not in same
    }
    added = tuple(sorted(name for name in wanted if name not in there))
    return PackageDiff(
        tuple(sorted(same - damaged.keys())),
        changed,
        damaged,
        added,
        len(there.keys() - wanted.keys()),
    )


def find_protected_changes(comparison: PackageDiff, protected: Collection[str]) -> list[str]:
    """Return the changes of packages that the kernel lives on, each as a short text."""
    return [
        f"{name} {old} -> {new}"
        for name, (old, new) in comparison.changed.items()
        if name in protected
    ]


def find_unpredicted_changes(comparison: PackageDiff, predicted: Mapping[str, str]) -> list[str]:
    """Return changes that the catalogue did not predict, and predicted ones that do not occur."""
    more = [
        f"{name} {old} -> {new}"
        for name, (old, new) in comparison.changed.items()
        if name not in predicted
    ]
    fewer = [f"{name} is there as locked" for name in sorted(predicted) if name in comparison.kept]
    return more + fewer
