"""Imports the modules of each direct package, so that a broken one is named."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from ..inventory import first_found, installed, modules_of
from . import Bench, Observer


def _import_package(bench: Bench) -> dict[str, Any]:
    name = bench.subject or ""
    dists = bench.memo.get("dists")
    if dists is None:
        dists = bench.memo["dists"] = first_found(installed(entry for entry in sys.path if entry and os.path.isdir(entry)))
    if name not in dists:
        raise ModuleNotFoundError(f"no distribution {name} is installed for this interpreter")
    modules = modules_of(dists[name])
    for module in modules:
        import_module(module)
    return {f"_imported.{name}": list(modules)}


OBSERVERS: dict[str, Observer] = {"P06": _import_package}
