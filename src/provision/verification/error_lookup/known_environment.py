"""An environment that an error is compared with, and the source of that knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

FROM_ANOTHER_ENVIRONMENT = (
    "the error came from a different environment, or from an earlier version of this environment"
)


class KnownEnvironment(NamedTuple):
    """Packages, Python and readings of an environment; `source` is, for example, "the report"."""

    source: str
    packages: Mapping[str, str]
    python: str
    readings: Mapping[str, Any]
    is_complete: bool = False
    """True if a package that is not in `packages` is not installed."""
