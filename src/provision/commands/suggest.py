"""Suggests specs that satisfy every rule, and how well each is proven."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from provision import source
from provision.commands.shared.load import SpecHasErrors, check_single_document
from provision.commands.shared.resolution_hints import resolve_and_check
from provision.commands.shared.spec_text_check import read_text_as_file
from provision.diagnostics import Severity
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError, ProvisionError, UsageError
from provision.facts import Facts
from provision.facts.versions import parse_version
from provision.rules import LintContext
from provision.spec import Spec
from provision.spelling import pluralize
from provision.suggest.search import (
    AssessedSuggestion,
    EmptySourceText,
    SearchResult,
    Suggestion,
    SuggestionResult,
    SuggestionStatus,
    find_suggestions,
)
from provision.target_facts import find_unlockable
from provision.verification import Report
from provision.verification.report import read_report_file

if TYPE_CHECKING:
    from provision.effects.system import Reader


_TEXT_FINDINGS = frozenset(kind.id for kind in source.FINDING_KINDS)
"""Ids of findings about text and shape: after such an error, the content of a spec is a guess."""
RESOLUTION_S = 30.0
"""Seconds for resolutions that nobody asked for; no new one begins after them. Our choice."""
_SPARE_SUGGESTIONS = 3
"""Suggestions to try in place of those that uv or a rule refuses. Our choice."""
_SHOWN_LINES = 12
"""Last lines of uv's derivation to show: they have its conclusion. Our choice."""


@dataclass(frozen=True, slots=True)
class EvidenceSources:
    """The facts, and the system that runs uv to prove a suggestion (None: rules alone).

    Attributes:
        is_required: an index out of reach is an error; else what is not resolved in time stays
            with the rules.
    """

    facts: Facts
    system: System | None
    progress: ProgressCallback
    offline: bool
    is_required: bool = False


def suggest_for_spec(
    path: Path, reader: Reader, sources: EvidenceSources, *, most: int
) -> SuggestionResult:
    """Return suggestions near a spec.

    Raises:
        SpecHasErrors: the text or shape of the spec has errors.
        SourceError: the spec cannot be read.
    """
    document = check_single_document(path, reader, sources.facts)
    if document.spec is None or any(
        finding.severity is Severity.ERROR and finding.id in _TEXT_FINDINGS
        for finding in document.diagnostics
    ):
        raise SpecHasErrors(document.source, document.diagnostics, "the spec has errors")
    reports = dict(_read_reports(path.resolve().parent, reader))
    count = most + (_SPARE_SUGGESTIONS if sources.system is not None else 0)
    result = find_suggestions(document.spec, sources.facts, most=count)
    return _assess(str(path), result, sources, reports, most=most, written=True)


def suggest_for_options(
    values: Mapping[str, str], sources: EvidenceSources, *, most: int
) -> SuggestionResult:
    """Return suggestions for values of gpu, cuda, python, precision, torch and transformers.

    Raises:
        UsageError: no spec can have a value.
    """
    spec, facts = _spec_of_options(values, sources.facts), sources.facts
    free = frozenset({"python", "cuda"} - values.keys())
    count = most + (_SPARE_SUGGESTIONS if sources.system is not None else 0)
    result = find_suggestions(spec, facts, most=count, free=free, written=False)
    name = ", ".join(f"{option} {value}" for option, value in values.items())
    return _assess(name, result, sources, {}, most=most, written=False)


def _spec_of_options(values: Mapping[str, str], facts: Facts) -> Spec:
    packages = [_requirement("torch", values.get("torch", ""))]
    if "transformers" in values:
        packages.append(_requirement("transformers[torch]", values["transformers"]))
    document: dict[str, Any] = {
        "gpu": values["gpu"],
        "python": values.get("python", facts.pythons[-1].version),
        "packages": packages,
    }
    if "cuda" in values:
        document["cuda"] = values["cuda"]
    if "precision" in values:
        document["training"] = {"precision": values["precision"]}
    if values["gpu"] == "mps":
        document["platforms"] = ["macos-arm64"]
    reader = read_text_as_file(json.dumps(document))
    (read,) = source.read_spec_file(Path("words.yaml"), reader)
    spec, problems = source.validate_source(read)
    if spec is None:
        first = (*read.diagnostics, *problems)[0]
        raise UsageError(first.message, why=first.why, hint=first.help)
    return spec


def _requirement(name: str, version: str) -> str:
    """Return a requirement for "5.13" (any patch), "5.13.1" (exact), or specifiers as given.

    Raises:
        UsageError: not a version and not specifiers.
    """
    if not version or version[0] in "<>=!~":
        return name + version
    if parse_version(version) is None:
        option = name.partition("[")[0]
        raise UsageError(
            f"--{option} {version} is not a version",
            hint="use a version or a range, such as 2.11, 2.11.0 or '>=2.9,<2.12'",
        )
    if version.count(".") > 1:
        return f"{name}=={version}"
    return f"{name}=={version}.*"


def _assess(
    name: str,
    result: SearchResult,
    sources: EvidenceSources,
    reports: Mapping[str, Report],
    *,
    most: int,
    written: bool,
) -> SuggestionResult:
    """Return the suggestions with their evidence: usable ones first, at most `most` of them."""
    usable: list[AssessedSuggestion] = []
    refused: list[AssessedSuggestion] = []
    uv_error: ExternalError | None = None
    report_once = cache(sources.progress)  # the suggestions repeat steps
    end = time.monotonic() + RESOLUTION_S
    for suggestion in result.suggestions:
        if len(usable) == most:
            break
        reason = ""
        if not sources.is_required and uv_error is not None:
            reason = "a package index cannot be reached"
        elif not sources.is_required and time.monotonic() > end:
            reason = f"the limit of {RESOLUTION_S:.0f} s was reached; --resolve removes it"
        status, note = SuggestionStatus.RULES, f"not resolved: {reason}"
        if not reason:
            try:
                status, note = _find_evidence(suggestion, sources, reports, report_once)
            except ExternalError as error:
                uv_error = error
                note = "not resolved: a package index cannot be reached"
                if sources.is_required:
                    note = "uv could not resolve it"
        assessed = AssessedSuggestion(suggestion, status, note)
        (refused if assessed.is_refused else usable).append(assessed)
    return SuggestionResult(
        name,
        written,
        (*usable, *refused),
        result.in_the_way,
        result.tried,
        uv_error if sources.is_required else None,
    )


def _find_evidence(
    suggestion: Suggestion,
    sources: EvidenceSources,
    reports: Mapping[str, Report],
    progress: ProgressCallback,
) -> tuple[SuggestionStatus, str]:
    for name, report in reports.items():
        if _is_verified_by(report, suggestion, sources.facts):
            return SuggestionStatus.VERIFIED, f"by {name}"
    if sources.system is None:
        return SuggestionStatus.RULES, "not resolved: offline" if sources.offline else ""
    reasons = [refusal.why for refusal in find_unlockable(suggestion.spec)]
    if reasons:
        return SuggestionStatus.RULES, f"not resolved with uv: {reasons[0]}"
    packages = ", ".join(package.requirement for package in suggestion.spec.packages)
    progress(f"resolving {packages}")
    try:
        lock, trouble = resolve_and_check(suggestion.spec, sources.facts, sources.system, progress)
    except LockError as error:
        if sources.offline:  # what is missing in the cache looks like what does not exist
            return SuggestionStatus.RULES, "cannot be resolved from uv's cache alone"
        lines = (error.why or error.what).splitlines()[-_SHOWN_LINES:]
        return SuggestionStatus.REFUTED, "\n".join(lines)
    if trouble:
        return SuggestionStatus.REFUSED, trouble
    return SuggestionStatus.RESOLVED, pluralize(len(lock.packages), "package")


def _read_reports(folder: Path, reader: Reader) -> Iterator[tuple[str, Report]]:
    """Yield the names and reports of verifications next to a spec, except unreadable ones."""
    reports = folder / ".provision" / "reports"
    for name in reader.list_folder(reports):
        path = reports / name / "report.json"
        with suppress(ProvisionError):
            yield str(path.relative_to(folder)), read_report_file(path, reader)


def _is_verified_by(report: Report, suggestion: Suggestion, facts: Facts) -> bool:
    """Return whether a report verified the versions and cards of a suggestion on a device."""
    if report.verdict != "verified":
        return False
    candidate = suggestion.candidate
    expected: dict[str, str | None] = {"python.minor": candidate.python}
    if candidate.torch:
        has_cuda = candidate.cuda not in ("auto", "none")
        expected["torch.cuda"] = candidate.cuda if has_cuda else None
    readings = report.values
    if any(readings.get(key) != value for key, value in expected.items()):
        return False
    versions = {
        "package.torch": candidate.torch,
        "package.transformers": candidate.transformers,
    }
    for key, version in versions.items():
        if version and _public_version(readings.get(key)) != version:
            return False
    targets = LintContext(suggestion.spec, EmptySourceText(), facts).targets
    capabilities = {target.card.cc if target.card else None for target in targets}
    return capabilities == {readings.get("gpu.compute_capability")}


def _public_version(version: object) -> str:
    parsed = parse_version(str(version))
    return parsed.public if isinstance(parsed, Version) else ""
