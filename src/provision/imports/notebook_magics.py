"""Replaces the lines of IPython in a code cell, so that the rest parses as Python."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAGIC_CALL = "__magic__"
"""The function whose call stands for a line of IPython."""
MAGIC_NUMBER = re.compile(rf"{MAGIC_CALL}\((\d{{1,9}})\)")
"""Such a call, with the number of the line."""
# A string without an end stops at the end of the line or text, so that the time stays linear.
_SCAN = re.compile(
    r"""(?P<skip>\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}(?:\\.|[^\\])*?(?:'{3}|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\#[^\n]*)"""
    r"""|^(?P<indent>[ \t]*(?:[\w.]+[ \t]*=[ \t]*)?)"""
    r"""(?P<magic>(?:!!?|%(?=\w)|(?:pip3?|conda|mamba|micromamba|uv)[ \t]+(?:pip|install|add)\b)"""
    r"""(?:\\\r?\n|[^\r\n])*|\?{1,2}[\w.]+[ \t]*$|[\w.]+\?{1,2}[ \t]*$)"""
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])""",
    re.MULTILINE | re.DOTALL,
)
_MAGIC_START = re.compile(
    r"^[ \t]*(?:[\w.]+[ \t]*=[ \t]*)?(?:!|%\w|(?:pip3?|conda|mamba|micromamba|uv)[ \t]|\?)"
    r"|\?[ \t]*$",
    re.MULTILINE,
)
"""The start of a line that may be one of IPython, or the end of a question."""
_LINE_BREAK = re.compile(r"\r\n|\r|\n")  # those of Python, fewer than str.splitlines has
_CONTINUED = ("\\\n", "\\\r\n")
_CELL_MAGIC = re.compile(r"\s*%%(!|\w+)[ \t]*([^\r\n]*)(?:\r?\n|$)")
_SHELL_CELLS = frozenset(("bash", "sh", "shell", "script", "system", "sx", "!"))
_PYTHON_CELLS = frozenset(
    ("capture", "time", "timeit", "prun", "python", "python3", "memit", "mprun", "skip", "debug")
)


class CellMagic(NamedTuple):
    """A line of IPython: its range in the cell, a leading `!` or `%` included."""

    start: int
    end: int
    text: str


def find_cell_body(source: str) -> tuple[int | None, bool]:
    """Return where the code of a cell starts after its cell magics, and whether it is shell.

    None for a cell in another language, such as %%html, or that writes a file.
    """
    start = 0
    while match := _CELL_MAGIC.match(source, start):
        name, arguments = match[1], match[2].split()
        if name == "script" and arguments[:1] not in (["bash"], ["sh"]):
            return None, False
        if name in _SHELL_CELLS:
            return match.end(), True
        if name not in _PYTHON_CELLS:
            return None, False
        start = match.end()
    return start, False


def replace_magics(
    source: str, start: int = 0, *, in_brackets: bool = False
) -> tuple[str, tuple[CellMagic, ...]]:
    """Return the Python of a cell and its magics.

    Each magic is a call of the same number of lines, so that lines keep their number.

    Args:
        source: The source of the cell.
        start: Where the Python starts; what is before becomes empty lines.
        in_brackets: True to take lines inside brackets as magics, for code that does not parse.
    """
    if _MAGIC_START.search(source, start) is None:
        return _line_breaks(source[:start]) + source[start:], ()
    magics: list[CellMagic] = []
    parts = [_line_breaks(source[:start])]
    position, depth = start, 0
    for match in _SCAN.finditer(source, start):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth = max(depth - 1, 0)
        is_continued = source[max(match.start() - 3, 0) : match.start()].endswith(_CONTINUED)
        text = match["magic"]
        if text is None or (depth and not in_brackets) or is_continued:
            continue
        parts += source[position : match.start("magic")], f"{MAGIC_CALL}({len(magics)})"
        parts.append(_line_breaks(text))
        magics.append(CellMagic(match.start("magic"), match.end("magic"), text))
        position = match.end()
    return "".join((*parts, source[position:])), tuple(magics)


def parse_python(python: str) -> ast.Module | None:
    """Return the syntax tree of Python without magics, None if it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are reported on stderr
        try:
            return ast.parse(python)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def find_syntax_error(python: str) -> SyntaxError | None:
    """Return the first syntax error of Python without magics; None if it is another fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(python)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError):
            return None
    return None


ParsedLine = tuple[ast.Module, str, Sequence[CellMagic]]
"""A syntax tree, the Python that its positions are in, and the magics of the cell."""


def parse_lines(source: str, start: int) -> Iterator[ParsedLine]:
    """Yield each line that parses on its own, for a cell that does not parse as a whole."""
    python, magics = replace_magics(source, start, in_brackets=True)
    for number, line in enumerate(_LINE_BREAK.split(python)):
        stripped = line.lstrip()
        if stripped.startswith(("import ", "from ", "os.", "subprocess.", MAGIC_CALL)):
            module = parse_python("\n" * number + stripped)
            if module is not None:
                yield module, python, magics


def _line_breaks(text: str) -> str:
    return "".join(character for character in text if character in "\r\n")
