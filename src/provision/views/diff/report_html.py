"""Report comparison as one self-contained page: the decisive difference, readings, checks."""

from __future__ import annotations

import json
from functools import partial

from provision.agent.probe.model import ReadingClass
from provision.sanitize import redact
from provision.verification.diff.model import CheckPair, ReadingPair, ReportComparison
from provision.verification.diff.summary import (
    describe_difference,
    describe_expected_values,
    format_value,
    summarize_comparison,
)
from provision.verification.report import to_number
from provision.views.diagnostics.source_location import redact_line
from provision.views.diff import report_text
from provision.views.formatting import map_strings
from provision.views.report.html import render_template

_CLASS_MEANINGS = {
    ReadingClass.IDENTITY: "must be equal in two reports of the same environment",
    ReadingClass.EXACT: "a hash that is equal if everything it depends on is equal",
    ReadingClass.MEASUREMENT: "compared with a tolerance",
    ReadingClass.IDENTITY_WEAK: "rarely matters: a patch release, a build",
    ReadingClass.CONTEXT: "the machine and its settings",
}


def render_page(comparison: ReportComparison) -> str:
    """Return the page of a comparison. Every string in it is safe and escaped."""
    raw = redact(json.dumps(report_text.to_json(comparison), indent=1, ensure_ascii=True))
    safe: ReportComparison = map_strings(comparison, redact_line)
    broken = [change for change in safe.check_changes if change.breaks]
    failing = [*safe.failing_on_both, *safe.one_sided_failures]
    tone = "unverified"
    if broken:
        tone = "failed"
    elif safe.is_same and not failing:
        tone = "verified"
    explained: dict[str, list[str]] = {}
    for change in broken:
        for cause in change.causes:
            explained.setdefault(cause.key, []).append(change.id)
    classes = []
    for kind, meaning in _CLASS_MEANINGS.items():
        members = [pair for pair in safe.readings if pair.kind is kind]
        if members:
            classes.append((kind.value, meaning, members))
    return render_template(
        "diff.html.j2",
        comparison=safe,
        a=safe.a,
        b=safe.b,
        headline=_headline(safe),
        tone=tone,
        sentence=summarize_comparison(safe),
        broken=broken,
        other=[change for change in safe.check_changes if not change.breaks],
        failing=failing,
        explained=explained,
        classes=classes,
        raw=raw,
        describe=describe_difference,
        describe_expected=partial(describe_expected_values, comparison=safe),
        format_value=format_value,
        marks={True: "differs", False: "equal", None: "only one report"},
        bars=_bars,
        messages=_messages,
    )


def _headline(comparison: ReportComparison) -> str:
    if any(change.breaks for change in comparison.check_changes):
        return "WORKS ON ONE, FAILS ON THE OTHER"
    if comparison.is_same:
        return "THE SAME ENVIRONMENT"
    if comparison.tampered:
        return "MODIFIED REPORT"
    return "NOT THE SAME" if comparison.is_comparable else "CANNOT BE COMPARED"


def _bars(pair: ReadingPair) -> tuple[float, float] | None:
    """Return both measurements as percent of the longer one."""
    a, b = to_number(pair.a), to_number(pair.b)
    if pair.kind is not ReadingClass.MEASUREMENT or a is None or b is None or min(a, b) < 0:
        return None
    longer = max(a, b)
    return (round(100 * a / longer, 1), round(100 * b / longer, 1)) if longer else None


def _messages(pair: CheckPair) -> tuple[str, ...]:
    """Return the messages of both sides, or the only one."""
    a, b = pair.messages
    return (f"A: {a}", f"B: {b}") if a and b and a != b else (a or b,)
