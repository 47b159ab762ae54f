"""Say what is wrong with specs, and repair what is safe to repair."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.shared.load import CheckedDocument, check_file
from provision.diagnostics import Applicability, Severity
from provision.errors import ExternalError, ProvisionError, SourceError
from provision.facts import Facts, load_facts
from provision.sanitize import escape_line
from provision.source import apply_fixes_together

if TYPE_CHECKING:  # looking at specs needs no effects
    from provision.effects.system import ProgressCallback, System

_ROUNDS = 5
_SPEC_FILE_NAME = re.compile(r"provision([.-].*)?\.ya?ml")
_API_VERSION = re.compile(r"""^[\s{]*["']?apiVersion["']?\s*:\s*["']?provision/""", re.MULTILINE)


class LintResult(NamedTuple):
    """The findings in every document of every file, the files that were changed (name to unified
    diff), and those that could not be read or written.
    """

    documents: tuple[CheckedDocument, ...]
    changed: dict[str, str]
    failed_files: tuple[tuple[Path, ProvisionError], ...] = ()

    @property
    def exit_code(self) -> int:
        """2 when a file could not be read or written, else 1 when anything is an error, else 0."""
        if self.failed_files:
            return 2
        return (
            1
            if any(
                d.severity is Severity.ERROR
                for judged in self.documents
                for d in judged.diagnostics
            )
            else 0
        )


def lint(
    paths: tuple[Path, ...],
    world: System,
    tell: ProgressCallback,
    *,
    fix: bool = False,
    dry: bool = False,
    skip_foreign: bool = False,
) -> LintResult:
    """Judge every spec in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them).

    With `skip_foreign`, files that are no specs of ours are left alone with a note: those not
    called provision*.yaml that name no apiVersion of ours.
    """
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[CheckedDocument] = []
    unread: list[tuple[Path, ProvisionError]] = []
    for path in paths:
        ours = not skip_foreign or _SPEC_FILE_NAME.fullmatch(path.name) is not None
        try:
            found = check_file(path, world, facts)
        except SourceError as error:
            if ours or not world.exists(path):
                unread.append((path, error))
            else:
                tell(
                    f"skipped {escape_line(str(path))}: {error.what} ({error.why}), and it "
                    "is not called provision*.yaml"
                )
            continue
        if not ours and not any(map(_declares_api_version, found)):
            tell(
                f"skipped {escape_line(str(path))}: no spec, for it has no `apiVersion: "
                "provision/...` and is not called provision*.yaml"
            )
            continue
        try:
            found = (
                _apply_fixes(path, found, changed, world, tell, facts, dry=dry) if fix else found
            )
        except (SourceError, ExternalError) as error:
            unread.append((path, error))
        documents += found
    return LintResult(tuple(documents), changed, tuple(unread))


def _apply_fixes(
    path: Path,
    found: tuple[CheckedDocument, ...],
    changed: dict[str, str],
    world: System,
    tell: ProgressCallback,
    facts: Facts,
    *,
    dry: bool,
) -> tuple[CheckedDocument, ...]:
    """Apply the safe fixes until there are no more of them, and return what is then said; `changed`
    gets the diffs.
    """
    from provision.effects.local import WriteFile

    for _ in range(_ROUNDS):
        edits = collect_edits(found)
        for name, (old, new) in edits.items():
            if not dry:
                world.perform(WriteFile(Path(name).resolve(), new, mode=None), tell)
            changed[name] = changed.get(name, "") + "".join(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name)
            )
        if dry or not edits:
            break
        found = check_file(path, world, facts)
    return found


def _declares_api_version(judged: CheckedDocument) -> bool:
    """Tell whether a document names our apiVersion; text too broken to mean anything is looked
    through.
    """
    if judged.source.data is None:
        return _API_VERSION.search(judged.source.files[judged.source.name]) is not None
    return str(judged.source.data.get("apiVersion", "")).startswith("provision/")


def collect_edits(found: tuple[CheckedDocument, ...]) -> dict[str, tuple[str, str]]:
    """Return old and new text of every file that the safe fixes change."""
    fixes = [
        (j.source, d.fix)
        for j in found
        for d in j.diagnostics
        if d.fix is not None and d.fix.applicability is Applicability.SAFE
    ]
    before = {name: text for judged in found for name, text in judged.source.files.items()}
    return {name: (before[name], text) for name, text in apply_fixes_together(fixes).items()}
