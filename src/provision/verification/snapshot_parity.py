"""Parity of two documents without a lock: the differences that matter, as statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from provision.verification.diff.layers import Layer
from provision.verification.diff.snapshot import Snapshot
from provision.verification.diff.snapshot_model import SnapshotComparison
from provision.verification.diff.snapshot_summary import describe_change, describe_side
from provision.verification.parity_model import (
    Parity,
    ParityTarget,
    ReportStanding,
    Statement,
    StatementResult,
)
from provision.verification.report import Report

_MAX_REASONS = 3
_STANDINGS = {
    "verified": ReportStanding.VERIFIED,
    "failed": ReportStanding.FAILED,
    "simulated": ReportStanding.SIMULATED,
}


class _Subject(NamedTuple):
    """A statement: the layer whose differences it is about, and the values that it shows."""

    name: str
    layer: Layer
    keys: tuple[str, ...]


_SUBJECTS = (
    _Subject("Python", Layer.PYTHON, ("python.version",)),
    _Subject("packages", Layer.PACKAGES, ()),
    _Subject("torch build", Layer.TORCH, ("package.torch", "torch.cuda")),
    _Subject("GPU and driver", Layer.GPU, ("gpu.count", "gpu.name", "driver.version")),
    _Subject("system", Layer.SYSTEM, ("os.id", "os.version", "host.glibc")),
    _Subject("memory and disk", Layer.CAPACITY, ("host.ram_bytes",)),
    _Subject("paths and modules", Layer.PATHS, ("folder.working",)),
    _Subject("variables", Layer.VARIABLES, ()),
    _Subject("machine", Layer.MACHINE, ("host.platform",)),
)
_NEEDED = {"torch build": 1, "GPU and driver": 1}
"""The number of values without which a subject is not observed; all values for the others."""


def evaluate_documents(comparison: SnapshotComparison, reports: Sequence[Report | None]) -> Parity:
    """Return what two documents show to be equal; equal means that no difference matters.

    Args:
        comparison: The comparison of the documents.
        reports: The report of each side; None for a capture or a description of a machine.
    """
    sides = comparison.a, comparison.b
    return Parity(
        tuple(_target(side, report) for side, report in zip(sides, reports, strict=True)),
        tuple(_state(subject, comparison) for subject in _SUBJECTS),
        tuple(
            f"{comparison.a.name} and {comparison.b.name}: {describe_change(item)}"
            for item in comparison.minor
        ),
        has_lock=False,
    )


def _target(side: Snapshot, report: Report | None) -> ParityTarget:
    standing, why = ReportStanding.UNVERIFIED, ""
    if report is not None:
        standing = _STANDINGS.get(report.verdict, standing)
    if side.distrust:
        standing, why = ReportStanding.DAMAGED, side.distrust
    return ParityTarget(side.name, side.kind, standing, None, report, why)


def _state(subject: _Subject, comparison: SnapshotComparison) -> Statement:
    sides = comparison.a, comparison.b
    observed = {side.name: text for side in sides if (text := _observe(subject, side))}
    reasons = list(dict.fromkeys(_reasons(subject.layer, comparison)))
    unseen = [side.name for side in sides if side.name not in observed]
    modified = [f"{side.name} was modified" for side in sides if side.distrust]
    if reasons:
        shown = "; ".join(reasons[:_MAX_REASONS])
        more = len(reasons) - _MAX_REASONS
        why = f"{shown}; {more} more" if more > 0 else shown
        return Statement(subject.name, StatementResult.DIFFERS, "", observed, why)
    if modified or unseen:
        why = ", ".join(modified) or f"not observed on {' and '.join(unseen)}"
        return Statement(subject.name, StatementResult.UNPROVEN, "", observed, why)
    minor = [item for item in comparison.minor if item.layer is subject.layer]
    why = f"{len(minor)} harmless difference{'s' * (len(minor) > 1)}" if minor else ""
    return Statement(subject.name, StatementResult.EQUAL, "", observed, why)


def _reasons(layer: Layer, comparison: SnapshotComparison) -> Iterator[str]:
    """Yield the causes and the other differences of a layer."""
    for cause in comparison.causes:
        if cause.layer is layer:
            place = describe_side(comparison, cause)
            yield f"{place}: {cause.message}" if place else cause.message
    for difference in comparison.differences:
        if difference.layer is layer:
            yield describe_change(difference)


def _observe(subject: _Subject, side: Snapshot) -> str:
    """Return the values of a subject in words, "" if the document does not show them."""
    if subject.layer is Layer.PACKAGES:
        return f"{len(side.packages)} packages" if side.lists_packages else ""
    if subject.layer is Layer.VARIABLES:
        names = [key for key in side.values if key.startswith("env.")]
        return f"{len(names)} set" if side.kind == "capture" else ""
    seen = [key for key in subject.keys if side.is_observed(key)]
    if len(seen) < _NEEDED.get(subject.name, len(subject.keys)):
        return ""
    return _format(subject, side.values)


def _format(subject: _Subject, values: Mapping[str, Any]) -> str:
    shown = [values.get(key) for key in subject.keys]
    match subject.layer:
        case Layer.TORCH:
            version, cuda = shown
            return f"{version}, CUDA {cuda or 'none'}" if version else "none"
        case Layer.GPU:
            count, name, driver = shown
            return f"{count or 1} x {name}, driver {driver or '?'}" if name else "none"
        case Layer.CAPACITY:
            return f"{int(shown[0]) / 2**30:.0f} GiB" if isinstance(shown[0], int) else "?"
        case Layer.PATHS:
            return f"the working folder is {shown[0]}"
        case _:
            return " ".join(str(value) for value in shown if value is not None) or "none"
