"""Say what is wrong with specs, and repair what is safe to repair."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.loading import Judged, judge
from provision.diagnostics import Applicability, Severity
from provision.errors import ProvisionError, SourceError, WorldError
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.safe import safe_line
from provision.source import edited_together

if TYPE_CHECKING:  # looking at specs needs no effects
    from provision.effects import Tell, World

_ROUNDS = 5
_NAMED = re.compile(r"provision([.-].*)?\.ya?ml")
_SAYS_SO = re.compile(r"""^[\s{]*["']?apiVersion["']?\s*:\s*["']?provision/""", re.MULTILINE)


class Linted(NamedTuple):
    """The findings in every document of every file, the files that were changed (name to unified diff), and those that could not be read or written."""

    documents: tuple[Judged, ...]
    changed: dict[str, str]
    unread: tuple[tuple[Path, ProvisionError], ...] = ()

    @property
    def exit_code(self) -> int:
        """2 when a file could not be read or written, else 1 when anything is an error, else 0."""
        if self.unread:
            return 2
        return 1 if any(d.severity is Severity.ERROR for judged in self.documents for d in judged.diagnostics) else 0


def lint(paths: tuple[Path, ...], world: World, tell: Tell, *, fix: bool = False, dry: bool = False, skip_foreign: bool = False) -> Linted:
    """Judge every spec in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them).

    With `skip_foreign`, files that are no specs of ours are left alone with a note: those not called provision*.yaml that name no apiVersion of ours.
    """
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[Judged] = []
    unread: list[tuple[Path, ProvisionError]] = []
    for path in paths:
        ours = not skip_foreign or _NAMED.fullmatch(path.name) is not None
        try:
            found = judge(path, world, facts)
        except SourceError as error:
            if ours or not world.exists(path):
                unread.append((path, error))
            else:
                tell(f"skipped {safe_line(str(path))}: {error.what} ({error.why}), and it is not called provision*.yaml")
            continue
        if not ours and not any(map(_says_so, found)):
            tell(f"skipped {safe_line(str(path))}: no spec, for it has no `apiVersion: provision/...` and is not called provision*.yaml")
            continue
        try:
            found = _mended(path, found, changed, world, tell, facts, dry=dry) if fix else found
        except (SourceError, WorldError) as error:
            unread.append((path, error))
        documents += found
    return Linted(tuple(documents), changed, tuple(unread))


def _mended(path: Path, found: tuple[Judged, ...], changed: dict[str, str], world: World, tell: Tell, facts: Facts, *, dry: bool) -> tuple[Judged, ...]:
    """Apply the safe fixes until there are no more of them, and return what is then said; `changed` gets the diffs."""
    from provision.effects import WriteFile

    for _ in range(_ROUNDS):
        edits = edits_of(found)
        for name, (old, new) in edits.items():
            if not dry:
                world.perform(WriteFile(Path(name).resolve(), new, mode=None), tell)
            changed[name] = changed.get(name, "") + "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name))
        if dry or not edits:
            break
        found = judge(path, world, facts)
    return found


def _says_so(judged: Judged) -> bool:
    """Tell whether a document names our apiVersion; text too broken to mean anything is looked through."""
    if judged.source.data is None:
        return _SAYS_SO.search(judged.source.files[judged.source.name]) is not None
    return str(judged.source.data.get("apiVersion", "")).startswith("provision/")


def edits_of(found: tuple[Judged, ...]) -> dict[str, tuple[str, str]]:
    """Return old and new text of every file that the safe fixes change."""
    fixes = [(j.source, d.fix) for j in found for d in j.diagnostics if d.fix is not None and d.fix.applicability is Applicability.SAFE]
    before = {name: text for judged in found for name, text in judged.source.files.items()}
    return {name: (before[name], text) for name, text in edited_together(fixes).items()}
