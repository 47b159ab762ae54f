"""A report for a terminal: verdict, proof, problems and their fixes, on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from provision.views.report.model import CheckGroup, ReportView, check_fields

SCREEN_ROWS = 25
"""Rows of output without -v: one screen of the smallest terminal in use (80 x 25)."""
_MIN_WIDTH = 40
_FIELD_ROWS = {"declared": 2, "found": 2, "why": 2, "fix": 3}
_MAX_ID_WIDTH = 24
_NO_LIMIT = 10_000
_CHECK_INDENT = " " * 10
_PROBLEM_WORDS = {Status.FAIL: "failed", Status.UNKNOWN: "unknown", Status.WARN: "warned"}
_STATUS_LABELS = {
    Status.PASS: ("pass", Style.GOOD),
    Status.FAIL: ("FAIL", Style.ERROR),
    Status.WARN: ("warn", Style.WARNING),
    Status.SKIP: ("skip", Style.FAINT),
    Status.UNKNOWN: ("UNKNOWN", Style.WARNING),
}
_OTHER_WORDS = {Status.PASS: "passed", Status.SKIP: "skipped"}


def render_report(report: Report, color: bool, width: int, verbose: bool, path: str = "") -> str:
    """Return a report for a terminal.

    It has at most 25 rows of `width` cells, or every check with `verbose`.
    """
    view, styler, width = ReportView(report, _on_one_line), Styler(color), max(_MIN_WIDTH, width)
    head, foot = list(_head(view, styler, width)), _foot(view, width, path)
    if verbose:
        body = [
            *_every_check(view, styler, width),
            *_details(view, styler, width),
            *_stages(view, styler, width),
        ]
    else:
        wrapped = sum(max(0, display_width(row) - 1) // width for row in foot)
        body = _screen(view, styler, width, SCREEN_ROWS - len(head) - len(foot) - wrapped)
    return "\n".join([*head, *body, *(styler(row, Style.FAINT) for row in foot)]) + "\n"


def _head(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    headline = styler(view.headline, _verdict_style(view))
    counts = f"{view.tally} ({format_seconds(view.seconds)} s)" if view.checks else ""
    if not counts:
        yield headline
    elif len(view.headline) + 2 + display_width(counts) <= width:
        yield f"{headline}  {counts}"
    else:
        yield headline
        yield from _clip(counts, width, 2)
    report, subject = view.report, view.report.subject
    about = [_on_one_line(report.spec_name)]
    if subject.target:
        about.append(f"target {subject.target} ({subject.kind})")
    if report.tier:
        about.append(f"{report.tier} tier")
    yield truncate(", ".join(filter(None, about)), width)
    if report.verdict in ("error", "unverified"):
        yield from _clip(report.sentence, width, 2)
    proven = f": {', '.join(view.proven)}" if view.proven else ""
    yield from _clip(f"proof: {view.proof}{proven}", width, 3)
    if subject.simulated:
        simulated = ", ".join(subject.simulated)
        yield from _clip(f"simulated, not a real device: {simulated}", width, 1)
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


def _screen(view: ReportView, styler: Styler, width: int, max_rows: int) -> list[str]:
    """Return the groups and the problems that fit.

    Groups that passed share a row if the problems need the rows.
    """
    groups = _group_rows(view.groups, styler, width)
    problems = list(_problems(view, styler, width, _NO_LIMIT))
    if len(groups) + len(problems) <= max_rows:
        return groups + problems
    groups = _condensed_groups(view, styler, width)
    return (groups + list(_problems(view, styler, width, max_rows - len(groups))))[:max_rows]


def _condensed_groups(view: ReportView, styler: Styler, width: int) -> list[str]:
    troubled = [group for group in view.groups if _counts(group, _PROBLEM_WORDS)]
    calm = [group.name for group in view.groups if group not in troubled]
    rows: list[str] = []
    if calm:
        rows = _indent(f"no trouble in {', '.join(calm)}", width, 2)
    if len(troubled) <= 3:
        return rows + _group_rows(troubled, styler, width)
    names = [f"{group.name} ({_counts(group, _PROBLEM_WORDS)})" for group in troubled]
    return rows + _indent(f"trouble in {', '.join(names)}", width, 3)


def _indent(text: str, width: int, rows: int) -> list[str]:
    return ["  " + row for row in _clip(text, width - 2, rows)]


def _group_rows(groups: Sequence[CheckGroup], styler: Styler, width: int) -> list[str]:
    names = [group.name for group in groups]
    name_width = min(max(map(display_width, names), default=0), width // 2)
    rows = []
    for group, name in zip(groups, names, strict=True):
        label = truncate(name, name_width)
        padding = " " * (name_width - display_width(label) + 2)
        counts = truncate(_all_counts(group), width - name_width - 4)
        rows.append(f"  {label}{padding}{styler(counts, _group_style(group))}")
    return rows


def _all_counts(group: CheckGroup) -> str:
    return _counts(group, _PROBLEM_WORDS | _OTHER_WORDS)


def _counts(group: CheckGroup, words: Mapping[Status, str]) -> str:
    counts = group.counts
    return ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])


def _problems(view: ReportView, styler: Styler, width: int, max_rows: int) -> Iterator[str]:
    """Yield problems in full, then in a row each, then remarks in a row each.

    The last row counts what does not fit. The first problem is always shown.
    """
    lines = (*view.problems, *view.remarks)
    used, in_full = 0, True
    for number, line in enumerate(lines):
        free = max_rows - used - (number < len(lines) - 1)
        is_problem = number < len(view.problems)
        block = ["", *_block(line, styler, width)] if in_full and is_problem else []
        gap = in_full or number == len(view.problems)
        in_full = bool(block) and (number == 0 or len(block) <= free)
        if not in_full:
            block = [""] * (gap and free > 1) + [_remark(line, styler, width)]
        if number and len(block) > free:
            yield f"(+{len(lines) - number} more, -v shows all)"
            return
        used += len(block)
        yield from block if number else block[: max(1, free)]


def _details(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    for line in (*view.problems, *view.remarks):
        yield ""
        yield from _block(line, styler, width, _NO_LIMIT)


def _block(line: ReportedCheck, styler: Styler, width: int, max_rows: int = 0) -> Iterator[str]:
    label, title = _label(line), line.title
    if line.cause and line.message:
        title += f": {line.message}"
    first, *rest = _clip(title, width - display_width(label) - 1, max_rows or 2)
    yield f"{styler(label, _STATUS_LABELS[line.status][1])} {styler(first, Style.STRONG)}"
    yield from ("  " + styler(row, Style.STRONG) for row in rest)
    for name, text in check_fields(line):
        rows = _clip(text, width - LABEL_WIDTH, max_rows or _FIELD_ROWS[name])
        yield from labeled_rows(name, rows, styler, Style.FAINT)


def _label(line: ReportedCheck) -> str:
    word, _ = _STATUS_LABELS[line.status]
    return f"{word} {truncate(line.id, _MAX_ID_WIDTH)}"


def _remark(line: ReportedCheck, styler: Styler, width: int) -> str:
    label = _label(line)
    text = f"{line.title}: {line.message}"
    if line.fix:
        text += f" ({line.fix})"
    text = truncate(" " + text, max(0, width - display_width(label)))
    return styler(label, _STATUS_LABELS[line.status][1]) + text


def _every_check(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    for group in view.groups:
        yield styler(group.name, Style.STRONG) + "  " + _all_counts(group)
        for line in group.checks:
            text = f"{line.id} {line.title}"
            if line.message or line.observed:
                text += f": {line.message or line.observed}"
            if line.seconds >= 0.1:
                text += f"  {format_seconds(line.seconds)} s"
            word, style = _STATUS_LABELS[line.status]
            rows = wrap(text, width - len(_CHECK_INDENT))
            yield from indent_rest(f"  {styler(f'{word:<7}', style)} ", rows, len(_CHECK_INDENT))
            if line.threshold is not None:
                amount = format_amount(line.threshold.value, line.threshold.unit)
                bound = f"bound {amount} ({line.threshold.source})"
                for row in wrap(bound, width - len(_CHECK_INDENT)):
                    yield _CHECK_INDENT + styler(row, Style.FAINT)


def _stages(view: ReportView, styler: Styler, width: int) -> Iterator[str]:
    if view.stages:
        yield ""
        yield styler("stages", Style.STRONG)
    for stage in view.stages:
        yield truncate(
            f"  {_on_one_line(stage.name)}  {format_seconds(stage.wall_s)} s, "
            f"{format_seconds(stage.cpu_s)} s CPU, {stage.maxrss_mb:.0f} MB, "
            f"{_on_one_line(stage.ended)}",
            width,
        )
        if stage.ended not in ("finished", "exit 0"):
            for row in stage.tail.replace("\t", " ").splitlines():
                yield truncate(f"    {row}", width)


def _clip(text: str, width: int, max_rows: int) -> list[str]:
    return clip(text, width, max_rows)


def _on_one_line(text: str) -> str:
    """Return a safe text with its line breaks and tabs as spaces."""
    return " ".join(format_json_value(text).split())


def _group_style(group: CheckGroup) -> Style | None:
    for status in _PROBLEM_WORDS:
        if group.counts[status]:
            return _STATUS_LABELS[status][1]
    return None


def _verdict_style(view: ReportView) -> Style:
    styles = {"verified": Style.GOOD, "failed": Style.ERROR, "error": Style.ERROR}
    return styles.get(view.report.verdict, Style.WARNING)
