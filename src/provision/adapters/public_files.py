"""Reads a file at a public address, as a machine without credentials sees it."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping

from provision.adapters.uv.download import open_url
from provision.agent.core.timed_http import TimedCall, TimeLimits
from provision.effects.packages import IndexSource
from provision.errors import NetworkError

_TIMEOUT_S = 30.0


def read_public_file(url: str, limit: int, environment: Mapping[str, str]) -> bytes:
    """Return the content of a file, at most `limit` bytes. May block. `environment` is uv's.

    Raises:
        NetworkError: it cannot be read.
    """
    if environment.get("UV_OFFLINE"):
        raise NetworkError(f"cannot read {url}", why="the network is disabled")
    # GitHub's API returns a file itself for this type; other servers ignore it.
    headers = {"Accept": "application/vnd.github.raw+json, */*"}
    call, source = TimedCall(TimeLimits(_TIMEOUT_S)), IndexSource("payload", url)
    try:
        # Without the user's credentials, which the machine does not have.
        with open_url(url, source, {**environment, "NETRC": os.devnull}, call, headers) as response:
            return bytes(response.read(limit))
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = str(getattr(error, "reason", error))
        code = getattr(error, "code", None)
        raise NetworkError(f"cannot read {url}", why=f"HTTP {code}" if code else why) from None
