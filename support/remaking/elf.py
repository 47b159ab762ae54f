"""The shared libraries that an ELF file names as needed (DT_NEEDED)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5


def needed_libraries(content: bytes) -> list[str]:
    """Return the libraries that a 64-bit little-endian ELF file needs, [] for any other file."""
    if content[:6] != b"\x7fELF\x02\x01":
        return []
    segments = list(_segments(content))
    dynamic = next((segment for segment in segments if segment[0] == _PT_DYNAMIC), None)
    if dynamic is None:
        return []
    entries = list(_entries(content, dynamic[1], dynamic[3]))
    address = next((value for tag, value in entries if tag == _DT_STRTAB), None)
    if address is None:
        return []
    start = next(
        (
            offset + address - virtual
            for kind, offset, virtual, size in segments
            if kind == _PT_LOAD and virtual <= address < virtual + size
        ),
        address,
    )
    names = (start + value for tag, value in entries if tag == _DT_NEEDED)
    return [content[at : content.index(b"\0", at)].decode() for at in names]


def _segments(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, offset, virtual address and size of each program header."""
    (table,) = struct.unpack_from("<Q", content, 32)
    width, count = struct.unpack_from("<HH", content, 54)
    for index in range(count):
        kind, _, offset, virtual, _, size = struct.unpack_from(
            "<IIQQQQ", content, table + index * width
        )
        yield kind, offset, virtual, size


def _entries(content: bytes, offset: int, size: int) -> Iterator[tuple[int, int]]:
    for at in range(offset, offset + size, 16):
        tag, value = struct.unpack_from("<QQ", content, at)
        if tag == _DT_NULL:
            return
        yield tag, value
