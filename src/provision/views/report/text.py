"""A report for a terminal: verdict, proof, counts, and each failure with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provision.agent.probe.model import Status
from provision.sanitize import escape_line
from provision.verification.report import Report, ReportedCheck
from provision.views.formatting import (
    LABEL_WIDTH,
    Style,
    Styler,
    clip,
    display_width,
    format_amount,
    format_json_value,
    format_seconds,
    indent_rest,
    labeled_rows,
    shorten_digest,
    truncate,
    wrap,
)
from provision.views.report.model import (
    CheckGroup,
    ReportView,
    check_fields,
    describe_check,
    describe_counts,
)

MAX_IN_FULL = 6
"""Failures that are shown in full without -v; the next ones take a line each, with the fix."""
MAX_LISTED = 20
"""Failures and warnings that are shown without -v."""
_MAX_ROWS = 10
"""Rows of one text without -v: only output of other programs is longer."""
_MIN_WIDTH = 40
_MAX_ID_WIDTH = 24
_CHECK_INDENT = " " * 10
_STATUS_LABELS = {
    Status.PASS: ("pass", Style.GOOD),
    Status.FAIL: ("FAIL", Style.ERROR),
    Status.WARN: ("warn", Style.WARNING),
    Status.SKIP: ("n/a", Style.FAINT),
    Status.UNKNOWN: ("UNKNOWN", Style.WARNING),
}


def render_report(report: Report, color: bool, width: int, verbose: bool, path: str = "") -> str:
    """Return a report for a terminal of `width` cells; every check and stage with `verbose`."""
    view, styler, width = ReportView(report, _on_one_line), Styler(color), max(_MIN_WIDTH, width)
    rows = [*_head(view, styler, width)]
    if verbose:
        rows += _every_check(view, styler, width)
        for check in (*view.problems, *view.remarks):
            rows += ["", *_block(check, styler, width, None)]
        rows += _stages(view, styler, width)
    else:
        rows += _group_rows(view, styler, width)
        rows += _problems(view, styler, width)
    rows += (styler(row, Style.FAINT) for row in _foot(view, width, path))
    return "\n".join(rows) + "\n"


def _head(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    headline, seconds = styler(view.headline, _verdict_style(view)), format_seconds(view.seconds)
    room = width - len(view.headline) - 2
    counts = f"{view.tally}, in {seconds} s"
    if display_width(counts) > room:
        # The reasons are shown with the groups too.
        counts = f"{describe_counts(view.checks, 'check')}, in {seconds} s"
    if not view.checks:
        yield headline
    elif display_width(counts) <= room:
        yield f"{headline}  {counts}"
    else:
        yield headline
        yield from clip(counts, width, _MAX_ROWS)
    report, subject = view.report, view.report.subject
    about = [_on_one_line(report.spec_name)]
    if subject.target:
        about.append(f"target {subject.target} ({subject.kind})")
    if report.tier:
        about.append(f"{report.tier} tier")
    texts = [", ".join(filter(None, about))]
    if report.verdict in ("error", "unverified"):
        texts.append(report.sentence)
    texts.append(f"proof: {view.proof}" + (f": {', '.join(view.proven)}" if view.proven else ""))
    if subject.simulated:
        texts.append(f"simulated, not a real device: {', '.join(subject.simulated)}")
    for text in texts:
        yield from clip(text, width, _MAX_ROWS)
    yield ""


def _foot(view: ReportView, width: int, path: str) -> list[str]:
    """Return path and identity; the path is never cut, so that it can be copied."""
    parts = []
    if path:
        parts.append(f"report {escape_line(path)}")
    if view.report.identity:
        digest = shorten_digest(_on_one_line(view.report.identity))
        parts.append(f"identity {truncate(digest, _MAX_ID_WIDTH)}")
    joined = "  ".join(parts)
    return ["", joined] if display_width(joined) <= width else ["", *parts]


def _group_rows(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    """Yield the counts of each group, and a row for the groups in which no check applies."""
    groups = [group for group in view.groups if group.applies]
    name_width = min(max((display_width(group.name) for group in groups), default=0), width // 2)
    for group in groups:
        name = truncate(group.name, name_width)
        lead = f"  {name}{' ' * (name_width - display_width(name) + 2)}"
        statuses = {check.status for check in group.checks}
        troubled = [
            status for status in (Status.FAIL, Status.UNKNOWN, Status.WARN) if status in statuses
        ]
        style = _STATUS_LABELS[troubled[0]][1] if troubled else None
        rows = wrap(describe_counts(group.checks), width - name_width - 4)
        yield from indent_rest(lead, (styler(row, style) for row in rows), name_width + 4)
    yield from _inapplicable(view, styler, width)


def _inapplicable(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    for group in view.inapplicable:
        rows = (styler(row, Style.FAINT) for row in clip(group.name, width - 2, _MAX_ROWS))
        yield from indent_rest("  ", rows, 2)


def _problems(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    """Yield failures in full up to a limit, then the rest on a line each with the fix."""
    listed = [*view.problems, *view.remarks]
    in_full = min(MAX_IN_FULL, len(view.of(Status.FAIL)))
    for check in listed[:in_full]:
        yield ""
        yield from _block(check, styler, width, _MAX_ROWS)
    rest: dict[tuple[Status, str, str], list[ReportedCheck]] = {}
    for check in listed[in_full:MAX_LISTED]:
        rest.setdefault((check.status, check.message, check.fix), []).append(check)
    if rest:
        yield ""
    for checks in rest.values():
        yield from _brief(checks, styler, width)
    if len(listed) > MAX_LISTED:
        yield f"(+{len(listed) - MAX_LISTED} more, -v shows all)"


def _block(check: ReportedCheck, styler: Styler, width: int, max_rows: int | None) -> Iterator[str]:
    text = describe_check(check) if check.cause else check.title
    yield from _title_rows(check, text, styler, width, max_rows, Style.STRONG)
    for name, text in check_fields(check):
        rows = clip(text, width - LABEL_WIDTH, max_rows)
        yield from labeled_rows(name, rows, styler, Style.FAINT)


def _brief(checks: Sequence[ReportedCheck], styler: Styler, width: int) -> Iterator[str]:
    """Yield checks with one status, message and fix, without declared and found values."""
    first, *more = checks
    text = describe_check(first)
    if more:
        titles = ", ".join(f"{check.id} {check.title}" for check in more)
        text = f"{first.title}, {titles}: {first.message}"
    yield from _title_rows(first, text, styler, width, _MAX_ROWS, None)
    if first.fix:
        yield from labeled_rows("fix", clip(first.fix, width - LABEL_WIDTH, _MAX_ROWS))


def _title_rows(
    check: ReportedCheck,
    text: str,
    styler: Styler,
    width: int,
    max_rows: int | None,
    text_style: Style | None,
) -> Iterator[str]:
    word, style = _STATUS_LABELS[check.status]
    label = f"{word} {truncate(check.id, _MAX_ID_WIDTH)}"
    first, *rest = clip(f"{label} {text}", width - 2, max_rows)
    yield styler(label, style) + styler(first.removeprefix(label), text_style)
    yield from ("  " + styler(row, text_style) for row in rest)


def _every_check(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    for group in view.groups:
        if group.applies:
            yield styler(group.name, Style.STRONG) + "  " + describe_counts(group.checks)
            yield from _check_rows(group, styler, width)
    yield from _inapplicable(view, styler, width)


def _check_rows(group: CheckGroup, styler: Styler, width: int) -> Iterator[str]:
    """Yield each check of a group; those that do not apply share a row by reason."""
    skipped: dict[str, list[str]] = {}
    rows: list[tuple[Status, str]] = []
    for check in group.checks:
        if check.status is Status.SKIP:
            skipped.setdefault(check.message, []).append(f"{check.id} {check.title}")
            continue
        text = f"{check.id} {describe_check(check)}"
        if check.seconds >= 0.1:
            text += f"  {format_seconds(check.seconds)} s"
        if check.threshold is not None:
            amount = format_amount(check.threshold.value, check.threshold.unit)
            text += f"\nthreshold {amount} ({check.threshold.source})"
        rows.append((check.status, text))
    for reason, titles in skipped.items():
        rows.append((Status.SKIP, f"{', '.join(titles)}: {reason}"))
    for status, text in rows:
        word, style = _STATUS_LABELS[status]
        lines = wrap(text, width - len(_CHECK_INDENT))
        yield from indent_rest(f"  {styler(f'{word:<7}', style)} ", lines, len(_CHECK_INDENT))


def _stages(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    if view.stages:
        yield ""
        yield styler("stages", Style.STRONG)
    for stage in view.stages:
        summary = (
            f"{_on_one_line(stage.name)}  {format_seconds(stage.wall_s)} s, "
            f"{format_seconds(stage.cpu_s)} s CPU, {stage.maxrss_mb:.0f} MB, "
            f"{_on_one_line(stage.ended)}"
        )
        yield from indent_rest("  ", wrap(summary, width - 4), 4)
        if stage.ended not in ("finished", "exit 0"):
            for line in stage.tail.replace("\t", " ").splitlines():
                yield from indent_rest("    ", wrap(line, width - 6), 6)


def _on_one_line(text: str) -> str:
    """Return a safe text with its line breaks and tabs as spaces."""
    return " ".join(format_json_value(text).split())


def _verdict_style(view: ReportView) -> Style:
    styles = {"verified": Style.GOOD, "failed": Style.ERROR, "error": Style.ERROR}
    return styles.get(view.report.verdict, Style.WARNING)
