"""Checks of what is installed."""

from __future__ import annotations

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

CHECKS: tuple[Check, ...] = (
    Check(
        "P01",
        "packages",
        "python",
        "packages",
        ("python.minor", "python.prefix_matches", "python.version"),
        Tier.INVENTORY,
    ),
    Check(
        "P02",
        "packages",
        "locked packages",
        "packages",
        ("packages.digest", "package.*"),
        Tier.INVENTORY,
    ),
    Check(
        "P03",
        "packages",
        "nothing else in the way",
        "packages",
        ("packages.shadowed", "packages.unlocked", "env.PYTHONPATH"),
        Tier.INVENTORY,
    ),
    Check(
        "P04",
        "packages",
        "requirements of packages",
        "packages",
        ("packages.digest", "packages.unmet"),
        Tier.INVENTORY,
    ),
    # Before the imports: a package that lacks a file does not import, and the file is what is to be
    # told first.
    Check("P07", "packages", "files of packages", "packages", _OF_FILES, Tier.INVENTORY),
    Check("P06", "packages", "import", "imports", IMPORT_CAUSES, per_direct_package=True),
)

# Asked after the products, because some libraries are loaded by the first of them. Not only after
# T01: where torch does not import, they can tell why.
TORCH_CHECKS: tuple[Check, ...] = (
    Check(
        "P08", "packages", "libraries that torch uses", "torch", LIBRARY_CAUSES, needs=(Need.TORCH,)
    ),
)
