"""What an error means: its text is looked up among the symptoms, and the spec and the report say
which of them are true here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.commands.lock import read_lock
from provision.commands.shared.load import CheckedDocument, LoadedSpec, check_file, check_resolved
from provision.diagnostics import Diagnostic, Fix
from provision.effects.local import WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import UsageError
from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.lock.model import Lock
from provision.rules.package_requirements import add_package_fix
from provision.source import apply_fixes_together
from provision.verification import Report
from provision.verification.error_lookup.symptoms import (
    Explanation,
    LookupContext,
    explain_error,
    find_unexplained_error,
    is_offered_fix,
)
from provision.verification.error_lookup.versions import KnownEnvironment
from provision.verification.report import find_tampering, read_report_file


class ErrorLookup(NamedTuple):
    """The explanations, the likeliest first; the spec and the report they were held against, and
    the files that were mended (name to diff).

    `unknown` is the error that ended the program, where it is none of those that are explained;
    else "".
    """

    explanations: tuple[Explanation, ...]
    spec: str
    report: str
    changed: Mapping[str, str]
    unexplained_error: str = ""

    @property
    def is_explained(self) -> bool:
        """Whether an error is explained, and not only what is printed beside one that is unknown."""  # noqa: E501
        return any(not (self.unexplained_error and one.is_note) for one in self.explanations)


def why(
    text: str,
    spec: Path | None,
    report: Path | None,
    world: System,
    tell: ProgressCallback,
    *,
    fix: bool = False,
) -> ErrorLookup:
    """Return what an error's text means, held against a spec with its lock, and a report, where
    these are named.

    With `fix`, the findings that explain it are mended in the spec: by their safe fixes, and of
    the likeliest explanation by those too that change what is
    asked for, since mending this error is what was asked; what the error says is missing is
    added. Raises SourceError and WorldError for what cannot be read.
    """
    facts = load_facts()
    judged = _check_single_document(spec, world) if spec is not None else None
    stored = read_report_file(report, world) if report is not None else None
    if stored is not None and (wrong := find_tampering(stored)):
        tell(f"warning: {report} proves nothing: {wrong}")
    findings, lock = (
        _findings(judged, spec, world) if judged is not None and spec is not None else ((), None)
    )
    places = (
        *((_evidence_from_report(stored),) if stored is not None else ()),
        *((_evidence_from_lock(lock),) if lock is not None else ()),
    )
    found = explain_error(text, load_symptoms(), LookupContext(facts, findings, stored, places))
    additions = _additions(found, judged, lock) if judged is not None else {}
    changed = (
        _apply_fixes(judged, found, additions, world, tell) if fix and judged is not None else {}
    )
    return ErrorLookup(
        _with_additions(found, {} if fix else additions),
        str(spec or ""),
        str(report or ""),
        changed,
        find_unexplained_error(text, found),
    )


def _check_single_document(spec: Path, world: System) -> CheckedDocument:
    documents = check_file(spec, world, load_facts())
    if len(documents) != 1:
        raise UsageError(
            f"{spec} holds {len(documents)} specs",
            why="an error is of one",
            hint="put each into a file of its own",
        )
    return documents[0]


def _findings(
    judged: CheckedDocument, path: Path, world: System
) -> tuple[tuple[Diagnostic, ...], Lock | None]:
    """Return what the rules say of the spec, and of its locked versions where there is a lock; and
    that lock.
    """
    if judged.spec is None:
        return judged.diagnostics, None
    loaded = LoadedSpec(path, judged.source, judged.spec, load_facts(), judged.diagnostics)
    lock = read_lock(loaded, world)
    resolved = check_resolved(loaded, lock) if lock is not None else ()
    return tuple(
        {(one.id, one.message): one for one in (*judged.diagnostics, *resolved)}.values()
    ), lock


def _evidence_from_report(report: Report) -> KnownEnvironment:
    """Return what a report knows of its place. Its readings name the packages that were asked for,
    not those that came with them.
    """
    readings = {
        str(one.get("key")): one.get("value")
        for one in report.document["readings"]
        if isinstance(one, Mapping)
    }
    packages = {
        key.removeprefix("package."): value
        for key, value in readings.items()
        if key.startswith("package.") and isinstance(value, str)
    }
    return KnownEnvironment(
        "the report", packages, str(readings.get("python.version") or ""), readings
    )


def _evidence_from_lock(lock: Lock) -> KnownEnvironment:
    """Return what a lock knows: one version of each package, torch's as it is at the first target."""  # noqa: E501
    return KnownEnvironment(
        "the lock",
        {package.name: package.version for package in reversed(lock.packages)},
        lock.python,
        {},
        is_complete=True,
    )


def _additions(
    found: tuple[Explanation, ...], judged: CheckedDocument, lock: Lock | None
) -> dict[str, Fix]:
    """Return how to list what the error says is missing, by name: of the packages that neither the
    spec nor its lock has.
    """
    if judged.spec is None:
        return {}
    listed = {package.key for package in judged.spec.packages} | {
        str(package.name) for package in judged.spec.conda_packages
    }
    there = listed | ({package.name for package in lock.packages} if lock is not None else set())
    alone = [
        one
        for one in found
        if not any(is_offered_fix(finding, likeliest=one is found[0]) for finding in one.findings)
    ]
    return {
        name: add_package_fix(name, specifier)
        for one in alone
        for name, specifier in one.missing_packages
        if name not in there
    }


def _with_additions(
    found: tuple[Explanation, ...], additions: Mapping[str, Fix]
) -> tuple[Explanation, ...]:
    """Return the explanations with what --fix would add, each where the error says so."""
    return tuple(
        one._replace(
            remarks=(
                *one.remarks,
                *(
                    f"the spec does not list {name}: --fix adds it"
                    for name, _ in one.missing_packages
                    if name in additions
                ),
            )
        )
        for one in found
    )


def _apply_fixes(
    judged: CheckedDocument,
    found: tuple[Explanation, ...],
    additions: Mapping[str, Fix],
    world: System,
    tell: ProgressCallback,
) -> dict[str, str]:
    fixes = [
        finding.fix
        for one in found
        for finding in one.findings
        if finding.fix is not None and is_offered_fix(finding, one is found[0])
    ]
    before, changed = judged.source.files, {}
    for name, new in apply_fixes_together(
        (judged.source, fix) for fix in (*fixes, *additions.values())
    ).items():
        world.perform(WriteFile(Path(name), new, mode=None), tell)
        changed[name] = "".join(
            difflib.unified_diff(before[name].splitlines(True), new.splitlines(True), name, name)
        )
    return changed
