"""Findings in full: an excerpt of the text, the reason, the help, and the fix as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from provision.diagnostics import Applicability, Diagnostic
from provision.sanitize import redact
from provision.views.diagnostics.excerpt import (
    Gutter,
    LabeledSpan,
    find_masked_lines,
    find_secret_blocks,
    render_excerpt,
    render_line,
    split_lines,
)
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import (
    SEVERITY_LABELS,
    FindingSource,
    format_location,
    redact_line,
)
from provision.views.formatting import ELLIPSIS, Style, Styler, to_safe_text, truncate, wrap

_NARROWEST = 20
_SHOWN_DIFFERENCE = 20
"""Cells of a changed line that are shown from its first difference."""
_FIX_LABELS = {
    Applicability.SAFE: "fix [*]",
    Applicability.UNSAFE: "fix (unsafe)",
    Applicability.MANUAL: "fix (by hand)",
}


@dataclass(frozen=True, slots=True)
class _Context:
    """Shared by all findings: the source, its files in lines, and the lines to mask."""

    source: FindingSource
    lines: Mapping[str, list[str]]
    masked: Callable[[str], frozenset[int]]
    styler: Styler
    width: int


def render_in_full(
    diagnostics: Sequence[Diagnostic], source: FindingSource, color: bool, width: int
) -> Iterator[str]:
    """Yield each finding: title, excerpt, reason, help and fix; `width` in cells."""
    secret = [
        source.span(where)
        for finding in diagnostics
        if may_contain_secret(finding)
        for where in (finding.where, *(related.where for related in finding.related))
    ]
    lines = {name: split_lines(text.removeprefix("\ufeff")) for name, text in source.files.items()}

    @cache
    def masked(name: str) -> frozenset[int]:
        """Return the lines of a file to mask; a large file that no finding shows is not read."""
        in_file = (span for span in secret if span.file == name)
        return find_masked_lines(lines.get(name, []), in_file)

    context = _Context(source, lines, masked, Styler(color), width)
    for finding in diagnostics:
        yield "\n".join(_finding(finding, context))


def _finding(finding: Diagnostic, context: _Context) -> Iterator[str]:
    span, styler = context.source.span, context.styler
    main = LabeledSpan(span(finding.where), "", True, SEVERITY_LABELS[finding.severity][1])
    related = [
        LabeledSpan(span(one.where), redact_line(one.text), False, Style.FRAME)
        for one in finding.related
    ]
    marks = [main, *related]
    gutter = Gutter.for_lines(max(mark.span.start.line for mark in marks), context.width, styler)
    yield from _title(finding, context)
    for name in dict.fromkeys(mark.span.file for mark in marks):
        here = [mark for mark in marks if mark.span.file == name]
        arrow = styler("-->" if here[0].primary else ":::", Style.FRAME)
        yield f"{' ' * gutter.number_width}{arrow} {format_location(here[0].span)}"
        if name in context.lines:
            lines, masked = context.lines[name], context.masked(name)
            if may_contain_secret(finding):
                masked |= find_secret_blocks(lines)
            yield gutter()
            yield from render_excerpt(lines, here, masked, gutter)
            yield gutter()
    for label, text in (("why", finding.why), ("help", finding.help), ("source", finding.source)):
        yield from _note(label, text, gutter)
    yield from _fix_diff(finding, context, gutter)


def _title(finding: Diagnostic, context: _Context) -> Iterator[str]:
    styler, label = context.styler, f"{finding.severity}[{finding.id}]"
    title = f"{label} {finding.name}: {redact_line(finding.message)}"
    first, *rest = wrap(title, max(_NARROWEST, context.width - 2))
    lead = styler(label, SEVERITY_LABELS[finding.severity][1])
    yield lead + styler(first.removeprefix(label), Style.STRONG)
    yield from (styler("  " + row, Style.STRONG) for row in rest)


def _note(label: str, text: str, gutter: Gutter) -> Iterator[str]:
    if text:
        lead = len(label) + 2
        safe = to_safe_text(text).replace("\t", " ")
        first, *rest = wrap(safe, max(_NARROWEST, gutter.text_width - lead))
        yield gutter("", f"{gutter.styler(f'{label}:', Style.STRONG)} {first}", "=")
        yield from (" " * (gutter.number_width + 3 + lead) + row for row in rest)


def _fix_diff(finding: Diagnostic, context: _Context, gutter: Gutter) -> Iterator[str]:
    """Yield the fix as a small diff.

    A finding about a secret shows the title alone, because its lines contain the secret.
    """
    if finding.fix is None:
        return
    texts = context.source.apply_fixes((finding.fix,))
    applicability = finding.fix.applicability if texts else Applicability.MANUAL
    yield from _note(_FIX_LABELS[applicability], finding.fix.title, gutter)
    if may_contain_secret(finding):
        return
    for name, text in texts.items():
        masked = context.masked(name)
        new_lines = split_lines(text.removeprefix("\ufeff"))
        for removed, added in _hunks(context.lines.get(name, []), new_lines):
            replaces_masked = any(number in masked for number, _ in removed)
            before = [(number, render_line(line, number in masked)) for number, line in removed]
            after = [
                (number, render_line(line, replaces_masked or redact(line) != line))
                for number, line in added
            ]
            rows = _keep_difference(before, after, gutter.text_width)
            for sign, style, changed in zip("-+", (Style.REMOVED, Style.ADDED), rows, strict=True):
                for number, shown in changed:
                    yield _changed(number, sign, shown, style, gutter)


def _keep_difference(
    before: list[tuple[int, str]], after: list[tuple[int, str]], width: int
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the lines of a hunk without their beginning if the difference would be cut off."""
    same = _common_length(before[0][1], after[0][1]) if before and after else 0
    if same < width - _SHOWN_DIFFERENCE:
        return before, after
    start = same - width // 3
    before, after = (
        [(number, ELLIPSIS + line[start:]) for number, line in lines] for lines in (before, after)
    )
    return before, after


def _changed(number: int, sign: str, text: str, style: Style, gutter: Gutter) -> str:
    return gutter(number, gutter.styler(truncate(text, gutter.text_width), style), sign)


def _hunks(
    old: list[str], new: list[str]
) -> Iterator[tuple[list[tuple[int, str]], list[tuple[int, str]]]]:
    """Yield removed and added lines, numbered from 1, hunk by hunk.

    The common start and end of both texts are not compared, which saves time.
    """
    same = _common_length(old, new)
    rest = _common_length(old[same:][::-1], new[same:][::-1])
    before, after = old[same : len(old) - rest], new[same : len(new) - rest]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            yield (
                list(enumerate(before[a:b], start=same + a + 1)),
                list(enumerate(after[c:d], start=same + c + 1)),
            )


def _common_length(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
