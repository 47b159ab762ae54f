"""Connections of http.client with a time limit for a whole call.

The limit covers what is sent, and headers, body and redirections of the answer.

A socket's timeout limits only the pause between two parts: a server that sends a byte every few
seconds blocks its client for days.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

_PART = 2**20
_PIECE = 2**14
"""A record of TLS: each of several records would get all of the remaining time."""


class TimeLimits(NamedTuple):
    """Seconds that a call may take, and bytes that add a second.

    Both are our choice. 60 s was the limit of pauses; dnf ends a transfer that stays
    below 1000 B/s for 30 s (dnf.conf, minrate), at which a file of 100 MB would still take a
    day. 32 KiB/s is less than a mobile network of the second generation reaches (EDGE, 384
    kbit/s).
    """

    whole_s: float = 60.0
    bytes_per_s: int = 2**15


DEFAULT_LIMITS = TimeLimits()


class TooSlow(TimeoutError):
    """A call did not end in its time; the text has the number of received bytes."""


class TimedCall:
    """The time of one call, which begins when it is made; counts bytes sent and received."""

    def __init__(self, limits: TimeLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.sent = self.received = 0
        self.timed_out = False
        self._began = time.monotonic()

    def limit(self, sock: Any) -> None:
        """Set a socket's timeout to the remaining time. Raises TooSlow."""
        earned = (self.sent + self.received) / self.limits.bytes_per_s
        left = self._began + self.limits.whole_s + earned - time.monotonic()
        if left <= 0:
            raise self.make_timeout_error()
        sock.settimeout(min(left, self.limits.whole_s))

    def make_timeout_error(self) -> TooSlow:
        """Return the error of a call whose time is over."""
        self.timed_out = True
        return TooSlow(
            f"too slow: received {self.received} bytes in {time.monotonic() - self._began:.0f} s"
        )


class TimedConnection:
    """Mixin for connections: sending and receiving uses the time of the latest call."""

    sock: Any
    call: TimedCall
    response_class: Any

    def begin(self, call: TimedCall) -> None:
        """Begin a call."""
        self.call, self.response_class = call, partial(_Response, call)

    def send(self, data: Any) -> None:
        """See http.client.HTTPConnection."""
        if not isinstance(data, bytes | bytearray):
            super().send(data)  # type: ignore[misc]
            return
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            if self.sock is not None:
                self.call.limit(self.sock)
            try:
                super().send(piece)  # type: ignore[misc]
            except TimeoutError:
                raise self.call.make_timeout_error() from None
            self.call.sent += len(piece)


class _Response(http.client.HTTPResponse):
    def __init__(self, call: TimedCall, sock: Any, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp: Any = io.BufferedReader(_Incoming(self.fp.detach(), sock, call))


class _Incoming(io.RawIOBase):
    """The bytes of a socket, each read within the remaining time of a call."""

    def __init__(self, raw: Any, sock: Any, call: TimedCall) -> None:
        self._raw, self._sock, self._call = raw, sock, call

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._call.limit(self._sock)
        try:
            count: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            raise self._call.make_timeout_error() from None
        self._call.received += count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _OneCallConnection(TimedConnection):
    def __init__(self, *args: Any, call: TimedCall, **more: Any) -> None:
        super().__init__(*args, **more)
        self.begin(call)


class _Plain(_OneCallConnection, http.client.HTTPConnection):
    pass


class _Secure(_OneCallConnection, http.client.HTTPSConnection):
    pass


class TimedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens http and https addresses in the time of one call, redirections included."""

    def __init__(self, call: TimedCall, context: Any = None) -> None:
        super().__init__(context=context)
        self._call, self._tls = call, context

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See urllib.request."""
        return self.do_open(partial(_Plain, call=self._call), request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See urllib.request."""
        return self.do_open(partial(_Secure, call=self._call), request, context=self._tls)


def write_body(path: Path, answer: Any) -> str:
    """Write the body of a response to a file; return its sha256 in hexadecimal digits.

    Raises:
        OSError: the body is not complete, or cannot be written.
    """
    digest = hashlib.sha256()
    with path.open("wb") as file:
        while piece := answer.read(_PART):
            digest.update(piece)
            file.write(piece)
    if answer.length:  # the rest of the announced length
        raise ConnectionError("the connection was closed early")
    return digest.hexdigest()
