"""Looks at the interpreter and at what is installed for it: versions, shadowing, what packages
require, and their files.
"""

from __future__ import annotations

import json
import os
import platform
import re
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any

from ...core.record_audit import (
    FileComparison,
    InstallNote,
    RecordFile,
    compare_files,
    find_matching_files,
    find_unlisted_files,
    read_record,
)
from ...core.versions import UnreadableVersion, specifier_allows
from ..canonical_json import canonical_digest
from ..inventory import (
    NOT_PACKAGES,
    Distribution,
    active_distributions,
    find_damaged_distributions,
    find_distributions,
    top_level_modules,
)
from ..model import Tier
from ..requirements import Requirement, evaluate_marker, marker_environment, parse_requirement
from . import Observer, ObserverContext
from .folders import working_folder

_MOST_NAMED = 20
_LONGEST_NOTE = 2**22


def _interpreter(bench: ObserverContext) -> dict[str, Any]:
    wanted = os.path.realpath(bench.expected.python_prefix)
    executable = os.path.join(
        os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable)
    )
    return {
        "python.minor": f"{sys.version_info.major}.{sys.version_info.minor}",
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "python.made_with": _made_with(),
        # An image's interpreter may be started by a link that lies elsewhere.
        "python.prefix_matches": os.path.realpath(sys.prefix) == wanted
        and (bench.expected.shared or _is_below(executable, wanted)),
        "_python.prefix": sys.prefix,
        "_python.executable": sys.executable,
    }


def _made_with() -> str | None:
    """The Python's version when the environment was made, as pyvenv.cfg tells it; None where there
    is none (an image, conda).
    """
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8") as lines:
            told = {
                key.strip(): value.strip()
                for key, _, value in (line.partition("=") for line in lines)
            }
    except (OSError, UnicodeDecodeError):
        return None
    found = re.match(r"\d+\.\d+\.\d+", told.get("version_info") or told.get("version") or "")
    return found[0] if found else None


def _locked_set(bench: ObserverContext) -> dict[str, Any]:
    found = {name: dist.version for name, dist in active_distributions(_inventory(bench)).items()}
    brought = read_conda_packages(bench)
    shown = set(bench.expected.direct) | ({"torch"} & set(bench.expected.packages))
    return {
        "_packages.installed": found,
        "_packages.brought": {name: one.version for name, one in brought.items()}
        if brought is not None
        else None,
        "_packages.damaged": find_damaged_distributions(_inventory(bench), _entries()),
        "packages.count": len(found),
        "packages.digest": canonical_digest(_compared(bench, found)),
        "packages.provenance": _provenance(bench.expected.provenance_file),
        **{f"package.{name}": found.get(name) for name in sorted(shown)},
    }


def _compared(bench: ObserverContext, found: dict[str, str]) -> dict[str, str]:
    """What one environment's packages are known by: all that are there but for what its image or
    conda brings besides, which other targets do without.
    """
    locked, besides = bench.expected.packages, _besides(bench)
    return {
        name: version
        for name, version in found.items()
        if name in locked or not (bench.expected.shared or name in besides)
    }


@dataclass(frozen=True, slots=True)
class CondaProvidedPackage:
    """A Python package that a locked file of conda brought: its version, and the files in the
    prefix that conda made anew, absolute.
    """

    version: str
    rebuilt_files: frozenset[str]


def read_conda_packages(bench: ObserverContext) -> dict[str, CondaProvidedPackage] | None:
    """What conda brought besides the locked packages, as the installer noted of the files that are
    locked; None where it noted nothing of that.
    """
    if not bench.expected.conda:
        return {}
    packages = _noted(bench.expected.provenance_file).get("packages")
    told = packages if isinstance(packages, dict) else {}
    of_conda = {
        name: one
        for name, one in told.items()
        if isinstance(one, dict) and str(one.get("conda")) in bench.expected.conda
    }
    found = {}
    for name, one in of_conda.items():
        remade, version = one.get("remade"), one.get("version")
        paths = (
            [path for path in remade if isinstance(path, str)] if isinstance(remade, list) else []
        )
        if isinstance(version, str):
            found[str(name)] = CondaProvidedPackage(
                version,
                frozenset(os.path.normpath(os.path.join(sys.prefix, path)) for path in paths),
            )
    return found or None


def _besides(bench: ObserverContext) -> frozenset[str]:
    """The names of what may be there and is not locked: by conda's names, and by those that its
    files turned out to have.
    """
    return bench.expected.extras_allowed | (read_conda_packages(bench) or {}).keys()


def _provenance(note: str) -> dict[str, int] | None:
    """How many packages came there in which way; None where the installer left no note that can be
    read.
    """
    counts = _noted(note).get("counts")
    if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
        return None
    return {str(kind): count for kind, count in counts.items() if count}


def _noted(path: str) -> dict[str, Any]:
    """What the installer noted; {} where there is nothing that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            note = json.loads(file.read(_LONGEST_NOTE))
    except (OSError, ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _in_the_way(bench: ObserverContext) -> dict[str, Any]:
    dists = _inventory(bench)
    winners = active_distributions(dists)
    allowed, shared = _besides(bench), bench.expected.shared
    locked = bench.expected.packages.keys() | (read_conda_packages(bench) or {}).keys()
    prefix = os.path.realpath(sys.prefix)
    places: dict[str, set[str]] = {}
    for dist in dists:
        places.setdefault(dist.name, set()).add(dist.metadata)
    return {
        "packages.shadowed": _shadowed(
            _foreign_entries(bench), [entry for entry in sys.path if os.path.isdir(entry)]
        )[:_MOST_NAMED],
        "packages.hidden_by_working_folder": _hidden_here(bench)[:_MOST_NAMED],
        "packages.unlocked": sorted(
            f"{name} {dist.version}"
            for name, dist in winners.items()
            if name not in locked and name not in allowed
        )[:_MOST_NAMED],
        "packages.duplicates": sorted(
            name
            for name, folders in places.items()
            if len(folders) > 1 and (name in locked or not shared)
        )[:_MOST_NAMED],
        "_packages.others": len(winners.keys() - locked),
        "packages.elsewhere": sorted(
            name for name, dist in winners.items() if name in locked and _is_away(dist, prefix)
        )[:_MOST_NAMED],
    }


def _is_away(dist: Distribution, prefix: str) -> bool:
    return dist.editable or not _is_below(os.path.realpath(dist.entry), prefix)


def _foreign_entries(bench: ObserverContext) -> list[str]:
    listed = [
        os.path.abspath(entry)
        for entry in bench.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry
    ]
    user = site.getusersitepackages()
    entries = {os.path.abspath(entry) for entry in sys.path}
    return [entry for entry in [*listed, user] if entry in entries]


def _hidden_here(bench: ObserverContext) -> list[str]:
    """Modules of the environment and of the standard library that a script or notebook of the
    working folder would import from there instead.
    """
    here = working_folder() if bench.expected.target.get("kind") == "local" else None
    if here is None or any(
        os.path.realpath(entry) == os.path.realpath(here) for entry in _entries()
    ):
        return []
    own = (
        frozenset().union(*(top_level_modules(entry) for entry in _entries()))
        | sys.stdlib_module_names
    )
    return sorted((top_level_modules(here) & own) - NOT_PACKAGES)


def _shadowed(foreign: Sequence[str], entries: Sequence[str]) -> list[str]:
    """Modules that Python takes from a foreign entry although the environment or the standard
    library has one of that name.
    """
    own = (
        frozenset().union(
            *(
                top_level_modules(entry)
                for entry in entries
                if os.path.abspath(entry) not in foreign
            )
        )
        | sys.stdlib_module_names
    )
    found = []
    for entry in foreign:
        for name in sorted(top_level_modules(entry) & own):
            spec = PathFinder.find_spec(name)
            origin = spec.origin if spec else None
            if (
                origin
                and _is_below(os.path.abspath(origin), entry)
                and not _in_standard_library(origin)
            ):
                found.append(f"{name} from {origin}")
    return found


def _in_standard_library(origin: str) -> bool:
    return any(
        os.path.dirname(origin) == sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")
    )


def _requirements_met(bench: ObserverContext) -> dict[str, Any]:
    """What packages require and do not find; of an image's other packages apart, because the lock
    promises nothing of them.
    """
    winners = active_distributions(_inventory(bench))
    unmet: set[str] = set()
    unread: set[str] = set()
    of_others: set[str] = set()
    above: dict[str, set[str]] = {}
    active = _active_requirements(winners, marker_environment())
    judged = [
        (
            dist,
            requirement,
            *(
                (False, f"{dist.name}: {problem}")
                if requirement is None
                else _judged(dist, requirement, winners.get(requirement.name))
            ),
        )
        for dist, requirement, problem in active
    ]
    judged += [(dist, None, *_judged_python(dist)) for dist in winners.values() if dist.python]
    for dist, requirement, wrong, text in judged:
        if requirement is not None and _is_otherwise(requirement.name, winners, bench):
            above.setdefault(requirement.name, set()).add(dist.name)
        if bench.expected.shared and dist.name not in bench.expected.packages:
            of_others.update([text] if wrong else [])
        elif text:
            (unmet if wrong else unread).add(text)
    others = (
        {"packages.unmet_unlocked": sorted(of_others)[:_MOST_NAMED]}
        if bench.expected.shared
        else {}
    )
    required_by = {name: sorted(names)[:_MOST_NAMED] for name, names in above.items()}
    return {
        "packages.unmet": sorted(unmet)[:_MOST_NAMED],
        "packages.unread": sorted(unread)[:_MOST_NAMED],
        "_packages.required_by": required_by,
        **others,
    }


def _judged_python(dist: Distribution) -> tuple[bool, str]:
    """Whether a package's Requires-Python leaves out the Python that runs, and what to say of it."""  # noqa: E501
    try:
        fits = specifier_allows(dist.python, platform.python_version())
    except UnreadableVersion as error:
        return False, f"{dist.name}: {error}"
    return (
        (False, "")
        if fits
        else (
            True,
            (
                f"{dist.name} {dist.version} needs Python {dist.python}, this is "
                f"{platform.python_version()}"
            ),
        )
    )


def _is_otherwise(name: str, winners: Mapping[str, Distribution], bench: ObserverContext) -> bool:
    """Whether a package is locked, and is there in another version or not at all."""
    return name in bench.expected.packages and (
        name not in winners or winners[name].version != bench.expected.packages[name]
    )


def _judged(
    dist: Distribution, requirement: Requirement, found: Distribution | None
) -> tuple[bool, str]:
    """Whether a requirement is unmet, and what is wrong with it in words ("" when nothing is)."""
    needs = f"{dist.name} {dist.version} needs {requirement.name}{requirement.specifier}"
    if found is None:
        return True, f"{needs}, which is not installed"
    try:
        return (
            (False, "")
            if specifier_allows(requirement.specifier, found.version)
            else (True, f"{needs}, installed is {found.version}")
        )
    except UnreadableVersion as error:
        return False, f"{dist.name}: {error}"


def _active_requirements(
    winners: dict[str, Distribution], environment: dict[str, str]
) -> list[tuple[Distribution, Requirement | None, str]]:
    """All requirements in force, with those of the extras that other requirements ask for."""
    pending = [(dist, "") for dist in winners.values()]
    asked = {(dist.name, "") for dist, _ in pending}
    active: list[tuple[Distribution, Requirement | None, str]] = []
    while pending:
        dist, extra = pending.pop()
        for line in dist.requires:
            try:
                requirement = parse_requirement(line)
                holds = evaluate_marker(requirement.marker, environment, extra) and (
                    not extra or not evaluate_marker(requirement.marker, environment)
                )
            except UnreadableVersion as error:
                active.append((dist, None, str(error)))
                continue
            if holds:
                active.append((dist, requirement, ""))
                target = winners.get(requirement.name)
                fresh = [
                    (target, name)
                    for name in requirement.extras
                    if target is not None and (target.name, name) not in asked
                ]
                pending += [(dist, name) for dist, name in fresh if dist is not None]
                asked |= {(requirement.name, name) for _, name in fresh}
    return active


def _files(bench: ObserverContext) -> dict[str, Any]:
    """The files of the locked packages against their RECORDs and the installer's note, in the deep
    tiers all by sha256; and what no RECORD lists.
    """
    dists, hashed = _inventory(bench), bench.expected.tier in (Tier.DEEP, Tier.BURN)
    records = {dist.metadata: read_record(dist.metadata) for dist in dists}
    winners, note, brought = (
        active_distributions(dists),
        _noted(bench.expected.provenance_file),
        read_conda_packages(bench) or {},
    )
    told_of = [
        name
        for name in brought.keys() - bench.expected.packages.keys()
        if name in winners and not records[winners[name].metadata].flaw
    ]
    locked = sorted({*(winners.keys() & bench.expected.packages.keys()), *told_of})
    noted = {name: InstallNote.from_install_result(note, name) for name in locked}
    compared = {
        name: compare_files(records[winners[name].metadata], noted[name], hashed=hashed)
        for name in locked
    }
    flawed = {file for one in compared.values() for file in one.flaws}
    fine = find_matching_files(
        flawed, records.values(), hashed=any(one.hashed for one in compared.values())
    )
    found: dict[str, list[str]] = {"altered": [], "without_record": [], "never_fitted": []}
    for name, one in compared.items():
        remade = brought[name].rebuilt_files if name in brought else frozenset()
        kind = _kind_of_flaws(records[winners[name].metadata], noted[name], one)
        found[kind] += [
            f"{name}: {flaw}"
            for file, flaw in one.flaws.items()
            if file not in fine and file not in remade
        ]
    stray_pth, stray = _stray(dists, records, own=_is_own(bench))
    return {
        "packages.files": sum(one.files for one in compared.values()),
        **{f"packages.{kind}": flaws[:_MOST_NAMED] for kind, flaws in found.items()},
        "packages.stray_pth": stray_pth[:_MOST_NAMED],
        "packages.stray": stray[:_MOST_NAMED],
        "_packages.altered_count": len(found["altered"]),
        "_packages.hashed": sum(one.hashed for one in compared.values()),
        "_packages.since_installed": bool(noted) and all(one.snapshot for one in noted.values()),
        "_packages.own": _is_own(bench),
    }


def _kind_of_flaws(record: RecordFile, noted: InstallNote, compared: FileComparison) -> str:
    """What flaws of a package mean: altered since it was installed, unfit from the first, or not to
    be told for want of a RECORD.
    """
    if not noted.record_fits and (compared.unchanged or not noted.snapshot):
        return "never_fitted"
    return (
        "without_record"
        if record.flaw and not record.garbled and not noted.record_sha256
        else "altered"
    )


def _stray(
    dists: Sequence[Distribution], records: Mapping[str, RecordFile], *, own: bool
) -> tuple[list[str], list[str]]:
    """What no RECORD lists: of an interpreter that is not ours only .pth files, because a system's
    own packages come without RECORDs.
    """
    prefix = os.path.realpath(sys.prefix)
    pth: list[str] = []
    others: list[str] = []
    for folder in dict.fromkeys(os.path.realpath(one) for one in site.getsitepackages()):
        if _is_below(folder, prefix) or not own:
            more_pth, more = find_unlisted_files(
                folder,
                (
                    records[dist.metadata]
                    for dist in dists
                    if os.path.realpath(dist.entry) == folder
                ),
            )
            pth += more_pth
            others += more if own else []
    return pth, others


def _is_own(bench: ObserverContext) -> bool:
    return sys.prefix != sys.base_prefix and not bench.expected.shared


def _inventory(bench: ObserverContext) -> tuple[Distribution, ...]:
    dists: tuple[Distribution, ...] | None = bench.memo.get("inventory")
    if dists is None:
        dists = bench.memo["inventory"] = find_distributions(_entries())
    return dists


def _entries() -> list[str]:
    return [entry for entry in sys.path if entry and os.path.isdir(entry)]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


OBSERVERS: dict[str, Observer] = {
    "P01": _interpreter,
    "P02": _locked_set,
    "P03": _in_the_way,
    "P04": _requirements_met,
    "P07": _files,
}
