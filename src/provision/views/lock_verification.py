"""The comparison of a lock with its indexes, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from provision.effects.packages import PackageSources
from provision.lock.index_comparison import IndexComparison, ListingNote
from provision.sanitize import escape_line, redact
from provision.spelling import pluralize

_SHOWN = 20


def render_text(comparison: IndexComparison, lock: str, sources: PackageSources) -> str:
    """Return the lines for a person."""
    return "\n".join(escape_line(line) for line in _lines(comparison, lock, sources))


def to_json(comparison: IndexComparison, sources: PackageSources) -> dict[str, Any]:
    """Return the same as JSON parts."""
    called = _index_addresses(sources)
    indexes = {
        name: {"asked": called.get(name, "conda channel"), "packages": packages, "files": files}
        for name, (packages, files) in comparison.compared.items()
    }
    notes = {
        part: [asdict(note) for note in getattr(comparison, part)]
        for part in ("mismatches", "unproven", "yanked")
    }
    return {"verified": comparison.verified, "indexes": indexes, **notes}


def _lines(comparison: IndexComparison, lock: str, sources: PackageSources) -> Iterator[str]:
    addresses = _index_addresses(sources)
    for name, (packages, files) in comparison.compared.items():
        address = addresses.get(name, "conda channel")
        yield f"  {name} ({address}): {pluralize(packages, 'package')}, {pluralize(files, 'file')}"
    yield from _listed("mismatch", comparison.mismatches)
    yield from _listed("not compared", comparison.unproven)
    yield from _listed("note", comparison.yanked)
    packages, files = (
        sum(counts) for counts in zip((0, 0), *comparison.compared.values(), strict=True)
    )
    if comparison.mismatches:
        yield (
            f"{lock} does not match its indexes: {len(comparison.mismatches)} of {files} "
            "files differ"
        )
    elif comparison.unproven:
        unproven = pluralize(len(comparison.unproven), "file")
        yield f"{lock} is not verified: {unproven} could not be compared"
    else:
        total = f"{pluralize(packages, 'package')}, {pluralize(files, 'file')}"
        yield f"{lock} is verified: {total}, each listed by its index with the locked sha256"


def _listed(label: str, notes: tuple[ListingNote, ...]) -> Iterator[str]:
    for note in notes[:_SHOWN]:
        yield f"  {label}: {note.package} {note.version}, {note.file} on {note.index}: {note.what}"
        if note.help:
            yield f"    help: {note.help}"
    if len(notes) > _SHOWN:
        yield f"  and {len(notes) - _SHOWN} more"


def _index_addresses(sources: PackageSources) -> Mapping[str, str]:
    """Return the address of each index on this machine."""
    addresses = {}
    for source in (sources.default, *sources.named):
        addresses[source.name] = redact(source.url) or "uv's default index"
        if source.wheels:
            addresses[source.name] = f"{len(source.wheels)} local wheels"
    return addresses
