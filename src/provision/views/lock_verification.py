"""The comparison of a lock with its indexes, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from provision.effects.packages import PackageSources
from provision.lock.index_comparison import IndexComparison, ListingNote
from provision.sanitize import escape_line, redact

_SHOWN = 20


def render_text(found: IndexComparison, lock: str, sources: PackageSources) -> str:
    """Return the lines for a person."""
    return "\n".join(escape_line(line) for line in _lines(found, lock, sources))


def to_json(found: IndexComparison, sources: PackageSources) -> dict[str, Any]:
    """Return the same as JSON parts."""
    called = _index_addresses(sources)
    indexes = {
        name: {"asked": called.get(name, "conda channel"), "packages": packages, "files": files}
        for name, (packages, files) in found.compared.items()
    }
    notes = {
        part: [asdict(note) for note in getattr(found, part)]
        for part in ("mismatches", "unproven", "yanked")
    }
    return {"verified": found.verified, "indexes": indexes, **notes}


def _lines(found: IndexComparison, lock: str, sources: PackageSources) -> Iterator[str]:
    packages, files = (sum(count[part] for count in found.compared.values()) for part in (0, 1))
    called = _index_addresses(sources)
    for name, (of_index, of_files) in found.compared.items():
        (
            yield f"  {name} ({called.get(name, 'conda channel')}): {of_index} packages, "
            f"{of_files} "
            "files"
        )
    for label, notes in (
        ("mismatch", found.mismatches),
        ("not compared", found.unproven),
        ("note", found.yanked),
    ):
        yield from _listed(label, notes)
    if found.mismatches:
        yield f"{lock} does not match its indexes: {len(found.mismatches)} of {files} files"
    elif found.unproven:
        yield f"{lock} is not verified: {len(found.unproven)} files could not be compared"
    else:
        (
            yield f"{lock} is verified: {packages} packages, {files} files, each listed by its "
            "index "
            "with the locked sha256"
        )


def _listed(label: str, notes: tuple[ListingNote, ...]) -> Iterator[str]:
    for note in notes[:_SHOWN]:
        yield f"  {label}: {note.package} {note.version}, {note.file} on {note.index}: {note.what}"
        if note.help:
            yield f"    help: {note.help}"
    if len(notes) > _SHOWN:
        yield f"  and {len(notes) - _SHOWN} more"


def _index_addresses(sources: PackageSources) -> Mapping[str, str]:
    """Return where each index was asked on this machine."""
    known = (sources.default, *sources.named)
    return {
        source.name: f"{len(source.wheels)} local wheels"
        if source.wheels
        else redact(source.url) or "uv's default index"
        for source in known
    }
