"""What differs between two locks, as text for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from provision.diagnostics import Diagnostic, Severity
from provision.facts.torch_upgrade import Implication
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
from provision.views.diagnostics.source_location import SourceText, format_location, redact_line
from provision.views.diagnostics.text import sort_findings
from provision.views.terminal_text import Style, Styler, wrap

VERSION = 1


def render_text(review: LockReview, source: SourceText, color: bool, width: int) -> str:
    """Return the changes for a terminal, what decides first; `width` in cells."""
    return "\n".join(_lines(review, source, Styler(color), max(40, width))) + "\n"


def to_json(review: LockReview, source: data.FindingSource) -> dict[str, Any]:
    """Return the changes as data. Strings are exact but for secrets: dump them with `ensure_ascii`."""  # noqa: E501
    found = review.comparison
    changes = {
        "python": None if found.python is None else _pair(found.python),
        "packages": [
            {
                "name": one.name,
                "old": _locked_version(one.old),
                "new": _locked_version(one.new),
                "where": list(one.where) or None,
            }
            for one in found.packages
        ],
        "unchanged": found.unchanged,
        "files": [_files(one) for one in found.files],
        "targets": [_target_change(one) for one in found.targets],
        "indexes": [{"name": moved.name, **_pair(moved)} for moved in found.indexes],
        "asked": [{"field": moved.name, **_pair(moved)} for moved in found.inputs],
        "follows": [
            {**_meaning(one.meaning), "targets": list(one.targets)} for one in review.consequences
        ],
        "elsewhere": [_meaning(meaning) for meaning in review.other_cards],
    }
    findings = {
        name: data.findings_to_json(those, source)["diagnostics"]
        for name, those in (("new", review.new_findings), ("settled", review.resolved_findings))
    }
    told: dict[str, Any] = _redacted(
        {
            "version": VERSION,
            "old": review.old,
            "new": review.new,
            "changed": not found.is_empty,
            **changes,
        }
    )
    return {**told, "findings": findings}


def summarize_packages(review: LockReview) -> str:
    """Return how many packages changed, in one line without a full stop."""
    changes = review.comparison.packages
    counts = (
        (sum(change.old is None for change in changes), "added"),
        (sum(change.new is None for change in changes), "removed"),
        (sum(change.old is not None and change.new is not None for change in changes), "changed"),
        (review.comparison.unchanged, "unchanged"),
    )
    return "packages: " + (
        ", ".join(f"{count} {word}" for count, word in counts if count) or "none"
    )


def describe_no_changes(review: LockReview) -> str:
    """Return what is said where nothing differs."""
    return (
        "No changes."
        if review.comparison.identical
        else "No changes of what is installed; only what the lock says about it differs."
    )


def format_locked_version(one: LockedVersion) -> str:
    """Return version, and that its hash is not confirmed where it is not, in exact and possibly
    foreign words.
    """
    return one.version + (" (unconfirmed)" if one.unconfirmed else "")


def describe_package_change(change: PackageChange) -> tuple[str, str, str]:
    """Return what stood before and stands after, and besides: another index, and the places; in
    exact and possibly foreign words.
    """
    was, now = (
        format_locked_version(change.old) if change.old else "",
        format_locked_version(change.new) if change.new else "",
    )
    notes = (
        [f"index {change.old.index} -> {change.new.index}"]
        if change.old and change.new and change.old.index != change.new.index
        else []
    )
    return (
        was,
        now,
        "; ".join([*notes, *([f"at {', '.join(change.where)}"] if change.where else [])]),
    )


def describe_target_change(change: TargetChange) -> str:
    """Return what became of a target on a platform."""
    name = f"{change.target} on {change.platform}"
    if change.old is None or change.new is None:
        only = change.new or change.old
        return name + (
            f" (torch build {only.flavour})" if only is not None and only.flavour else ""
        )
    pairs = (
        ("torch build", change.old.flavour, change.new.flavour),
        ("oldest glibc", change.old.glibc, change.new.glibc),
    )
    return f"{name}: " + ", ".join(
        f"{word} {was or 'none'} -> {now or 'none'}" for word, was, now in pairs if was != now
    )


def describe_file_changes(one: FilesChange) -> str:
    """Return which files of one version are others now."""
    parts = (("another sha256 for", one.replaced), ("added", one.added), ("gone", one.removed))
    return f"{one.name} {one.version}: " + "; ".join(
        f"{word} {', '.join(names)}" for word, names in parts if names
    )


def describe_value_change(moved: ValueChange) -> str:
    """Return a text that came, went or changed."""
    if moved.old is None or moved.new is None:
        return f"{moved.name}: {moved.new if moved.old is None else moved.old}"
    return f"{moved.name}: {moved.old} -> {moved.new}"


def change_symbol(old: object, new: object) -> str:
    """Return the symbol of what came, went or changed."""
    return "+" if old is None else "-" if new is None else "~"


def _lines(review: LockReview, source: SourceText, pen: Styler, width: int) -> Iterator[str]:
    found = review.comparison
    yield from (
        pen(row, Style.STRONG) for row in wrap(redact_line(f"{review.old} -> {review.new}"), width)
    )
    yield from wrap(
        describe_no_changes(review) if found.is_empty else summarize_packages(review), width
    )
    yield from _part(
        "", ((_signed(one.old, one.new, pen), _changed(one)) for one in found.packages), pen, width
    )
    yield from _part(
        "the same version with other files:",
        ((_files_sign(one, pen), describe_file_changes(one)) for one in found.files),
        pen,
        width,
    )
    yield from _part(
        "Python:",
        [(pen("~", Style.WARNING), f"{found.python.old} -> {found.python.new}")]
        if found.python
        else [],
        pen,
        width,
    )
    yield from _part(
        "targets:",
        ((_signed(one.old, one.new, pen), describe_target_change(one)) for one in found.targets),
        pen,
        width,
    )
    yield from _part(
        "indexes:",
        ((_signed(one.old, one.new, pen), describe_value_change(one)) for one in found.indexes),
        pen,
        width,
    )
    yield from _part(
        "the spec asks otherwise:",
        ((_signed(one.old, one.new, pen), describe_value_change(one)) for one in found.inputs),
        pen,
        width,
    )
    yield from _part(
        "by the facts:",
        (
            (_word(one.meaning.severity, pen), _followed(one.meaning, one.targets))
            for one in review.consequences
        ),
        pen,
        width,
    )
    yield from _part(
        "found by the rules since:",
        (
            (_word(one.severity, pen), describe_finding_with_help(one, source))
            for one in sort_findings(review.new_findings, source)
        ),
        pen,
        width,
    )
    yield from _part(
        "settled:",
        (
            (pen("-", Style.GOOD), describe_finding(one, source))
            for one in sort_findings(review.resolved_findings, source)
        ),
        pen,
        width,
    )


def describe_finding_with_help(one: Diagnostic, source: SourceText) -> str:
    """Return a finding with its place, and the way out."""
    return describe_finding(one, source) + (f"; {one.help}" if one.help else "")


def describe_finding(one: Diagnostic, source: SourceText) -> str:
    """Return a finding with its place."""
    return f"{one.id} {format_location(source.span(one.where))}: {one.message}"


def _followed(meaning: Implication, targets: tuple[str, ...]) -> str:
    return meaning.text + (f" (target {', '.join(targets)})" if targets else "")


def _part(title: str, rows: Iterable[tuple[str, str]], pen: Styler, width: int) -> Iterator[str]:
    for number, (lead, words) in enumerate(rows):
        if title and not number:
            yield pen(title, Style.STRONG)
        first, *rest = wrap(redact_line(words), max(20, width - 10))
        yield f"  {lead} {first}"
        yield from ("      " + row for row in rest)


def _changed(change: PackageChange) -> str:
    was, now, besides = describe_package_change(change)
    return (
        f"{change.name} "
        + " -> ".join(part for part in (was, now) if part)
        + (f" ({besides})" if besides else "")
    )


def _signed(old: object, new: object, pen: Styler) -> str:
    symbol = change_symbol(old, new)
    return pen(symbol, {"+": Style.ADDED, "-": Style.REMOVED}.get(symbol, Style.WARNING))


def _files_sign(one: FilesChange, pen: Styler) -> str:
    return _word(Severity.WARNING, pen) if one.suspicious else _word(Severity.INFO, pen)


def _word(severity: Severity, pen: Styler) -> str:
    match severity:
        case Severity.ERROR:
            return pen("error", Style.ERROR)
        case Severity.WARNING | Severity.UNKNOWN:
            return pen(severity.value, Style.WARNING)
        case Severity.INFO:
            return pen("note", Style.INFO)
        case _:
            assert_never(severity)


def _pair(moved: ValueChange) -> dict[str, str | None]:
    return {"old": moved.old, "new": moved.new}


def _locked_version(one: LockedVersion | None) -> dict[str, Any] | None:
    return (
        None
        if one is None
        else {"version": one.version, "index": one.index, "unconfirmed": one.unconfirmed}
    )


def _files(one: FilesChange) -> dict[str, Any]:
    names = {"replaced": list(one.replaced), "added": list(one.added), "removed": list(one.removed)}
    return {"name": one.name, "version": one.version, "suspicious": one.suspicious, **names}


def _target_change(change: TargetChange) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    told = {
        side: None
        if one is None
        else {"environment": one.key, "flavour": one.flavour, "glibc": one.glibc}
        for side, one in sides.items()
    }
    return {"target": change.target, "platform": change.platform, **told}


def _meaning(meaning: Implication) -> dict[str, str]:
    return {"kind": meaning.kind.value, "severity": meaning.severity.value, "text": meaning.text}


def _redacted(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: _redacted(one) for key, one in value.items()}
        case list():
            return [_redacted(one) for one in value]
        case _:
            return value
