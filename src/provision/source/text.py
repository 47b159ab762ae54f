"""The text of one file, and where each character of it stands."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from provision.diagnostics import Diagnostic, Position, Span
from provision.source.findings import make_finding

_BREAK = re.compile(r"\r\n|\n|\r")
_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BLANKS = str.maketrans("\t\n\r", "   ")
_ZERO_BYTE_PATTERNS = {
    "000x": "utf-32-be",
    "x000": "utf-32-le",
    "0x0x": "utf-16-be",
    "x0x0": "utf-16-le",
}


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A decoded file: the name it is shown by, its text without byte order mark, and the offset at
    which each line starts.

    Lines end at CR LF, LF or CR, as editors have it; U+2028 and its like, which YAML takes for
    line breaks, do not count.
    """

    name: str
    content: str
    bom: bool
    starts: tuple[int, ...]

    def position(self, offset: int) -> Position:
        """Return the place of the character at `offset`."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1, offset)

    def span(self, start: int, end: int) -> Span:
        """Return the stretch from `start` to `end`, cut to the text."""
        start = max(0, min(start, len(self.content)))
        return Span(
            self.name, self.position(start), self.position(max(start, min(end, len(self.content))))
        )

    def end_of_line(self, offset: int) -> int:
        """Return the offset at which the line of `offset` ends, before its line break."""
        found = _BREAK.search(self.content, offset)
        return found.start() if found else len(self.content)

    def start_of_line(self, offset: int) -> int:
        """Return the offset at which the line of `offset` starts."""
        return self.starts[bisect_right(self.starts, offset) - 1]

    def line_break(self) -> str:
        """Return the line break that the file uses first, LF when it has none."""
        found = _BREAK.search(self.content)
        return found.group() if found else "\n"


class TextRange(NamedTuple):
    """A part of a text by offsets, the end exclusive; cheaper than a `Span` until it is shown."""

    text: TextFile
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The stretch in lines and columns."""
        return self.text.span(self.start, self.end)


def to_text_file(name: str, content: str, *, bom: bool = False) -> TextFile:
    """Return `content` as the text of a file."""
    return TextFile(name, content, bom, (0, *(found.end() for found in _BREAK.finditer(content))))


def decode_file(name: str, raw: bytes) -> tuple[TextFile, tuple[Diagnostic, ...]]:
    """Decode a file; with a finding where it is not UTF-8 or holds characters that no YAML may
    hold.

    What cannot be decoded is shown as U+FFFD, so that there is text to point into.
    """
    wide = _detect_wide_encoding(raw)
    if wide:
        text = to_text_file(name, raw.decode(wide, "replace").removeprefix("\ufeff"))
        message = f"the file is {wide[:6].upper()}, a spec is UTF-8"
        return text, (
            make_finding(
                "encoding",
                message,
                text.span(0, 0),
                hint=f"save it as UTF-8, as in: iconv -f {wide[:6]} -t utf-8",
            ),
        )
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw[3:] if bom else raw
    try:
        text = to_text_file(name, body.decode("utf-8"), bom=bom)
    except UnicodeDecodeError as error:
        text = to_text_file(name, body.decode("utf-8", "replace"), bom=bom)
        at = len(body[: error.start].decode("utf-8"))
        message = f"byte 0x{body[error.start]:02x} is not UTF-8"
        return text, (
            make_finding("encoding", message, text.span(at, at + 1), hint="save the file as UTF-8"),
        )
    return text, _find_control_character(text)


def _detect_wide_encoding(raw: bytes) -> str | None:
    for mark, codec in _WIDE_MARKS:
        if raw.startswith(mark):
            return codec
    # Without a mark, the zero bytes of the first ASCII character tell (YAML 1.2.2, section 5.2).
    return _ZERO_BYTE_PATTERNS.get("".join("0" if byte == 0 else "x" for byte in raw[:4]))


def _find_control_character(text: TextFile) -> tuple[Diagnostic, ...]:
    if (
        text.content.translate(_BLANKS).isprintable()
    ):  # what Python calls printable is a part of what YAML does; the pattern takes long to compile
        return ()
    # The printable set of YAML 1.2.2, section 5.1; U+FEFF is allowed at the start only.
    found = re.search(
        "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        text.content,
    )
    if found is None:
        return ()
    code = ord(found.group())
    message = f"U+{code:04X} may not stand in YAML" + (
        " (a NUL: is this a binary file?)" if code == 0 else ""
    )
    return (
        make_finding(
            "control-character",
            message,
            text.span(found.start(), found.end()),
            hint="delete it, or write it as an escape in double quotes",
        ),
    )
