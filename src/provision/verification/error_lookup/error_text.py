"""Extracts the error text from logs, notebooks and terminal output."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from provision.errors import ExternalError, UsageError
from provision.verification.error_lookup.log_text import (
    blank_quoted_source,
    strip_log_prefixes,
    strip_markup,
)
from provision.verification.error_lookup.system_messages import translate_system_messages

MAX_INPUT_BYTES = 256 * 2**20
"""Bytes that are read of a text, or of a notebook with its outputs."""
HEAD_CHARACTERS, TAIL_CHARACTERS = 2**20, 3 * 2**20
"""Characters of a longer text that are searched.

The error is at its end; at its beginning is what went wrong when the program started.
"""
_MAX_LINE_LENGTH = 2000
"""Characters of a line that are searched: progress bars and dumped arrays make long ones.

A search in one takes the square of its length.
"""
_ESCAPES = re.compile(
    r"(?:\x1b|\\(?:x1b|u001b|033))(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\))"
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class ErrorText(NamedTuple):
    """The text to search, and the number of characters omitted in the middle of a long one."""

    text: str
    omitted_characters: int


def extract_error_text(content: bytes, name: str) -> ErrorText:
    """Return the text to search: without colors, log prefixes and quoted source.

    Of a notebook it is the saved outputs.

    Raises:
        UsageError: there is no text.
        ExternalError: a notebook is damaged.
    """
    text = _decode(content, name)
    if name.endswith(".ipynb") or (
        text.lstrip()[:1] == "{" and '"cells"' in text and '"nbformat"' in text
    ):
        text = "\n".join(_notebook_outputs(text, name))
        if not text.strip():
            raise UsageError(
                f"{name} has no saved output",
                why="`provision why` searches the saved cell output for the error",
                hint="run the failing cell and save the notebook",
            )
    if not text.strip():
        raise UsageError(
            f"{name} is empty",
            hint="pass a file with the error text (`provision why trace.txt`), or pipe it to "
            "`provision why -`",
        )
    omitted = max(0, len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS)
    if omitted:
        text = f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"
    lines = strip_log_prefixes(strip_markup(_ESCAPES.sub("", text))).splitlines()
    searched = blank_quoted_source("\n".join(map(_shorten, lines)))
    return ErrorText(translate_system_messages(searched), omitted)


def _decode(content: bytes, name: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    if b"\0" in content[:65536]:
        raise UsageError(
            f"{name} is not a text file",
            why="it contains NUL bytes",
            hint="pass a text file with the error output, or a notebook with saved output",
        )
    return content.decode("utf-8", "replace")


def _shorten(line: str) -> str:
    if len(line) <= _MAX_LINE_LENGTH:
        return line
    half = _MAX_LINE_LENGTH // 2
    return f"{line[:half]} ... {line[-half:]}"


def _notebook_outputs(text: str, name: str) -> Iterator[str]:
    try:
        cells = [cell for cell in json.loads(text)["cells"] if isinstance(cell, dict)]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ExternalError(
            f"{name} is not a valid notebook",
            why="it is not valid JSON with a list of cells",
            hint="save the notebook again, or copy the error message into a text file, and "
            "pass that file",
        ) from None
    for output in outputs:
        if isinstance(output, dict):
            yield _printed_text(output)


def _printed_text(output: dict[str, Any]) -> str:
    """Return an output's traceback or text, or the name and value of an error without either."""
    text = output.get("traceback") or output.get("text") or ""
    if isinstance(text, list):
        # The lines of a stream have line ends, the parts of a traceback do not.
        text = ("\n" if output.get("traceback") else "").join(map(str, text))
    if isinstance(text, str) and text:
        return text
    return ": ".join(str(output[key]) for key in ("ename", "evalue") if output.get(key))
