"""Observes the files of installed packages."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Mapping, Sequence

from ...core.record_audit import (
    FileComparison,
    InstallNote,
    RecordFile,
    compare_files,
    find_matching_files,
    find_unlisted_files,
    read_record,
)
from ..context import ObserverContext
from ..inventory import Distribution, active_distributions
from ..model import Readings, Tier
from .installed_set import (
    MAX_NAMED,
    inventory,
    is_below,
    is_own_environment,
    read_conda_packages,
    read_install_result,
)


def observe_files(context: ObserverContext) -> Readings:
    """Return how files differ from RECORDs and from the installer's note, and unlisted files.

    In the deep tiers, all files are read.
    """
    dists, hashed = inventory(context), context.expected.tier in (Tier.DEEP, Tier.BURN)
    records = {dist.metadata: read_record(dist.metadata) for dist in dists}
    winners, note, brought = (
        active_distributions(dists),
        read_install_result(context.expected.provenance_file),
        read_conda_packages(context) or {},
    )
    unlocked = [
        name
        for name in brought.keys() - context.expected.packages.keys()
        if name in winners and not records[winners[name].metadata].flaw
    ]
    locked = sorted({*(winners.keys() & context.expected.packages.keys()), *unlocked})
    noted = {name: InstallNote.from_install_result(note, name) for name in locked}
    compared = {
        name: compare_files(records[winners[name].metadata], noted[name], hashed=hashed)
        for name in locked
    }
    fine = find_matching_files(
        {file for comparison in compared.values() for file in comparison.flaws},
        records.values(),
        hashed=any(comparison.hashed for comparison in compared.values()),
    )
    flaws_by_kind: dict[str, list[str]] = {"altered": [], "without_record": [], "never_fitted": []}
    for name, comparison in compared.items():
        remade = brought[name].rebuilt_files if name in brought else frozenset()
        kind = _kind_of_flaws(records[winners[name].metadata], noted[name], comparison)
        flaws_by_kind[kind] += [
            f"{name}: {flaw}"
            for file, flaw in comparison.flaws.items()
            if file not in fine and file not in remade
        ]
    stray_pth, stray = _stray(dists, records, own=is_own_environment(context))
    return {
        "packages.files": sum(comparison.files for comparison in compared.values()),
        **{f"packages.{kind}": flaws[:MAX_NAMED] for kind, flaws in flaws_by_kind.items()},
        "packages.stray_pth": stray_pth[:MAX_NAMED],
        "packages.stray": stray[:MAX_NAMED],
        "_packages.altered_count": len(flaws_by_kind["altered"]),
        "_packages.hashed": sum(comparison.hashed for comparison in compared.values()),
        "_packages.since_installed": bool(noted)
        and all(comparison.snapshot for comparison in noted.values()),
        "_packages.own": is_own_environment(context),
    }


def _kind_of_flaws(record: RecordFile, noted: InstallNote, compared: FileComparison) -> str:
    """Return what flaws mean: changed since the installation, wrong from the start, or unknown."""
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
    """Return unlisted files; of an image's interpreter only .pth files.

    Packages of a system have no RECORDs.
    """
    prefix = os.path.realpath(sys.prefix)
    pth: list[str] = []
    others: list[str] = []
    for folder in dict.fromkeys(
        os.path.realpath(folder_name) for folder_name in site.getsitepackages()
    ):
        if is_below(folder, prefix) or not own:
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
