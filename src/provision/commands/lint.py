"""Checks specs and applies safe fixes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.shared.load import CheckedDocument, check_file, unified_diff
from provision.diagnostics import Applicability, Severity
from provision.errors import ExternalError, ProvisionError, SourceError
from provision.facts import Facts, load_facts
from provision.sanitize import escape_line
from provision.source import apply_fixes_together

if TYPE_CHECKING:  # checking specs needs no effects
    from provision.effects.system import ProgressCallback, System

_ROUNDS = 5
_SPEC_FILE_NAME = re.compile(r"provision([.-].*)?\.ya?ml")
_API_VERSION = re.compile(r"""^[\s{]*["']?apiVersion["']?\s*:\s*["']?provision/""", re.MULTILINE)


class LintResult(NamedTuple):
    """The checked documents of all files, and the files that were changed or failed.

    `changed` maps names to unified diffs.
    """

    documents: tuple[CheckedDocument, ...]
    changed: dict[str, str]
    failed_files: tuple[tuple[Path, ProvisionError], ...] = ()

    @property
    def exit_code(self) -> int:
        """2 when a file could not be read or written, else 1 when anything is an error, else 0."""
        if self.failed_files:
            return 2
        return int(
            any(
                finding.severity is Severity.ERROR
                for document in self.documents
                for finding in document.diagnostics
            )
        )


def lint(
    paths: tuple[Path, ...],
    system: System,
    progress: ProgressCallback,
    *,
    fix: bool = False,
    dry: bool = False,
    skip_foreign: bool = False,
) -> LintResult:
    """Check every spec in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them).

    With `skip_foreign`, files of other tools are skipped with a note: those not called
    provision*.yaml that do not name our apiVersion.
    """
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[CheckedDocument] = []
    failed: list[tuple[Path, ProvisionError]] = []
    for path in paths:
        ours = not skip_foreign or _SPEC_FILE_NAME.fullmatch(path.name) is not None
        try:
            checked = check_file(path, system, facts)
        except SourceError as error:
            if ours or not system.exists(path):
                failed.append((path, error))
            else:
                progress(
                    f"skipped {escape_line(str(path))}: {error.what} ({error.why}), and it "
                    "is not called provision*.yaml"
                )
            continue
        if not ours and not any(map(_declares_api_version, checked)):
            progress(
                f"skipped {escape_line(str(path))}: no spec, for it has no `apiVersion: "
                "provision/...` and is not called provision*.yaml"
            )
            continue
        try:
            if fix:
                checked = _apply_fixes(path, checked, changed, system, progress, facts, dry=dry)
        except (SourceError, ExternalError) as error:
            failed.append((path, error))
        documents += checked
    return LintResult(tuple(documents), changed, tuple(failed))


def _apply_fixes(
    path: Path,
    documents: tuple[CheckedDocument, ...],
    changed: dict[str, str],
    system: System,
    progress: ProgressCallback,
    facts: Facts,
    *,
    dry: bool,
) -> tuple[CheckedDocument, ...]:
    """Apply safe fixes until none is left and return the documents; `changed` gets the diffs."""
    from provision.effects.local import WriteFile

    for _ in range(_ROUNDS):
        edits = _collect_edits(documents)
        for name, (old, new) in edits.items():
            if not dry:
                system.perform(WriteFile(Path(name).resolve(), new, mode=None), progress)
            changed[name] = changed.get(name, "") + unified_diff(name, old, new)
        if dry or not edits:
            break
        documents = check_file(path, system, facts)
    return documents


def _declares_api_version(document: CheckedDocument) -> bool:
    """Return whether a document names our apiVersion; broken YAML is searched as text."""
    if document.source.data is None:
        return _API_VERSION.search(document.source.files[document.source.name]) is not None
    return str(document.source.data.get("apiVersion", "")).startswith("provision/")


def _collect_edits(documents: tuple[CheckedDocument, ...]) -> dict[str, tuple[str, str]]:
    """Return the old and new text of every file that the safe fixes change."""
    fixes, before = [], {}
    for document in documents:
        before.update(document.source.files)
        for diagnostic in document.diagnostics:
            fix = diagnostic.fix
            if fix is not None and fix.applicability is Applicability.SAFE:
                fixes.append((document.source, fix))
    return {name: (before[name], text) for name, text in apply_fixes_together(fixes).items()}
