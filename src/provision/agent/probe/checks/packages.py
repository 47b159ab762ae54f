"""Checks of what is installed."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Tier

IMPORT_CAUSES = (
    "package.*",
    "packages.shadowed",
    "packages.altered",
    "packages.unmet",
    "python.version",
    "env.LD_LIBRARY_PATH",
    "env.PYTHONPATH",
)
LIBRARY_CAUSES = ("libraries.outside", "libraries.openmp", "env.LD_LIBRARY_PATH", "env.LD_PRELOAD")
_OF_FILES = ("packages.altered", "packages.stray_pth", "packages.stray", "packages.without_record")

_packages = partial(Check, group="packages", stage="packages", tier=Tier.INVENTORY)
CHECKS = (
    _packages(
        "P01", title="Python", causes=("python.minor", "python.prefix_matches", "python.version")
    ),
    _packages("P02", title="locked packages", causes=("packages.digest", "package.*")),
    _packages(
        "P03",
        title="no conflicting packages",
        causes=("packages.shadowed", "packages.unlocked", "env.PYTHONPATH"),
    ),
    _packages("P04", title="package requirements", causes=("packages.digest", "packages.unmet")),
    # Before the imports: a package that lacks a file does not import, and the file is the cause.
    _packages("P07", title="package files", causes=_OF_FILES),
    _packages(
        "P06",
        title="import",
        stage="imports",
        causes=IMPORT_CAUSES,
        tier=Tier.QUICK,
        per_direct_package=True,
    ),
)

# After the products, because some libraries are loaded by the first of them. Not only after T01: if
# torch does not import, the libraries can be the reason.
TORCH_CHECKS = (
    _packages(
        "P08",
        title="libraries loaded by torch",
        stage="torch",
        causes=LIBRARY_CAUSES,
        tier=Tier.QUICK,
        needs=(Need.TORCH,),
    ),
)
