"""An excerpt of a file for a terminal: line numbers and exact marks, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from provision.diagnostics import Span
from provision.sanitize import REDACTED, escape_line, redact
from provision.views.formatting import ELLIPSIS, Style, Styler, display_width, wrap

_TAB = 4
_NARROWEST = 20
_WIDEST = 400
_CONTEXT_CHARACTERS = 1000
_KEY = re.compile(r"\s*(?:-\s+)*(?:[^\s:{\[\"'#][^:{\[]*:(?:\s+|$))?")
_PRIVATE_KEY_BEGINS = re.compile("-----BEGIN [A-Z ]*PRIVATE KEY-----")
_PRIVATE_KEY_ENDS = re.compile("-----END [A-Z ]*PRIVATE KEY-----")


class LabeledSpan(NamedTuple):
    """A span to underline with a label; the primary one is underlined with carets."""

    span: Span
    text: str
    primary: bool
    style: Style


class Gutter(NamedTuple):
    """The left edge of an excerpt: the width of its line numbers, and of the text right of it."""

    number_width: int
    text_width: int
    styler: Styler

    @classmethod
    def for_lines(cls, highest: int, width: int, pen: Styler) -> Gutter:
        """Return the gutter for line numbers up to `highest` on a terminal `width` cells wide."""
        numbers = len(str(highest))
        return cls(numbers, min(_WIDEST, max(_NARROWEST, width - numbers - 3)), pen)

    def __call__(self, label: object = "", text: str = "", sign: str = "|") -> str:
        """Return one row: the label right-aligned, a bar, the text."""
        return f"{self.styler(f'{label:>{self.number_width}} {sign}', Style.FRAME)} {text}".rstrip()


class _Cell(NamedTuple):
    text: str
    column: int
    end: int


class _LaidOutLine(NamedTuple):
    """One line on the screen: a cell per character from `offset`, masked from `hidden` on."""

    cells: list[_Cell]
    offset: int
    hidden: int

    @property
    def end(self) -> int:
        return self.cells[-1].end if self.cells else 0

    def column(self, character: int) -> int:
        index = character - self.offset
        return self.cells[max(0, index)].column if index < len(self.cells) else self.end

    def stretch(self, span: Span) -> tuple[int, int]:
        """Return the screen columns of a span; one that reaches the mask covers the whole mask."""
        first = span.start.column - 1
        last = (
            span.end.column - 1
            if span.end.line == span.start.line
            else self.offset + len(self.cells)
        )
        if last > self.hidden:
            first, last = min(first, self.hidden), self.offset + len(self.cells)
        start = self.column(first)
        return start, max(self.column(last), start + 1)


def split_lines(text: str) -> list[str]:
    """Split a file's text at the line breaks that editors count: CRLF, LF and CR."""
    return re.split(r"\r\n|\n|\r", text)


def find_masked_lines(lines: list[str], secret: Iterable[Span]) -> frozenset[int]:
    """Return the 1-based numbers of lines that are not shown.

    They are under `secret` spans, contain a token, or belong to a private key.
    """
    masked = {line for span in secret for line in range(span.start.line, span.end.line + 1)}
    inside = False
    for number, line in enumerate(lines, start=1):
        inside = inside or _PRIVATE_KEY_BEGINS.search(line) is not None
        if inside or redact(line) != line:
            masked.add(number)
        inside = inside and _PRIVATE_KEY_ENDS.search(line) is None
    return frozenset(masked)


def render_line(line: str, masked: bool) -> str:
    """Return a line as safe text: tabs expanded, controls escaped, its value masked if required."""
    return "".join(cell.text for cell in _lay_out_line(line, 0, masked).cells)


def render_excerpt(
    lines: list[str], marks: list[LabeledSpan], masked: frozenset[int], gutter: Gutter
) -> Iterator[str]:
    """Yield the rows of an excerpt.

    Each marked line is shown once with its marks below; before the primary one is its previous
    line; dots replace gaps.
    """
    last = None
    for number in sorted({number for mark in marks for number in _rows(mark, lines)}):
        if last is not None and number > last + 1:
            yield gutter.styler(ELLIPSIS, Style.FRAME)
        here = sorted(
            (mark for mark in marks if mark.span.start.line == number),
            key=lambda mark: (not mark.primary, mark.span),
        )
        yield from _row(number, lines[number - 1], here, number in masked, gutter)
        last = number


def _rows(mark: LabeledSpan, lines: list[str]) -> Iterator[int]:
    number = mark.span.start.line
    if 1 <= number <= len(lines):
        yield number
        if mark.primary and number > 1 and lines[number - 2].strip():
            yield number - 1


def _row(
    number: int, line: str, marks: list[LabeledSpan], masked: bool, gutter: Gutter
) -> Iterator[str]:
    laid = _lay_out_line(line, marks[0].span.start.column if marks else 1, masked)
    left, right = _window(laid, laid.stretch(marks[0].span)[0] if marks else 0, gutter.text_width)
    seen = [cell for cell in laid.cells if left <= cell.column and cell.end <= right]
    before = ELLIPSIS if left else ""
    yield gutter(
        number,
        before + "".join(cell.text for cell in seen) + (ELLIPSIS if right < laid.end else ""),
    )
    left = seen[0].column if seen else left
    for mark in marks:
        start, end = laid.stretch(mark.span)
        if left <= start <= right:
            yield from _underline(
                mark, start - left + len(before), max(1, min(end, right) - start), gutter
            )
        elif mark.text:
            yield from (
                gutter("", gutter.styler(row, mark.style))
                for row in wrap(f"column {mark.span.start.column}: {mark.text}", gutter.text_width)
            )


def _underline(mark: LabeledSpan, indent: int, length: int, gutter: Gutter) -> Iterator[str]:
    line = ("^" if mark.primary else "-") * length
    label = (
        f"{mark.text} (to line {mark.span.end.line})".strip()
        if _spans_lines(mark.span)
        else mark.text
    )
    if indent + length + 1 + display_width(label) <= gutter.text_width:
        yield gutter("", " " * indent + gutter.styler(f"{line} {label}".rstrip(), mark.style))
        return
    yield gutter("", " " * indent + gutter.styler(line, mark.style))
    beside = min(indent, gutter.text_width // 2)
    for row in wrap(label, gutter.text_width - beside):
        yield gutter("", " " * beside + gutter.styler(row, mark.style))


def _spans_lines(span: Span) -> bool:
    return span.end.line > span.start.line + (span.end.column <= 1)


def _lay_out_line(line: str, column: int, masked: bool) -> _LaidOutLine:
    """Lay out a line, or the part of a very long one around a 1-based column."""
    head = _head(line) if masked else line
    text = head if head == line else head + REDACTED
    offset = (
        max(0, min(column, len(text)) - _CONTEXT_CHARACTERS)
        if len(text) > 2 * _CONTEXT_CHARACTERS
        else 0
    )
    laid: list[_Cell] = []
    at = 0
    for character in text[offset : offset + 2 * _CONTEXT_CHARACTERS]:
        drawn = " " * (_TAB - at % _TAB) if character == "\t" else escape_line(character)
        laid.append(_Cell(drawn, at, at + display_width(drawn)))
        at = laid[-1].end
    return _LaidOutLine(laid, offset, len(head))


def _head(line: str) -> str:
    """Return the visible part of a masked line: indentation, list dashes and a harmless key."""
    match = _KEY.match(line)
    head = match.group() if match else ""
    return head if redact(head) == head else ""


def _window(laid: _LaidOutLine, start: int, width: int) -> tuple[int, int]:
    """Return the columns that fit.

    Of a long line it is a part in which the mark starts after at most a third of the width.
    """
    if laid.end <= width and not laid.offset:
        return 0, laid.end
    left = max(0, start - width // 3)
    left = left if left > len(ELLIPSIS) or laid.offset else 0
    right = left + width - (len(ELLIPSIS) if left else 0)
    if right >= laid.end:
        return max(0, laid.end - width + len(ELLIPSIS)), laid.end
    return left, right - len(ELLIPSIS)
