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
Section = tuple[str, Sequence[tuple[Severity | str, str]]]
"""A title, and rows of a severity or a symbol and a text."""
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
    return "No installed package changes; only other parts of the lock differ."


def format_locked_version(locked: LockedVersion) -> str:
    """Return a version, marked if its hash is not confirmed; not escaped."""
    return f"{locked.version} (unconfirmed)" if locked.unconfirmed else locked.version


def describe_package_change(change: PackageChange) -> tuple[str, str, str]:
    """Return the version before, the version after, and notes on index and targets; not escaped."""
    notes = []
    if change.old and change.new and change.old.index != change.new.index:
        notes.append(f"index {change.old.index} -> {change.new.index}")
    if change.where:
        notes.append(f"on {', '.join(change.where)}")
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
        ("minimum glibc", old.glibc, new.glibc),
    ):
        if before != after:
            changes.append(f"{label} {before or 'none'} -> {after or 'none'}")
    return f"{name}: {', '.join(changes)}"


def describe_file_changes(change: FilesChange) -> str:
    """Return the changed files of a version."""
    parts = {
        "different sha256 for": change.replaced,
        "added": change.added,
        "removed": change.removed,
    }
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
    """Return a consequence of a change with the targets that it concerns."""
    return f"{meaning.text} (target {', '.join(targets)})" if targets else meaning.text


def describe_finding(finding: Diagnostic, source: FindingSource) -> str:
    """Return a finding with its place."""
    return f"{finding.id} {format_location(source.span(finding.where))}: {finding.message}"


def decisive_sections(review: LockReview, source: FindingSource) -> list[Section]:
    """Return the decisive changes: consequences, new findings and changed files."""
    consequences = [
        (change.meaning.severity, describe_consequence(change.meaning, change.targets))
        for change in review.consequences
    ]
    findings = []
    for finding in sort_findings(review.new_findings, source):
        text = describe_finding(finding, source)
        findings.append((finding.severity, f"{text}; {finding.help}" if finding.help else text))
    files = [
        (Severity.WARNING if change.suspicious else Severity.INFO, describe_file_changes(change))
        for change in review.comparison.files
    ]
    return [
        ("consequences", consequences),
        ("new findings", findings),
        ("same version, different files", files),
    ]


def other_sections(review: LockReview, source: FindingSource) -> list[Section]:
    """Return the other changes except for packages: Python, targets, indexes and inputs."""
    diff = review.comparison
    python = [("~", f"{diff.python.old} -> {diff.python.new}")] if diff.python else []
    targets = [
        (change_symbol(change.old, change.new), describe_target_change(change))
        for change in diff.targets
    ]
    resolved = sort_findings(review.resolved_findings, source)
    return [
        ("Python", python),
        ("targets", targets),
        ("indexes", _value_rows(diff.indexes)),
        ("changed fields of the spec", _value_rows(diff.inputs)),
        ("resolved findings", [("-", describe_finding(change, source)) for change in resolved]),
    ]


def _value_rows(changes: Sequence[ValueChange]) -> list[tuple[str, str]]:
    return [
        (change_symbol(change.old, change.new), describe_value_change(change)) for change in changes
    ]


def _lines(review: LockReview, source: FindingSource, styler: Styler, width: int) -> Iterator[str]:
    diff = review.comparison
    for row in wrap(redact_line(f"{review.old} -> {review.new}"), width):
        yield styler(row, Style.STRONG)
    summary = describe_no_changes(review) if diff.is_empty else summarize_packages(review)
    yield from wrap(summary, width)
    packages = [
        (change_symbol(change.old, change.new), _describe_package(change))
        for change in diff.packages
    ]
    decisive, other = decisive_sections(review, source), other_sections(review, source)
    for title, rows in (("", packages), *decisive, *other):
        if title and rows:
            yield styler(f"{title}:", Style.STRONG)
        for mark, text in rows:
            label, style = mark, _SYMBOL_STYLES.get(mark)
            if isinstance(mark, Severity):
                label, style = SEVERITY_LABELS[mark]
            lines = wrap(redact_line(text), max(20, width - _INDENT))
            yield from indent_rest(f"  {styler(label, style)} ", lines, 6)


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
