"""Imports modules of a large package without executing the package's `__init__`."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec


def skip_package_init(*packages: str) -> None:
    """Let the submodules of some packages be imported without executing the packages' `__init__`.

    `packages` begins with the outermost one. For generated clients of Google: importing one service
    of aiplatform_v1 executes an `__init__` that imports all 40, which takes 0.9 s instead of 0.2 s
    of CPU. A package that is already imported stays as it is; one that was skipped has no names of
    its own in this process, so only its submodules may be imported.

    Raises:
        ModuleNotFoundError: a package is not installed.
    """
    for package in packages:
        if package in sys.modules:
            continue
        if (spec := find_spec(package)) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        sys.modules.setdefault(package, module_from_spec(spec))
