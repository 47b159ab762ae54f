"""Snapshot comparison as one self-contained page: causes first, then differences by layer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from provision.diagnostics import Severity
from provision.sanitize import redact
from provision.verification.diff.layers import Layer
from provision.verification.diff.snapshot_model import SnapshotComparison
from provision.verification.diff.snapshot_summary import describe_side, summarize_snapshots
from provision.verification.diff.summary import format_value
from provision.views.diagnostics.source_location import redact_line
from provision.views.diff import snapshot_text
from provision.views.formatting import map_strings
from provision.views.report.html import render_template

_TONES = {Severity.ERROR: "fail", Severity.WARNING: "warn"}


def render_page(comparison: SnapshotComparison) -> str:
    """Return the page of a comparison. Every string in it is safe and escaped."""
    raw = redact(json.dumps(snapshot_text.to_json(comparison), indent=1, ensure_ascii=True))
    safe: SnapshotComparison = map_strings(_without_values(comparison), redact_line)
    layers = []
    for layer in Layer:
        rows = [item for item in safe.differences if item.layer is layer]
        minor = [item for item in safe.minor if item.layer is layer]
        if rows or minor:
            layers.append((layer.value, rows, minor))
    return render_template(
        "snapshot_diff.html.j2",
        comparison=safe,
        a=safe.a,
        b=safe.b,
        headline=_headline(safe),
        tone=_tone(safe),
        sentence=_sentence(safe),
        layers=layers,
        raw=raw,
        where=partial(describe_side, safe),
        tones=_TONES,
        format_value=format_value,
    )


def _without_values(comparison: SnapshotComparison) -> SnapshotComparison:
    """Return the comparison without the values of its sides, which the page does not show."""
    a, b = (
        replace(side, name=redact_line(side.name), values={}, requirers={})
        for side in (comparison.a, comparison.b)
    )
    return comparison._replace(a=a, b=b)


def _is_broken(comparison: SnapshotComparison) -> bool:
    return any(cause.severity is Severity.ERROR for cause in comparison.causes)


def _tone(comparison: SnapshotComparison) -> str:
    if comparison.is_same:
        return "verified"
    return "failed" if _is_broken(comparison) else "unverified"


def _sentence(comparison: SnapshotComparison) -> str:
    """Return the summary with a capital letter, unless it begins with the name of a side."""
    text = summarize_snapshots(comparison)
    return text[:1].upper() + text[1:] if text.startswith(("the ", "no ")) else text


def _headline(comparison: SnapshotComparison) -> str:
    if not comparison.is_comparable:
        return "CANNOT BE COMPARED"
    if comparison.is_same:
        return "NOTHING THAT MATTERS DIFFERS"
    return "A PROBLEM ON ONE SIDE" if _is_broken(comparison) else "NOT THE SAME"
