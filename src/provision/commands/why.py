"""Explain an error's text by the known symptoms, a spec with its lock, and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.load import (
    CheckedDocument,
    LoadedSpec,
    check_resolved,
    check_single_document,
    unified_diff,
)
from provision.commands.shared.lock_file import read_lock
from provision.diagnostics import Diagnostic, Fix
from provision.effects.local import WriteFile
from provision.effects.system import ProgressCallback, System
from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.lock.model import Lock
from provision.rules.package_requirements import add_package_fix
from provision.source import apply_fixes_together
from provision.verification import Report
from provision.verification.error_lookup.known_environment import KnownEnvironment
from provision.verification.error_lookup.symptoms import (
    Explanation,
    LookupContext,
    explain_error,
    find_unexplained_error,
    is_offered_fix,
)
from provision.verification.report import find_tampering, read_report_file


class ErrorLookup(NamedTuple):
    """The explanations of an error, the likeliest first.

    `spec` and `report` name the files that it was compared with, `changed` maps the files that
    `--fix` edited to their diffs, and `unexplained_error` is the error that ended the program if no
    explanation is about it.
    """

    explanations: tuple[Explanation, ...]
    spec: str
    report: str
    changed: Mapping[str, str]
    unexplained_error: str = ""

    @property
    def is_explained(self) -> bool:
        """True if an error is explained, and not only a note next to an unknown error."""
        return any(
            not (self.unexplained_error and explanation.is_note)
            for explanation in self.explanations
        )


def why(
    text: str,
    spec: Path | None,
    report: Path | None,
    system: System,
    progress: ProgressCallback,
    *,
    fix: bool = False,
) -> ErrorLookup:
    """Return what an error's text means.

    Args:
        text: The text of the error.
        spec: The spec to compare it with, and its lock.
        report: The report to compare it with.
        system: Reads the files and writes the fixes.
        progress: Called with warnings and steps.
        fix: Apply the fixes of the findings that explain it: safe ones, and of the likeliest
            explanation also those that change what is declared; add the missing packages.

    Raises:
        SourceError: the spec cannot be read.
        ExternalError: a file cannot be read.
    """
    environments: list[KnownEnvironment] = []
    facts = select_facts(spec or Path("provision.yaml"), system)
    document = check_single_document(spec, system, facts) if spec is not None else None
    stored, lock = None, None
    findings: tuple[Diagnostic, ...] = ()
    if report is not None:
        stored = read_report_file(report, system)
        environments.append(_reported_environment(stored))
        if reason := find_tampering(stored):
            progress(f"warning: {report} cannot be trusted: {reason}")
    if document is not None and spec is not None:
        findings, lock = _check_spec_and_lock(document, spec, system)
    if lock is not None:
        environments.append(_locked_environment(lock))
    explanations = explain_error(
        text,
        load_symptoms(),
        LookupContext(facts, findings, stored, tuple(environments)),
    )
    unexplained = find_unexplained_error(text, explanations)
    changed: Mapping[str, str] = {}
    if document is not None:
        additions = _missing_packages(explanations, document, lock)
        if fix:
            changed = _apply_fixes(document, explanations, additions, system, progress)
        else:
            explanations = tuple(_with_additions(item, additions) for item in explanations)
    return ErrorLookup(explanations, str(spec or ""), str(report or ""), changed, unexplained)


def _check_spec_and_lock(
    document: CheckedDocument, path: Path, system: System
) -> tuple[tuple[Diagnostic, ...], Lock | None]:
    """Return the findings on the spec and on its locked versions, and the lock if there is one."""
    if document.spec is None:
        return document.diagnostics, None
    loaded = LoadedSpec(
        path,
        document.source,
        document.spec,
        load_facts(),
        document.diagnostics,
        configuration=document.configuration,
    )
    lock = read_lock(loaded, system)
    findings = list(document.diagnostics)
    if lock is not None:
        findings += check_resolved(loaded, lock)
    return tuple({(item.id, item.message): item for item in findings}.values()), lock


def _reported_environment(report: Report) -> KnownEnvironment:
    """Return the environment of a report, whose readings name only the declared packages."""
    readings = report.values
    packages = {
        key.removeprefix("package."): value
        for key, value in readings.items()
        if key.startswith("package.") and isinstance(value, str)
    }
    python = str(readings.get("python.version") or "")
    return KnownEnvironment("the report", packages, python, readings)


def _locked_environment(lock: Lock) -> KnownEnvironment:
    """Return a lock's environment: one version per package, torch's as of the first target."""
    packages = {package.name: package.version for package in reversed(lock.packages)}
    return KnownEnvironment("the lock", packages, lock.python, {}, is_complete=True)


def _missing_packages(
    explanations: Sequence[Explanation], document: CheckedDocument, lock: Lock | None
) -> dict[str, Fix]:
    """Return fixes, by package, that add what errors miss and neither spec nor lock has.

    An explanation that has a fix adds nothing.
    """
    if document.spec is None:
        return {}
    present = {package.key for package in document.spec.packages}
    present |= {str(package.name) for package in document.spec.conda_packages}
    if lock is not None:
        present |= {package.name for package in lock.packages}
    additions: dict[str, Fix] = {}
    for explanation in explanations:
        likeliest = explanation is explanations[0]
        if any(is_offered_fix(finding, likeliest) for finding in explanation.findings):
            continue
        for name, specifier in explanation.missing_packages:
            if name not in present:
                additions[name] = add_package_fix(name, specifier)
    return additions


def _with_additions(explanation: Explanation, additions: Mapping[str, Fix]) -> Explanation:
    """Return an explanation with remarks on the packages that `--fix` would add."""
    remarks = [
        f"the spec does not list {name}; --fix adds it"
        for name, _ in explanation.missing_packages
        if name in additions
    ]
    return explanation._replace(remarks=(*explanation.remarks, *remarks))


def _apply_fixes(
    document: CheckedDocument,
    explanations: Sequence[Explanation],
    additions: Mapping[str, Fix],
    system: System,
    progress: ProgressCallback,
) -> dict[str, str]:
    """Write the edited files and return a diff of each."""
    fixes = [
        finding.fix
        for explanation in explanations
        for finding in explanation.findings
        if finding.fix is not None and is_offered_fix(finding, explanation is explanations[0])
    ]
    before, changed = document.source.files, {}
    edits = ((document.source, fix) for fix in (*fixes, *additions.values()))
    for name, after in apply_fixes_together(edits).items():
        system.perform(WriteFile(Path(name), after, mode=None), progress)
        changed[name] = unified_diff(name, before[name], after)
    return changed
