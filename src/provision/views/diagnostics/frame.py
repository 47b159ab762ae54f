"""A finding in a frame: the place in the text, the reason, the help, and the fix as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from provision.diagnostics import Applicability, Diagnostic, Severity
from provision.sanitize import escape_control, redact
from provision.views.diagnostics.excerpt import (
    Gutter,
    LabeledSpan,
    find_masked_lines,
    render_excerpt,
    render_line,
    split_lines,
)
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import SourceText, format_location, redact_line
from provision.views.terminal_text import Style, Styler, truncate, wrap

_NARROWEST = 20


@dataclass(frozen=True, slots=True)
class FrameContext:
    """What every frame needs: the files in lines, which lines must not be shown, how to write."""

    source: SourceText
    lines: Mapping[str, list[str]]
    masked: Mapping[str, frozenset[int]]
    styler: Styler
    width: int


def make_frame_context(
    diagnostics: Sequence[Diagnostic], source: SourceText, color: bool, width: int
) -> FrameContext:
    """Return what the frames of these findings have in common; `width` in cells."""
    secret = [
        source.span(where)
        for d in diagnostics
        if may_contain_secret(d)
        for where in (d.where, *(r.where for r in d.related))
    ]
    lines = {name: split_lines(text.removeprefix("\ufeff")) for name, text in source.files.items()}
    masked = {
        name: find_masked_lines(text, (span for span in secret if span.file == name))
        for name, text in lines.items()
    }
    return FrameContext(source, lines, masked, Styler(color), width)


def render_frame(finding: Diagnostic, sheet: FrameContext) -> Iterator[str]:
    """Yield the lines of a finding: title, excerpt, reason, help and fix."""
    span, pen = sheet.source.span, sheet.styler
    main = LabeledSpan(span(finding.where), "", True, _severity_style(finding.severity))
    marks = [
        main,
        *(
            LabeledSpan(span(related.where), redact_line(related.text), False, Style.FRAME)
            for related in finding.related
        ),
    ]
    margin = Gutter.for_lines(max(mark.span.start.line for mark in marks), sheet.width, pen)
    yield from _title(finding, sheet)
    for name in dict.fromkeys(mark.span.file for mark in marks):
        here = [mark for mark in marks if mark.span.file == name]
        yield (
            " " * margin.number_width
            + pen("-->" if here[0].primary else ":::", Style.FRAME)
            + " "
            + format_location(here[0].span)
        )
        if name in sheet.lines:
            everything = frozenset(range(1, len(sheet.lines[name]) + 1))
            yield margin()
            yield from render_excerpt(
                sheet.lines[name],
                here,
                everything if may_contain_secret(finding) else sheet.masked[name],
                margin,
            )
            yield margin()
    for word, text in (("why", finding.why), ("help", finding.help), ("source", finding.source)):
        yield from _note(word, text, margin)
    yield from _fix_diff(finding, sheet, margin)


def _title(finding: Diagnostic, sheet: FrameContext) -> Iterator[str]:
    label = f"{finding.severity}[{finding.id}]"
    first, *rest = wrap(
        f"{label} {finding.name}: {redact_line(finding.message)}", max(_NARROWEST, sheet.width - 2)
    )
    yield sheet.styler(label, _severity_style(finding.severity)) + sheet.styler(
        first.removeprefix(label), Style.STRONG
    )
    yield from (sheet.styler("  " + row, Style.STRONG) for row in rest)


def _note(word: str, text: str, margin: Gutter) -> Iterator[str]:
    if text:
        lead = len(word) + 2
        first, *rest = wrap(
            escape_control(redact(text)).replace("\t", " "),
            max(_NARROWEST, margin.text_width - lead),
        )
        yield margin("", f"{margin.styler(f'{word}:', Style.STRONG)} {first}", "=")
        yield from (" " * (margin.number_width + 3 + lead) + row for row in rest)


def _fix_diff(finding: Diagnostic, sheet: FrameContext, margin: Gutter) -> Iterator[str]:
    """Yield the fix as a small diff.

    A finding about a secret shows the title alone, because its lines contain the secret.
    """
    if finding.fix is None:
        return
    texts = sheet.source.apply_fixes((finding.fix,))
    yield from _note(
        _fix_word(finding.fix.applicability if texts else Applicability.MANUAL),
        finding.fix.title,
        margin,
    )
    for name, text in ({} if may_contain_secret(finding) else texts).items():
        hidden = sheet.masked.get(name, frozenset())
        for removed, added in _hunks(
            sheet.lines.get(name, []), split_lines(text.removeprefix("\ufeff"))
        ):
            covered = any(number in hidden for number, _ in removed)
            yield from (
                _changed(number, "-", render_line(line, number in hidden), Style.REMOVED, margin)
                for number, line in removed
            )
            yield from (
                _changed(
                    number,
                    "+",
                    render_line(line, covered or redact(line) != line),
                    Style.ADDED,
                    margin,
                )
                for number, line in added
            )


def _changed(number: int, sign: str, text: str, ink: Style, margin: Gutter) -> str:
    return margin(number, margin.styler(truncate(text, margin.text_width), ink), sign)


def _hunks(
    old: list[str], new: list[str]
) -> Iterator[tuple[list[tuple[int, str]], list[tuple[int, str]]]]:
    """Yield removed and added lines, numbered from 1, hunk by hunk.

    The common start and end of both texts are not compared, which saves time.
    """
    same = _common(old, new)
    rest = _common(old[same:][::-1], new[same:][::-1])
    before, after = old[same : len(old) - rest], new[same : len(new) - rest]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            yield (
                list(enumerate(before[a:b], start=same + a + 1)),
                list(enumerate(after[c:d], start=same + c + 1)),
            )


def _common(one: list[str], other: list[str]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _severity_style(severity: Severity) -> Style:
    match severity:
        case Severity.ERROR:
            return Style.ERROR
        case Severity.WARNING | Severity.UNKNOWN:
            return Style.WARNING
        case Severity.INFO:
            return Style.INFO
        case _:
            assert_never(severity)


def _fix_word(applicability: Applicability) -> str:
    match applicability:
        case Applicability.SAFE:
            return "fix [*]"
        case Applicability.UNSAFE:
            return "fix (unsafe)"
        case Applicability.MANUAL:
            return "fix (by hand)"
        case _:
            assert_never(applicability)
