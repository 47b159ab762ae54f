"""Checks notebooks, and applies fixes to their cells."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.shared.configuration import (
    NO_CONFIGURATION,
    NO_OVERRIDES,
    Configuration,
    Overrides,
)
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.load import load_spec, unified_diff
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.notebook_folder import list_neighbors
from provision.diagnostics import Applicability, Diagnostic, SuppressedFinding
from provision.errors import ExternalError, ProvisionError, SourceError
from provision.imports.notebook import MAX_NOTEBOOK_BYTES, read_notebook
from provision.imports.notebook_source import NotebookSource
from provision.rules import run_rules_on_notebook
from provision.rules.notebook.context import NotebookContext
from provision.spec import Spec

if TYPE_CHECKING:
    from provision.commands.lint_options import LintOptions
    from provision.effects.system import ProgressCallback, Reader, System
    from provision.lock import Lock

_ROUNDS = 5
_BOM = "\ufeff".encode()


class NotebookSpec(NamedTuple):
    """The spec that notebooks are checked with, and the locked versions of each target."""

    spec: Spec
    locked: Mapping[str, Mapping[str, str]]


class CheckedNotebook(NamedTuple):
    """A notebook with its findings; `has_bom` is True if its file starts with such a mark.

    `suppressed` are the findings that were accepted, which are not among `diagnostics`, and
    `configuration` is that of the file's project.
    """

    source: NotebookSource
    diagnostics: tuple[Diagnostic, ...]
    has_bom: bool = False
    suppressed: tuple[SuppressedFinding, ...] = ()
    configuration: Configuration = NO_CONFIGURATION


def load_notebook_spec(path: Path, reader: Reader) -> NotebookSpec:
    """Return a spec without errors and the versions of its lock, if there is one.

    Raises:
        ProvisionError: the spec has errors, or it or its lock cannot be read.
    """
    loaded = load_spec(path, reader)
    lock = read_lock(loaded, reader)
    locked = {} if lock is None else {name: _versions(lock, name) for name in loaded.spec.targets}
    return NotebookSpec(loaded.spec, {name: found for name, found in locked.items() if found})


class NotebookResult(NamedTuple):
    """The checked notebooks, the diffs of the changed ones by name, and those that failed."""

    documents: tuple[CheckedNotebook, ...]
    changed: dict[str, str]
    failed_files: tuple[tuple[Path, ProvisionError], ...]


def lint_notebooks(
    paths: tuple[Path, ...], system: System, progress: ProgressCallback, options: LintOptions
) -> NotebookResult:
    """Check notebooks with a spec if there is one, and apply fixes.

    Raises:
        ProvisionError: the spec has errors, or it or its lock cannot be read.
    """
    spec = options.notebook_spec
    loaded = load_notebook_spec(spec, system) if spec is not None else None
    linter = NotebookLinter(system, progress, loaded, options.overrides)
    documents: list[CheckedNotebook] = []
    changed: dict[str, str] = {}
    failed: list[tuple[Path, ProvisionError]] = []
    for path in paths:
        try:
            document, diff = linter.lint(path, options.applied, dry=options.dry)
        except (SourceError, ExternalError) as error:
            failed.append((path, error))
            continue
        documents.append(document)
        if diff:
            changed[str(path)] = diff
    return NotebookResult(tuple(documents), changed, tuple(failed))


class NotebookLinter(NamedTuple):
    """Checks notebooks with the same spec; None for none."""

    system: System
    progress: ProgressCallback
    spec: NotebookSpec | None
    overrides: Overrides = NO_OVERRIDES

    def check(self, path: Path) -> CheckedNotebook:
        """Return a notebook with its findings.

        Raises:
            SourceError: the file cannot be read, or is not a notebook of version 4.
        """
        try:
            raw = self.system.read(path, MAX_NOTEBOOK_BYTES)
        except ExternalError as error:
            raise SourceError(error.what, why=error.why, hint=error.hint) from error
        notebook = read_notebook(path, raw)
        facts, neighbors = select_facts(path, self.system), list_neighbors(path, self.system)
        spec, locked = self.spec or (None, {})
        context = NotebookContext(notebook, facts, spec, locked, neighbors)
        configuration = self.overrides.apply(find_configuration(path, self.system))
        kept, accepted = configuration.split_accepted(path, run_rules_on_notebook(context))
        return CheckedNotebook(
            NotebookSource(notebook), kept, raw.startswith(_BOM), accepted, configuration
        )

    def lint(
        self, path: Path, applied: AbstractSet[Applicability], *, dry: bool
    ) -> tuple[CheckedNotebook, str]:
        """Apply fixes until none is left; return the notebook and the diffs of its cells.

        With `dry`, the file stays as it is.

        Raises:
            SourceError: the file cannot be read, or is not a notebook of version 4.
            ExternalError: the file cannot be written.
        """
        from provision.effects.local import WriteFile

        diffs = ""
        checked = self.check(path)
        for _ in range(_ROUNDS):
            source = checked.source
            fixes = [
                finding.fix
                for finding in checked.diagnostics
                if finding.fix is not None and finding.fix.applicability in applied
            ]
            text = source.apply_to_file(fixes)
            if text == source.notebook.text:
                break
            for name, content in source.apply_fixes(fixes).items():
                diffs += unified_diff(name, _with_end(source.files[name]), _with_end(content))
            if dry:
                break
            raw = (_BOM if checked.has_bom else b"") + text.encode()
            self.system.perform(WriteFile(path.resolve(), raw, mode=None), self.progress)
            checked = self.check(path)
        return checked, diffs


def _versions(lock: Lock, target: str) -> dict[str, str]:
    """Return the locked versions of a target on its first platform."""
    environments = lock.environments_of(target)
    return lock.versions(environments[0]) if environments else {}


def _with_end(source: str) -> str:
    """Return the source of a cell with a line break at its end, which cells do not have."""
    return source if source.endswith("\n") else f"{source}\n"
