"""Sends the output of the user's program to the bucket, in numbered parts."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field

from ..workbench.cloud import CloudClient, ServiceCallFailed
from ..workbench.status import SecretRedactor

_PART_BYTES = 1 << 20
_MOST_WAITING_BYTES = 16 << 20
"""Most output that is kept while the bucket cannot be written. Our choice."""
_TEXT = "text/plain; charset=utf-8"


@dataclass
class OutputSender:
    """Output of one start of a replica.

    `folder` is the replica's gs:// address with a slash at its end, `start` the number of the
    start, from 1.
    """

    cloud: CloudClient
    folder: str
    start: int
    redactor: SecretRedactor
    _waiting: bytearray = field(default_factory=bytearray)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _number: int = 0
    _is_refused: bool = False

    def add(self, content: bytes) -> None:
        """Keep output that was just written; called from the thread that reads it."""
        with self._lock:
            self._waiting += content
            del self._waiting[:-_MOST_WAITING_BYTES]

    def send(self, *, everything: bool = False) -> None:
        """Write what is waiting, up to the end of its last line; with `everything` all of it.

        A part that cannot be written stays. May block for a minute.
        """
        while part := self._next_part(everything=everything):
            text = part.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
            address = f"{self.folder}output-{self.start:03}-{self._number:05}.txt"
            try:
                self.cloud.write_object(address, self.redactor.clean(text).encode(), _TEXT)
            except ServiceCallFailed as error:
                if not self._is_refused:
                    self._is_refused = True
                    print(f"provision: {error}", file=sys.stderr, flush=True)
                return
            self._is_refused = False
            self._number += 1
            with self._lock:
                del self._waiting[: len(part)]

    def _next_part(self, *, everything: bool) -> bytes:
        with self._lock:
            part = bytes(self._waiting[:_PART_BYTES])
        if everything or (b"\n" not in part and len(part) == _PART_BYTES):
            return part
        # A secret that is split over two parts would not be found.
        return part[: part.rfind(b"\n") + 1]
