"""Errors as texts: which symptoms a text shows, and which failed checks of a report say that the
cause is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from provision.diagnostics import Applicability, Diagnostic
from provision.facts import Facts
from provision.facts.schema_packages import Symptom
from provision.verification.error_lookup.versions import (
    KnownEnvironment,
    VersionSources,
    explain_matches,
    explain_python_mismatch,
    find_missing_packages,
)
from provision.verification.report import Report

_GENERIC = (
    "half-imported",
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
    "device-assert",
    "nccl-timeout",
    "torchrun-failed",
    "tokenizers-fork",
    "cuda-not-available",
)
"""Told after all others: what they say follows from a more telling error, or is no error."""
_HARMLESS = frozenset(
    {"tokenizers-fork", "tf-registered-twice", "cuda-not-available", "kernel-55", "pip-resolver"}
)
"""What is printed without ending a program."""
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = re.compile(
    r"(?:The above exception was the direct cause of the following exception|During "
    r"handling of the above exception, another exception occurred):\s*$"
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*|:)?")
_RAISED = re.compile(r"(?:Error|Exception|Warning|Exit|Interrupt|Failure)\b")
_OF_PACKAGES = frozenset({"PKG009", "PKG010"})
"""Rules that speak of any two packages."""
_WORD = re.compile(r"[A-Za-z][\w.\-]*\w")
_CONTEXT_CHARACTERS = 300
"""Characters after a symptom that tell what it is about."""
_LINE = 500
"""Characters that are kept of the line in which a symptom stands."""


class Explanation(NamedTuple):
    """A symptom that a text shows: the line, the versions in it; and what says that its cause is
    there: findings of the spec, failed checks of the report.

    `remarks` say what those versions mean, by the facts, the lock and the report; `wanted` are
    packages that it says are missing, each with a specifier;
    `end` is where in the text it ends.
    """

    symptom: Symptom
    line: str
    matched_groups: tuple[str, ...]
    remarks: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    checks: tuple[Mapping[str, Any], ...]
    missing_packages: tuple[tuple[str, str], ...] = ()
    end: int = 0

    @property
    def is_note(self) -> bool:
        """Whether it is of the kind that ends no program."""
        return self.symptom.id in _HARMLESS

    @property
    def is_confirmed(self) -> bool:
        """Whether spec or report say that the cause is there."""
        return bool(self.findings or self.checks)


class LookupContext(NamedTuple):
    """What an error is held against: the facts, what the rules say of a spec, a report, and what
    lock and report know of the place.
    """

    facts: Facts
    findings: tuple[Diagnostic, ...] = ()
    report: Report | None = None
    environments: tuple[KnownEnvironment, ...] = ()


def explain_error(
    text: str, known: Iterable[Symptom], held: LookupContext
) -> tuple[Explanation, ...]:
    """Return the symptoms that a text shows, the likeliest first.

    First come those whose cause is there by the findings of a spec or by failed checks of a
    report. Then what is said last: in a traceback it ended the
    program.
    """
    found = [
        (match.start(), _explanation(one, match, text, held))
        for one in known
        if (match := _last_match(one.regex, text)) is not None
    ]
    found.sort(
        key=lambda pair: (pair[1].symptom.id in _GENERIC, not pair[1].is_confirmed, -pair[0])
    )
    return _with_python(
        tuple(one for _, one in found), explain_python_mismatch(text, held.environments)
    )


def is_offered_fix(finding: Diagnostic, likeliest: bool) -> bool:
    """Whether `--fix` mends a finding: by a safe fix, and of the likeliest explanation by one too
    that changes what is asked for.
    """
    return finding.fix is not None and (
        finding.fix.applicability is Applicability.SAFE
        or (likeliest and finding.fix.applicability is Applicability.UNSAFE)
    )


def find_unexplained_error(text: str, found: Iterable[Explanation]) -> str:
    """Return the error with which the text's last traceback ends, or "" where there is no traceback
    or a symptom stands in it.

    Tracebacks that Python chains are one: what the first of them tells explains the last.
    """
    start = text.rfind(_TRACEBACK)
    while (
        start > 0
        and _CHAINED.search(text, max(0, start - 300), text.rfind("\n", 0, start) + 1)
        and (earlier := text.rfind(_TRACEBACK, 0, start)) >= 0
    ):
        start = earlier
    if start < 0 or any(one.end > start and not one.is_note for one in found):
        return ""
    lines = text[text.rfind(_TRACEBACK) :].splitlines()[1:]
    return next(
        (
            line.strip()[:_LINE]
            for line in lines
            if _EXCEPTION.fullmatch(line.strip()) and _RAISED.search(line.partition(":")[0])
        ),
        "",
    )


def _with_python(found: tuple[Explanation, ...], remark: str) -> tuple[Explanation, ...]:
    return (
        (found[0]._replace(remarks=(*found[0].remarks, remark)), *found[1:])
        if found and remark
        else found
    )


def _last_match(regex: str, text: str) -> re.Match[str] | None:
    return max(re.finditer(regex, text), key=re.Match.start, default=None)


def _explanation(
    symptom: Symptom, match: re.Match[str], text: str, held: LookupContext
) -> Explanation:
    start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    failed = tuple(
        check
        for check in _failed(held.report)
        if str(check.get("id")).partition(":")[0] in symptom.checks
    )
    said = explain_matches(
        symptom.tells, match.groups(), VersionSources(held.facts, held.environments)
    )
    told = tuple(group for group in match.groups() if group)
    lacking = find_missing_packages(symptom.tells, match.groups(), held.facts)
    near = f"{symptom.cause} {text[match.start() : match.end() + _CONTEXT_CHARACTERS]}"
    findings = tuple(
        one
        for one in held.findings
        if one.id in symptom.rules and _concerns(one, symptom, lacking, near, held.facts)
    )
    return Explanation(symptom, line[:_LINE], told, said, findings, failed, lacking, match.end())


def _concerns(
    finding: Diagnostic,
    symptom: Symptom,
    lacking: tuple[tuple[str, str], ...],
    near: str,
    facts: Facts,
) -> bool:
    """Whether a finding is about what the error is about: that other packages do not go together
    explains no error of these.
    """
    if "module" in symptom.tells:
        return any(
            re.search(rf"\bneeds (?:[\w-]+ or )?{re.escape(name)}(?![\w-])", finding.message)
            for name, _ in lacking
        )
    if finding.id not in _OF_PACKAGES:
        return True
    words = {str(canonicalize_name(word)) for word in _WORD.findall(finding.message)}
    if lacking:
        return any(name in words for name, _ in lacking)
    said = re.sub(r"[-_.]+", "-", near.lower())
    return any(
        word in said
        for word in words
        if word in facts.popular
        or word in facts.seen
        or word in facts.runs
        or word == "transformers"
    )


def _failed(report: Report | None) -> Iterator[Mapping[str, Any]]:
    if report is not None:
        yield from (
            check
            for check in report.document["checks"]
            if isinstance(check, Mapping) and check.get("status") in ("fail", "warn")
        )
