"""Comparison of installed packages with a lock, and changes of the kernel's own packages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..core.installed_packages import InstalledPackage, find_flaw, find_locked_packages


@dataclass(frozen=True, slots=True)
class PackageDiff:
    """Comparison of installed packages with a lock.

    `changed` maps a name to installed and locked version, `damaged` to the first difference of its
    files. `outdated` are packages of the project whose code has changed.
    """

    kept: tuple[str, ...]
    changed: dict[str, tuple[str, str]]
    damaged: dict[str, str]
    added: tuple[str, ...]
    other_count: int
    outdated: tuple[str, ...] = ()

    @property
    def to_install(self) -> tuple[str, ...]:
        """The packages to install, change or repair."""
        return tuple(sorted([*self.changed, *self.damaged, *self.added, *self.outdated]))

    @property
    def change_texts(self) -> dict[str, str]:
        """The changes by package, each as a short text."""
        return {name: f"{name} {old} -> {new}" for name, (old, new) in self.changed.items()}

    @property
    def summary(self) -> str:
        """The counts on one line."""
        damaged = f", {len(self.damaged)} damaged" if self.damaged else ""
        outdated = f", {len(self.outdated)} with changed code" if self.outdated else ""
        return (
            f"{len(self.kept)} kept, {len(self.changed)} changed, {len(self.added)} added"
            f"{damaged}{outdated}; {self.other_count} not in the lock"
        )


def compare_packages(
    locked: Mapping[str, str],
    installed: Mapping[str, InstalledPackage],
    wrong_records: Collection[str] = (),
    outdated: Collection[str] = (),
) -> PackageDiff:
    """Compare locked packages with installed ones.

    The files of `wrong_records` are not compared: the installer found their RECORDs wrong.
    `outdated` are packages whose files are not those of the project's own wheels.
    """
    same = find_locked_packages(locked, installed)
    edited = tuple(sorted(same.keys() & set(outdated)))
    damaged = {
        name: flaw
        for name, package in sorted(same.items())
        if name not in (*wrong_records, *edited) and (flaw := find_flaw(package))
    }
    changed = {
        name: (installed[name].version, version)
        for name, version in sorted(locked.items())
        if name in installed and name not in same
    }
    return PackageDiff(
        kept=tuple(sorted(same.keys() - damaged.keys() - set(edited))),
        changed=changed,
        damaged=damaged,
        added=tuple(sorted(locked.keys() - installed.keys())),
        other_count=len(installed.keys() - locked.keys()),
        outdated=edited,
    )


def find_protected_changes(comparison: PackageDiff, protected: Collection[str]) -> list[str]:
    """Return the changes of packages that the kernel needs, each as a short text."""
    return [text for name, text in comparison.change_texts.items() if name in protected]


def find_unpredicted_changes(comparison: PackageDiff, predicted: Mapping[str, str]) -> list[str]:
    """Return changes that the lock did not predict, and predicted ones that do not occur."""
    more = [text for name, text in comparison.change_texts.items() if name not in predicted]
    unchanged = [name for name in sorted(predicted) if name in comparison.kept]
    return more + [f"{name} already has the locked version" for name in unchanged]
