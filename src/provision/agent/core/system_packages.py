"""Debian packages: the missing ones are found with dpkg and installed with apt-get."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .process import ProcessResult

APT_VARIABLES = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
_QUERY = ["dpkg-query", "--show", "--showformat=${binary:Package} ${db:Status-Status}\\n"]
_QUIET = ("--quiet", "--quiet")
# The lock's timeout is for a machine that has just started, which installs its own upgrades.
_OPTIONS = ("--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")
_INSTALL = ["apt-get", "install", *_QUIET, *_OPTIONS, "-o", "Dpkg::Use-Pty=0", "--"]


Run = Callable[[Sequence[str]], ProcessResult]
"""Runs a command line with enough rights; that of apt-get with `APT_VARIABLES`."""


def find_missing_packages(names: Sequence[str], run: Run) -> list[str]:
    """Return the packages that are not installed."""
    if not names:
        return []
    rows = (line.split() for line in run([*_QUERY, *names]).stdout.splitlines())
    # Names of packages for one architecture are printed with it: libc6:amd64.
    installed = {row[0].partition(":")[0] for row in rows if row[1:] == ["installed"]}
    return [name for name in names if name not in installed]


def install_packages(names: Sequence[str], run: Run) -> ProcessResult:
    """Install packages, if necessary with new package lists; return the last result."""
    install = [*_INSTALL, *names]
    result = run(install)
    if result.code == 0:
        return result
    # The package lists of an image are as old as the image, or absent. An index that cannot be
    # updated does not matter if the packages are in others.
    run(["apt-get", "update", *_QUIET])
    return run(install)
