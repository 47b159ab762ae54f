"""A run's record as one self-contained page: figures and charts, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.sanitize import escape_control
from provision.verification.report import rows_of
from provision.views.formatting import format_seconds
from provision.views.report.html import render_template
from provision.views.run_record_text import (
    Curve,
    Figure,
    format_heading,
    format_value,
    list_figures,
    read_curves,
    read_times,
)

_WIDTH, _HEIGHT = 640.0, 120.0
_MAX_ROWS = 60


class Chart(NamedTuple):
    """One curve as SVG; `spans` are throttled intervals as (x, width)."""

    name: str
    points: str
    spans: tuple[tuple[float, float], ...]
    top: str
    description: str
    table: tuple[Figure, ...]


def render_page(record: Mapping[str, Any]) -> str:
    """Return the page of a `provision.run/1` record. Every string in it is safe and escaped."""
    moments = read_times(record)
    summaries = [
        card.get("summary") for note in rows_of(record, "torch") for card in rows_of(note, "cards")
    ]
    return render_template(
        "run.html.j2",
        title=format_heading(record),
        rows=list_figures(record),
        charts=[_chart(curve, moments) for curve in read_curves(record)],
        summaries=[escape_control(text)[:8000] for text in summaries if isinstance(text, str)],
        end=format_seconds(max(moments, default=0.0)),
    )


def _chart(curve: Curve, moments: tuple[float, ...]) -> Chart:
    # A curve of RAM in a terabyte of it would be a flat line: the axis ends at the peak, and the
    # description names the bound.
    top = max(curve.peak or 0.0, 1.0) if curve.unit == "bytes" else 100.0
    last = max(moments, default=0.0) or 1.0
    points = " ".join(
        f"{moment / last * _WIDTH:.1f},{_HEIGHT - value / top * _HEIGHT:.1f}"
        for moment, value in zip(moments, curve.values, strict=False)
        if value is not None
    )
    width = round(_WIDTH / max(1, len(moments)), 1)
    spans = tuple(
        (round(moment / last * _WIDTH, 1), width)
        for moment, throttled in zip(moments, curve.throttled, strict=False)
        if throttled
    )
    return Chart(
        curve.name,
        points,
        spans,
        format_value(top, curve.unit),
        _description(curve, last, len(spans)),
        _table(curve, moments),
    )


def _description(curve: Curve, last: float, throttled: int) -> str:
    known = [value for value in curve.values if value is not None]
    first, end, peak = (
        format_value(value, curve.unit) for value in (known[0], known[-1], max(known))
    )
    if curve.bound and curve.unit == "bytes":
        peak += f" of {format_value(curve.bound, curve.unit)}"
    note = f" Throttled in {throttled} of {len(curve.values)} samples, shaded." if throttled else ""
    return (
        f"Over {format_seconds(last)} seconds: {first} at the start, {peak} at the peak, "
        f"{end} at the end.{note}"
    )


def _table(curve: Curve, moments: tuple[float, ...]) -> tuple[Figure, ...]:
    pairs = list(zip(moments, curve.values, strict=False))
    return tuple(
        Figure(
            format_seconds(moment), "unknown" if value is None else format_value(value, curve.unit)
        )
        for moment, value in pairs[:: max(1, -(-len(pairs) // _MAX_ROWS))]
    )
