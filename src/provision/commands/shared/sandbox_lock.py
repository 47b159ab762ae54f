"""The lock next to a spec, whose versions a sandbox installs too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from provision.commands.shared.load import lock_path
from provision.commands.shared.lock_file import read_lock
from provision.lock import Lock, compute_text_digest

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import Reader

_SHOWN = 5
"""Packages whose versions a note names. Our choice."""


def read_declared_lock(loaded: LoadedSpec, reader: Reader) -> Lock | None:
    """Return the lock next to the spec of a sandbox; None without one, or outside of a sandbox.

    Raises:
        LockError: it is damaged or contradicts itself.
    """
    if loaded.sandbox_sources is None:
        return None
    return read_lock(loaded._replace(sandbox_sources=None), reader)


def describe_other_versions(loaded: LoadedSpec, lock: Lock, declared: Lock | None) -> str:
    """Return in which versions the lock of a sandbox differs from the one next to the spec.

    The result is "" if it does not, or if the spec has changed since the latter was made. Builds
    of one version, such as 2.11.0+cpu and 2.11.0+cu128, are the same.
    """
    data = loaded.source.data
    if declared is None or data is None or declared.text_digest != compute_text_digest(data):
        return ""
    versions: dict[str, set[str]] = {}
    for package in declared.packages:
        versions.setdefault(package.name, set()).add(Version(package.version).public)
    others = {}
    for package in lock.packages:
        known, version = versions.get(package.name), Version(package.version).public
        if known is not None and version not in known:
            others[package.name] = f"{package.name} {' and '.join(sorted(known))}, not {version}"
    listed = list(others.values())[:_SHOWN]
    more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"{lock_path(loaded.path)} has {'; '.join(listed)}{more}" if others else ""
