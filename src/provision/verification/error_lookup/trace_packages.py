"""Packages in the paths of a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.verification.error_lookup.known_environment import KnownEnvironment
from provision.verification.error_lookup.missing_modules import (
    find_missing_package,
    is_known_package,
)

_INSTALLED_MODULE = re.compile(r"(?:site|dist)-packages[/\\](\w{1,80})(?=[/\\.])")
_TRACEBACK = "Traceback (most recent call last)"
_MAX_CHARACTERS = 20_000
"""Characters before an error that belong to its traceback at most."""
_MAX_PACKAGES = 4


def find_trace_packages(text: str, end: int, facts: Facts) -> tuple[str, ...]:
    """Return the known packages that the traceback before an offset went through, the last first.

    A module that belongs to no known package is left out.
    """
    start = max(text.rfind(_TRACEBACK, 0, end), end - _MAX_CHARACTERS, 0)
    modules = dict.fromkeys(reversed(_INSTALLED_MODULE.findall(text[start:end])))
    packages = dict.fromkeys(filter(None, (_package_of(name, facts) for name in modules)))
    return tuple(packages)[:_MAX_PACKAGES]


def explain_trace_packages(
    packages: Sequence[str], environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Yield the packages of a traceback, and the releases of them in each environment."""
    if not packages:
        return
    raised, *callers = packages
    sentence = f"raised in {raised}"
    if callers:
        sentence += f", called from {', '.join(callers)}"
    yield sentence
    for environment in environments:
        releases = [
            f"{name} {environment.packages[name]}"
            for name in packages
            if name in environment.packages
        ]
        if releases:
            yield f"{environment.source} has {', '.join(releases)}"


def _package_of(module: str, facts: Facts) -> str:
    package = find_missing_package(module, facts) or str(canonicalize_name(module))
    return package if is_known_package(package, facts) else ""
