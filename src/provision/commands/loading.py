"""From a path to a spec that may be acted on, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision import rules, source
from provision.commands.naming import lock_path, refuse_ambiguous
from provision.diagnostics import Diagnostic, Place, Severity
from provision.errors import Failed, UsageError
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.rules import Case, Resolved
from provision.source import Source
from provision.spec import Spec

if TYPE_CHECKING:  # lint reads no lock
    from provision.effects import Reader
    from provision.lock import Lock
    from provision.targets import StandIn


class Findings(Failed):
    """The spec has findings that stop what was asked: exit 1, shown as frames."""

    def __init__(self, found: Source, diagnostics: tuple[Diagnostic, ...], what: str) -> None:
        super().__init__(what)
        self.source = found
        self.diagnostics = diagnostics


class Judged(NamedTuple):
    """One document of a spec file with everything that is said about it; `spec` is None when it cannot be understood."""

    source: Source
    spec: Spec | None
    diagnostics: tuple[Diagnostic, ...]


class Loaded(NamedTuple):
    """A spec without errors, its text, and the facts it was judged by.

    In a sandbox `stand_in` says what is not real; `spec` is then the substitute that is locked, and `declared` the spec as it was written. `refused` are the
    errors that concern single targets, by target, of a spec that was loaded with `apart`.
    """

    path: Path
    source: Source
    spec: Spec
    facts: Facts
    diagnostics: tuple[Diagnostic, ...]
    stand_in: StandIn | None = None
    declared: Spec | None = None
    refused: Mapping[str, Findings] = {}

    @property
    def stem(self) -> str:
        """The file's stem, which names lock, environments and reports."""
        return self.path.resolve().stem if self.path.is_symlink() else self.path.stem

    @property
    def folder(self) -> Path:
        """The absolute folder of our own files, beside the spec; that of a sandbox never holds what is real."""
        return folder_of(self.path, sandbox=self.stand_in is not None)

    @property
    def lock_path(self) -> Path:
        """The lock beside the spec; in a sandbox the substitute's, among our own files."""
        return lock_path(self.path) if self.stand_in is None else self.folder / f"{self.stem}.lock"


def folder_of(path: Path, *, sandbox: bool = False) -> Path:
    """Return the absolute folder of our own files for the spec at `path`."""
    ours = path.resolve().parent / ".provision"
    return ours / "sandbox" / "state" if sandbox else ours


def judge(path: Path, reader: Reader, facts: Facts) -> tuple[Judged, ...]:
    """Read every document of a file and return what is said about each; raises SourceError when the file cannot be read."""
    return tuple(_judged(document, facts) for document in source.read(path, reader))


def load(path: Path, reader: Reader, *, apart: bool = False) -> Loaded:
    """Return the one spec in a file; raises Findings when it has errors, SourceError and UsageError when there is none to speak of.

    With `apart`, errors that all concern single targets, and leave another one, are returned in `refused`.
    """
    refuse_ambiguous(path, reader)
    facts = load_facts()
    documents = judge(path, reader, facts)
    if len(documents) != 1:
        raise UsageError(f"{path} holds {len(documents)} specs", why="this command takes one", hint="put each into a file of its own")
    judged = documents[0]
    errors = [finding for finding in judged.diagnostics if finding.severity is Severity.ERROR]
    by_target = _by_target(errors, judged.spec) if apart and judged.spec is not None else {}
    if judged.spec is None or (errors and not by_target):
        raise Findings(judged.source, judged.diagnostics, "the spec has errors")
    refused = {name: Findings(judged.source, of, f"target {name} has errors in the spec") for name, of in by_target.items()}
    rest = tuple(finding for finding in judged.diagnostics if finding.severity is not Severity.ERROR)
    return Loaded(path, judged.source, judged.spec, facts, rest, refused=refused)


def _by_target(errors: list[Diagnostic], spec: Spec) -> dict[str, tuple[Diagnostic, ...]]:
    """Return errors by the one target that each concerns; {} when one concerns more than a target, or no target is without an error."""
    found: dict[str, tuple[Diagnostic, ...]] = {}
    for error in errors:
        route = error.where.route if isinstance(error.where, Place) else ()
        if len(route) < 2 or route[0] != "targets":
            return {}
        found[str(route[1])] = (*found.get(str(route[1]), ()), error)
    return found if len(found) < len(spec.targets) else {}


def judge_resolved(loaded: Loaded, lock: Lock) -> tuple[Diagnostic, ...]:
    """Ask the rules again, of each set of versions that the lock holds; a finding told twice is kept once."""
    found: dict[tuple[str, str], Diagnostic] = {}
    for spec, resolved in resolved_parts(loaded.spec, lock):
        for diagnostic in rules.judge(Case(spec, loaded.source, loaded.facts, resolved)):
            found.setdefault((diagnostic.id, diagnostic.message), diagnostic)
    return tuple(found.values())


def resolved_parts(spec: Spec, lock: Lock) -> Iterator[tuple[Spec, Resolved]]:
    """Yield each set of versions in a lock with the part of the spec that it is for: the targets that use it, and no others."""
    for environment in lock.environments:
        targets = {name: target for name, target in spec.targets.items() if lock.environment(name, environment.platform) == environment}
        if targets:
            yield spec.model_copy(update={"targets": targets}), Resolved(lock.versions(environment), lock.python, environment.flavour, lock.built(environment))


def _judged(document: Source, facts: Facts) -> Judged:
    spec, problems = source.validate(document)
    found = (*document.diagnostics, *problems)
    more = rules.judge_broken(document.data or {}) if spec is None else rules.judge(Case(spec, document, facts))
    findings = (*found, *more)
    document.vet(finding.fix for finding in findings if finding.fix is not None)
    return Judged(document, spec, findings)
