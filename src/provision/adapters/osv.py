"""Queries a service with the interface of OSV for known vulnerabilities of packages."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any

from provision.adapters.uv.download import open_url
from provision.agent.core.timed_http import TimedCall, TimeLimits
from provision.effects.packages import IndexSource
from provision.errors import NetworkError
from provision.sanitize import redact

_BATCH = 1000
"""Queries in one request: the limit of the service.

Source: https://google.github.io/osv.dev/post-v1-querybatch/
"""
_MAX_BYTES = 16 * 2**20
_TIMEOUT_S = 60.0
_MAX_PAGES = 20

_Query = dict[str, Any]


def find_vulnerabilities(
    packages: Sequence[tuple[str, str]], address: str, environment: Mapping[str, str]
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the ids by (package, version); see `Reader.find_vulnerabilities`."""
    if environment.get("UV_OFFLINE"):
        raise NetworkError(
            "the packages were not checked for known vulnerabilities", why="the network is disabled"
        )
    found: dict[tuple[str, str], list[str]] = {package: [] for package in packages}
    pending: list[tuple[tuple[str, str], _Query]] = [
        ((name, version), {"package": {"name": name, "ecosystem": "PyPI"}, "version": version})
        for name, version in packages
    ]
    for _ in range(_MAX_PAGES):
        following = []
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            results = _post([query for _, query in batch], address, environment)
            for (package, query), result in zip(batch, results, strict=True):
                found[package] += [row["id"] for row in result.get("vulns") or ()]
                if token := result.get("next_page_token"):
                    following.append((package, {**query, "page_token": token}))
        pending = following
    if pending:
        raise _error(address, f"its response has more than {_MAX_PAGES} pages")
    return {package: tuple(dict.fromkeys(ids)) for package, ids in found.items()}


def _post(
    queries: Sequence[_Query], address: str, environment: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return one result for each query.

    Raises:
        NetworkError: the service cannot be reached, or its answer has another form.
    """
    url = f"{address.rstrip('/')}/v1/querybatch"
    body, call = json.dumps({"queries": queries}).encode(), TimedCall(TimeLimits(_TIMEOUT_S))
    headers = {"Content-Type": "application/json"}
    try:
        with open_url(url, IndexSource("osv", url), environment, call, headers, body) as response:
            content = response.read(_MAX_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _error(url, str(getattr(error, "reason", error))) from None
    try:
        results = json.loads(content)["results"]
        well_formed = len(results) == len(queries) and all(
            isinstance(row.get("vulns") or [], list)
            and all(isinstance(found["id"], str) for found in row.get("vulns") or ())
            for row in results
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        well_formed = False
    if not well_formed:
        raise _error(url, "its response does not have the format of OSV's querybatch")
    return list(results)


def _error(url: str, why: str) -> NetworkError:
    return NetworkError(
        "the packages could not be checked for known vulnerabilities",
        why=f"{redact(url)}: {why}",
        hint="check the network and the proxy, or use a different service with --osv-url",
    )
