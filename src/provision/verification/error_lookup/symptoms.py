"""Symptoms in an error's text, and the findings and failed checks that confirm their cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from packaging.utils import canonicalize_name

from provision.agent.probe.model import Status
from provision.diagnostics import Applicability, Diagnostic
from provision.facts import Facts
from provision.facts.schema_packages import Symptom
from provision.verification.error_lookup.known_environment import KnownEnvironment
from provision.verification.error_lookup.log_text import join_wrapped_lines
from provision.verification.error_lookup.tolerant_match import compile_tolerant
from provision.verification.error_lookup.trace_packages import (
    explain_trace_packages,
    find_trace_packages,
)
from provision.verification.error_lookup.versions import (
    VersionSources,
    explain_matches,
    explain_python_mismatch,
    find_confirmations,
    find_missing_packages,
    has_unknown_owner,
)
from provision.verification.report import Report, ReportedCheck

_ORDERS = ("", "general", "consequence")
"""Values of Symptom.order, as the explanations are sorted."""
_FAILING = (Status.FAIL, Status.WARN)
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = re.compile(
    r"(?:The above exception was the direct cause of the following exception|During "
    r"handling of the above exception, another exception occurred):\s*$"
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*|:)?")
_RAISED = re.compile(r"(?:Error|Exception|Warning|Exit|Interrupt|Failure)\b")
_ANY_PACKAGE_RULES = frozenset({"PKG009", "PKG010"})
"""Rules about any two packages."""
_VERSION_RULES = _ANY_PACKAGE_RULES | {"PKG001", "PKG012", "PKG024"}
"""Rules about releases that do not fit: the packages in the paths of the traceback matter."""
_FRAME = re.compile(r"(?:(?:site|dist)-packages|transformers_modules)[/\\]")
_compile = cache(re.compile)
"""There are more symptoms than the cache of `re` keeps expressions."""
_WORD = re.compile(r"[A-Za-z][\w.\-]*\w")
_CONTEXT_CHARACTERS = 300
"""Characters after a symptom that are searched for package names."""
_MAX_LINE_LENGTH = 500
_MAX_TOLERANT_CHARACTERS = 20_000
_CHAIN_CHARACTERS = 300
"""Characters before a traceback in which Python links it to the previous one."""


class Explanation(NamedTuple):
    """A symptom in a text, with what confirms its cause.

    `line` is the line of the text, `matched_groups` the values in it, `remarks` their meaning by
    the facts, the lock and the report, `findings` those of the spec and `checks` the failed ones
    of the report that confirm the cause, `missing_packages` names with specifiers, and `end` the
    offset in the text at which the symptom ends. `confirmations` are sentences about the lock or
    the report, whose versions confirm the cause.
    """

    symptom: Symptom
    line: str
    matched_groups: tuple[str, ...]
    remarks: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    checks: tuple[ReportedCheck, ...]
    missing_packages: tuple[tuple[str, str], ...] = ()
    end: int = 0
    confirmations: tuple[str, ...] = ()

    @property
    def is_note(self) -> bool:
        """True for a symptom that does not end a program."""
        return self.symptom.harmless

    @property
    def is_confirmed(self) -> bool:
        """True if the spec, its lock or the report confirms the cause."""
        return bool(self.findings or self.checks or self.confirmations)


class LookupContext(NamedTuple):
    """The facts, findings of a spec, report and known environments to compare an error with."""

    facts: Facts
    findings: tuple[Diagnostic, ...] = ()
    report: Report | None = None
    environments: tuple[KnownEnvironment, ...] = ()


def explain_error(
    text: str, symptoms: Iterable[Symptom], context: LookupContext
) -> tuple[Explanation, ...]:
    """Return the symptoms in a text, the likeliest first.

    Confirmed ones come first, then those printed last: the end of a traceback ended the program.
    A text without a symptom is searched again with its wrapped lines joined, and then as if a web
    page had dropped its quotes.
    """
    symptoms = tuple(symptoms)
    found = (
        _find_symptoms(text, symptoms, context)
        or _find_in_wrapped_text(text, " ", symptoms, context)
        or _find_in_wrapped_text(text, "", symptoms, context)
        or _find_symptoms(text, symptoms, context, tolerant=True)
    )
    found.sort(
        key=lambda pair: (_ORDERS.index(pair[1].symptom.order), not pair[1].is_confirmed, -pair[0])
    )
    explanations = _without_repeated_names([one for _, one in found])
    remark = explain_python_mismatch(text, context.environments)
    if explanations and remark:
        first = explanations[0]
        explanations[0] = first._replace(remarks=(*first.remarks, remark))
    return tuple(explanations)


def _without_repeated_names(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return explanations without a general one about a line that another explains better."""
    explained = {one.line for one in explanations if not one.symptom.fallback}
    kept = []
    for one in explanations:
        if not one.symptom.fallback:
            kept.append(one)
        elif one.line not in explained:
            explained.add(one.line)
            kept.append(one)
    return kept


def _find_symptoms(
    text: str, symptoms: Iterable[Symptom], context: LookupContext, *, tolerant: bool = False
) -> list[tuple[int, Explanation]]:
    """Return the symptoms in a text, each with the offset of its last match."""
    found = []
    start = max(0, len(text) - _MAX_TOLERANT_CHARACTERS) if tolerant else 0
    for symptom in symptoms:
        literals = symptom.literals
        if literals and not tolerant and not any(one in text for one in literals):
            continue
        expression = compile_tolerant(symptom.regex) if tolerant else _compile(symptom.regex)
        matches = [
            match
            for match in expression.finditer(text, start)
            if not has_unknown_owner(symptom.tells, match.groups(), context.facts)
        ]
        if matches:
            last = matches[-1]
            position = last.end() if _FRAME.match(last.group()) else last.start()
            found.append((position, _explain(symptom, last, text, context)))
    return found


def _find_in_wrapped_text(
    text: str, separator: str, symptoms: Iterable[Symptom], context: LookupContext
) -> list[tuple[int, Explanation]]:
    """Return the symptoms in a text with joined lines, with offsets from the end of the text."""
    joined = join_wrapped_lines(text, separator)
    shift = len(text) - len(joined)
    return [
        (start + shift, one._replace(end=one.end + shift))
        for start, one in _find_symptoms(joined, symptoms, context)
    ]


def is_offered_fix(finding: Diagnostic, likeliest: bool) -> bool:
    """Return whether `--fix` applies a finding's fix: safe ones, or unsafe of the likeliest."""
    if finding.fix is None:
        return False
    applicability = finding.fix.applicability
    return applicability is Applicability.SAFE or (
        likeliest and applicability is Applicability.UNSAFE
    )


def find_unexplained_error(text: str, explanations: Iterable[Explanation]) -> str:
    """Return the error that ends the last traceback, or "" if a symptom is in it.

    Tracebacks that Python chains count as one: the first of them explains the last.
    """
    last = start = text.rfind(_TRACEBACK)
    while start > 0 and _CHAINED.search(
        text, max(0, start - _CHAIN_CHARACTERS), text.rfind("\n", 0, start) + 1
    ):
        earlier = text.rfind(_TRACEBACK, 0, start)
        if earlier < 0:
            break
        start = earlier
    if start < 0 or any(one.end > start and not one.is_note for one in explanations):
        return ""
    for line in map(str.strip, text[last:].splitlines()[1:]):
        if _EXCEPTION.fullmatch(line) and _RAISED.search(line.partition(":")[0]):
            return line[:_MAX_LINE_LENGTH]
    return ""


def _explain(
    symptom: Symptom, match: re.Match[str], text: str, context: LookupContext
) -> Explanation:
    groups, facts = match.groups(), context.facts
    # An expression that begins with a frame of a traceback ends in the line of the error.
    first = match.end() if _FRAME.match(match.group()) else match.start()
    start, end = text.rfind("\n", 0, first) + 1, text.find("\n", match.end())
    line = " ".join(map(str.strip, text[start : end if end >= 0 else len(text)].splitlines()))
    missing = find_missing_packages(symptom.tells, groups, facts)
    nearby = f"{symptom.cause} {text[match.start() : match.end() + _CONTEXT_CHARACTERS]}"
    sources = VersionSources(facts, context.environments)
    remarks = explain_matches(symptom.tells, groups, sources)
    if not _VERSION_RULES.isdisjoint(symptom.rules):
        packages = find_trace_packages(text, match.end(), facts)
        nearby = f"{nearby} {' '.join(packages)}"
        remarks = (*remarks, *explain_trace_packages(packages, context.environments))
    return Explanation(
        symptom,
        line[:_MAX_LINE_LENGTH],
        tuple(group for group in groups if group),
        remarks,
        tuple(
            finding
            for finding in context.findings
            if finding.id in symptom.rules and _concerns(finding, symptom, missing, nearby, facts)
        ),
        tuple(
            check
            for check in (context.report.checks if context.report else ())
            if check.status in _FAILING and check.base_id in symptom.checks
        ),
        missing,
        match.end(),
        find_confirmations(symptom.tells, groups, sources),
    )


def _concerns(
    finding: Diagnostic,
    symptom: Symptom,
    missing: tuple[tuple[str, str], ...],
    nearby: str,
    facts: Facts,
) -> bool:
    """Return whether a finding is about the packages of the error, not about any two others."""
    if "module" in symptom.tells:
        names = "|".join(re.escape(name) for name, _ in missing)
        needs = rf"\bneeds (?:[\w-]+ or )?(?:{names})(?![\w-])"
        return bool(missing) and re.search(needs, finding.message) is not None
    if finding.id not in _ANY_PACKAGE_RULES:
        return True
    words = {str(canonicalize_name(word)) for word in _WORD.findall(finding.message)}
    if missing:
        return any(name in words for name, _ in missing)
    context = re.sub(r"[-_.]+", "-", nearby.lower())
    known = (facts.popular, facts.seen, facts.runs, ("transformers",))
    return any(word in context and any(word in names for names in known) for word in words)
