"""Errors as texts: which symptoms a text shows, and which failed checks of a report say that the cause is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from provision.diagnostics import Diagnostic
from provision.facts import Facts
from provision.facts.packages import Symptom
from provision.verification.report import Report
from provision.verification.told import Known, Place, other_python, remarks, wanted

_GENERIC = (
    "module-missing",
    "names-do-not-fit",
    "extension-undefined",
    "library-missing",
    "relative-path",
    "permission-denied",
    "no-network",
    "torch-not-found",
    "worker-exited",
    "pip-resolver",
    "tf-registered-twice",
)
"""Told after all others: what they say follows from a more telling error, or is no error."""
_LINE = 500
"""Characters that are kept of the line in which a symptom stands."""


class Explanation(NamedTuple):
    """A symptom that a text shows: the line, the versions in it; and what says that its cause is there: findings of the spec, failed checks of the report.

    `remarks` say what those versions mean, by the facts, the lock and the report; `wanted` are packages that it says are missing, each with a specifier.
    """

    symptom: Symptom
    line: str
    told: tuple[str, ...]
    remarks: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    checks: tuple[Mapping[str, Any], ...]
    wanted: tuple[tuple[str, str], ...] = ()

    @property
    def fits(self) -> bool:
        """Whether spec or report say that the cause is there."""
        return bool(self.findings or self.checks)


class Held(NamedTuple):
    """What an error is held against: the facts, what the rules say of a spec, a report, and what lock and report know of the place."""

    facts: Facts
    findings: tuple[Diagnostic, ...] = ()
    report: Report | None = None
    places: tuple[Place, ...] = ()


def explain(text: str, known: Iterable[Symptom], held: Held) -> tuple[Explanation, ...]:
    """Return the symptoms that a text shows, the likeliest first.

    First come those whose cause is there by the findings of a spec or by failed checks of a report. Then what is said last: in a traceback it ended the
    program.
    """
    found = [(match.start(), _explained(one, match, text, held)) for one in known if (match := _last(one.regex, text)) is not None]
    found.sort(key=lambda pair: (pair[1].symptom.id in _GENERIC, not pair[1].fits, -pair[0]))
    return _with_python(tuple(one for _, one in found), other_python(text, held.places))


def _with_python(found: tuple[Explanation, ...], remark: str) -> tuple[Explanation, ...]:
    return (found[0]._replace(remarks=(*found[0].remarks, remark)), *found[1:]) if found and remark else found


def _last(regex: str, text: str) -> re.Match[str] | None:
    return max(re.finditer(regex, text), key=re.Match.start, default=None)


def _explained(symptom: Symptom, match: re.Match[str], text: str, held: Held) -> Explanation:
    start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    failed = tuple(check for check in _failed(held.report) if str(check.get("id")).partition(":")[0] in symptom.checks)
    said = remarks(symptom.tells, match.groups(), Known(held.facts, held.places))
    told = tuple(group for group in match.groups() if group)
    lacking = wanted(symptom.tells, match.groups(), held.facts)
    findings = tuple(one for one in held.findings if one.id in symptom.rules and ("module" not in symptom.tells or _names(one, lacking)))
    return Explanation(symptom, line[:_LINE], told, said, findings, failed, lacking)


def _names(finding: Diagnostic, lacking: tuple[tuple[str, str], ...]) -> bool:
    """Whether a finding says that one of these packages is needed: that another one is missing explains no missing module."""
    return any(re.search(rf"\bneeds (?:[\w-]+ or )?{re.escape(name)}(?![\w-])", finding.message) for name, _ in lacking)


def _failed(report: Report | None) -> Iterator[Mapping[str, Any]]:
    if report is not None:
        yield from (check for check in report.document["checks"] if isinstance(check, Mapping) and check.get("status") in ("fail", "warn"))
