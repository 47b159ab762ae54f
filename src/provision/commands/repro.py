"""Write a program that shows a failed check of a report without provision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.commands.loading import Loaded
from provision.effects import Reader
from provision.errors import ProvisionError, Refused
from provision.verification import Report
from provision.verification.report import LIMIT
from provision.verification.repro import repro
from provision.verification.repro.private import unnamed


def program(report: Report, path: Path, name: str, answered: tuple[Loaded, str] | None, world: Reader) -> str:
    """Return the program for the check `name` of a report at `path`, which answers a target of a spec where that is known.

    Raises Refused, with the reason, where there is none, and LockError where the spec that is named has no lock that holds.
    """
    promised = _beside(report, path.parent / "expectations.json", world) or (_of_lock(report, *answered, world) if answered else {})
    return repro(report, name, unnamed(promised, world.environment().get("HOME", "").rstrip("/")))


def stored_program(report: Report, path: Path, name: str, loaded: Loaded, world: Reader) -> str:
    """Return the program for a check of a stored report of a spec; where the spec moved on since, the report alone has to be enough."""
    try:
        return program(report, path, name, (loaded, str(report.document["subject"].get("target"))), world)
    except ProvisionError as moved:
        try:
            return program(report, path, name, None, world)
        except Refused:
            raise moved from None


def _beside(report: Report, beside: Path, world: Reader) -> Mapping[str, Any]:
    """Return the expectations beside a report, {} where there are none or they are of another run: a report alone says most of what is needed."""
    if not world.exists(beside):
        return {}
    try:
        promised = json.loads(world.read(beside, LIMIT))
    except (ProvisionError, ValueError, RecursionError):
        return {}
    same = isinstance(promised, dict) and promised.get("nonce") == report.document["subject"].get("nonce")
    return promised if same else {}


def _of_lock(report: Report, loaded: Loaded, target: str, world: Reader) -> Mapping[str, Any]:
    """Return what spec and lock promise of a target now; raises Refused where the lock is not the one that the report answers."""
    from provision.commands.probe import locked_place, promised

    place = locked_place(loaded, target, world)
    if place.environment.digest != report.document["lock"].get("environment_digest"):
        hint = "verify again, or name the spec, the target and the lock of that time"
        raise Refused(f"the report is not of {place.address} as it is locked now", why="its environment_digest is another one", hint=hint)
    return promised(place)
