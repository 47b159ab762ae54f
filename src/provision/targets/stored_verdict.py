"""The stored verdict of a target, and whether it applies to what is promised now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.state import Record
from provision.verification.device_files import probe_digest
from provision.verification.report import MAX_REPORT_BYTES


@dataclass(frozen=True, slots=True)
class VerificationRecord(Record):
    """A verification: its verdict, its report, and what both are about.

    Attributes:
        verdict: The verdict; "" if new packages were installed since.
        expectations: Digest of the expectations and of the probe.
        report: Path of the report, relative to the state folder; `html` is its page.
        probe: Digest of the probe's sources.
        nonce: The request that the report answers.
        sha256: Digest of the report's file, if people may replace it.
        tier: The tier of the verification; "" if it was recorded before the field existed.
    """

    part: ClassVar[str] = "verification"

    title: str
    verdict: str
    expectations: str
    report: str
    html: str
    at: str
    paths: tuple[str, ...]
    sentence: str = ""
    identity: str = ""
    probe: str = ""
    nonce: str = ""
    sha256: str = ""
    created_utc: str = ""
    tier: str = ""


@dataclass(frozen=True, slots=True)
class ImageVerificationRecord(Record):
    """A verification on the image of a target, elsewhere: never a verdict on the target.

    Attributes:
        expectations: Digest of the expectations and of the probe.
        image: Name of the image; `machine` is the machine and its GPU.
        report: Path of the report, relative to the state folder; `html` is its page.
        not_shown: What it cannot show of the target.
    """

    part: ClassVar[str] = "image-verification"

    title: str
    verdict: str
    expectations: str
    image: str
    machine: str
    report: str
    html: str
    at: str
    paths: tuple[str, ...]
    not_shown: str
    sentence: str = ""


class Validity(Enum):
    """Relation of a stored verdict to the expectations and the probe of today."""

    CURRENT = "the same expectations, judged by this version's probe"
    EARLIER_PROBE = "the same expectations, judged by another version's probe"
    OTHER_EXPECTATIONS = "other expectations"


def assess_validity(
    stored: VerificationRecord,
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
    if stored.expectations == digest_with(probe_digest()):
        return Validity.CURRENT
    earlier = stored.probe or _probe_of_report(folder / stored.report, reader)
    if stored.expectations == digest_with(earlier):
        return Validity.EARLIER_PROBE
    return Validity.OTHER_EXPECTATIONS


def _probe_of_report(path: Path, reader: Reader) -> str:
    """Return the digest of the probe that wrote a stored report; "" if it cannot be read."""
    try:
        content = reader.read(path, MAX_REPORT_BYTES)
        return str(json.loads(content)["tool"]["probe_sha256"])
    except (ExternalError, ValueError, KeyError, TypeError, RecursionError):
        return ""
