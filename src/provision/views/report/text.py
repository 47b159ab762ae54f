"""A verification's report as a terminal shows it: the verdict, what was proven, what is wrong and
how to fix it, in one screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from provision.agent.probe.model import Status
from provision.sanitize import escape_line
from provision.views.formatting import format_seconds, shorten_digest
from provision.views.report.model import CheckGroup, CheckLine, ReportView, build_report_view
from provision.views.terminal_text import ELLIPSIS, Style, Styler, display_width, truncate, wrap

SCREEN_ROWS = 25
"""Rows of output without -v: one screen of the smallest terminal in use (80 x 25)."""
_NARROWEST = 40
_FIELD_ROWS = {"declared": 2, "found": 2, "why": 2, "fix": 3}
_LEAD = 12
_LABEL = 24
_NO_LIMIT = 10_000


def render_report(
    report: Mapping[str, Any], color: bool, width: int, verbose: bool, path: str = ""
) -> str:
    """Return the terminal form of a `provision.report/1` document: at most 25 rows of `width`
    cells, or every check with `verbose`.
    """
    told, pen, width = build_report_view(report), Styler(color), max(_NARROWEST, width)
    head, foot = list(_head(told, pen, width)), _foot(told, width, path)
    if verbose:
        body = [
            *_every_check(told, pen, width),
            *_details(told, pen, width),
            *_stages(told, pen, width),
        ]
    else:
        wrapped = sum(max(0, display_width(row) - 1) // width for row in foot)
        body = _screen(told, pen, width, SCREEN_ROWS - len(head) - len(foot) - wrapped)
    return "\n".join([*head, *body, *(pen(row, Style.FAINT) for row in foot)]) + "\n"


def _head(told: ReportView, pen: Styler, width: int) -> Iterator[str]:
    rest = f"  {told.tally} ({format_seconds(told.seconds)} s)" if told.lines else ""
    beside = len(told.headline) + display_width(rest) <= width
    yield pen(told.headline, _verdict_style(told)) + (rest if beside else "")
    if not beside:
        yield from _clipped(rest.strip(), width, 2)
    about = (
        told.name,
        f"target {told.target} ({told.kind})" if told.target else "",
        f"{told.tier} tier" if told.tier else "",
    )
    yield truncate(", ".join(_on_one_line(part) for part in about if part), width)
    if told.result in ("error", "unverified"):
        yield from _clipped(told.sentence, width, 2)
    yield from _clipped(
        f"proof: {told.proof}" + (f": {', '.join(told.proven)}" if told.proven else ""), width, 3
    )
    if told.simulated:
        yield from _clipped("simulated, not a real device: " + ", ".join(told.simulated), width, 1)
    yield ""


def _foot(told: ReportView, width: int, path: str) -> list[str]:
    """The path is never cut, for it is there to be copied."""
    identity = (
        f"identity {truncate(shorten_digest(_on_one_line(told.identity)), _LABEL)}"
        if told.identity
        else ""
    )
    parts = [part for part in (f"report {escape_line(path)}" if path else "", identity) if part]
    joined = "  ".join(parts)
    return ["", joined] if display_width(joined) <= width else ["", *parts]


def _screen(told: ReportView, pen: Styler, width: int, room: int) -> list[str]:
    """The groups and as many problems as there is room for; groups that passed share a row when
    problems need the room.
    """
    full = [
        _group(group, pen, width, max(display_width(_on_one_line(g.name)) for g in told.groups))
        for group in told.groups
    ]
    problems = list(_problems(told, pen, width, _NO_LIMIT))
    if len(full) + len(problems) <= room:
        return full + problems
    few = _condensed_groups(told, pen, width)
    return (few + list(_problems(told, pen, width, room - len(few))))[:room]


def _condensed_groups(told: ReportView, pen: Styler, width: int) -> list[str]:
    calm = ", ".join(
        _on_one_line(group.name) for group in told.groups if not _problem_counts(group)
    )
    troubled = [group for group in told.groups if _problem_counts(group)]
    first = _indented(f"no trouble in {calm}", width, 2) if calm else []
    if len(troubled) > 3:
        return first + _indented(
            "trouble in "
            + ", ".join(
                f"{_on_one_line(group.name)} ({_problem_counts(group)})" for group in troubled
            ),
            width,
            3,
        )
    widest = max((display_width(_on_one_line(group.name)) for group in troubled), default=0)
    return first + [_group(group, pen, width, widest) for group in troubled]


def _indented(text: str, width: int, rows: int) -> list[str]:
    return ["  " + row for row in _clipped(text, width - 2, rows)]


def _group(group: CheckGroup, pen: Styler, width: int, widest: int) -> str:
    widest = min(widest, width // 2)
    name = truncate(_on_one_line(group.name), widest)
    return f"  {name}{' ' * (widest - display_width(name) + 2)}" + pen(
        truncate(_counts(group), width - widest - 4), _group_style(group)
    )


def _counts(group: CheckGroup) -> str:
    said = (
        _problem_counts(group),
        *(
            f"{group.counts[status]} {word}"
            for status, word in ((Status.PASS, "passed"), (Status.SKIP, "skipped"))
            if group.counts[status]
        ),
    )
    return ", ".join(part for part in said if part)


def _problem_counts(group: CheckGroup) -> str:
    said = ((Status.FAIL, "failed"), (Status.UNKNOWN, "unknown"), (Status.WARN, "warned"))
    return ", ".join(
        f"{group.counts[status]} {word}" for status, word in said if group.counts[status]
    )


def _problems(told: ReportView, pen: Styler, width: int, room: int) -> Iterator[str]:
    """Problems in full, then in a row each, then remarks in a row each; what does not fit is
    counted in the last row. The first problem is always there.
    """
    lines = (*told.problems, *told.remarks)
    used, full = 0, True
    for place, line in enumerate(lines):
        free = room - used - (place < len(lines) - 1)
        block = ["", *_block(line, pen, width)] if full and place < len(told.problems) else []
        gap = full or place == len(told.problems)
        full = bool(block) and (place == 0 or len(block) <= free)
        if not full:
            block = [""] * (gap and free > 1) + [_remark(line, pen, width)]
        if place and len(block) > free:
            yield f"(+{len(lines) - place} more, -v shows all)"
            return
        used += len(block)
        yield from block if place else block[: max(1, free)]


def _details(told: ReportView, pen: Styler, width: int) -> Iterator[str]:
    for line in (*told.problems, *told.remarks):
        yield ""
        yield from _block(line, pen, width, _NO_LIMIT)


def _block(line: CheckLine, pen: Styler, width: int, rows: int = 0) -> Iterator[str]:
    label = f"{_status_word(line.status)} {truncate(_on_one_line(line.id), _LABEL)}"
    message = line.message if line.cause else ""
    title = _on_one_line(line.title) + (f": {_on_one_line(message)}" if message else "")
    first, *rest = _clipped(title, width - display_width(label) - 1, rows or 2)
    yield f"{pen(label, _status_style(line.status))} {pen(first, Style.STRONG)}"
    yield from ("  " + pen(row, Style.STRONG) for row in rest)
    for word, text in (
        ("declared", line.expected),
        ("found", line.found),
        ("why", line.cause or line.message),
        ("fix", line.fix),
    ):
        yield from _field(word, text, pen, width, rows or _FIELD_ROWS[word])


def _field(word: str, text: str, pen: Styler, width: int, rows: int) -> Iterator[str]:
    if text:
        first, *rest = _clipped(text, width - _LEAD, rows)
        yield "  " + pen(word, Style.FAINT) + " " * (_LEAD - 2 - len(word)) + first
        yield from (" " * _LEAD + row for row in rest)


def _remark(line: CheckLine, pen: Styler, width: int) -> str:
    label = f"{_status_word(line.status)} {truncate(_on_one_line(line.id), _LABEL)}"
    said = f" {_on_one_line(line.title)}: {_on_one_line(line.message)}" + (
        f" ({_on_one_line(line.fix)})" if line.fix else ""
    )
    return pen(label, _status_style(line.status)) + truncate(
        said, max(0, width - display_width(label))
    )


def _every_check(told: ReportView, pen: Styler, width: int) -> Iterator[str]:
    for group in told.groups:
        yield pen(_on_one_line(group.name), Style.STRONG) + "  " + _counts(group)
        for line in group.lines:
            seen = (
                f": {_on_one_line(line.message or line.observed)}"
                if line.observed or line.message
                else ""
            )
            took = f"  {format_seconds(line.seconds)} s" if line.seconds >= 0.1 else ""
            first, *rest = wrap(
                f"{_on_one_line(line.id)} {_on_one_line(line.title)}{seen}{took}", width - 10
            )
            yield (
                "  "
                + pen(f"{_status_word(line.status):<7}", _status_style(line.status))
                + " "
                + first
            )
            yield from (" " * 10 + row for row in rest)
            if line.bound:
                bound = f"bound {_on_one_line(line.bound)} ({_on_one_line(line.source)})"
                yield from (" " * 10 + pen(row, Style.FAINT) for row in wrap(bound, width - 10))


def _stages(told: ReportView, pen: Styler, width: int) -> Iterator[str]:
    if told.stages:
        yield ""
        yield pen("stages", Style.STRONG)
    for stage in told.stages:
        yield truncate(
            f"  {_on_one_line(stage.name)}  {format_seconds(stage.wall_s)} s, "
            f"{format_seconds(stage.cpu_s)} s CPU, {stage.maxrss_mb:.0f} MB, "
            f"{_on_one_line(stage.ended)}",
            width,
        )
        if stage.ended not in ("finished", "exit 0"):
            yield from (
                truncate(f"    {row}", width) for row in stage.tail.replace("\t", " ").splitlines()
            )


def _clipped(text: str, width: int, rows: int) -> list[str]:
    lines = wrap(_on_one_line(text), width)
    return (
        lines
        if len(lines) <= rows
        else [
            *lines[: rows - 1],
            truncate(lines[rows - 1] + " " * width, width - len(ELLIPSIS)).rstrip(" .") + ELLIPSIS,
        ]
    )


def _on_one_line(text: str) -> str:
    """One line of text that is already safe: its line breaks and tabs become spaces."""
    return " ".join(text.split())


def _status_word(status: Status) -> str:
    match status:
        case Status.PASS:
            return "pass"
        case Status.FAIL:
            return "FAIL"
        case Status.WARN:
            return "warn"
        case Status.SKIP:
            return "skip"
        case Status.UNKNOWN:
            return "UNKNOWN"
        case _:
            assert_never(status)


def _status_style(status: Status) -> Style:
    match status:
        case Status.PASS:
            return Style.GOOD
        case Status.FAIL:
            return Style.ERROR
        case Status.WARN | Status.UNKNOWN:
            return Style.WARNING
        case Status.SKIP:
            return Style.FAINT
        case _:
            assert_never(status)


def _group_style(group: CheckGroup) -> Style | None:
    return next(
        (
            _status_style(status)
            for status in (Status.FAIL, Status.UNKNOWN, Status.WARN)
            if group.counts[status]
        ),
        None,
    )


def _verdict_style(told: ReportView) -> Style:
    return {"verified": Style.GOOD, "failed": Style.ERROR, "error": Style.ERROR}.get(
        told.result, Style.WARNING
    )
