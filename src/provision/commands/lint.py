"""Say what is wrong with specs, and repair what is safe to repair."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from provision.commands.loading import Judged, judge
from provision.diagnostics import Applicability, Severity
from provision.effects import Tell, World, WriteFile
from provision.facts import load as load_facts
from provision.source import edited_together

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings in every document of every file, and the files that were changed (name to unified diff)."""

    documents: tuple[Judged, ...]
    changed: dict[str, str]

    @property
    def exit_code(self) -> int:
        """1 when anything is an error, else 0."""
        return 1 if any(d.severity is Severity.ERROR for judged in self.documents for d in judged.diagnostics) else 0


def lint(paths: tuple[Path, ...], world: World, tell: Tell, *, fix: bool = False, dry: bool = False) -> Linted:
    """Judge every spec in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them). Raises SourceError when a file cannot be read."""
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[Judged] = []
    for path in paths:
        found = judge(path, world, facts)
        for _ in range(_ROUNDS if fix else 0):
            edits = _edits(found)
            if not edits:
                break
            for name, (old, new) in edits.items():
                changed[name] = changed.get(name, "") + "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name))
                if not dry:
                    world.perform(WriteFile(Path(name), new, mode=None), tell)
            if dry:
                break
            found = judge(path, world, facts)
        documents += found
    return Linted(tuple(documents), changed)


def _edits(found: tuple[Judged, ...]) -> dict[str, tuple[str, str]]:
    """Return old and new text of every file that the safe fixes change."""
    safe = [(j.source, d.fix) for j in found for d in j.diagnostics if d.fix is not None and d.fix.applicability is Applicability.SAFE]
    before = {name: text for judged in found for name, text in judged.source.files.items()}
    return {name: (before[name], text) for name, text in edited_together(safe).items()}
