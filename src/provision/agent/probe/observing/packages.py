"""Observes the interpreter and the packages installed for it: versions, shadowing, provenance."""

from __future__ import annotations

import os
import platform
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder

from ..context import ObserverContext
from ..inventory import (
    NOT_PACKAGES,
    active_distributions,
    find_damaged_distributions,
    top_level_modules,
)
from ..model import Readings
from ..report_json import canonical_digest
from .folders import working_folder
from .installed_set import (
    MAX_NAMED,
    inventory,
    is_below,
    package_entries,
    read_conda_packages,
    read_install_result,
)
from .package_files import observe_files
from .package_requirements import observe_requirements


def _interpreter(context: ObserverContext) -> Readings:
    required = os.path.realpath(context.expected.python_prefix)
    executable = os.path.join(
        os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable)
    )
    return {
        "python.minor": f"{sys.version_info.major}.{sys.version_info.minor}",
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "python.made_with": _made_with(),
        # An image's interpreter may be started by a link that lies elsewhere.
        "python.prefix_matches": os.path.realpath(sys.prefix) == required
        and (context.expected.shared or is_below(executable, required)),
        "_python.prefix": sys.prefix,
        "_python.executable": sys.executable,
    }


def _made_with() -> str | None:
    """Return the Python's version in pyvenv.cfg; None without the file (an image, conda)."""
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as lines:
            reported = {
                key.strip(): value.strip()
                for key, _, value in (line.partition("=") for line in lines)
            }
    except (OSError, UnicodeDecodeError):
        return None
    version = re.match(
        r"\d+\.\d+\.\d+", reported.get("version_info") or reported.get("version") or ""
    )
    return version[0] if version else None


def _locked_set(context: ObserverContext) -> Readings:
    installed = {
        name: dist.version for name, dist in active_distributions(inventory(context)).items()
    }
    brought, compared = read_conda_packages(context), _compared(context, installed)
    shown = set(context.expected.direct) | ({"torch"} & set(context.expected.packages))
    return {
        "_packages.installed": installed,
        "_packages.compared": compared,
        "_packages.brought": {name: package.version for name, package in brought.items()}
        if brought is not None
        else None,
        "_packages.damaged": find_damaged_distributions(inventory(context), package_entries()),
        "packages.count": len(installed),
        "packages.digest": canonical_digest(compared),
        "packages.provenance": _provenance(context.expected.provenance_file),
        **{f"package.{name}": installed.get(name) for name in sorted(shown)},
        **{f"source.{name}": part["digest"] for name, part in context.expected.sources.items()},
    }


def _compared(context: ObserverContext, installed: dict[str, str]) -> dict[str, str]:
    """Return the packages that identify an environment, without those of its image or conda."""
    locked, besides = context.expected.packages, _besides(context)
    return {
        name: version
        for name, version in installed.items()
        if name in locked or not (context.expected.shared or name in besides)
    }


def _besides(context: ObserverContext) -> frozenset[str]:
    """Return names that may be installed and are not locked: conda's, and those of its files."""
    return context.expected.extras_allowed | (read_conda_packages(context) or {}).keys()


def _provenance(note: str) -> dict[str, int] | None:
    """Return how many packages have each provenance; None without a readable note."""
    counts = read_install_result(note).get("counts")
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        return None
    return {str(kind): count for kind, count in counts.items() if count}


def _in_the_way(context: ObserverContext) -> Readings:
    dists = inventory(context)
    winners = active_distributions(dists)
    allowed, shared = _besides(context), context.expected.shared
    locked = context.expected.packages.keys() | (read_conda_packages(context) or {}).keys()
    prefix, sources = os.path.realpath(sys.prefix), context.expected.sources
    places: dict[str, set[str]] = {}
    for dist in dists:
        winner = winners[dist.name]
        is_source = winner.editable and sources.get(dist.name, {}).get("editable")
        # setuptools writes it next to the modules, in a folder that its .pth file names.
        if not (is_source and dist is not winner and dist.metadata.endswith(".egg-info")):
            places.setdefault(dist.name, set()).add(dist.metadata)
    return {
        "packages.shadowed": _shadowed(
            _foreign_entries(context), [entry for entry in sys.path if os.path.isdir(entry)]
        )[:MAX_NAMED],
        "packages.hidden_by_working_folder": _hidden_here(context)[:MAX_NAMED],
        "packages.unlocked": sorted(
            f"{name} {dist.version}"
            for name, dist in winners.items()
            if name not in locked and name not in allowed
        )[:MAX_NAMED],
        "packages.duplicates": sorted(
            name
            for name, folders in places.items()
            if len(folders) > 1 and (name in locked or not shared)
        )[:MAX_NAMED],
        "_packages.others": len(winners.keys() - locked),
        "packages.elsewhere": sorted(
            name
            for name, dist in winners.items()
            if name in locked
            and not (dist.editable and sources.get(name, {}).get("editable"))
            and (dist.editable or not is_below(os.path.realpath(dist.entry), prefix))
        )[:MAX_NAMED],
    }


def _foreign_entries(context: ObserverContext) -> list[str]:
    listed = [
        os.path.abspath(entry)
        for entry in context.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry
    ]
    user = site.getusersitepackages()
    entries = {os.path.abspath(entry) for entry in sys.path}
    return [entry for entry in [*listed, user] if entry in entries]


def _hidden_here(context: ObserverContext) -> list[str]:
    """Return installed or standard modules that files of the working folder would replace."""
    here = working_folder() if context.expected.target.get("kind") == "local" else None
    if here is None or any(
        os.path.realpath(entry) == os.path.realpath(here) for entry in package_entries()
    ):
        return []
    return sorted((top_level_modules(here) & _modules(package_entries())) - NOT_PACKAGES)


def _modules(entries: Iterable[str]) -> frozenset[str]:
    """Return the modules of these entries and of the standard library."""
    return sys.stdlib_module_names.union(*map(top_level_modules, entries))


def _shadowed(foreign: Sequence[str], entries: Sequence[str]) -> list[str]:
    """Return modules imported from a foreign folder although the environment has them."""
    own = _modules(entry for entry in entries if os.path.abspath(entry) not in foreign)
    shadowed = []
    for entry in foreign:
        for name in sorted(top_level_modules(entry) & own):
            spec = PathFinder.find_spec(name)
            origin = spec.origin if spec else None
            if (
                origin
                and is_below(os.path.abspath(origin), entry)
                and not any(
                    os.path.dirname(origin) == sysconfig.get_path(kind)
                    for kind in ("stdlib", "platstdlib")
                )
            ):
                shadowed.append(f"{name} from {origin}")
    return shadowed


OBSERVERS = {
    "P01": _interpreter,
    "P02": _locked_set,
    "P03": _in_the_way,
    "P04": observe_requirements,
    "P07": observe_files,
}
