"""Look for combinations that satisfy every rule, and say how well each is backed: by rules only, by
uv, or by a verification on a device.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from provision import source
from provision.commands.shared.load import SpecHasErrors, check_file
from provision.commands.shared.resolution_hints import resolve_and_check
from provision.diagnostics import Severity
from provision.effects import ProgressCallback, System
from provision.errors import ExternalError, LockError, ProvisionError, UsageError
from provision.facts import Facts, load_facts
from provision.facts.versions import parse_version
from provision.refusals import find_unlockable
from provision.rules import LintContext
from provision.spec import Spec
from provision.suggest.search import (
    AssessedSuggestion,
    EmptySourceText,
    SearchResult,
    Suggestion,
    SuggestionResult,
    SuggestionStatus,
    find_suggestions,
)
from provision.verification import Report, read_report
from provision.verification.report import MAX_REPORT_BYTES

if TYPE_CHECKING:
    from provision.effects import Reader


_TEXT_FINDINGS = frozenset(kind.id for kind in source.FINDING_KINDS)
"""Findings about the text and shape of a spec: with an error among them it is a guess what the spec
asks for.
"""
_SHOWN_LINES = 12
"""Lines that are told of a derivation: its end, where uv concludes. Our choice."""


@dataclass(frozen=True, slots=True)
class EvidenceSources:
    """What may back a combination: the world for asking uv (None: it is not to be asked), whether
    only its cache may be asked, and reports that exist.
    """

    facts: Facts
    world: System | None
    tell: ProgressCallback
    offline: bool
    reports: tuple[tuple[str, Report], ...]


def suggest_for_spec(
    path: Path, world: System, tell: ProgressCallback, *, most: int, with_uv: bool, offline: bool
) -> SuggestionResult:
    """Return combinations near a spec. Raises Findings when its text cannot be understood,
    SourceError when it cannot be read.
    """
    facts = load_facts()
    documents = check_file(path, world, facts)
    if len(documents) != 1:
        raise UsageError(
            f"{path} holds {len(documents)} specs",
            why="this command takes one",
            hint="put each into a file of its own",
        )
    (document,) = documents
    if document.spec is None or any(
        found.severity is Severity.ERROR and found.id in _TEXT_FINDINGS
        for found in document.diagnostics
    ):
        raise SpecHasErrors(document.source, document.diagnostics, "the spec cannot be understood")
    backing = EvidenceSources(
        facts,
        world if with_uv else None,
        _without_repeats(tell),
        offline,
        tuple(_reports(path.resolve().parent, world)),
    )
    return _offer(
        str(path), find_suggestions(document.spec, facts, most=most), backing, written=True
    )


def suggest_for_options(
    words: Mapping[str, str],
    world: System,
    tell: ProgressCallback,
    *,
    most: int,
    with_uv: bool,
    offline: bool,
) -> SuggestionResult:
    """Return combinations for what was named of gpu, cuda, python, precision, torch and
    transformers. Raises UsageError for what no spec may hold.
    """
    facts = load_facts()
    spec = _spec(words, facts)
    found = find_suggestions(
        spec, facts, most=most, free=frozenset({"python", "cuda"} - words.keys()), written=False
    )
    named = ", ".join(f"{name} {value}" for name, value in words.items())
    return _offer(
        named,
        found,
        EvidenceSources(facts, world if with_uv else None, _without_repeats(tell), offline, ()),
        written=False,
    )


class _CommandLineSource:
    """Reads one file that is nowhere: the spec that words on the command line make."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, _path: Path, _limit: int) -> bytes:
        return self._text.encode()

    def exists(self, _path: Path) -> bool:
        return False


def _spec(words: Mapping[str, str], facts: Facts) -> Spec:
    packages = [_requirement("torch", words.get("torch", ""))]
    if "transformers" in words:
        packages.append(_requirement("transformers[torch]", words["transformers"]))
    document: dict[str, Any] = {
        "gpu": words["gpu"],
        "python": words.get("python", facts.pythons[-1].version),
        "packages": packages,
    }
    if "cuda" in words:
        document["cuda"] = words["cuda"]
    if "precision" in words:
        document["training"] = {"precision": words["precision"]}
    if words["gpu"] == "mps":
        document["platforms"] = ["macos-arm64"]
    (read,) = source.read_spec_file(Path("words.yaml"), _CommandLineSource(json.dumps(document)))  # type: ignore[arg-type]
    spec, problems = source.validate_source(read)
    if spec is None:
        first = (*read.diagnostics, *problems)[0]
        raise UsageError(first.message, why=first.why, hint=first.help)
    return spec


def _requirement(name: str, version: str) -> str:
    """Return a requirement for "5.13" (any 5.13), "5.13.1" (that one), or specifiers as they are.
    Raises UsageError for anything else.
    """
    if not version or version[0] in "<>=!~":
        return name + version
    if parse_version(version) is None:
        option = name.partition("[")[0]
        raise UsageError(
            f"--{option} {version} is no version",
            hint=f"write it as in --{option} 2.11, 2.11.0 or '>=2.9,<2.12'",
        )
    return f"{name}=={version}" if version.count(".") > 1 else f"{name}=={version}.*"


def _offer(
    name: str, found: SearchResult, backing: EvidenceSources, *, written: bool
) -> SuggestionResult:
    combinations, trouble = [], None
    for one in found.suggestions:
        try:
            combinations.append(_find_evidence(one, backing))
        except ExternalError as error:
            trouble = error
            combinations.append(
                AssessedSuggestion(one, SuggestionStatus.RULES, "uv could not be asked")
            )
    return SuggestionResult(
        name, written, tuple(combinations), found.in_the_way, found.tried, trouble
    )


def _find_evidence(suggestion: Suggestion, backing: EvidenceSources) -> AssessedSuggestion:
    for name, report in backing.reports:
        if _is_verified_by(report, suggestion, backing.facts):
            return AssessedSuggestion(suggestion, SuggestionStatus.VERIFIED, f"by {name}")
    if backing.world is None:
        return AssessedSuggestion(suggestion, SuggestionStatus.RULES, "")
    reasons = [refusal.why for refusal in find_unlockable(suggestion.spec)]
    if reasons:
        return AssessedSuggestion(
            suggestion, SuggestionStatus.RULES, f"not asked of uv: {reasons[0]}"
        )
    backing.tell(
        f"resolving {', '.join(package.requirement for package in suggestion.spec.packages)}"
    )
    try:
        return _resolved(suggestion, backing, backing.world)
    except LockError as error:
        if backing.offline:  # what is not in the cache looks like what does not exist
            return AssessedSuggestion(
                suggestion, SuggestionStatus.RULES, "uv's cache alone does not tell"
            )
        return AssessedSuggestion(
            suggestion,
            SuggestionStatus.REFUTED,
            "\n".join((error.why or error.what).splitlines()[-_SHOWN_LINES:]),
        )


def _resolved(
    suggestion: Suggestion, backing: EvidenceSources, world: System
) -> AssessedSuggestion:
    lock, trouble = resolve_and_check(suggestion.spec, backing.facts, world, backing.tell)
    return (
        AssessedSuggestion(suggestion, SuggestionStatus.REFUSED, trouble)
        if trouble
        else AssessedSuggestion(
            suggestion, SuggestionStatus.RESOLVED, f"{len(lock.packages)} packages"
        )
    )


def _without_repeats(tell: ProgressCallback) -> ProgressCallback:
    """Return a `tell` that says nothing twice."""
    said: set[str] = set()

    def told(text: str) -> None:
        if text not in said:
            said.add(text)
            tell(text)

    return told


def _reports(folder: Path, reader: Reader) -> Iterator[tuple[str, Report]]:
    """Give the reports of verifications beside the spec; what cannot be read backs nothing."""
    kept = folder / ".provision" / "reports"
    for name in reader.list_folder(kept):
        path = kept / name / "report.json"
        if reader.exists(path):
            try:
                yield (
                    str(path.relative_to(folder)),
                    read_report(reader.read(path, MAX_REPORT_BYTES), str(path)),
                )
            except ProvisionError:
                continue


def _is_verified_by(report: Report, suggestion: Suggestion, facts: Facts) -> bool:
    """Tell whether a device was verified with these very versions: Python, torch and its CUDA,
    transformers, and the card of every target.
    """
    if report.verdict != "verified":
        return False
    seen = {
        str(one.get("key")): one.get("value")
        for one in report.document["readings"]
        if isinstance(one, dict)
    }
    choice, cards = (
        suggestion.candidate,
        {site.card for site in LintContext(suggestion.spec, EmptySourceText(), facts).targets},
    )
    cuda = None if choice.cuda in ("auto", "none") else choice.cuda
    same = seen.get("python.minor") == choice.python and (
        not choice.torch or seen.get("torch.cuda") == cuda
    )
    versions = (("package.torch", choice.torch), ("package.transformers", choice.transformers))
    capabilities = {card.cc if card else None for card in cards}
    return (
        same
        and all(not wanted or _public(seen.get(key)) == wanted for key, wanted in versions)
        and capabilities == {seen.get("gpu.compute_capability")}
    )


def _public(version: object) -> str:
    known = parse_version(str(version))
    return known.public if isinstance(known, Version) else ""
