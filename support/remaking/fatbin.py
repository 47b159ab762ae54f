"""The compute capabilities of the GPU code in a shared library (the fat binaries of nvcc)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEADER = struct.Struct("<IHHQ")
"""Magic, version, size of this header, size of the entries after it."""
_ENTRY = struct.Struct("<HHIQ12xI")
"""Kind, version, size of this header, size of the code after it; at byte 28 the capability."""
_PTX, _MACHINE = 1, 2


class CompiledCode(NamedTuple):
    """Capabilities such as 90 and 120, in order: of machine code, and of PTX."""

    machine: tuple[int, ...]
    ptx: tuple[int, ...]


def compiled_code(content: bytes) -> CompiledCode:
    """Return the code in a library; nothing for a file without fat binaries."""
    found = set(_entries(content))
    kinds = (
        sorted(number for kind, number in found if kind == wanted) for wanted in (_MACHINE, _PTX)
    )
    return CompiledCode(*map(tuple, kinds))


def _entries(content: bytes) -> Iterator[tuple[int, int]]:
    start = content.find(_MAGIC)
    while start >= 0 and start + _HEADER.size <= len(content):
        _, version, header, size = _HEADER.unpack_from(content, start)
        at = start + header
        end = min(at + size, len(content))
        # The magic number alone can be part of other code.
        while (version, header) == (1, _HEADER.size) and at + _ENTRY.size <= end:
            kind, _, width, length, capability = _ENTRY.unpack_from(content, at)
            if kind not in (_PTX, _MACHINE) or width < _ENTRY.size:
                break
            yield kind, capability
            at += width + length
        start = content.find(_MAGIC, start + 1)
