"""Write a program that shows a failed check of a report without provision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.effects import Reader
from provision.errors import ProvisionError
from provision.verification import Report
from provision.verification.report import LIMIT
from provision.verification.repro import repro


def program(report: Report, path: Path, name: str, world: Reader) -> str:
    """Return the program for the check `name` of a report at `path`. Raises Refused, with the reason, where there is none."""
    return repro(report, name, _promised(report, path.parent / "expectations.json", world))


def _promised(report: Report, beside: Path, world: Reader) -> Mapping[str, Any]:
    """Return the expectations beside a report, {} where there are none or they are of another run: a report alone says most of what is needed."""
    if not world.exists(beside):
        return {}
    try:
        promised = json.loads(world.read(beside, LIMIT))
    except (ProvisionError, ValueError, RecursionError):
        return {}
    same = isinstance(promised, dict) and promised.get("nonce") == report.document["subject"].get("nonce")
    return promised if same else {}
