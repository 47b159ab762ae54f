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
_SECRET_KEY = re.compile(r"""(^|[{,])\s*["']?(secrets|env)\b""")
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
    def for_lines(cls, highest: int, width: int, styler: Styler) -> Gutter:
        """Return the gutter for line numbers up to `highest` on a terminal `width` cells wide."""
        numbers = len(str(highest))
        return cls(numbers, min(_WIDEST, max(_NARROWEST, width - numbers - 3)), styler)

    def __call__(self, label: object = "", text: str = "", sign: str = "|") -> str:
        """Return one row: the label right-aligned, a bar, the text."""
        return f"{self.styler(f'{label:>{self.number_width}} {sign}', Style.FRAME)} {text}".rstrip()


class _LaidOutLine(NamedTuple):
    """A line on the screen: a text for each character from `offset`, masked from `hidden` on.

    `columns` are the screen columns of the texts, and of the end of the line.
    """

    texts: list[str]
    columns: list[int]
    offset: int
    hidden: int

    @property
    def end(self) -> int:
        return self.columns[-1]

    def column(self, character: int) -> int:
        return self.columns[max(0, min(character - self.offset, len(self.texts)))]

    def stretch(self, span: Span) -> tuple[int, int]:
        """Return the screen columns of a span; one that reaches the mask covers the whole mask."""
        first, last = span.start.column - 1, span.end.column - 1
        if span.end.line != span.start.line:
            last = self.offset + len(self.texts)
        if last > self.hidden:
            first, last = min(first, self.hidden), self.offset + len(self.texts)
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


def find_secret_blocks(lines: list[str]) -> frozenset[int]:
    """Return the 1-based numbers of the lines of the keys `secrets` and `env`, at any depth."""
    numbers, depth = set(), -1
    for number, line in enumerate(lines, start=1):
        text = line.lstrip()
        indent = len(line) - len(text)
        if indent <= depth and text[:1].isalpha():
            depth = -1
        if depth < 0 and _SECRET_KEY.search(line):
            depth = indent
        if depth >= 0:
            numbers.add(number)
    return frozenset(numbers)


def render_line(line: str, masked: bool) -> str:
    """Return a line as safe text: tabs expanded, controls escaped, its value masked if required."""
    return "".join(_lay_out_line(line, 0, masked).texts)


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
        line_marks = sorted(
            (mark for mark in marks if mark.span.start.line == number),
            key=lambda mark: (not mark.primary, mark.span),
        )
        yield from _row(number, lines[number - 1], line_marks, number in masked, gutter)
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
    shown = [
        (column, text)
        for text, column, end in zip(laid.texts, laid.columns, laid.columns[1:], strict=False)
        if left <= column and end <= right
    ]
    before = ELLIPSIS if left else ""
    after = ELLIPSIS if right < laid.end else ""
    yield gutter(number, before + "".join(text for _, text in shown) + after)
    if shown:
        left = shown[0][0]
    for mark in marks:
        start, end = laid.stretch(mark.span)
        if left <= start <= right:
            indent = start - left + len(before)
            yield from _underline(mark, indent, max(1, min(end, right) - start), gutter)
        elif mark.text:
            label = f"column {mark.span.start.column}: {mark.text}"
            for row in wrap(label, gutter.text_width):
                yield gutter("", gutter.styler(row, mark.style))


def _underline(mark: LabeledSpan, indent: int, length: int, gutter: Gutter) -> Iterator[str]:
    line = ("^" if mark.primary else "-") * length
    label = mark.text
    if mark.span.end.line > mark.span.start.line + (mark.span.end.column <= 1):
        label = f"{label} (to line {mark.span.end.line})".strip()
    if indent + length + 1 + display_width(label) <= gutter.text_width:
        yield gutter("", " " * indent + gutter.styler(f"{line} {label}".rstrip(), mark.style))
        return
    yield gutter("", " " * indent + gutter.styler(line, mark.style))
    label_indent = min(indent, gutter.text_width // 2)
    for row in wrap(label, gutter.text_width - label_indent):
        yield gutter("", " " * label_indent + gutter.styler(row, mark.style))


def _lay_out_line(line: str, column: int, masked: bool) -> _LaidOutLine:
    """Lay out a line, or the part of a very long one around a 1-based column."""
    head = text = line
    if masked and (head := _head(line)) != line:
        text = head + REDACTED
    offset = 0
    if len(text) > 2 * _CONTEXT_CHARACTERS:
        offset = max(0, min(column, len(text)) - _CONTEXT_CHARACTERS)
    texts: list[str] = []
    columns = [0]
    for character in text[offset : offset + 2 * _CONTEXT_CHARACTERS]:
        tab = " " * (_TAB - columns[-1] % _TAB)
        texts.append(tab if character == "\t" else escape_line(character))
        columns.append(columns[-1] + display_width(texts[-1]))
    return _LaidOutLine(texts, columns, offset, len(head))


def _head(line: str) -> str:
    """Return the visible part of a masked line: indentation, list dashes and a harmless key."""
    match = _KEY.match(line)
    if match is None or redact(match.group()) != match.group():
        return ""
    return match.group()


def _window(laid: _LaidOutLine, start: int, width: int) -> tuple[int, int]:
    """Return the columns that fit.

    Of a long line it is a part in which the mark starts after at most a third of the width.
    """
    if laid.end <= width and not laid.offset:
        return 0, laid.end
    left, right = max(0, start - width // 3), width
    if left <= len(ELLIPSIS) and not laid.offset:
        left = 0
    if left:
        right += left - len(ELLIPSIS)
    if right >= laid.end:
        return max(0, laid.end - width + len(ELLIPSIS)), laid.end
    return left, right - len(ELLIPSIS)
