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
    report: Report,
    path: Path,
    check_id: str,
    answered: tuple[LoadedSpec, str] | None,
    reader: Reader,
) -> str:
    """Return the program for a failed check of a report.

    Args:
        report: The report with the failure.
        path: The report's file; expectations.json may be next to it.
        check_id: The check, with its package if it has one.
        answered: The spec and the target that the report answers, if they are known.
        reader: Reads the files.

    Raises:
        Refused: there is no such program, with the reason.
        LockError: the spec has no valid lock.
    """
    expectations = _read_expectations(report, path.parent / "expectations.json", reader)
    if not expectations and answered:
        expectations = _expectations_from_lock(report, *answered, reader)
    home = reader.environment().get("HOME", "").rstrip("/")
    return build_repro_program(report, check_id, anonymize_expectations(expectations, home))


def build_stored_check_program(
    report: Report, path: Path, check_id: str, loaded: LoadedSpec, reader: Reader
) -> str:
    """Return the program for a check of a spec's stored report.

    If the spec was changed since, the report alone has to be enough.
    """
    try:
        answered = (loaded, loaded.target_name(report.subject.target))
        return build_check_program(report, path, check_id, answered, reader)
    except ProvisionError as changed:
        try:
            return build_check_program(report, path, check_id, None, reader)
        except Refused:
            raise changed from None


def _read_expectations(report: Report, path: Path, reader: Reader) -> Mapping[str, Any]:
    """Return the expectations in a file, or {} if it is missing, damaged or of another run."""
    if not reader.exists(path):
        return {}
    try:
        expectations = json.loads(reader.read(path, MAX_REPORT_BYTES))
    except (ProvisionError, ValueError, RecursionError):
        return {}
    nonce = report.document["subject"].get("nonce")
    if isinstance(expectations, dict) and expectations.get("nonce") == nonce:
        return expectations
    return {}


def _expectations_from_lock(
    report: Report, loaded: LoadedSpec, target: str, reader: Reader
) -> Mapping[str, Any]:
    """Return the expectations of a target by its spec and lock as they are now.

    Raises:
        Refused: the report answers another lock.
    """
    from provision.commands.shared.locked_context import (
        build_probe_expectations,
        get_locked_context,
    )

    context = get_locked_context(loaded, target, reader)
    if context.environment.digest != report.environment_digest:
        raise Refused(
            f"the report is not for the current lock of {context.address}",
            why="its `environment_digest` differs from the lock's",
            hint="verify again, or use the spec and the lock that the report was created with",
        )
    return build_probe_expectations(context)
