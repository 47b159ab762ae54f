"""Checks specs and notebooks, and applies safe fixes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.shared.foreign_files import (
    find_import_hint,
    foreign_file_error,
    identify_documents,
)
from provision.commands.shared.load import CheckedDocument, check_file, unified_diff
from provision.diagnostics import Applicability, Severity, SuppressedFinding
from provision.errors import ExternalError, ProvisionError, SourceError, UsageError
from provision.facts import Facts, load_facts
from provision.sanitize import escape_line
from provision.source import apply_fixes_together
from provision.spelling import format_command

if TYPE_CHECKING:  # checking specs needs neither effects nor the readers of notebooks
    from provision.commands.lint_notebook import CheckedNotebook
    from provision.effects.system import ProgressCallback, System

_ROUNDS = 5
_SPEC_FILE_NAME = re.compile(r"provision([.-].*)?\.ya?ml")
_API_VERSION = re.compile(r"""^[\s{]*["']?apiVersion["']?\s*:\s*["']?provision/""", re.MULTILINE)


class LintResult(NamedTuple):
    """The checked documents of all files, and the files that were changed or failed.

    `changed` maps names to unified diffs.
    """

    documents: tuple[CheckedDocument | CheckedNotebook, ...]
    changed: dict[str, str]
    failed_files: tuple[tuple[Path, ProvisionError], ...] = ()

    @property
    def suppressed(self) -> tuple[SuppressedFinding, ...]:
        """The findings that were accepted."""
        return tuple(item for document in self.documents for item in document.suppressed)

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
    unsafe: bool = False,
    dry: bool = False,
    skip_foreign: bool = False,
    notebook_spec: Path | None = None,
) -> LintResult:
    """Check every file in `paths`; with `fix`, apply the safe fixes first (`dry`: only show them).

    With `unsafe`, fixes that may change what the spec declares are applied too.
    With `skip_foreign`, notebooks and files of other tools are skipped with a note: those not
    called provision*.yaml that do not name our apiVersion.
    Notebooks are checked with the spec at `notebook_spec` and with its lock, after the specs.

    Raises:
        UsageError: there is a spec for notebooks, but no notebook.
        ProvisionError: the spec for notebooks has errors, or it or its lock cannot be read.
    """
    notebooks = tuple(path for path in paths if path.suffix.lower() == ".ipynb")
    if notebook_spec is not None and not notebooks:
        raise UsageError(
            "--spec is for notebooks, but no notebook was given",
            hint="add a notebook, or check the spec with "
            f"`{format_command('lint', notebook_spec)}`",
        )
    applied = set[Applicability]()
    if fix:
        applied = {Applicability.SAFE, *([Applicability.UNSAFE] if unsafe else ())}
    specs = tuple(path for path in paths if path not in notebooks)
    if skip_foreign or not notebooks:
        for path in notebooks:
            progress(f"skipped {escape_line(str(path))}: a notebook, not a spec")
        return _lint_specs(specs, system, progress, applied, dry=dry, skip_foreign=skip_foreign)
    from provision.commands.lint_notebook import lint_notebooks

    # First, so that nothing is changed if the spec for the notebooks has errors.
    documents, changed, failed = lint_notebooks(
        notebooks, notebook_spec, system, progress, applied, dry=dry
    )
    result = _lint_specs(specs, system, progress, applied, dry=dry, skip_foreign=False)
    return LintResult(
        (*result.documents, *documents),
        {**result.changed, **changed},
        (*result.failed_files, *failed),
    )


def _lint_specs(
    paths: tuple[Path, ...],
    system: System,
    progress: ProgressCallback,
    applied: set[Applicability],
    *,
    dry: bool,
    skip_foreign: bool,
) -> LintResult:
    """Check every spec in `paths`; apply the fixes of the kinds in `applied`, or only show them."""
    facts = load_facts()
    changed: dict[str, str] = {}
    documents: list[CheckedDocument] = []
    failed: list[tuple[Path, ProvisionError]] = []
    for path in paths:
        ours = not skip_foreign or _SPEC_FILE_NAME.fullmatch(path.name) is not None
        try:
            if ours and system.exists(path) and (hint := find_import_hint(path)):
                raise SourceError(
                    f"{path} is not a spec",
                    why="another tool has files with this name",
                    hint=hint,
                )
            checked = _check_spec(path, system, facts) if ours else check_file(path, system, facts)
        except SourceError as error:
            if ours or not system.exists(path):
                failed.append((path, error))
            else:
                progress(
                    f"skipped {escape_line(str(path))}: {error.what} ({error.why}), and its "
                    "name does not match provision*.yaml"
                )
            continue
        if not ours and not any(map(_declares_api_version, checked)):
            progress(
                f"skipped {escape_line(str(path))}: not a spec (it has no `apiVersion: "
                "provision/...`, and its name does not match provision*.yaml)"
            )
            continue
        try:
            if applied:
                checked = _apply_fixes(
                    path, checked, changed, system, progress, facts, applied, dry=dry
                )
        except (SourceError, ExternalError) as error:
            failed.append((path, error))
        documents += checked
    return LintResult(tuple(documents), changed, tuple(failed))


def _check_spec(path: Path, system: System, facts: Facts) -> tuple[CheckedDocument, ...]:
    """Return the documents of a file; raises SourceError, also if it is another kind of file."""
    try:
        documents = check_file(path, system, facts)
    except SourceError:
        # A lock or a report is larger than a spec may be.
        if system.exists(path) and (file := identify_documents(path, (), system)):
            raise foreign_file_error(path, file) from None
        raise
    if all(document.spec is None for document in documents):
        file = identify_documents(path, [document.source for document in documents], system)
        if file is not None:
            raise foreign_file_error(path, file)
    return documents


def _apply_fixes(
    path: Path,
    documents: tuple[CheckedDocument, ...],
    changed: dict[str, str],
    system: System,
    progress: ProgressCallback,
    facts: Facts,
    applied: set[Applicability],
    *,
    dry: bool,
) -> tuple[CheckedDocument, ...]:
    """Apply fixes until none is left and return the documents; `changed` gets the diffs."""
    from provision.effects.local import WriteFile

    for _ in range(_ROUNDS):
        edits = _collect_edits(documents, applied)
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


def _collect_edits(
    documents: tuple[CheckedDocument, ...], applied: set[Applicability]
) -> dict[str, tuple[str, str]]:
    """Return the old and new text of every file that the fixes change."""
    fixes, before = [], {}
    for document in documents:
        before.update(document.source.files)
        for diagnostic in document.diagnostics:
            fix = diagnostic.fix
            if fix is not None and fix.applicability in applied:
                fixes.append((document.source, fix))
    return {name: (before[name], text) for name, text in apply_fixes_together(fixes).items()}
