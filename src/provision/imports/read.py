"""Reads files of other tools: their size, encoding and format."""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import ExternalError, SourceError
from provision.imports.formats import (
    FORMATS,
    OTHER_FILES,
    detect_format,
    find_importable_names,
    load_reader,
)
from provision.imports.model import ImportContext, ImportedFile
from provision.source.project_root import find_project_root

if TYPE_CHECKING:
    from provision.effects.system import Reader

MAX_FILE_BYTES = 8 << 20
"""Bytes; the uv.lock of a large project has 2 MB (our choice)."""
MAX_NOTEBOOK_BYTES = 64 << 20
"""Bytes; the outputs of a notebook contain images (our choice)."""
_MAX_NAMES = 10
"""Files of a folder that a message names (our choice)."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# PEP 263, which pip applies to requirements files.
_DECLARATION = re.compile(rb"\A(?:[ \t]*#[^\n]*\n)?[ \t]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
_OTHER_DOCUMENT = re.compile(r'"schema"\s*:\s*"provision\.(?:env|report)/')
_SPEC = re.compile(r"^(?:apiVersion|packages|extends)[ \t]*:", re.MULTILINE)


def read_files(paths: Iterable[Path], reader: Reader) -> tuple[ImportedFile, ...]:
    """Return the content of files in the order in which they are named.

    Raises:
        SourceError: a file is missing, unreadable, too large, not text, of no known format, or
            broken.
    """
    return tuple(read_file(path, reader) for path in dict.fromkeys(paths))


def read_file(path: Path, reader: Reader) -> ImportedFile:
    """Return the content of a file and of those that it includes.

    Raises:
        SourceError: see `read_files`.
    """
    text = read_text(path, reader)
    file_format = detect_format(path, text)
    if file_format is None:
        raise _explain_unknown_format(path, text)
    root = find_project_root(path, reader)
    try:
        return load_reader(file_format)(path, text, ImportContext(root, reader))
    except RecursionError:
        raise SourceError(
            f"cannot read {path}",
            why="its values are nested too deeply",
            hint="use a file with fewer levels of nesting",
        ) from None


def read_text(path: Path, reader: Reader) -> str:
    """Return the decoded text of a file, without byte order mark.

    Raises:
        SourceError: the file is missing, unreadable, too large, or not text.
    """
    is_notebook = path.suffix.lower() == ".ipynb"
    try:
        raw = reader.read(path, MAX_NOTEBOOK_BYTES if is_notebook else MAX_FILE_BYTES)
    except ExternalError as error:
        hint = error.hint or "correct the name or the folder of the file"
        if names := find_importable_names(reader.list_folder(path)):
            words = shlex.join(str(path / name) for name in names[:_MAX_NAMES])
            hint = f"name the files to read: {words}"
        raise SourceError(error.what, why=error.why, hint=hint) from error
    return decode_text(path, raw)


def decode_text(path: Path, raw: bytes) -> str:
    """Return the text of a file: by its byte order mark, its declared encoding, else in UTF-8.

    Raises:
        SourceError: the bytes are not text in that encoding.
    """
    encoding, body = "utf-8", raw
    for mark, name in _MARKS:
        if raw.startswith(mark):
            encoding, body = name, raw[len(mark) :]
            break
    else:
        if declared := _DECLARATION.match(raw[:1024]):
            encoding = declared[1].decode("ascii", "replace")
    try:
        text = body.decode(encoding)
    except LookupError:
        raise SourceError(
            f"{path} declares the unknown encoding {encoding[:40]}",
            hint="save the file as UTF-8, and delete the declaration",
        ) from None
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = body.count(b"\n", 0, start) + 1
        raise SourceError(
            f"{path}, line {line}: the bytes are not valid {encoding[:40]}",
            hint="save the file as UTF-8",
        ) from None
    if "\0" in text:
        raise SourceError(
            f"{path} contains a NUL character",
            why="it is a binary file, or UTF-16 without a byte order mark",
            hint="save the file as UTF-8, or pass a text file",
        )
    return text


def _explain_unknown_format(path: Path, text: str) -> SourceError:
    names = ", ".join(dict.fromkeys(file_format.name for file_format in FORMATS))
    hint = OTHER_FILES.get(path.name.lower(), "")
    if not hint and path.suffix.lower() in (".yaml", ".yml") and _SPEC.search(text):
        hint = f"the file looks like a spec: check it with `provision lint {path}`"
    if not hint and _OTHER_DOCUMENT.search(text):
        hint = "import a capture from that machine, made with `provision capture -o capture.json`"
    if not text.strip():
        return SourceError(f"{path} is empty", hint="pass a file that lists packages")
    return SourceError(
        f"the format of {path} is unknown",
        why=f"the supported formats are {names}",
        hint=hint or "if the file has one of these formats, rename it",
    )
