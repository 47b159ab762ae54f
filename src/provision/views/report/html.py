"""A report as one self-contained page without scripts, for phones, dark mode and paper."""

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
"""Percent of a bar's width at which its bound is; the rest is for values beyond it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measurement and its bound; `filled` is percent of the bar's width.

    `beyond` marks a value that exceeds the bar. `band` is the start and the width, in percent, in
    which the value has to be; (0, 0) if the check does not define it.
    """

    line: CheckLine
    name: str
    measured: str
    bound: str
    source: str
    filled: float
    beyond: bool
    band: tuple[float, float]
    mark: float = _BOUND_PERCENT


def render_report(report: Mapping[str, Any], title: str) -> str:
    """Return the page for a `provision.report/1` document; its strings are safe and escaped."""
    view = build_report_view(report)
    return render_template(
        "report.html.j2",
        title=escape_control(title),
        told=view,
        bars=[_bar(line, measure) for line in view.lines for measure in line.measures],
        compared=[line for line in view.lines if line.expected],
        timeline=_timeline(view),
    )


def render_template(template: str, **values: Any) -> str:
    """Return a page of templates/ with these values; their strings are safe, and escaped here."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(
        lambda name: find_asset(f"templates/{name}").read_text(encoding="utf-8")
    )
    environment = Environment(
        loader=loader,
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        amount=format_amount,
        figure=format_number,
        seconds=format_seconds,
        short=shorten_digest,
        word=_status_word,
    )
    return environment.get_template(template).render(**values)


def _bar(line: CheckLine, measure: Measurement) -> Bar:
    if measure.bound:
        share = _BOUND_PERCENT * measure.measured / measure.bound
    else:
        share = 101.0 if measure.measured else 0.0
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
    """Return the side of the bound on which values pass; unknown for a value on the bound."""
    if status not in (Status.PASS, Status.FAIL, Status.WARN) or measure.measured == measure.bound:
        return 0.0, 0.0
    if (measure.measured < measure.bound) is (status is Status.PASS):
        return 0.0, _BOUND_PERCENT
    return _BOUND_PERCENT, 100.0 - _BOUND_PERCENT


def _timeline(view: ReportView) -> list[tuple[StageLine, float, float]]:
    """Return each stage with its start and length in percent; stages run one after another."""
    total, start, rows = view.seconds or 1.0, 0.0, []
    for stage in view.stages:
        length = round(100 * stage.wall_s / total, 2)
        rows.append((stage, round(100 * start / total, 2), length))
        start += stage.wall_s
    return rows


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
