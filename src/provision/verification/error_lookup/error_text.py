"""The text of an error out of what people have at hand: a log, a notebook, colours, line ends of
Windows, and far too much of it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from provision.errors import ExternalError, UsageError
from provision.verification.error_lookup.log_text import blank_quoted_source, strip_log_prefixes

MAX_INPUT_BYTES = 256 * 2**20
"""Bytes that are read of a text, or of a notebook with its outputs."""
HEAD_CHARACTERS, TAIL_CHARACTERS = 2**20, 3 * 2**20
"""Characters of a longer text that are looked through: an error stands at its end, what made the
program start wrong at its beginning.
"""
_LINE = 2000
"""Characters of a line that are looked through: progress bars and dumped arrays make long ones, and
a search through one takes the square of its length.
"""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\))")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class ErrorText(NamedTuple):
    """The text that is looked through, and how many characters in the middle of a long one are not."""  # noqa: E501

    text: str
    omitted_characters: int


def extract_error_text(content: bytes, name: str) -> ErrorText:
    """Return the text that is looked through: of a notebook its saved outputs; without colours,
    what logging put around it, and quoted source.

    Raises UsageError when there is none.
    """
    text = _decoded(content, name)
    if name.endswith(".ipynb") or (
        text.lstrip()[:1] == "{" and '"cells"' in text and '"nbformat"' in text
    ):
        text = "\n".join(_outputs(text, name))
        if not text.strip():
            raise UsageError(
                f"{name} holds no output",
                why="an error is looked for in what its cells have printed",
                hint="save the notebook after the error",
            )
    if not text.strip():
        raise UsageError(
            f"{name} is empty",
            hint="give the text of the error: provision why trace.txt, or pipe it into "
            "provision why -",
        )
    kept = (
        text
        if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS
        else f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"
    )
    printed = "\n".join(
        _short(line) for line in strip_log_prefixes(_ESCAPES.sub("", kept)).splitlines()
    )
    return ErrorText(
        blank_quoted_source(printed), max(0, len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS)
    )


def _decoded(content: bytes, name: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if b"\0" in content[:65536]:
        raise UsageError(
            f"{name} is no text",
            why="it holds zero bytes",
            hint="give the text of the error as it was printed, or a notebook with its saved "
            "output",
        )
    return content.decode("utf-8", "replace")


def _short(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} ... {line[-_LINE // 2 :]}"


def _outputs(text: str, name: str) -> Iterator[str]:
    try:
        cells = json.loads(text)["cells"]
        outputs = [
            output
            for cell in cells
            if isinstance(cell, dict)
            for output in cell.get("outputs", ())
            if isinstance(output, dict)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ExternalError(
            f"{name} is no notebook",
            why="it is not JSON with cells",
            hint="copy the error into a text file",
        ) from None
    for output in outputs:
        yield _printed(output)


def _printed(output: dict[str, Any]) -> str:
    """Return what an output shows: a traceback, of an error without one its name and value, or what
    was written.
    """
    parts = output.get("traceback") or output.get("text") or ""
    if isinstance(parts, list):
        # The lines of a stream bring their ends, the parts of a traceback do not.
        parts = ("\n" if output.get("traceback") else "").join(str(part) for part in parts)
    return (
        parts
        if isinstance(parts, str) and parts
        else ": ".join(str(output[key]) for key in ("ename", "evalue") if output.get(key))
    )
