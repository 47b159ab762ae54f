"""Checks specs and notebooks, and applies safe fixes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.commands.lint_files import InputFile, SkippedFile, find_files
from provision.commands.lint_options import DEFAULT_OPTIONS, LintOptions
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.foreign_files import (
    NotASpec,
    declares_api_version,
    find_import_hint,
    foreign_file_error,
    has_spec_keys,
    has_spec_name,
    identify_documents,
)
from provision.commands.shared.load import CheckedDocument, check_file, unified_diff
from provision.diagnostics import Applicability, Severity, SuppressedFinding
from provision.errors import ExternalError, ProvisionError, SourceError, UsageError
from provision.sanitize import escape_line
from provision.source import apply_fixes_together
from provision.source.project_root import find_project_root
from provision.spelling import format_command, pluralize

if TYPE_CHECKING:  # checking specs needs neither effects nor the readers of notebooks
    from provision.commands.lint_comparison import FixedFinding, RevisionComparison
    from provision.commands.lint_notebook import CheckedNotebook
    from provision.commands.lint_processes import SentFile
    from provision.commands.shared.configuration import Configuration
    from provision.effects.system import ProgressCallback, System
    from provision.facts import Facts
    from provision.target_changes import ChangedTarget

_RANKS = list(Severity)
_ROUNDS = 5
_BLOCK = 16
"""Files that a process takes at a time. Our choice."""
_MIN_SHARED_FILES = 100
"""Files from which on several processes check specs: for fewer, their start takes too long."""
_MAX_NOTES = 10
"""Files that are skipped with a note each; the others are counted. Our choice."""


_Outcome = tuple[CheckedDocument, ...] | SkippedFile | ProvisionError
"""The documents of a file, or the reason why it has none."""


class _Project(NamedTuple):
    """The facts, the configuration and the project's root for all files of a folder."""

    folder: Path
    root: Path
    facts: Facts
    configuration: Configuration


class LintResult(NamedTuple):
    """The checked documents of all files, and the files that were changed or failed.

    `changed` maps names to unified diffs. `fixed` are the findings of the base that are gone, None
    without a base, and `targets` the targets with another price or that would be replaced.
    """

    documents: tuple[CheckedDocument | CheckedNotebook, ...]
    changed: dict[str, str]
    failed_files: tuple[tuple[Path, ProvisionError], ...] = ()
    fixed: tuple[FixedFinding, ...] | None = None
    targets: tuple[ChangedTarget, ...] = ()

    @property
    def suppressed(self) -> tuple[SuppressedFinding, ...]:
        """The findings that were accepted."""
        return tuple(item for document in self.documents for item in document.suppressed)

    @property
    def exit_code(self) -> int:
        """2 if a file could not be read or written, 1 for findings or other files, else 0."""
        if any(not isinstance(error, NotASpec) for _, error in self.failed_files):
            return 2
        return int(
            bool(self.failed_files)
            or any(
                _RANKS.index(finding.severity) <= _RANKS.index(document.configuration.fail_on)
                for document in self.documents
                for finding in document.diagnostics
            )
        )


def lint(
    words: tuple[Path, ...],
    system: System,
    progress: ProgressCallback,
    options: LintOptions = DEFAULT_OPTIONS,
) -> LintResult:
    """Check every file that `words` name or match, and apply fixes.

    Notebooks are checked after the specs. Files that a folder or a pattern matched and that belong
    to other tools are skipped with a note.

    Raises:
        UsageError: there is a spec for notebooks but no notebook, or a configuration is not valid.
        ProvisionError: the spec for notebooks has errors, or it or its lock cannot be read.
    """
    files, unmatched = find_files(words)
    notebooks = tuple(file.path for file in files if file.path.suffix.lower() == ".ipynb")
    if options.notebook_spec is not None and not notebooks:
        raise UsageError(
            "--spec applies only to notebooks, but no notebook was given",
            hint="add a notebook, or check the spec with "
            f"`{format_command('lint', options.notebook_spec)}`",
        )
    compares = options.base is not None or options.baseline is not None
    if compares and notebooks and not options.skip_foreign:
        raise UsageError(
            "--diff-base and --baseline apply only to specs, but a notebook was given",
            hint="check notebooks in a separate command",
        )
    specs = tuple(file for file in files if file.path not in notebooks)
    if options.skip_foreign:
        for word, error in unmatched:
            progress(f"skipped {escape_line(str(word))}: {error.why}")
        unmatched = ()
        for path in notebooks:
            progress(f"skipped {escape_line(str(path))}: it is a notebook, not a spec")
        notebooks = ()
    from_notebooks = LintResult((), {})
    if notebooks:
        from provision.commands.lint_notebook import lint_notebooks

        # First, so that nothing is changed if the spec for the notebooks has errors.
        from_notebooks = LintResult(*lint_notebooks(notebooks, system, progress, options))
    result = _SpecLinter(system, progress, options).lint(specs)
    return LintResult(
        (*result.documents, *from_notebooks.documents),
        {**result.changed, **from_notebooks.changed},
        (*unmatched, *result.failed_files, *from_notebooks.failed_files),
        result.fixed,
        result.targets,
    )


def _apply_baseline(
    documents: tuple[CheckedDocument, ...],
    options: LintOptions,
    system: System,
    progress: ProgressCallback,
) -> tuple[CheckedDocument, ...]:
    """Return the documents without the findings of the baseline, which is written on request."""
    path = options.baseline
    if path is None:
        return documents
    from provision.commands.lint_baseline import create_baseline, read_baseline
    from provision.effects.local import WriteFile

    if options.write_baseline:
        baseline = create_baseline(path, documents)
        system.perform(WriteFile(path.resolve(), baseline.to_text(), mode=None), progress)
        progress(f"wrote {path}: {pluralize(baseline.entries.total(), 'finding')}")
    else:
        baseline = read_baseline(path, system)
    documents = tuple(map(baseline.apply, documents))
    if baseline.stale:
        progress(
            f"{escape_line(str(path))} has {pluralize(baseline.stale, 'finding')} that no "
            "longer occur; update it with --write-baseline"
        )
    return documents


class _SpecLinter:
    """Checks specs and applies fixes; collects the results."""

    def __init__(self, system: System, progress: ProgressCallback, options: LintOptions) -> None:
        self.system, self.progress, self.options = system, progress, options
        self.comparison: RevisionComparison | None = None
        self.documents: list[CheckedDocument] = []
        self.changed: dict[str, str] = {}
        self.failed: list[tuple[Path, ProvisionError]] = []
        self.skipped = 0
        self.fixed: list[FixedFinding] = []
        self.targets: list[ChangedTarget] = []
        self._project: _Project | None = None

    def lint(self, files: tuple[InputFile, ...]) -> LintResult:
        """Check every file, and return the findings, the changes and the failures."""
        if self.options.base is not None:
            from provision.commands.lint_comparison import RevisionComparison

            self.comparison = RevisionComparison(
                self.options.base, self.system, self.options.overrides
            )
        for (path, _), outcome in zip(files, self._check_files(files), strict=True):
            if isinstance(outcome, SkippedFile):
                self._report_skipped(path, outcome.reason)
            elif isinstance(outcome, ProvisionError):
                self.failed.append((path, outcome))
            else:
                self.documents += outcome
        if self.skipped > _MAX_NOTES:
            self.progress(f"skipped {self.skipped - _MAX_NOTES} more files that are not specs")
        return LintResult(
            _apply_baseline(tuple(self.documents), self.options, self.system, self.progress),
            self.changed,
            tuple(self.failed),
            None if self.comparison is None else tuple(self.fixed),
            tuple(self.targets),
        )

    def _check_files(self, files: tuple[InputFile, ...]) -> Iterator[_Outcome]:
        """Yield the outcome of each file, in order; several processes check many files."""
        options, first = self.options, files
        if len(files) >= _MIN_SHARED_FILES and not options.applied and options.base is None:
            # They load the rules and the facts, which the other processes then have too.
            first = files[:_BLOCK]
        yield from map(self._check_input, first)
        rest = files[len(first) :]
        processes = options.count_processes() if rest else 1
        if processes > 1:
            yield from self._share(rest, processes)
        else:
            yield from map(self._check_input, rest)

    def _share(self, files: tuple[InputFile, ...], processes: int) -> Iterator[_Outcome]:
        """Yield the outcome of each file, in order, after this and other processes have checked.

        What this process writes and raises is the same as without the others, in the same order.
        """
        from provision.adapters.forked_processes import MAX_TASKS, share_tasks
        from provision.commands.lint_processes import to_sent

        size = max(_BLOCK, -(-len(files) // MAX_TASKS))
        blocks = [files[start : start + size] for start in range(0, len(files), size)]

        def check(number: int) -> list[_Outcome | None]:
            return list(map(self._try_input, blocks[number]))

        def check_and_send(number: int) -> list[SentFile | SkippedFile | None]:
            return list(map(to_sent, check(number)))

        shared = share_tasks(len(blocks), check, check_and_send, processes)
        for file, outcome in zip(files, chain.from_iterable(shared), strict=True):
            yield self._restore(file, outcome)

    def _try_input(self, file: InputFile) -> _Outcome | None:
        try:
            return self._check_input(file)
        except Exception as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
                raise  # a signal, which an import or pydantic turns into an error
            return None

    def _restore(self, file: InputFile, outcome: _Outcome | SentFile | None) -> _Outcome:
        """Return the outcome of a file, which is checked here if no other process could."""
        from provision.commands.lint_processes import SentFile, from_sent

        if isinstance(outcome, SentFile):
            project = self._find_project(file.path)
            configuration = self.options.overrides.apply(project.configuration)
            outcome = from_sent(file.path, outcome, project.root, configuration, self.system)
        elif isinstance(outcome, tuple):
            self._find_project(file.path)  # selects the facts
        return self._check_input(file) if outcome is None else outcome

    def _check_input(self, file: InputFile) -> _Outcome:
        path, is_named = file
        is_spec = (is_named and not self.options.skip_foreign) or has_spec_name(path)
        try:
            outcome = self._check(path, is_spec)
            if self.comparison is not None and not isinstance(outcome, SkippedFile):
                outcome, changes = self.comparison.compare(path, outcome)
                self.fixed += changes.fixed
                self.targets += changes.targets
        except (SourceError, ExternalError) as error:
            return error
        return outcome

    def _check(self, path: Path, is_spec: bool) -> tuple[CheckedDocument, ...] | SkippedFile:
        """Return the documents of a file that is a spec."""
        try:
            checked = self._check_spec(path) if is_spec else self._check_file(path)
        except SourceError as error:
            if is_spec or not self.system.exists(path):
                raise
            reason = f"{error.what} ({error.why}), and its name does not match provision*.yaml"
            return SkippedFile(reason)
        is_spec = is_spec or any(map(_declares_api_version, checked))
        if not is_spec and not (
            not self.options.skip_foreign and any(map(_has_spec_keys, checked))
        ):
            reason = "(it has no `apiVersion: provision/...`, and its name does not match"
            return SkippedFile(f"it is not a spec {reason} provision*.yaml)")
        if not self.options.applied:
            return checked
        try:
            return self._apply_fixes(path, checked)
        except (SourceError, ExternalError) as error:
            self.failed.append((path, error))
            return checked

    def _report_skipped(self, path: Path, reason: str) -> None:
        self.skipped += 1
        if self.skipped <= _MAX_NOTES:
            self.progress(f"skipped {escape_line(str(path))}: {reason}")

    def _find_project(self, path: Path) -> _Project:
        """Return the project of a file, and use its facts from here on."""
        if self._project is None or self._project.folder != path.parent:
            base = None if self.comparison is None else self.comparison.base_reader
            facts = select_facts(path, self.system, base)
            configuration = find_configuration(path, self.system)
            root = find_project_root(path, self.system)
            self._project = _Project(path.parent, root, facts, configuration)
        return self._project

    def _check_file(self, path: Path) -> tuple[CheckedDocument, ...]:
        _, root, facts, configuration = self._find_project(path)
        return check_file(path, self.system, facts, self.options.overrides, configuration, root)

    def _check_spec(self, path: Path) -> tuple[CheckedDocument, ...]:
        """Return the documents of a file.

        Raises:
            NotASpec: it is another kind of file.
            SourceError: it cannot be read.
        """
        if (hint := find_import_hint(path)) and self.system.exists(path):
            why = "another tool uses this file name"
            raise NotASpec(f"{path} is not a spec", why=why, hint=hint)
        try:
            documents = self._check_file(path)
        except SourceError:
            # A lock or a report is larger than a spec may be.
            if self.system.exists(path) and (file := identify_documents(path, (), self.system)):
                raise foreign_file_error(path, file) from None
            raise
        if all(document.spec is None for document in documents):
            sources = [document.source for document in documents]
            file = identify_documents(path, sources, self.system)
            if file is not None:
                raise foreign_file_error(path, file)
        return documents

    def _apply_fixes(
        self, path: Path, documents: tuple[CheckedDocument, ...]
    ) -> tuple[CheckedDocument, ...]:
        """Apply fixes until none is left and return the documents; the diffs are collected."""
        from provision.effects.local import WriteFile

        for _ in range(_ROUNDS):
            edits = _collect_edits(documents, self.options.applied)
            for name, (old, new) in edits.items():
                if not self.options.dry:
                    self.system.perform(
                        WriteFile(Path(name).resolve(), new, mode=None), self.progress
                    )
                diff = unified_diff(name, old, new)
                self.changed[name] = self.changed.get(name, "") + diff
            if self.options.dry or not edits:
                break
            documents = self._check_file(path)
        return documents


def _has_spec_keys(document: CheckedDocument) -> bool:
    """Return whether a text has at least two of the keys that most specs have."""
    return has_spec_keys(document.source.files[document.source.name])


def _declares_api_version(document: CheckedDocument) -> bool:
    """Return whether a document names our apiVersion; broken YAML is searched as text."""
    if document.source.data is None:
        return declares_api_version(document.source.files[document.source.name])
    return str(document.source.data.get("apiVersion", "")).startswith("provision/")


def _collect_edits(
    documents: tuple[CheckedDocument, ...], applied: frozenset[Applicability]
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
