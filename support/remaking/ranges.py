"""A file on a server, of which only the parts that are read are fetched."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable

BLOCK = 1 << 16
KEPT = 1024
"""Blocks kept in memory: 64 MiB, more than the largest member that is read."""

Fetch = Callable[[str], tuple[bytes, int]]
"""Answers an HTTP range ("0-99", or "-100" for the end) with its bytes and the size of the whole
file.
"""


class RangeFile(io.RawIOBase):
    """A seekable file over HTTP ranges, fit for `zipfile`: its end comes with the first request, a
    read across missing blocks is one request.
    """

    def __init__(self, fetch: Fetch, block: int = BLOCK, kept: int = KEPT) -> None:
        """Fetch the last block; with it comes the size of the file."""
        super().__init__()
        self._fetch, self._block, self._kept = fetch, block, kept
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._at = 0
        tail, self.size = fetch(f"-{block}")
        if len(tail) != min(block, self.size):
            raise OSError(f"asked for the last {block} bytes of {self.size}, got {len(tail)}")
        self.requests, self.received = 1, len(tail)
        self._tail, self._tail_at = tail, self.size - len(tail)

    def readable(self) -> bool:
        """Tell that this is a file to read."""
        return True

    def seekable(self) -> bool:
        """Tell that `seek` works."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position; nothing is fetched."""
        self._at = max(
            0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        )
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from the position on; 0 at the end."""
        end = min(self._at + len(buffer), self.size)
        if end <= self._at:
            return 0
        data = self._between(self._at, end)
        buffer[: len(data)] = data
        self._at = end
        return len(data)

    def _between(self, start: int, end: int) -> bytes:
        if start >= self._tail_at:
            return self._tail[start - self._tail_at : end - self._tail_at]
        first, last = start // self._block, (min(end, self._tail_at) - 1) // self._block
        held = {
            number: self._blocks[number]
            for number in range(first, last + 1)
            if number in self._blocks
        }
        missing = [number for number in range(first, last + 1) if number not in held]
        if missing:
            held |= self._load(missing[0], missing[-1])
        for number, block in held.items():
            self._blocks[number] = block
            self._blocks.move_to_end(number)
        while len(self._blocks) > self._kept:
            self._blocks.popitem(last=False)
        joined = b"".join(held[number] for number in range(first, last + 1))[
            start - first * self._block :
        ]
        return (
            (joined + self._tail)[: end - start] if end > self._tail_at else joined[: end - start]
        )

    def _load(self, first: int, last: int) -> dict[int, bytes]:
        """Fetch blocks `first` to `last` in one request; the last one ends where the tail begins."""  # noqa: E501
        start, end = first * self._block, min((last + 1) * self._block, self._tail_at)
        data, _ = self._fetch(f"{start}-{end - 1}")
        if len(data) != end - start:
            raise OSError(f"asked for {end - start} bytes, got {len(data)}")
        self.requests, self.received = self.requests + 1, self.received + len(data)
        return {
            first + place: data[place * self._block : (place + 1) * self._block]
            for place in range(last - first + 1)
        }
