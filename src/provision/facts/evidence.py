"""Evidence for a fact: its sources, the day they were read, and the confidence in it."""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Severity


class Evidence(NamedTuple):
    """The source of a fact, the day it was read, and the confidence: high, medium or low.

    `sources_count` is how many independent sources a person counted in `source`: 0 if a script
    reads the table. One source allows medium confidence at most.
    """

    source: str
    as_of: str
    confidence: str
    sources_count: int = 0

    @property
    def is_sure(self) -> bool:
        """True if a rule may report an error that rests on this fact alone."""
        return self.confidence != "low"

    def cap_severity(self, severity: Severity) -> Severity:
        """Return `severity`, or a warning if it is an error that rests on a doubtful fact."""
        if severity is Severity.ERROR and not self.is_sure:
            return Severity.WARNING
        return severity
