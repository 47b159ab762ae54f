"""A run's record as one self-contained page: figures and charts, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.assets import find_asset
from provision.sanitize import escape_control
from provision.views.formatting import format_amount, format_seconds
from provision.views.run_record_text import (
    Curve,
    Figure,
    format_heading,
    list_figures,
    read_curves,
    read_times,
)

TEMPLATE = "templates/run.html.j2"
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
    from jinja2 import Environment, StrictUndefined

    room = Environment(
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    moments = read_times(record)
    drawn = [_chart(curve, moments) for curve in read_curves(record)]
    summaries = [summary for note in record["torch"] for summary in _summaries(note)]
    template = room.from_string(find_asset(TEMPLATE).read_text(encoding="utf-8"))
    return template.render(
        title=format_heading(record),
        rows=list_figures(record),
        charts=drawn,
        summaries=summaries,
        end=format_seconds(max(moments, default=0.0)),
    )


def _chart(curve: Curve, moments: tuple[float, ...]) -> Chart:
    # A curve of RAM beside a terabyte of it would be a flat line: the axis ends at the peak, and
    # the bound is said in words.
    top = max(curve.peak or 0.0, 1.0) if curve.unit == "bytes" else 100.0
    last = max(moments, default=0.0) or 1.0
    known = [
        (moment / last * _WIDTH, value)
        for moment, value in zip(moments, curve.values, strict=False)
        if value is not None
    ]
    points = " ".join(f"{x:.1f},{_HEIGHT - value / top * _HEIGHT:.1f}" for x, value in known)
    step = _WIDTH / max(1, len(moments))
    spans = tuple(
        (round(moments[place] / last * _WIDTH, 1), round(step, 1))
        for place, slowed in enumerate(curve.throttled[: len(moments)])
        if slowed
    )
    return Chart(
        curve.name,
        points,
        spans,
        _format_value(top, curve.unit),
        _description(curve, last, len(spans)),
        _table(curve, moments),
    )


def _description(curve: Curve, last: float, slowed: int) -> str:
    values = [value for value in curve.values if value is not None]
    bound = (
        f" of {_format_value(curve.bound, curve.unit)}"
        if curve.bound and curve.unit == "bytes"
        else ""
    )
    throttled = f" Throttled in {slowed} of {len(curve.values)} samples, shaded." if slowed else ""
    first, end, peak = (
        _format_value(value, curve.unit) for value in (values[0], values[-1], max(values))
    )
    return (
        f"Over {format_seconds(last)} seconds: {first} at the start, {peak}{bound} at most, "
        f"{end} at the end.{throttled}"
    )


def _table(curve: Curve, moments: tuple[float, ...]) -> tuple[Figure, ...]:
    pairs = list(zip(moments, curve.values, strict=False))
    each = max(1, -(-len(pairs) // _MAX_ROWS))
    return tuple(
        Figure(
            format_seconds(moment), "unknown" if value is None else _format_value(value, curve.unit)
        )
        for moment, value in pairs[::each]
    )


def _format_value(value: float, unit: str) -> str:
    return format_amount(value, "bytes") if unit == "bytes" else f"{value:.0f}{unit}"


def _summaries(note: object) -> list[str]:
    cards = note.get("cards") if isinstance(note, Mapping) else None
    texts = (
        [card.get("summary") for card in cards if isinstance(card, Mapping)]
        if isinstance(cards, list)
        else []
    )
    return [escape_control(text)[:8000] for text in texts if isinstance(text, str)]
