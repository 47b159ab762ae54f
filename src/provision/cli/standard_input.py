"""Documents from standard input."""

from __future__ import annotations

import sys

from provision.errors import ExternalError


def read_standard_input(limit: int, *, hint: str) -> bytes:
    """Return standard input: at most `limit` bytes, and one more when it is longer.

    Raises:
        ExternalError: it cannot be read; `hint` says what to do.
    """
    try:
        return sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        raise ExternalError(
            "cannot read standard input", why=error.strerror or str(error), hint=hint
        ) from error
