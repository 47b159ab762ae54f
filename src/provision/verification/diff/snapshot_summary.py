"""Sentences about a comparison of two snapshots."""

from __future__ import annotations

from typing import Any

from provision.diagnostics import Severity
from provision.verification.diff.snapshot_model import Cause, Difference, SnapshotComparison
from provision.verification.diff.summary import describe_followers, format_value

_PREFIXES = ("package.", "env.")


def summarize_snapshots(comparison: SnapshotComparison) -> str:
    """Return the comparison in one sentence without a full stop."""
    sentence = _sentence(comparison)
    distrusted = [side.name for side in (comparison.a, comparison.b) if side.distrust]
    if not distrusted:
        return sentence
    verb = "was" if len(distrusted) == 1 else "were"
    return f"{' and '.join(distrusted)} {verb} modified, so this is not a proof: {sentence}"


def describe_side(comparison: SnapshotComparison, cause: Cause) -> str:
    """Return where a cause is a problem, "" if it is unknown which side is wrong."""
    return f"on {comparison.names[cause.side]}" if cause.side else ""


def describe_change(difference: Difference) -> str:
    """Return a difference, for example "torch 2.6.0+cu124 -> 2.6.0+cpu"."""
    key = difference.key
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix)
    key = key.replace("loaded.", "loaded ").removesuffix("_bytes")
    a, b = (_format(difference.key, value) for value in (difference.a, difference.b))
    return f"{key} {a} -> {b}{describe_followers(len(difference.followers))}"


def _format(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, list):
        sizes = [format_value(key, item) for item in value]
        return format_value("", sizes)
    return format_value(key, value)


def _sentence(comparison: SnapshotComparison) -> str:
    a, b = comparison.names.values()
    if not comparison.is_comparable:
        return f"{a} and {b} cannot be compared: no value was observed on both"
    if not comparison.causes:
        if comparison.error is not None:
            return f"no difference between {a} and {b} is known to cause this error"
        return f"{a} and {b} have no difference that matters"
    first = comparison.causes[0]
    if comparison.error is not None and not first.error:
        return (
            f"no difference between {a} and {b} is known to cause this error; the first "
            f"difference that matters anyway: {_lead(comparison, first)}"
        )
    if comparison.error is not None:
        return f"the likeliest cause of the error: {_lead(comparison, first)}"
    if first.severity is Severity.INFO:
        return f"no known requirement is violated on one side only; {_lead(comparison, first)}"
    return f"the difference that matters: {_lead(comparison, first)}"


def _lead(comparison: SnapshotComparison, cause: Cause) -> str:
    place = describe_side(comparison, cause)
    return f"{place}, {cause.message}" if place else cause.message
