"""A verification's report as one self-contained page: no script, nothing fetched, readable on a
phone, in the dark and on paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from provision.agent.probe.model import Status
from provision.assets import find_asset
from provision.sanitize import escape_control
from provision.views.formatting import format_amount, format_number, format_seconds, shorten_digest
from provision.views.report.model import (
    CheckLine,
    Measurement,
    ReportView,
    StageLine,
    build_report_view,
)

_BOUND_PERCENT = 60.0
"""Percent of a bar's width at which its bound stands; the rest is room for what lies beyond."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measurement beside its bound: the share of the bar's width that is filled (0 to 100), and
    whether the value runs off its end.
    """

    line: CheckLine
    name: str
    measured: str
    bound: str
    source: str
    filled: float
    beyond: bool
    band: tuple[float, float]
    """Where the value has to lie, as the band's start and width in percent; (0, 0) where the check
    does not tell.
    """
    mark: float = _BOUND_PERCENT


def render_report(report: Mapping[str, Any], title: str) -> str:
    """Return the page for a `provision.report/1` document. Every string in it is safe and escaped;
    `title` is the page's name.
    """
    told = build_report_view(report)
    return render_template(
        "report.html.j2",
        title=escape_control(title),
        told=told,
        bars=_bars(told),
        compared=_compared(told),
        timeline=_timeline(told),
    )


def render_template(template: str, **values: Any) -> str:
    """Return a page of templates/, filled with values whose strings are safe; they are escaped
    here.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(
        lambda name: find_asset(f"templates/{name}").read_text(encoding="utf-8")
    )
    room = Environment(
        loader=loader,
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    room.filters.update(
        amount=format_amount,
        figure=format_number,
        seconds=format_seconds,
        short=shorten_digest,
        word=_status_word,
    )
    return room.get_template(template).render(**values)


def _bars(told: ReportView) -> list[Bar]:
    return [_bar(line, measure) for line in told.lines for measure in line.measures]


def _bar(line: CheckLine, measure: Measurement) -> Bar:
    share = (
        _BOUND_PERCENT * measure.measured / measure.bound
        if measure.bound
        else (101.0 if measure.measured else 0.0)
    )
    plain = measure.unit if measure.unit.startswith("bytes") else ""
    filled = round(max(0.5, min(100.0, share)), 1)
    return Bar(
        line,
        measure.name,
        format_amount(measure.measured, plain),
        format_amount(measure.bound, measure.unit),
        measure.source,
        filled,
        share > 100.0,
        _band(line.status, measure),
    )


def _band(status: Status, measure: Measurement) -> tuple[float, float]:
    """What holds lies on the right side of its bound, and what does not on the wrong one; on the
    bound itself it cannot be told which is which.
    """
    if status not in (Status.PASS, Status.FAIL, Status.WARN) or measure.measured == measure.bound:
        return 0.0, 0.0
    return (
        (0.0, _BOUND_PERCENT)
        if (measure.measured < measure.bound) is (status is Status.PASS)
        else (_BOUND_PERCENT, 100.0 - _BOUND_PERCENT)
    )


def _compared(told: ReportView) -> list[CheckLine]:
    return [line for line in told.lines if line.expected]


def _timeline(told: ReportView) -> list[tuple[StageLine, float, float]]:
    """Each stage with its start and length in percent of all: stages run one after another."""
    whole, began = told.seconds or 1.0, 0.0
    found = []
    for stage in told.stages:
        found.append((stage, round(100 * began / whole, 2), round(100 * stage.wall_s / whole, 2)))
        began += stage.wall_s
    return found


def _status_word(status: Status) -> str:
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
