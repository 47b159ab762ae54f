"""Compares a stored verdict with what is promised of a target now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.verification import probe_digest
from provision.verification.report import MAX_REPORT_BYTES


class Validity(Enum):
    """Relation of a stored verdict to the expectations and the probe of today."""

    CURRENT = "the same expectations, judged by this version's probe"
    EARLIER_PROBE = "the same expectations, judged by another version's probe"
    OTHER_EXPECTATIONS = "other expectations"


def assess_validity(
    stored: Mapping[str, Any],
    digest_with: Callable[[str], str],
    folder: Path,
    reader: Reader,
) -> Validity:
    """Return how a stored verdict relates to the expectations and the probe of today.

    The stored digest covers the expectations and the probe that judged them. So a verdict of an
    earlier probe is recognised by that probe's own digest, which is in the record, or in the
    report if the record was written before it had that field.

    Args:
        stored: the record of the verification.
        digest_with: returns the digest of today's expectations with the digest of a probe.
        folder: the folder that the record's path of the report is relative to.
        reader: reads the report. May block.
    """
    if stored["expectations"] == digest_with(probe_digest()):
        return Validity.CURRENT
    earlier = str(stored.get("probe") or _probe_of_report(folder / str(stored["report"]), reader))
    if stored["expectations"] == digest_with(earlier):
        return Validity.EARLIER_PROBE
    return Validity.OTHER_EXPECTATIONS


def _probe_of_report(path: Path, reader: Reader) -> str:
    """Return the digest of the probe that wrote a stored report; "" if it cannot be read."""
    try:
        content = reader.read(path, MAX_REPORT_BYTES)
        return str(json.loads(content)["tool"]["probe_sha256"])
    except (ExternalError, ValueError, KeyError, TypeError, RecursionError):
        return ""
