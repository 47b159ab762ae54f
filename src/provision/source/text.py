"""The text of a file, with offsets, lines and columns."""

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
    """A decoded file: its display name, its text without byte order mark, and its line starts.

    Lines end at CR LF, LF or CR, as in editors; U+2028 and similar characters, which are line
    breaks in YAML, do not count.
    """

    name: str
    content: str
    bom: bool
    starts: tuple[int, ...]

    def position(self, offset: int) -> Position:
        """Return the position of the character at an offset."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1, offset)

    def span(self, start: int, end: int) -> Span:
        """Return the span of a range, limited to the text."""
        start = max(0, min(start, len(self.content)))
        return Span(
            self.name, self.position(start), self.position(max(start, min(end, len(self.content))))
        )

    def end_of_line(self, offset: int) -> int:
        """Return the offset at which the line of an offset ends, before its line break."""
        line_break = _BREAK.search(self.content, offset)
        return line_break.start() if line_break else len(self.content)

    def start_of_line(self, offset: int) -> int:
        """Return the offset at which the line of an offset starts."""
        return self.starts[bisect_right(self.starts, offset) - 1]

    def line_break(self) -> str:
        """Return the first line break of the file, LF if it has none."""
        line_break = _BREAK.search(self.content)
        return line_break.group() if line_break else "\n"


class TextRange(NamedTuple):
    """A range of a text by offsets, the end exclusive; cheaper to create than a `Span`."""

    text: TextFile
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The range in lines and columns."""
        return self.text.span(self.start, self.end)


def to_text_file(name: str, content: str, *, bom: bool = False) -> TextFile:
    """Return text content as a file."""
    return TextFile(name, content, bom, (0, *(match.end() for match in _BREAK.finditer(content))))


def decode_file(name: str, raw: bytes) -> tuple[TextFile, tuple[Diagnostic, ...]]:
    """Decode a file, with a finding if it is not UTF-8 or contains characters that YAML forbids.

    Undecodable bytes become U+FFFD, so that the finding has a position.
    """
    wide = next((codec for mark, codec in _WIDE_MARKS if raw.startswith(mark)), None)
    if wide is None:
        # Without a mark, the zero bytes around the first ASCII character identify the encoding
        # (YAML 1.2.2, section 5.2).
        pattern = "".join("0" if byte == 0 else "x" for byte in raw[:4])
        wide = _ZERO_BYTE_PATTERNS.get(pattern)
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw.removeprefix(codecs.BOM_UTF8)
    offset, hint = 0, "save the file as UTF-8"
    if wide is not None:
        text = to_text_file(name, raw.decode(wide, "replace").removeprefix("\ufeff"))
        message = f"the file is {wide[:6].upper()}, a spec is UTF-8"
        hint, end = f"save it as UTF-8, as in: iconv -f {wide[:6]} -t utf-8", 0
    else:
        try:
            text = to_text_file(name, body.decode("utf-8"), bom=bom)
        except UnicodeDecodeError as error:
            text = to_text_file(name, body.decode("utf-8", "replace"), bom=bom)
            offset = len(body[: error.start].decode("utf-8"))
            message, end = f"byte 0x{body[error.start]:02x} is not UTF-8", offset + 1
        else:
            return text, _find_control_character(text)
    return text, (make_finding("encoding", message, text.span(offset, end), hint=hint),)


def _find_control_character(text: TextFile) -> tuple[Diagnostic, ...]:
    # All characters that are printable in Python are allowed in YAML, and the pattern below takes
    # long to compile.
    if text.content.translate(_BLANKS).isprintable():
        return ()
    # The printable set of YAML 1.2.2, section 5.1; U+FEFF is allowed at the start only.
    forbidden = re.search(
        "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        text.content,
    )
    if forbidden is None:
        return ()
    code = ord(forbidden.group())
    message = f"U+{code:04X} may not stand in YAML"
    if code == 0:
        message += " (a NUL: is this a binary file?)"
    hint = "delete it, or write it as an escape in double quotes"
    return (make_finding("control-character", message, text.span(*forbidden.span()), hint=hint),)
