"""A verification's report as one self-contained page: no script, nothing fetched, readable on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from provision.assets import asset
from provision.probe.values import Status
from provision.safe import safe
from provision.views.outline import Line, Measure, Outline, outline
from provision.views.words import amount, figure, seconds, short

TEMPLATE = "templates/report.html.j2"
_BAR = 60.0
"""Percent of a bar's width at which its bound stands; the rest is room for what lies beyond."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measurement beside its bound: the share of the bar's width that is filled (0 to 100), and whether the value runs off its end."""

    line: Line
    name: str
    measured: str
    bound: str
    source: str
    filled: float
    beyond: bool
    mark: float = _BAR


def report(report: Mapping[str, Any], title: str) -> str:
    """Return the page for a `provision.report/1` document. Every string in it is safe and escaped; `title` is the page's name."""
    from jinja2 import Environment, StrictUndefined

    told = outline(report)
    path = asset(TEMPLATE)
    room = Environment(undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    room.filters.update(amount=amount, figure=figure, seconds=seconds, short=short, word=_word)
    page = room.from_string(path.read_text(encoding="utf-8"))
    return page.render(title=safe(title), told=told, bars=_bars(told), compared=_compared(told), slowest=_slowest(told))


def _bars(told: Outline) -> list[Bar]:
    return [_bar(line, measure) for line in told.lines for measure in line.measures]


def _bar(line: Line, measure: Measure) -> Bar:
    share = _BAR * measure.measured / measure.bound if measure.bound else (101.0 if measure.measured else 0.0)
    plain = measure.unit if measure.unit.startswith("bytes") else ""
    filled = round(max(0.5, min(100.0, share)), 1)
    return Bar(line, measure.name, amount(measure.measured, plain), amount(measure.bound, measure.unit), measure.source, filled, share > 100.0)


def _compared(told: Outline) -> list[Line]:
    return [line for line in told.lines if line.expected]


def _slowest(told: Outline) -> float:
    return max((stage.wall_s for stage in told.stages), default=0.0) or 1.0


def _word(status: Status) -> str:
    match status:
        case Status.PASS:
            return "passed"
        case Status.FAIL:
            return "failed"
        case Status.WARN:
            return "warning"
        case Status.SKIP:
            return "skipped"
        case Status.UNKNOWN:
            return "unknown"
        case _:
            assert_never(status)
