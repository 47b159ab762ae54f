"""A report as one self-contained page without scripts, for phones, dark mode and paper."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision.agent.probe.model import Status
from provision.assets import find_asset
from provision.sanitize import escape_control
from provision.verification.report import Report, ReportedCheck
from provision.views.formatting import (
    format_amount,
    format_json_value,
    format_number,
    format_seconds,
    shorten_digest,
)
from provision.views.report.model import (
    Measurement,
    ReportView,
    StageLine,
    describe_counts,
    found_text,
    list_measurements,
)

if TYPE_CHECKING:
    from jinja2 import Environment

_STATUS_WORDS = {
    Status.PASS: "passed",
    Status.FAIL: "failed",
    Status.WARN: "warning",
    Status.SKIP: "n/a",
    Status.UNKNOWN: "unknown",
}
_BOUND_PERCENT = 60.0
"""Percent of a bar's width at which its bound is; the rest is for values beyond it."""


_BREAK_POINT = re.compile(
    r"(?<=\S{10})(?:(?<=/)(?=[^\s/]\S{9})|(?<=[^/_.,:=@+-][_.,:=@+-])(?=[^\s/_.,:=@+-]\S{9}))"
)
"""Behind separators of long paths and identifiers, where a line may end."""
_WHOLE = re.compile(
    r"(\d(?:\.\d+)?e-\d+|\d{4}-\d\d-\d\dT[\d:]+Z|(?<![\w.,])\d[\d.,]* (?:[KMGT]iB|GB|bytes)\b)",
    re.ASCII,
)
"""Numbers, times and sizes with their units, in which no line ends."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A measurement and its threshold; `filled` is percent of the bar's width.

    `excess` describes a value that is larger than the bar, "" for others.
    `band` is the start and the width, in percent, of the values that pass; (0, 0) if the check
    does not define it.
    """

    check: ReportedCheck
    measurement: Measurement
    measured: str
    bound: str
    filled: float
    excess: str
    band: tuple[float, float]
    mark: float = _BOUND_PERCENT


def render_report(report: Report, title: str) -> str:
    """Return the page of a report; its strings are safe and escaped."""
    view = ReportView(report)
    return render_template(
        "report.html.j2",
        title=escape_control(title),
        view=view,
        report=view.report,
        subject=view.report.subject,
        direct={
            key.removeprefix("package."): format_json_value(value)
            for key, value in view.report.values.items()
            if key.startswith("package.")
        },
        bars=[
            _bar(check, measurement)
            for check in view.report.checks
            for measurement in list_measurements(check)
        ],
        timeline=_timeline(view),
    )


def render_template(template: str, **values: Any) -> str:
    """Return a page of templates/ with these values; their strings are safe, and escaped here."""
    return template_environment().get_template(template).render(**values)


@functools.cache
def template_environment() -> Environment:
    """Return the templates of pages. It keeps them: compiling one takes longer than rendering."""
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
        seconds=format_seconds,
        short=shorten_digest,
        word=_STATUS_WORDS.__getitem__,
        text=format_json_value,
        found=found_text,
        counts=describe_counts,
        breakable=_breakable,
    )
    return environment


def _breakable(text: str) -> str:
    """Return a text as escaped HTML in which long words may break behind separators.

    Browsers also break behind the hyphen of 1.2e-07 and of a date; these stay whole.
    """
    from markupsafe import Markup

    pieces = [Markup("<wbr>").join(_BREAK_POINT.split(part)) for part in _WHOLE.split(text)]
    pieces[1::2] = [Markup('<span class="whole">{}</span>').format(part) for part in pieces[1::2]]
    return Markup().join(pieces)


def _bar(check: ReportedCheck, measurement: Measurement) -> Bar:
    measured, bound, unit = measurement.measured, measurement.bound, measurement.unit
    share, excess = 100.0 if measured else 0.0, ""
    if bound:
        share = _BOUND_PERCENT * measured / bound
        excess = f"{format_number(measured / bound)} times the threshold" if share > 100.0 else ""
    return Bar(
        check,
        measurement,
        format_amount(measured, unit if unit.startswith("bytes") else ""),
        format_amount(bound, unit),
        round(max(0.5, min(100.0, share)), 1),
        excess,
        _band(check.status, measurement),
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
