"""The payload of a cell: its programs, document and archives, as compressed text."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import itertools
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from provision.agent.core.code_files import ARCHIVE, list_archive
from provision.agent.core.files import PROGRAMS, zip_files
from provision.agent.core.own_wheels import WHEELS
from provision.sanitize import escape_line
from provision.targets.context import TargetContext
from provision.targets.install_request import pack_own_wheels
from provision.verification import device_files

MAX_CELL_BYTES = 2**20
"""Largest text of a cell. Our choice: a tenth of the largest message of Jupyter's server (tornado,
10 MiB).
"""
MAX_PAYLOAD_BYTES = MAX_CELL_BYTES * 4 // 5
"""A compressed payload above this is larger than a cell: its text has 5 characters for 4 bytes."""
_LINE = 120
_GROUP_BYTES, _MAX_PART_BYTES = 2**19, 2**20
"""Mean size of the groups of files that are compressed apart. Half as much makes real code 12 %
instead of 8 % larger than in one piece, twice as much 7 %."""
_MAX_CONTENT_BYTES = 2**27
"""Limit of what the text of a cell expands to: above the limit of `code` (100 MiB). A cell comes
from a notebook that others may have edited, and 1 MiB of it can stand for gigabytes."""
_ZIP_HEADER_BYTES = 30
"""Size of what precedes a member's name in a zip file."""
_MAX_NAMED = 3
# Every option is set, so that the output does not depend on defaults of liblzma. A longer search
# (BT4, nice_len 64, depth 48) saves 1 to 3 % of the size and takes 10 to 40 % more time.
_FILTER = {
    "id": lzma.FILTER_LZMA2,
    "dict_size": 2**22,
    "lc": 3,
    "lp": 0,
    "pb": 2,
    "mode": lzma.MODE_NORMAL,
    "nice_len": 32,
    "mf": lzma.MF_BT3,
    "depth": 16,
}


def build_context_payload(document: bytes, context: TargetContext) -> bytes:
    """Return the payload of a target: its document, the programs, and its code and packages."""
    members = _list_programs() | pack_own_wheels(context)
    if context.code is not None:
        members |= context.code.pack_members()
    return build_payload(document, members)


def digest_payload_inputs(document: bytes, context: TargetContext) -> str:
    """Return a digest of what a target's payload is made from, without reading its code."""
    members = _list_programs() | pack_own_wheels(context)
    if context.code is not None:
        members["code"] = context.code.describe_members()
    return digest_payload(build_payload(document, members))


def _list_programs() -> dict[str, bytes]:
    programs = (
        device_files.notebook_zipapp(),
        device_files.installer_zipapp(),
        device_files.probe_zipapp(),
    )
    return dict(zip(PROGRAMS, programs, strict=True))


def build_payload(document: bytes, members: Mapping[str, bytes]) -> bytes:
    """Return the payload: a zip file of the programs and the document, reproducible."""
    return zip_files({"document.json": document, **members}, first=PROGRAMS)


def digest_payload(payload: bytes) -> str:
    """Return the digest that a cell checks its payload by, in hexadecimal digits."""
    return hashlib.sha256(payload).hexdigest()


class PayloadTooLargeError(Exception):
    """A payload is too large for a cell. The text names the largest files of code and packages."""


def encode_payload(
    payload: bytes, existing: Sequence[str] = (), max_bytes: int = MAX_PAYLOAD_BYTES
) -> tuple[str, ...]:
    """Return a payload as lines of text.

    It is compressed in parts, and a part that the lines of an existing cell contain is taken from
    there: compressing the programs takes 0.4 s of CPU, and reading them 0.02 s.

    Raises:
        PayloadTooLargeError: its parts have more than `max_bytes` when they are compressed. The
            rest of them is not compressed then.
    """
    streams: Mapping[bytes, bytes] = {}
    with suppress(ValueError, TypeError):
        streams = dict(_read_streams("".join(existing)))
    data = bytearray()
    for part in _split_payload(payload):
        data += streams.get(part) or compress(part)
        if len(data) > max_bytes:
            raise PayloadTooLargeError(_describe_largest_files(payload))
    text = base64.b85encode(data).decode()
    return tuple(text[start : start + _LINE] for start in range(0, len(text), _LINE))


@functools.lru_cache(maxsize=64)
def compress(content: bytes) -> bytes:
    """Return a stream of xz; cached, as one command needs the same repeatedly."""
    return lzma.compress(content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=[_FILTER])


def _split_payload(payload: bytes) -> tuple[bytes, ...]:
    """Return the parts of a payload that are compressed apart.

    These are the programs, groups of the code's files, and what precedes and follows the groups.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            others = [member for member in archive.infolist() if member.filename not in PROGRAMS]
    except zipfile.BadZipFile:
        return (payload,)
    programs_end = min((member.header_offset for member in others), default=len(payload))
    cuts = [programs_end]
    for member in others:
        if member.filename == ARCHIVE:
            start = member.header_offset + _ZIP_HEADER_BYTES + len(ARCHIVE)
            end = start + member.file_size
            cuts += (*(start + begin for begin in _find_groups(payload[start:end])), end)
    parts = [payload[:programs_end]]
    for start, end in itertools.pairwise((*cuts, len(payload))):
        steps = range(start, end, _MAX_PART_BYTES)
        parts += (payload[step : min(step + _MAX_PART_BYTES, end)] for step in steps)
    return tuple(filter(None, parts))


def _find_groups(archive: bytes) -> Iterator[int]:
    """Yield where groups of files begin in an archive of code.

    A file begins a group by its own path and size, so that an edit changes one group only.
    """
    is_first = True
    for entry in list_archive(archive):
        size = entry.end - entry.header
        draw = zlib.crc32(entry.path.encode("utf-8", "surrogateescape"))
        if is_first or draw * _GROUP_BYTES < size << 32:
            yield entry.header
        is_first = False


def _describe_largest_files(payload: bytes) -> str:
    """Return the largest files of a payload's code and packages, with their sizes."""
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(io.BytesIO(payload)) as members:
        names = members.namelist()
        if ARCHIVE in names:
            entries = list_archive(members.read(ARCHIVE))
            sizes |= {entry.path: entry.end - entry.start for entry in entries}
        if WHEELS in names:
            with zipfile.ZipFile(io.BytesIO(members.read(WHEELS))) as wheels:
                sizes |= {wheel.filename: wheel.file_size for wheel in wheels.infolist()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_MAX_NAMED]
    return ", ".join(f"{escape_line(name)} ({-(-sizes[name] // 2**10)} KiB)" for name in largest)


@functools.lru_cache(maxsize=2)
def _read_streams(text: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the parts of a payload in its text: content and compressed stream of each.

    Cached, as one command needs the same repeatedly. Raises ValueError if there is none.
    """
    data, parts = base64.b85decode(text), list[tuple[bytes, bytes]]()
    limit = _MAX_CONTENT_BYTES
    try:
        while data or not parts:
            decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            content = decompressor.decompress(data, max_length=limit + 1)
            limit -= len(content)
            if not decompressor.eof or limit < 0:
                raise ValueError("the payload is incomplete or too large")
            rest = decompressor.unused_data
            parts.append((content, data[: len(data) - len(rest)]))
            data = rest
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from None
    return tuple(parts)


def decode_payload(lines: Sequence[str]) -> bytes:
    """Return the payload in lines of text. Raises ValueError if there is none."""
    return b"".join(content for content, _ in _read_streams("".join(lines)))
