"""Loads a spec from its file and checks it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision import rules, source
from provision.commands.shared.code_check import find_missing_code, find_unusable_packages
from provision.commands.shared.configuration import (
    NO_CONFIGURATION,
    NO_OVERRIDES,
    NO_POLICY,
    Configuration,
    Overrides,
)
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.foreign_files import (
    find_import_hint,
    foreign_file_error,
    identify_documents,
    identify_file,
)
from provision.diagnostics import Diagnostic, RouteLocation, Severity, SuppressedFinding
from provision.errors import CheckFailed, ExternalError, UsageError
from provision.facts import Facts
from provision.rules import LintContext, ResolvedSet
from provision.rules.policy import check_policy, report_ignored
from provision.rules.suppressions import check_comments, split_suppressed
from provision.source import Source
from provision.spec import DEFAULT_TARGET, EARLIER_DEFAULT_TARGET, Spec
from provision.spelling import format_command

if TYPE_CHECKING:  # lint reads no lock
    from provision.effects.system import Reader
    from provision.lock import Lock
    from provision.targets import SandboxSources


_MAX_LEDGER_BYTES = 64 * 2**20


class SpecHasErrors(CheckFailed):
    """The spec has errors: exit 1, with the findings shown as frames."""

    def __init__(self, source: Source, diagnostics: tuple[Diagnostic, ...], what: str) -> None:
        super().__init__(what)
        self.source = source
        self.diagnostics = diagnostics


class CheckedDocument(NamedTuple):
    """One document of a spec file with its findings; `spec` is None if it is not valid.

    `suppressed` are the findings that were accepted, which are not among `diagnostics`, and
    `configuration` is that of the file's project.
    """

    source: Source
    spec: Spec | None
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[SuppressedFinding, ...] = ()
    configuration: Configuration = NO_CONFIGURATION


class LoadedSpec(NamedTuple):
    """A spec without errors, its text, and the facts it was checked with.

    In a sandbox, `sandbox_sources` lists what is not real, `spec` is the substitute that is locked,
    and `declared` the spec as it was written. `target_errors` are the errors of single targets of
    of a spec that was loaded with `apart`. With `is_edited` the file has another text on disk.
    """

    path: Path
    source: Source
    spec: Spec
    facts: Facts
    diagnostics: tuple[Diagnostic, ...]
    sandbox_sources: SandboxSources | None = None
    declared: Spec | None = None
    target_errors: Mapping[str, SpecHasErrors] = {}
    configuration: Configuration = NO_CONFIGURATION
    is_edited: bool = False

    @property
    def stem(self) -> str:
        """The file's stem, which names lock, environments and reports."""
        return self.path.resolve().stem if self.path.is_symlink() else self.path.stem

    @property
    def folder(self) -> Path:
        """The absolute folder of state, environments and reports; a sandbox has its own."""
        return state_folder(self.path, sandbox=self.sandbox_sources is not None)

    @property
    def lock_path(self) -> Path:
        """The path of the lock next to the spec; in a sandbox, of the substitute's lock."""
        if self.sandbox_sources is None:
            return lock_path(self.path)
        return self.folder / f"{self.stem}.lock"

    @property
    def sandbox_folder(self) -> str:
        """The folder of the spec's sandbox, relative to the working folder."""
        return sandbox_folder(self.path)

    def target_name(self, name: str) -> str:
        """Return the name of a target that the user may call by either name of the default."""
        is_default = name in (DEFAULT_TARGET, EARLIER_DEFAULT_TARGET)
        return (
            next(iter(self.spec.targets)) if is_default and self.spec.has_default_target else name
        )

    def command(self, verb: str, target: str = "") -> str:
        """Return the command line that applies a verb to this spec, or to one of its targets.

        The lock of a sandbox is written by `apply`.
        """
        sandbox = self.sandbox_sources is not None
        verb = "apply" if sandbox and verb == "lock" else verb
        return format_command(verb, self.path, target, sandbox=sandbox)

    def position(self, *route: str | int) -> str:
        """Return the file, line and column of a route in the spec; no line of an unsaved text."""
        span = self.source.span(RouteLocation(route))
        if self.is_edited and span.file == self.source.name:
            return f"{span.file} (with this change)"
        return f"{span.file}:{span.start.line}:{span.start.column}"

    def report_folder(self, target: str) -> Path:
        """Return the folder of a target's reports."""
        return self.folder / "reports" / f"{self.stem}.{target}"


def sandbox_folder(path: Path) -> str:
    """Return the folder of the sandbox of the spec at `path`, relative to the working folder."""
    return os.path.relpath(state_folder(path, sandbox=True).parent)


def state_folder(path: Path, *, sandbox: bool = False) -> Path:
    """Return the absolute folder of state, environments and reports for the spec at `path`."""
    folder = path.resolve().parent / ".provision"
    return folder / "sandbox" / "state" if sandbox else folder


def lock_path(path: Path) -> Path:
    """Return the path of the lock next to a spec, or next to the target of a link."""
    return (path.resolve() if path.is_symlink() else path).with_suffix(".lock")


def check_spec_name(path: Path, reader: Reader) -> None:
    """Check the name of a spec.

    Raises:
        SourceError: it is that of a file of another kind, such as a capture.
        UsageError: its lock and environments could be another spec's.
    """
    if path.suffix not in (".yaml", ".yml"):
        file = identify_file(path, reader) if reader.exists(path) else None
        if file is not None:
            raise foreign_file_error(path, file)
        hint = "rename it to NAME.yaml"
        if not reader.exists(path):
            hint = "check the name: there is no such file or folder"
        raise UsageError(
            f"{path} is not a valid name for a spec",
            why="the file name of a spec must end in .yaml or .yml",
            hint=find_import_hint(path) or hint,
        )
    other = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    if reader.exists(path) and reader.exists(other):
        raise UsageError(
            f"{path} and {other} would share a lock and an environment",
            hint="rename one of them",
        )


def check_file(
    path: Path,
    reader: Reader,
    facts: Facts,
    overrides: Overrides = NO_OVERRIDES,
    configuration: Configuration | None = None,
    root: Path | None = None,
) -> tuple[CheckedDocument, ...]:
    """Return every document of a file with its findings.

    Args:
        path: the file.
        reader: reads it.
        facts: the tables for the rules.
        overrides: change the configuration.
        configuration: that of the file's folder; None to read it.
        root: the root of the file's project; None to find it.

    Raises:
        SourceError: the file cannot be read.
        UsageError: the configuration of its project is not valid.
    """
    documents = source.read_spec_file(path, reader, root)
    configuration = overrides.apply(configuration or find_configuration(path, reader))
    return tuple(_check_document(document, facts, configuration, reader) for document in documents)


def check_single_document(path: Path, reader: Reader, facts: Facts) -> CheckedDocument:
    """Return the one document of a file with its findings.

    Raises:
        SourceError: the file cannot be read.
        UsageError: it has several documents.
    """
    documents = check_file(path, reader, facts)
    _require_single(path, documents)
    return documents[0]


def load_without_rules(path: Path, reader: Reader) -> LoadedSpec:
    """Return the one spec in a file, without a check by the rules.

    Raises:
        SpecHasErrors: it does not match the schema.
        SourceError: the file cannot be read.
        UsageError: its name is not possible, or it has several documents.
    """
    check_spec_name(path, reader)
    documents = tuple(source.read_spec_file(path, reader))
    _require_single(path, documents)
    spec, _ = source.validate_source(documents[0])
    if spec is None:
        return load_spec(path, reader)  # raises with every finding
    return with_recorded_target(
        LoadedSpec(path, documents[0], spec, select_facts(path, reader), ()), reader
    )


def _require_single(path: Path, documents: Sequence[object]) -> None:
    if len(documents) != 1:
        raise UsageError(
            f"{path} contains {len(documents)} specs",
            why="this command reads only one spec",
            hint="put each spec in a separate file",
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
    facts = select_facts(path, reader)
    checked = check_single_document(path, reader, facts)
    if checked.spec is None and (file := identify_documents(path, (checked.source,), reader)):
        raise foreign_file_error(path, file)
    errors = [finding for finding in checked.diagnostics if finding.severity is Severity.ERROR]
    by_target = _group_by_target(errors, checked.spec) if apart and checked.spec is not None else {}
    if checked.spec is None or (errors and not by_target):
        raise SpecHasErrors(checked.source, checked.diagnostics, "the spec has errors")
    refused = {
        name: SpecHasErrors(checked.source, findings, f"target `{name}` has errors in the spec")
        for name, findings in by_target.items()
    }
    rest = tuple(
        finding for finding in checked.diagnostics if finding.severity is not Severity.ERROR
    )
    loaded = LoadedSpec(
        path,
        checked.source,
        checked.spec,
        facts,
        rest,
        target_errors=refused,
        configuration=checked.configuration,
    )
    return with_recorded_target(loaded, reader)


def with_recorded_target(loaded: LoadedSpec, reader: Reader) -> LoadedSpec:
    """Return the spec with the earlier name of the default target if a state records that name.

    Its environment, kernel and reports have the name in their paths.
    """
    address = f"{loaded.stem}/{EARLIER_DEFAULT_TARGET}"
    if not loaded.spec.has_default_target:
        return loaded
    for name, mark in (("state.json", f'"{address}#'), ("journal.json", f'"{address}"')):
        with suppress(ExternalError):  # whoever needs the ledger reports that it is not readable
            if reader.exists(loaded.folder / name) and mark.encode() in reader.read(
                loaded.folder / name, _MAX_LEDGER_BYTES
            ):
                return loaded._replace(
                    spec=loaded.spec.rename_default_target(EARLIER_DEFAULT_TARGET)
                )
    return loaded


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


def unified_diff(name: str, before: str, after: str) -> str:
    """Return the edits of a file as a unified diff."""
    lines = before.splitlines(True), after.splitlines(True)
    return "".join(difflib.unified_diff(*lines, name, name))


def check_resolved(loaded: LoadedSpec, lock: Lock) -> tuple[Diagnostic, ...]:
    """Run the rules on each set of versions in the lock; each finding is returned once.

    Findings that a comment in the spec or the configuration accepts are left out.
    """
    findings: dict[tuple[str, str], Diagnostic] = {}
    for finding in run_rules_on_lock(loaded.spec, lock, loaded.source, loaded.facts):
        findings.setdefault((finding.id, finding.message), finding)
    kept, _ = split_suppressed(loaded.source, findings.values())
    kept, _ = loaded.configuration.split_accepted(loaded.path, kept)
    return kept


def run_rules_on_lock(
    spec: Spec, lock: Lock, text: rules.SourceText, facts: Facts
) -> Iterator[Diagnostic]:
    """Yield the findings on each set of versions in a lock, for the targets that use it."""
    for environment in lock.environments:
        targets = {
            name: target
            for name, target in spec.targets.items()
            if lock.environment(name, environment.platform) == environment
        }
        if targets:
            resolved = ResolvedSet(
                lock.versions(environment),
                lock.python,
                environment.flavour,
                lock.built(environment),
            )
            part = spec.model_copy(update={"targets": targets})
            yield from rules.run_rules(LintContext(part, text, facts, resolved))


def _check_document(
    document: Source, facts: Facts, configuration: Configuration, reader: Reader
) -> CheckedDocument:
    spec, problems = source.validate_source(document)
    if spec is None:
        from_rules = rules.run_rules_on_invalid_spec(document.data or {})
    else:
        from_rules = (
            *rules.run_rules(LintContext(spec, document, facts)),
            *find_missing_code(document, spec, reader),
            *find_unusable_packages(document, spec, reader),
        )
    findings = (*document.diagnostics, *problems, *from_rules)
    kept, suppressed = split_suppressed(document, findings)
    if spec is not None:  # else the rules were not checked
        kept += check_comments(document, findings)
    kept, accepted = configuration.split_accepted(document.path, kept)
    suppressed += accepted
    policy = configuration.policy
    if policy != NO_POLICY:
        ignored = [item for item in suppressed if item.finding.id.startswith(policy.never_ignore)]
        suppressed = tuple(item for item in suppressed if item not in ignored)
        kept += tuple(item.finding for item in ignored)
        kept += tuple(report_ignored(policy, item) for item in ignored)
        if spec is not None:
            context = LintContext(spec, document, facts)
            kept += tuple(check_policy(policy, context, document.data or {}))
    document.check_fixes(finding.fix for finding in kept if finding.fix is not None)
    return CheckedDocument(document, spec, kept, suppressed, configuration)
