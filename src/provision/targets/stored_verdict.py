"""The stored verdict of a target, and whether it applies to what is promised now."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import ClassVar

from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.sanitize import escape_line
from provision.state import Record
from provision.targets.context import TargetContext
from provision.verification.device_files import probe_digest
from provision.verification.report import MAX_REPORT_BYTES

_MAX_FILES = 1000
"""Most files that a record has: 60 kB of state (our choice)."""
_MAX_NAMED = 3


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
        files: The first digits of the sha256 of each file of the code and of packages, by its path
            from the spec's folder; empty for many files.
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
    files: dict[str, str] = field(default_factory=dict)


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


def digest_files(context: TargetContext) -> dict[str, str]:
    """Return what a record has of the files of the code and of the packages in folders."""
    home = Path(context.spec_path).resolve().parent
    folders = [(source.path, source.files) for source in context.sources if source.path is not None]
    if context.code is not None and not context.code.git:
        folders.append((context.code.folder, context.code.manifest.files))
    if sum(len(files) for _, files in folders) > _MAX_FILES:
        return {}
    return {
        os.path.normpath(Path(os.path.relpath(folder, home), file.path)): file.sha256[:8]
        for folder, files in folders
        for file in files
    }


def list_changed_files(stored: VerificationRecord | None, context: TargetContext) -> list[str]:
    """Return the files of the code and of packages that changed since the verification.

    [] if the record does not have them.
    """
    if stored is None or not stored.files:
        return []
    current = digest_files(context)
    paths = sorted(stored.files.keys() | current.keys()) if current else []
    return [path for path in paths if stored.files.get(path) != current.get(path)]


def name_files(paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many more there are."""
    more = len(paths) - _MAX_NAMED
    shown = ", ".join(escape_line(path) for path in paths[:_MAX_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


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
