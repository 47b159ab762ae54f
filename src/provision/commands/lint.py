"""Say what is wrong with specs, and repair what is safe to repair."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from provision.commands.loading import Judged, judge
from provision.diagnostics import Applicability, Severity
from provision.effects import Tell, World, WriteFile
from provision.errors import ProvisionError, SourceError, WorldError
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.source import edited_together

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings in every document of every file, the files that were changed (name to unified diff), and why others could not be read or written."""

    documents: tuple[Judged, ...]
    changed: dict[str, str]
    errors: tuple[ProvisionError, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 when a file could not be read or written, else 1 when anything is an error, else 0."""
        if self.errors:
            return 2
        return 1 if any(d.severity is Severity.ERROR for judged in self.documents for d in judged.diagnostics) else 0


def lint(paths: tuple[Path, ...], world: World, tell: Tell, *, fix: bool = False, dry: bool = False) -> Linted:
    """Judge every spec in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them). A file that cannot be read or written hides no other."""
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[Judged] = []
    errors: list[ProvisionError] = []
    for path in paths:
        found: tuple[Judged, ...] = ()
        try:
            found = judge(path, world, facts)
            found = _fixed(path, found, changed, world, facts, tell, dry=dry) if fix else found
        except (SourceError, WorldError) as error:
            errors.append(error)
        documents += found
    return Linted(tuple(documents), changed, tuple(errors))


def _fixed(path: Path, found: tuple[Judged, ...], changed: dict[str, str], world: World, facts: Facts, tell: Tell, *, dry: bool) -> tuple[Judged, ...]:
    """Apply the safe fixes until none is left (one fix may make room for another), and return what is still said; each diff is added to `changed`."""
    for _ in range(_ROUNDS):
        edits = _edits(found)
        for name, (old, new) in edits.items():
            if not dry:
                world.perform(WriteFile(Path(name), new, mode=None), tell)
            changed[name] = changed.get(name, "") + "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name))
        if dry or not edits:
            break
        found = judge(path, world, facts)
    return found


def _edits(found: tuple[Judged, ...]) -> dict[str, tuple[str, str]]:
    """Return old and new text of every file that the safe fixes change."""
    safe = [(j.source, d.fix) for j in found for d in j.diagnostics if d.fix is not None and d.fix.applicability is Applicability.SAFE]
    before = {name: text for judged in found for name, text in judged.source.files.items()}
    return {name: (before[name], text) for name, text in edited_together(safe).items()}
