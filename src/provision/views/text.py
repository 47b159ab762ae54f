"""Findings as a person reads them in a terminal: a frame around the exact place, the reason, the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from provision.diagnostics import Applicability, Diagnostic, Fix, Severity, Span, Where
from provision.safe import redact, safe, safe_line
from provision.views.excerpt import Margin, Mark, draw, lines_of, masked_lines, shown
from provision.views.ink import Ink, Pen, fit, wrap
from provision.views.secrecy import is_secret

__all__ = ["SourceText", "concise", "findings", "fixable", "footer", "ordered"]

_RANKS = list(Severity)
_NARROWEST = 20
_NO_FINDINGS = "No findings."


class SourceText(Protocol):
    """The text that findings are about: where a `Where` stands, every file by its shown name, and each changed file's text after fixes."""

    @property
    def files(self) -> Mapping[str, str]:
        """Shown name to decoded text."""
        ...

    def span(self, where: Where) -> Span:
        """Return the stretch of text that `where` means."""
        ...

    def edited(self, fixes: Sequence[Fix]) -> Mapping[str, str]:
        """Return the new text per file."""
        ...


def findings(diagnostics: Sequence[Diagnostic], source: SourceText, color: bool, width: int, with_footer: bool = True) -> str:
    """Return a frame for each finding, sorted, and the count; `width` in cells. Holds no control character but newlines and our own colours."""
    sheet = _sheet(diagnostics, source, Pen(color), width)
    frames = ["\n".join(_frame(d, sheet)) + "\n" for d in ordered(diagnostics, source)]
    return "\n".join([*frames, footer(diagnostics, fixable(diagnostics, source)) + "\n"] if with_footer else frames)


def concise(diagnostics: Sequence[Diagnostic], source: SourceText) -> str:
    """Return one line a finding, `file:line:column: severity ID message`, for editors, problem matchers and grep."""
    return "".join(f"{_at(source.span(d.where))}: {d.severity} {d.id} {_one_line(d.message)}\n" for d in ordered(diagnostics, source))


def footer(diagnostics: Sequence[Diagnostic], fixable: int) -> str:
    """Return the last line: how many findings of each severity, and how many of them `--fix` would remove."""
    counts = [_counted(sum(d.severity is severity for d in diagnostics), severity) for severity in _RANKS]
    said = ", ".join(count for count in counts if count)
    return (f"Found {said}." if said else _NO_FINDINGS) + (f" [*] {fixable} fixable with --fix." if fixable else "")


def fixable(diagnostics: Iterable[Diagnostic], source: SourceText) -> int:
    """Return how many findings have a safe fix that the source can take; it leaves alone what other places share and extended files."""
    return sum(d.fix is not None and d.fix.applicability is Applicability.SAFE and bool(source.edited((d.fix,))) for d in diagnostics)


def ordered(diagnostics: Iterable[Diagnostic], source: SourceText) -> list[Diagnostic]:
    """Return the findings by file, place, severity and id."""
    return sorted(diagnostics, key=lambda d: (source.span(d.where).file, source.span(d.where).start, _RANKS.index(d.severity), d.id, d.message))


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What every frame needs: the files in lines, which lines must not be shown, how to write."""

    source: SourceText
    lines: Mapping[str, list[str]]
    masked: Mapping[str, frozenset[int]]
    pen: Pen
    width: int


def _sheet(diagnostics: Sequence[Diagnostic], source: SourceText, pen: Pen, width: int) -> _Sheet:
    secret = [source.span(where) for d in diagnostics if is_secret(d) for where in (d.where, *(r.where for r in d.related))]
    lines = {name: lines_of(text.removeprefix("\ufeff")) for name, text in source.files.items()}
    masked = {name: masked_lines(text, (span for span in secret if span.file == name)) for name, text in lines.items()}
    return _Sheet(source, lines, masked, pen, width)


def _frame(finding: Diagnostic, sheet: _Sheet) -> Iterator[str]:
    span, pen = sheet.source.span, sheet.pen
    main = Mark(span(finding.where), "", True, _ink(finding.severity))
    marks = [main, *(Mark(span(related.where), _one_line(related.text), False, Ink.FRAME) for related in finding.related)]
    margin = Margin.of(max(mark.span.start.line for mark in marks), sheet.width, pen)
    yield from _title(finding, sheet)
    for name in dict.fromkeys(mark.span.file for mark in marks):
        here = [mark for mark in marks if mark.span.file == name]
        yield " " * margin.numbers + pen("-->" if here[0].primary else ":::", Ink.FRAME) + " " + _at(here[0].span)
        if name in sheet.lines:
            everything = frozenset(range(1, len(sheet.lines[name]) + 1))
            yield margin()
            yield from draw(sheet.lines[name], here, everything if is_secret(finding) else sheet.masked[name], margin)
            yield margin()
    for word, text in (("why", finding.why), ("help", finding.help), ("source", finding.source)):
        yield from _note(word, text, margin)
    yield from _patch(finding, sheet, margin)


def _title(finding: Diagnostic, sheet: _Sheet) -> Iterator[str]:
    label = f"{finding.severity}[{finding.id}]"
    first, *rest = wrap(f"{label} {finding.name}: {_one_line(finding.message)}", max(_NARROWEST, sheet.width - 2))
    yield sheet.pen(label, _ink(finding.severity)) + sheet.pen(first.removeprefix(label), Ink.STRONG)
    yield from (sheet.pen("  " + row, Ink.STRONG) for row in rest)


def _note(word: str, text: str, margin: Margin) -> Iterator[str]:
    if text:
        lead = len(word) + 2
        first, *rest = wrap(safe(redact(text)).replace("\t", " "), max(_NARROWEST, margin.room - lead))
        yield margin("", f"{margin.pen(f'{word}:', Ink.STRONG)} {first}", "=")
        yield from (" " * (margin.numbers + 3 + lead) + row for row in rest)


def _patch(finding: Diagnostic, sheet: _Sheet, margin: Margin) -> Iterator[str]:
    """The fix as a small diff. A finding about a secret shows the title alone, for its lines hold the secret."""
    if finding.fix is None:
        return
    texts = sheet.source.edited((finding.fix,))
    yield from _note(_fix_word(finding.fix.applicability if texts else Applicability.MANUAL), finding.fix.title, margin)
    for name, text in ({} if is_secret(finding) else texts).items():
        hidden = sheet.masked.get(name, frozenset())
        for removed, added in _hunks(sheet.lines.get(name, []), lines_of(text.removeprefix("\ufeff"))):
            covered = any(number in hidden for number, _ in removed)
            yield from (_changed(number, "-", shown(line, number in hidden), Ink.REMOVED, margin) for number, line in removed)
            yield from (_changed(number, "+", shown(line, covered or redact(line) != line), Ink.ADDED, margin) for number, line in added)


def _changed(number: int, sign: str, text: str, ink: Ink, margin: Margin) -> str:
    return margin(number, margin.pen(fit(text, margin.room), ink), sign)


def _hunks(old: list[str], new: list[str]) -> Iterator[tuple[list[tuple[int, str]], list[tuple[int, str]]]]:
    """Removed and added lines, numbered from 1, place by place; what both texts begin and end with is left out of the comparison for its cost."""
    same = _common(old, new)
    rest = _common(old[same:][::-1], new[same:][::-1])
    before, after = old[same : len(old) - rest], new[same : len(new) - rest]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            yield list(enumerate(before[a:b], start=same + a + 1)), list(enumerate(after[c:d], start=same + c + 1))


def _common(one: list[str], other: list[str]) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _at(span: Span) -> str:
    return f"{_one_line(span.file)}:{span.start.line}:{span.start.column}"


def _one_line(text: str) -> str:
    return safe_line(redact(text))


def _counted(count: int, severity: Severity) -> str:
    match severity:
        case Severity.ERROR | Severity.WARNING:
            return f"{count} {severity}{'s' if count > 1 else ''}" if count else ""
        case Severity.UNKNOWN:
            return f"{count} unknown" if count else ""
        case Severity.INFO:
            return f"{count} note{'s' if count > 1 else ''}" if count else ""
        case _:
            assert_never(severity)


def _ink(severity: Severity) -> Ink:
    match severity:
        case Severity.ERROR:
            return Ink.ERROR
        case Severity.WARNING | Severity.UNKNOWN:
            return Ink.WARNING
        case Severity.INFO:
            return Ink.INFO
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
