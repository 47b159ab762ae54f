"""Debian packages of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from provision.adapters.process import capture


def missing_packages(
    names: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return the packages that are not installed, None without dpkg."""
    if shutil.which("dpkg-query") is None:
        return None
    return tuple(name for name in names if not _is_installed(name, environment))


def _is_installed(name: str, environment: Mapping[str, str]) -> bool:
    result = capture(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name], environment
    )
    return result.code == 0 and result.stdout == "installed"
