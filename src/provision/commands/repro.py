"""Write a program that shows a failed check of a report without provision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.commands.shared.load import LoadedSpec
from provision.effects.system import Reader
from provision.errors import ProvisionError, Refused
from provision.verification import Report
from provision.verification.report import MAX_REPORT_BYTES
from provision.verification.repro import build_repro_program
from provision.verification.repro.anonymization import anonymize_expectations


def build_check_program(
    report: Report, path: Path, name: str, answered: tuple[LoadedSpec, str] | None, world: Reader
) -> str:
    """Return the program for the check `name` of a report at `path`, which answers a target of a
    spec where that is known.

    Raises Refused, with the reason, where there is none, and LockError where the spec that is
    named has no lock that holds.
    """
    promised = _read_expectations(report, path.parent / "expectations.json", world) or (
        _expectations_from_lock(report, *answered, world) if answered else {}
    )
    return build_repro_program(
        report,
        name,
        anonymize_expectations(promised, world.environment().get("HOME", "").rstrip("/")),
    )


def build_stored_check_program(
    report: Report, path: Path, name: str, loaded: LoadedSpec, world: Reader
) -> str:
    """Return the program for a check of a stored report of a spec; where the spec moved on since,
    the report alone has to be enough.
    """
    try:
        return build_check_program(
            report, path, name, (loaded, str(report.document["subject"].get("target"))), world
        )
    except ProvisionError as moved:
        try:
            return build_check_program(report, path, name, None, world)
        except Refused:
            raise moved from None


def _read_expectations(report: Report, beside: Path, world: Reader) -> Mapping[str, Any]:
    """Return the expectations beside a report, {} where there are none or they are of another run:
    a report alone says most of what is needed.
    """
    if not world.exists(beside):
        return {}
    try:
        promised = json.loads(world.read(beside, MAX_REPORT_BYTES))
    except (ProvisionError, ValueError, RecursionError):
        return {}
    same = isinstance(promised, dict) and promised.get("nonce") == report.document["subject"].get(
        "nonce"
    )
    return promised if same else {}


def _expectations_from_lock(
    report: Report, loaded: LoadedSpec, target: str, world: Reader
) -> Mapping[str, Any]:
    """Return what spec and lock promise of a target now; raises Refused where the lock is not the
    one that the report answers.
    """
    from provision.commands.probe import build_probe_expectations, get_locked_context

    place = get_locked_context(loaded, target, world)
    if place.environment.digest != report.document["lock"].get("environment_digest"):
        hint = "verify again, or name the spec, the target and the lock of that time"
        raise Refused(
            f"the report is not of {place.address} as it is locked now",
            why="its environment_digest is another one",
            hint=hint,
        )
    return build_probe_expectations(place)
