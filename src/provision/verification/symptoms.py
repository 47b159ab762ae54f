"""Errors as texts: which symptoms a text shows, and which failed checks of a report say that the cause is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from provision.diagnostics import Diagnostic
from provision.facts.packages import Symptom
from provision.verification.report import Report

_GENERIC = ("module-missing", "relative-path", "permission-denied", "torch-not-found", "pip-resolver", "tf-registered-twice")
"""Told after all others: what they say follows from a more telling error, or is no error."""


class Explanation(NamedTuple):
    """A symptom that a text shows: the line, the versions in it; and what says that its cause is there: findings of the spec, failed checks of the report."""

    symptom: Symptom
    line: str
    told: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    checks: tuple[Mapping[str, Any], ...]

    @property
    def fits(self) -> bool:
        """Whether spec or report say that the cause is there."""
        return bool(self.findings or self.checks)


def explain(text: str, known: Iterable[Symptom], findings: tuple[Diagnostic, ...], report: Report | None) -> tuple[Explanation, ...]:
    """Return the symptoms that a text shows, the likeliest first.

    First come those whose cause is there by `findings` (of a spec) or by failed checks of `report`. Then what is said last: in a traceback it ended the
    program.
    """
    found = [(match.start(), _explained(one, match, text, findings, report)) for one in known if (match := _last(one.regex, text)) is not None]
    found.sort(key=lambda pair: (pair[1].symptom.id in _GENERIC, not pair[1].fits, -pair[0]))
    return tuple(one for _, one in found)


def _last(regex: str, text: str) -> re.Match[str] | None:
    return max(re.finditer(regex, text), key=re.Match.start, default=None)


def _explained(symptom: Symptom, match: re.Match[str], text: str, findings: tuple[Diagnostic, ...], report: Report | None) -> Explanation:
    start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    told = tuple(group for group in match.groups() if group)
    failed = tuple(check for check in _failed(report) if str(check.get("id")).partition(":")[0] in symptom.checks)
    return Explanation(symptom, line, told, tuple(one for one in findings if one.id in symptom.rules), failed)


def _failed(report: Report | None) -> Iterator[Mapping[str, Any]]:
    if report is not None:
        yield from (check for check in report.document["checks"] if isinstance(check, Mapping) and check.get("status") in ("fail", "warn"))
