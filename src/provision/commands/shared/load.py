"""Loads a spec from its file and checks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision import rules, source
from provision.commands.shared.spec_paths import check_spec_name, lock_path
from provision.diagnostics import Diagnostic, RouteLocation, Severity
from provision.errors import CheckFailed, UsageError
from provision.facts import Facts, load_facts
from provision.rules import LintContext, ResolvedSet
from provision.source import Source
from provision.spec import Spec

if TYPE_CHECKING:  # lint reads no lock
    from provision.effects.system import Reader
    from provision.lock import Lock
    from provision.targets import SandboxSources


class SpecHasErrors(CheckFailed):
    """The spec has errors: exit 1, with the findings shown as frames."""

    def __init__(self, found: Source, diagnostics: tuple[Diagnostic, ...], what: str) -> None:
        super().__init__(what)
        self.source = found
        self.diagnostics = diagnostics


class CheckedDocument(NamedTuple):
    """One document of a spec file with its findings; `spec` is None if it is not valid."""

    source: Source
    spec: Spec | None
    diagnostics: tuple[Diagnostic, ...]


class LoadedSpec(NamedTuple):
    """A spec without errors, its text, and the facts it was checked with.

    In a sandbox, `sandbox_sources` lists what is not real, `spec` is the substitute that is locked,
    and `declared` the spec as it was written. `target_errors` are the errors of single targets of
    a spec that was loaded with `apart`.
    """

    path: Path
    source: Source
    spec: Spec
    facts: Facts
    diagnostics: tuple[Diagnostic, ...]
    sandbox_sources: SandboxSources | None = None
    declared: Spec | None = None
    target_errors: Mapping[str, SpecHasErrors] = {}

    @property
    def stem(self) -> str:
        """The file's stem, which names lock, environments and reports."""
        return self.path.resolve().stem if self.path.is_symlink() else self.path.stem

    @property
    def folder(self) -> Path:
        """The absolute folder of our own files next to the spec; a sandbox has its own."""
        return state_folder(self.path, sandbox=self.sandbox_sources is not None)

    @property
    def lock_path(self) -> Path:
        """The path of the lock next to the spec; in a sandbox, of the substitute's lock."""
        if self.sandbox_sources is None:
            return lock_path(self.path)
        return self.folder / f"{self.stem}.lock"


def state_folder(path: Path, *, sandbox: bool = False) -> Path:
    """Return the absolute folder of our own files for the spec at `path`."""
    ours = path.resolve().parent / ".provision"
    return ours / "sandbox" / "state" if sandbox else ours


def check_file(path: Path, reader: Reader, facts: Facts) -> tuple[CheckedDocument, ...]:
    """Return every document of a file with its findings; raises SourceError."""
    return tuple(
        _check_document(document, facts) for document in source.read_spec_file(path, reader)
    )


def load_spec(path: Path, reader: Reader, *, apart: bool = False) -> LoadedSpec:
    """Return the one spec in a file.

    With `apart`, errors that all concern single targets are returned in `target_errors` if they
    leave a target without errors.

    Raises:
        SpecHasErrors: the spec has errors.
        SourceError: the file cannot be read.
        UsageError: its name is not possible, or it has several documents.
    """
    check_spec_name(path, reader)
    facts = load_facts()
    documents = check_file(path, reader, facts)
    if len(documents) != 1:
        raise UsageError(
            f"{path} holds {len(documents)} specs",
            why="this command takes one",
            hint="put each into a file of its own",
        )
    checked = documents[0]
    errors = [finding for finding in checked.diagnostics if finding.severity is Severity.ERROR]
    by_target = _group_by_target(errors, checked.spec) if apart and checked.spec is not None else {}
    if checked.spec is None or (errors and not by_target):
        raise SpecHasErrors(checked.source, checked.diagnostics, "the spec has errors")
    refused = {
        name: SpecHasErrors(checked.source, of, f"target {name} has errors in the spec")
        for name, of in by_target.items()
    }
    rest = tuple(
        finding for finding in checked.diagnostics if finding.severity is not Severity.ERROR
    )
    return LoadedSpec(path, checked.source, checked.spec, facts, rest, target_errors=refused)


def _group_by_target(errors: list[Diagnostic], spec: Spec) -> dict[str, tuple[Diagnostic, ...]]:
    """Return errors by target; {} if one is not about a single target or no target is left."""
    by_target: dict[str, tuple[Diagnostic, ...]] = {}
    for error in errors:
        route = error.where.route if isinstance(error.where, RouteLocation) else ()
        if len(route) < 2 or route[0] != "targets":
            return {}
        name = str(route[1])
        by_target[name] = (*by_target.get(name, ()), error)
    return by_target if len(by_target) < len(spec.targets) else {}


def check_resolved(loaded: LoadedSpec, lock: Lock) -> tuple[Diagnostic, ...]:
    """Run the rules on each set of versions in the lock; each finding is returned once."""
    found: dict[tuple[str, str], Diagnostic] = {}
    for spec, resolved in resolved_sets(loaded.spec, lock):
        for diagnostic in rules.run_rules(LintContext(spec, loaded.source, loaded.facts, resolved)):
            found.setdefault((diagnostic.id, diagnostic.message), diagnostic)
    return tuple(found.values())


def resolved_sets(spec: Spec, lock: Lock) -> Iterator[tuple[Spec, ResolvedSet]]:
    """Yield each set of versions in a lock with the spec of the targets that use it."""
    for environment in lock.environments:
        targets = {
            name: target
            for name, target in spec.targets.items()
            if lock.environment(name, environment.platform) == environment
        }
        if targets:
            yield (
                spec.model_copy(update={"targets": targets}),
                ResolvedSet(
                    lock.versions(environment),
                    lock.python,
                    environment.flavour,
                    lock.built(environment),
                ),
            )


def _check_document(document: Source, facts: Facts) -> CheckedDocument:
    spec, problems = source.validate_source(document)
    found = (*document.diagnostics, *problems)
    more = (
        rules.run_rules_on_invalid_spec(document.data or {})
        if spec is None
        else rules.run_rules(LintContext(spec, document, facts))
    )
    findings = (*found, *more)
    document.check_fixes(finding.fix for finding in findings if finding.fix is not None)
    return CheckedDocument(document, spec, findings)
