"""Lock comparison, as text for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from provision.diagnostics import Diagnostic, Severity
from provision.facts.torch_upgrade import Implication
from provision.lock import LockedEnvironment
from provision.lock.diff import (
    FilesChange,
    LockedVersion,
    LockReview,
    PackageChange,
    TargetChange,
    ValueChange,
)
from provision.sanitize import redact
from provision.views.diagnostics import json as data
from provision.views.diagnostics.source_location import (
    SEVERITY_LABELS,
    FindingSource,
    format_location,
    redact_line,
)
from provision.views.diagnostics.text import sort_findings
from provision.views.formatting import Style, Styler, indent_rest, map_strings, wrap

VERSION = 1
_INDENT = 10
_SYMBOL_STYLES = {"+": Style.ADDED, "-": Style.REMOVED, "~": Style.WARNING}


def render_text(review: LockReview, source: FindingSource, color: bool, width: int) -> str:
    """Return the changes for a terminal, the decisive ones first; `width` in cells."""
    return "\n".join(_lines(review, source, Styler(color), max(40, width))) + "\n"


def to_json(review: LockReview, source: FindingSource) -> dict[str, Any]:
    """Return the changes as data; strings are exact but for secrets, so dump with ensure_ascii."""
    diff = review.comparison
    document = {
        "version": VERSION,
        "old": review.old,
        "new": review.new,
        "changed": not diff.is_empty,
        "python": diff.python and _old_and_new(diff.python),
        "packages": [
            {**asdict(change), "where": list(change.where) or None} for change in diff.packages
        ],
        "unchanged": diff.unchanged,
        "files": [
            {
                "name": change.name,
                "version": change.version,
                "suspicious": change.suspicious,
                "replaced": list(change.replaced),
                "added": list(change.added),
                "removed": list(change.removed),
            }
            for change in diff.files
        ],
        "targets": [
            {
                "target": change.target,
                "platform": change.platform,
                "old": _environment(change.old),
                "new": _environment(change.new),
            }
            for change in diff.targets
        ],
        "indexes": [asdict(change) for change in diff.indexes],
        "asked": [{"field": change.name, **_old_and_new(change)} for change in diff.inputs],
        "follows": [
            {**consequence.meaning._asdict(), "targets": list(consequence.targets)}
            for consequence in review.consequences
        ],
        "elsewhere": [meaning._asdict() for meaning in review.other_cards],
    }
    findings = {
        "new": data.findings_to_json(review.new_findings, source)["diagnostics"],
        "settled": data.findings_to_json(review.resolved_findings, source)["diagnostics"],
    }
    return {**map_strings(document, redact), "findings": findings}


def summarize_packages(review: LockReview) -> str:
    """Return how many packages changed, in one line without a full stop."""
    packages = review.comparison.packages
    added = sum(change.old is None for change in packages)
    removed = sum(change.new is None for change in packages)
    counts = {
        "added": added,
        "removed": removed,
        "changed": len(packages) - added - removed,
        "unchanged": review.comparison.unchanged,
    }
    shown = [f"{count} {label}" for label, count in counts.items() if count]
    return f"packages: {', '.join(shown) or 'none'}"


def describe_no_changes(review: LockReview) -> str:
    """Return the sentence for locks without a difference."""
    if review.comparison.identical:
        return "No changes."
    return "No changes of what is installed; only what the lock says about it differs."


def format_locked_version(locked: LockedVersion) -> str:
    """Return a version, marked if its hash is not confirmed; not escaped."""
    return f"{locked.version} (unconfirmed)" if locked.unconfirmed else locked.version


def describe_package_change(change: PackageChange) -> tuple[str, str, str]:
    """Return the version before, the version after, and notes on index and targets; not escaped."""
    notes = []
    if change.old and change.new and change.old.index != change.new.index:
        notes.append(f"index {change.old.index} -> {change.new.index}")
    if change.where:
        notes.append(f"at {', '.join(change.where)}")
    before, after = (
        format_locked_version(locked) if locked else "" for locked in (change.old, change.new)
    )
    return before, after, "; ".join(notes)


def describe_target_change(change: TargetChange) -> str:
    """Return the changes of a target on a platform."""
    name, old, new = f"{change.target} on {change.platform}", change.old, change.new
    if old is None or new is None:
        environment = new or old
        flavour = environment.flavour if environment is not None else None
        return f"{name} (torch build {flavour})" if flavour else name
    changes = []
    for label, before, after in (
        ("torch build", old.flavour, new.flavour),
        ("oldest glibc", old.glibc, new.glibc),
    ):
        if before != after:
            changes.append(f"{label} {before or 'none'} -> {after or 'none'}")
    return f"{name}: {', '.join(changes)}"


def describe_file_changes(change: FilesChange) -> str:
    """Return the changed files of a version."""
    parts = {"another sha256 for": change.replaced, "added": change.added, "gone": change.removed}
    files = [f"{label} {', '.join(names)}" for label, names in parts.items() if names]
    return f"{change.name} {change.version}: {'; '.join(files)}"


def describe_value_change(change: ValueChange) -> str:
    """Return a value that was added, removed or changed."""
    if change.old is None or change.new is None:
        return f"{change.name}: {change.new if change.old is None else change.old}"
    return f"{change.name}: {change.old} -> {change.new}"


def change_symbol(old: object, new: object) -> str:
    """Return the symbol of an addition, a removal or a change."""
    if old is None:
        return "+"
    return "-" if new is None else "~"


def describe_consequence(meaning: Implication, targets: Sequence[str]) -> str:
    """Return what follows from a change by the facts, with the targets that it concerns."""
    return f"{meaning.text} (target {', '.join(targets)})" if targets else meaning.text


def describe_finding_with_help(finding: Diagnostic, source: FindingSource) -> str:
    """Return a finding with its place and its help."""
    text = describe_finding(finding, source)
    return f"{text}; {finding.help}" if finding.help else text


def describe_finding(finding: Diagnostic, source: FindingSource) -> str:
    """Return a finding with its place."""
    return f"{finding.id} {format_location(source.span(finding.where))}: {finding.message}"


def _lines(review: LockReview, source: FindingSource, styler: Styler, width: int) -> Iterator[str]:
    diff = review.comparison
    for row in wrap(redact_line(f"{review.old} -> {review.new}"), width):
        yield styler(row, Style.STRONG)
    summary = describe_no_changes(review) if diff.is_empty else summarize_packages(review)
    yield from wrap(summary, width)
    for title, rows in _sections(review, source, styler):
        for number, (label, text) in enumerate(rows):
            if title and not number:
                yield styler(title, Style.STRONG)
            lines = wrap(redact_line(text), max(20, width - _INDENT))
            yield from indent_rest(f"  {label} ", lines, 6)


def _sections(
    review: LockReview, source: FindingSource, styler: Styler
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections as a title and rows of label and text."""

    def symbol(change: PackageChange | TargetChange | ValueChange) -> str:
        text = change_symbol(change.old, change.new)
        return styler(text, _SYMBOL_STYLES[text])

    def severity(value: Severity) -> str:
        return styler(*SEVERITY_LABELS[value])

    diff = review.comparison
    yield "", [(symbol(change), _describe_package(change)) for change in diff.packages]
    files = []
    for one in diff.files:
        label = severity(Severity.WARNING if one.suspicious else Severity.INFO)
        files.append((label, describe_file_changes(one)))
    yield "the same version with other files:", files
    if diff.python:
        versions = f"{diff.python.old} -> {diff.python.new}"
        yield "Python:", [(symbol(diff.python), versions)]
    yield "targets:", [(symbol(change), describe_target_change(change)) for change in diff.targets]
    for title, changes in (
        ("indexes:", diff.indexes),
        ("the spec asks otherwise:", diff.inputs),
    ):
        yield title, [(symbol(change), describe_value_change(change)) for change in changes]
    consequences = [
        (severity(one.meaning.severity), describe_consequence(one.meaning, one.targets))
        for one in review.consequences
    ]
    yield "by the facts:", consequences
    new = sort_findings(review.new_findings, source)
    found = [(severity(one.severity), describe_finding_with_help(one, source)) for one in new]
    yield "found by the rules since:", found
    label = styler("-", Style.GOOD)
    settled = sort_findings(review.resolved_findings, source)
    yield "settled:", [(label, describe_finding(one, source)) for one in settled]


def _describe_package(change: PackageChange) -> str:
    before, after, notes = describe_package_change(change)
    versions = " -> ".join(filter(None, (before, after)))
    text = f"{change.name} {versions}"
    return f"{text} ({notes})" if notes else text


def _old_and_new(change: ValueChange) -> dict[str, str | None]:
    return {"old": change.old, "new": change.new}


def _environment(environment: LockedEnvironment | None) -> dict[str, Any] | None:
    if environment is None:
        return None
    return {
        "environment": environment.key,
        "flavour": environment.flavour,
        "glibc": environment.glibc,
    }
