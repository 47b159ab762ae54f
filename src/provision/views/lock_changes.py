"""What differs between two locks, as text for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from provision.diagnostics import Diagnostic, Severity
from provision.facts.moving import Meaning
from provision.lock.comparing import Held, Moved, OtherFiles, PackageChange, PlaceChange, Review
from provision.safe import redact
from provision.views import json as data
from provision.views.ink import Ink, Pen, wrap
from provision.views.located import SourceText, at, one_line
from provision.views.text import ordered

VERSION = 1


def text(review: Review, source: SourceText, color: bool, width: int) -> str:
    """Return the changes for a terminal, what decides first; `width` in cells."""
    return "\n".join(_lines(review, source, Pen(color), max(40, width))) + "\n"


def document(review: Review, source: data.Spans) -> dict[str, Any]:
    """Return the changes as data. Strings are exact but for secrets: dump them with `ensure_ascii`."""
    found = review.comparison
    changes = {
        "python": None if found.python is None else _pair(found.python),
        "packages": [{"name": one.name, "old": _held(one.old), "new": _held(one.new), "where": list(one.where) or None} for one in found.packages],
        "unchanged": found.unchanged,
        "files": [_files(one) for one in found.files],
        "targets": [_place(one) for one in found.places],
        "indexes": [{"name": moved.name, **_pair(moved)} for moved in found.indexes],
        "asked": [{"field": moved.name, **_pair(moved)} for moved in found.asked],
        "follows": [{**_meaning(one.meaning), "targets": list(one.targets)} for one in review.follows],
        "elsewhere": [_meaning(meaning) for meaning in review.elsewhere],
    }
    findings = {name: data.findings(those, source)["diagnostics"] for name, those in (("new", review.appeared), ("settled", review.settled))}
    told: dict[str, Any] = _redacted({"version": VERSION, "old": review.old, "new": review.new, "changed": not found.empty, **changes})
    return {**told, "findings": findings}


def summary(review: Review) -> str:
    """Return how many packages changed, in one line without a full stop."""
    changes = review.comparison.packages
    counts = (
        (sum(change.old is None for change in changes), "added"),
        (sum(change.new is None for change in changes), "removed"),
        (sum(change.old is not None and change.new is not None for change in changes), "changed"),
        (review.comparison.unchanged, "unchanged"),
    )
    return "packages: " + (", ".join(f"{count} {word}" for count, word in counts if count) or "none")


def unmoved(review: Review) -> str:
    """Return what is said where nothing differs."""
    return "No changes." if review.comparison.identical else "No changes of what is installed; only what the lock says about it differs."


def held(one: Held) -> str:
    """Return version, and that its hash is not confirmed where it is not, in exact and possibly foreign words."""
    return one.version + (" (unconfirmed)" if one.unconfirmed else "")


def package(change: PackageChange) -> tuple[str, str, str]:
    """Return what stood before and stands after, and besides: another index, and the places; in exact and possibly foreign words."""
    was, now = held(change.old) if change.old else "", held(change.new) if change.new else ""
    notes = [f"index {change.old.index} -> {change.new.index}"] if change.old and change.new and change.old.index != change.new.index else []
    return was, now, "; ".join([*notes, *([f"at {', '.join(change.where)}"] if change.where else [])])


def place(change: PlaceChange) -> str:
    """Return what became of a target on a platform."""
    name = f"{change.target} on {change.platform}"
    if change.old is None or change.new is None:
        only = change.new or change.old
        return name + (f" (torch build {only.flavour})" if only is not None and only.flavour else "")
    pairs = (("torch build", change.old.flavour, change.new.flavour), ("oldest glibc", change.old.glibc, change.new.glibc))
    return f"{name}: " + ", ".join(f"{word} {was or 'none'} -> {now or 'none'}" for word, was, now in pairs if was != now)


def files(one: OtherFiles) -> str:
    """Return which files of one version are others now."""
    parts = (("another sha256 for", one.replaced), ("added", one.added), ("gone", one.removed))
    return f"{one.name} {one.version}: " + "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names)


def pair(moved: Moved) -> str:
    """Return a text that came, went or changed."""
    if moved.old is None or moved.new is None:
        return f"{moved.name}: {moved.new if moved.old is None else moved.old}"
    return f"{moved.name}: {moved.old} -> {moved.new}"


def sign(old: object, new: object) -> str:
    """Return the symbol of what came, went or changed."""
    return "+" if old is None else "-" if new is None else "~"


def _lines(review: Review, source: SourceText, pen: Pen, width: int) -> Iterator[str]:
    found = review.comparison
    yield from (pen(row, Ink.STRONG) for row in wrap(one_line(f"{review.old} -> {review.new}"), width))
    yield from wrap(unmoved(review) if found.empty else summary(review), width)
    yield from _part("", ((_signed(one.old, one.new, pen), _changed(one)) for one in found.packages), pen, width)
    yield from _part("the same version with other files:", ((_files_sign(one, pen), files(one)) for one in found.files), pen, width)
    yield from _part("Python:", [(pen("~", Ink.WARNING), f"{found.python.old} -> {found.python.new}")] if found.python else [], pen, width)
    yield from _part("targets:", ((_signed(one.old, one.new, pen), place(one)) for one in found.places), pen, width)
    yield from _part("indexes:", ((_signed(one.old, one.new, pen), pair(one)) for one in found.indexes), pen, width)
    yield from _part("the spec asks otherwise:", ((_signed(one.old, one.new, pen), pair(one)) for one in found.asked), pen, width)
    yield from _part("by the facts:", ((_word(one.meaning.severity, pen), _followed(one.meaning, one.targets)) for one in review.follows), pen, width)
    yield from _part("found by the rules since:", ((_word(one.severity, pen), finding(one, source)) for one in ordered(review.appeared, source)), pen, width)
    yield from _part("settled:", ((pen("-", Ink.GOOD), settled(one, source)) for one in ordered(review.settled, source)), pen, width)


def finding(one: Diagnostic, source: SourceText) -> str:
    """Return a finding with its place, and the way out."""
    return settled(one, source) + (f"; {one.help}" if one.help else "")


def settled(one: Diagnostic, source: SourceText) -> str:
    """Return a finding with its place."""
    return f"{one.id} {at(source.span(one.where))}: {one.message}"


def _followed(meaning: Meaning, targets: tuple[str, ...]) -> str:
    return meaning.text + (f" (target {', '.join(targets)})" if targets else "")


def _part(title: str, rows: Iterable[tuple[str, str]], pen: Pen, width: int) -> Iterator[str]:
    for number, (lead, words) in enumerate(rows):
        if title and not number:
            yield pen(title, Ink.STRONG)
        first, *rest = wrap(one_line(words), max(20, width - 10))
        yield f"  {lead} {first}"
        yield from ("      " + row for row in rest)


def _changed(change: PackageChange) -> str:
    was, now, besides = package(change)
    return f"{change.name} " + " -> ".join(part for part in (was, now) if part) + (f" ({besides})" if besides else "")


def _signed(old: object, new: object, pen: Pen) -> str:
    symbol = sign(old, new)
    return pen(symbol, {"+": Ink.ADDED, "-": Ink.REMOVED}.get(symbol, Ink.WARNING))


def _files_sign(one: OtherFiles, pen: Pen) -> str:
    return _word(Severity.WARNING, pen) if one.suspicious else _word(Severity.INFO, pen)


def _word(severity: Severity, pen: Pen) -> str:
    match severity:
        case Severity.ERROR:
            return pen("error", Ink.ERROR)
        case Severity.WARNING | Severity.UNKNOWN:
            return pen(severity.value, Ink.WARNING)
        case Severity.INFO:
            return pen("note", Ink.INFO)
        case _:
            assert_never(severity)


def _pair(moved: Moved) -> dict[str, str | None]:
    return {"old": moved.old, "new": moved.new}


def _held(one: Held | None) -> dict[str, Any] | None:
    return None if one is None else {"version": one.version, "index": one.index, "unconfirmed": one.unconfirmed}


def _files(one: OtherFiles) -> dict[str, Any]:
    names = {"replaced": list(one.replaced), "added": list(one.added), "removed": list(one.removed)}
    return {"name": one.name, "version": one.version, "suspicious": one.suspicious, **names}


def _place(change: PlaceChange) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    told = {side: None if one is None else {"environment": one.key, "flavour": one.flavour, "glibc": one.glibc} for side, one in sides.items()}
    return {"target": change.target, "platform": change.platform, **told}


def _meaning(meaning: Meaning) -> dict[str, str]:
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
