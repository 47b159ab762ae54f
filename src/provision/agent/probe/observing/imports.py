"""Imports the modules of each direct package, so that a broken one is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from ...core.versions import UnreadableVersion, normalize_name, read_version
from ..context import ObserverContext
from ..instructions import TENSORFLOW, avx_packages, require_instructions
from ..inventory import Distribution, active_distributions, find_distributions, modules_to_import
from ..model import Readings


def _import_package(context: ObserverContext) -> Readings:
    name = context.subject or ""
    dists = context.memo.get("dists")
    if dists is None:
        dists = context.memo["dists"] = active_distributions(
            find_distributions(entry for entry in sys.path if entry and os.path.isdir(entry))
        )
    if name not in dists:
        raise ModuleNotFoundError(f"the package {name} is not installed for this interpreter")
    require_instructions(_needing_avx(context, name), context.root)
    modules = {module: import_module(module) for module in modules_to_import(dists[name])}
    return {
        f"_imported.{name}": list(modules),
        f"_imported_elsewhere.{name}": []
        if dists[name].editable
        else _elsewhere(dists[name], modules.values()),
        f"_imported_live.{name}": next(
            (
                pair
                for word, module in modules.items()
                if normalize_name(word) == name and (pair := _live(dists[name], module))
            ),
            None,
        ),
    }


def _needing_avx(context: ObserverContext, name: str) -> list[str]:
    """Return the TensorFlow that an import loads; jaxlib reports missing instructions itself."""
    expected = context.expected
    imports_tensorflow = name in TENSORFLOW or (
        name in ("keras", "tf-keras") and expected.backend in ("", "tensorflow")
    )
    packages = avx_packages(expected.packages, expected.platform) if imports_tensorflow else []
    return [package for package in packages if package in TENSORFLOW]


def _elsewhere(dist: Distribution, modules: Iterable[ModuleType]) -> list[str]:
    """Return the files of modules from other folders than the package's metadata."""
    files = [
        os.path.abspath(file)
        for module in modules
        if isinstance(file := getattr(module, "__file__", None), str)
    ]
    entry = os.path.abspath(dist.entry).rstrip(os.sep) + os.sep
    return [file for file in files if not file.startswith(entry)]


def _live(dist: Distribution, module: ModuleType) -> list[str] | None:
    """Return a module's own version and its metadata's if their first three numbers differ."""
    reported = getattr(module, "__version__", None)
    try:
        pair = (
            [read_version(text) for text in (reported, dist.version)]
            if isinstance(reported, str)
            else []
        )
    except UnreadableVersion:
        return None
    releases = {(*version.release, 0, 0)[:3] for version in pair}
    return [str(reported), dist.version] if len(releases) > 1 else None


OBSERVERS = {"P06": _import_package}
