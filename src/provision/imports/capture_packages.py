"""Packages of a capture: those that a person chose, and those that an index cannot have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from provision.diagnostics import Span
from provision.imports.quoting import quote_text

_SHOWN_NAMES = 8
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_UNLOCKABLE = {
    "editable": "it was installed in editable mode",
    "vcs": "it was installed from a repository",
    "file": "it was installed from a file on that machine",
    "url": "it was installed from a URL",
}


class CapturedPackage(NamedTuple):
    """A package of a capture.

    Args:
        name: Canonical name.
        version: Version with the local part, such as "2.6.0+cu124".
        origin: Its installer or kind of source, as in the capture.
        is_requested: True if pip recorded that a person named it.
        requires: Canonical names of the installed packages that it requires.
        span: Its version in the capture.
    """

    name: str
    version: str
    origin: str
    is_requested: bool
    requires: tuple[str, ...]
    span: Span

    @property
    def unlockable_reason(self) -> str:
        """Why a spec cannot contain it; "" if it can."""
        if reason := _UNLOCKABLE.get(self.origin):
            return reason
        if not _NAME.fullmatch(self.name):
            return "it has no valid name"
        try:
            Version(self.version)
        except InvalidVersion:
            return "its version is not valid for a Python package"
        return ""

    def is_held_by(self, packages: Mapping[str, str]) -> bool:
        """Return whether packages by name ("?": unknown version) contain it in this version."""
        version = packages.get(self.name, "")
        return version in ("?", self.version) or version.partition("+")[0] == self.version


def shorten_names(packages: Collection[CapturedPackage]) -> str:
    """Return the names of packages, the first ones of many, for a message."""
    names = sorted(quote_text(package.name) for package in packages)
    shown = ", ".join(names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES} more"


def find_roots(installed: Mapping[str, CapturedPackage]) -> frozenset[str]:
    """Return the packages that a person named or that no other package requires.

    Of packages that only require one another, the first by name is taken.
    """
    requires = {
        name: {other for other in package.requires if other in installed and other != name}
        for name, package in installed.items()
    }
    required = set().union(*requires.values())
    roots = {
        name for name, package in installed.items() if package.is_requested or name not in required
    }
    reached = _reachable(roots, requires)
    left = {name: _reachable([name], requires) for name in sorted(installed.keys() - reached)}
    for name, below in left.items():
        above = {other for other, reach in left.items() if name in reach}
        if name not in reached and above <= below:
            roots.add(name)
            reached |= below
    return frozenset(roots)


def _reachable(names: Iterable[str], requires: Mapping[str, Collection[str]]) -> set[str]:
    """Return packages with all that they require."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += requires[name]
    return reached
