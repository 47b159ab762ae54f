"""What an error means: its text is looked up among the symptoms, and the spec and the report say which of them are true here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.commands.loading import Judged, Loaded, judge, judge_resolved
from provision.commands.lock import read_lock
from provision.diagnostics import Diagnostic, Fix
from provision.effects import Tell, World, WriteFile
from provision.errors import UsageError
from provision.facts import load as load_facts
from provision.facts.parts import symptoms
from provision.lock.model import Lock
from provision.rules.needs import added
from provision.source import edited_together
from provision.verification import Report
from provision.verification.report import edited, report_at
from provision.verification.symptoms import Explanation, Held, explain, offered, unknown_end
from provision.verification.told import Place


class Answer(NamedTuple):
    """The explanations, the likeliest first; the spec and the report they were held against, and the files that were mended (name to diff).

    `unknown` is the error that ended the program, where it is none of those that are explained; else "".
    """

    explanations: tuple[Explanation, ...]
    spec: str
    report: str
    changed: Mapping[str, str]
    unknown: str = ""

    @property
    def holds(self) -> bool:
        """Whether an error is explained, and not only what is printed beside one that is unknown."""
        return any(not (self.unknown and one.is_note) for one in self.explanations)


def why(text: str, spec: Path | None, report: Path | None, world: World, tell: Tell, *, fix: bool = False) -> Answer:
    """Return what an error's text means, held against a spec with its lock, and a report, where these are named.

    With `fix`, the findings that explain it are mended in the spec: by their safe fixes, and of the likeliest explanation by those too that change what is
    asked for, since mending this error is what was asked; what the error says is missing is added. Raises SourceError and WorldError for what cannot be read.
    """
    facts = load_facts()
    judged = _judged(spec, world) if spec is not None else None
    stored = report_at(report, world) if report is not None else None
    if stored is not None and (wrong := edited(stored)):
        tell(f"warning: {report} proves nothing: {wrong}")
    findings, lock = _findings(judged, spec, world) if judged is not None and spec is not None else ((), None)
    places = (*((_of_report(stored),) if stored is not None else ()), *((_of_lock(lock),) if lock is not None else ()))
    found = explain(text, symptoms(), Held(facts, findings, stored, places))
    additions = _additions(found, judged, lock) if judged is not None else {}
    changed = _mended(judged, found, additions, world, tell) if fix and judged is not None else {}
    return Answer(_offering(found, {} if fix else additions), str(spec or ""), str(report or ""), changed, unknown_end(text, found))


def _judged(spec: Path, world: World) -> Judged:
    documents = judge(spec, world, load_facts())
    if len(documents) != 1:
        raise UsageError(f"{spec} holds {len(documents)} specs", why="an error is of one", hint="put each into a file of its own")
    return documents[0]


def _findings(judged: Judged, path: Path, world: World) -> tuple[tuple[Diagnostic, ...], Lock | None]:
    """Return what the rules say of the spec, and of its locked versions where there is a lock; and that lock."""
    if judged.spec is None:
        return judged.diagnostics, None
    loaded = Loaded(path, judged.source, judged.spec, load_facts(), judged.diagnostics)
    lock = read_lock(loaded, world)
    resolved = judge_resolved(loaded, lock) if lock is not None else ()
    return tuple({(one.id, one.message): one for one in (*judged.diagnostics, *resolved)}.values()), lock


def _of_report(report: Report) -> Place:
    """Return what a report knows of its place. Its readings name the packages that were asked for, not those that came with them."""
    readings = {str(one.get("key")): one.get("value") for one in report.document["readings"] if isinstance(one, Mapping)}
    packages = {key.removeprefix("package."): value for key, value in readings.items() if key.startswith("package.") and isinstance(value, str)}
    return Place("the report", packages, str(readings.get("python.version") or ""), readings)


def _of_lock(lock: Lock) -> Place:
    """Return what a lock knows: one version of each package, torch's as it is at the first target."""
    return Place("the lock", {package.name: package.version for package in reversed(lock.packages)}, lock.python, {}, whole=True)


def _additions(found: tuple[Explanation, ...], judged: Judged, lock: Lock | None) -> dict[str, Fix]:
    """Return how to list what the error says is missing, by name: of the packages that neither the spec nor its lock has."""
    if judged.spec is None:
        return {}
    listed = {package.key for package in judged.spec.packages} | {str(package.name) for package in judged.spec.conda_packages}
    there = listed | ({package.name for package in lock.packages} if lock is not None else set())
    alone = [one for one in found if not any(offered(finding, likeliest=one is found[0]) for finding in one.findings)]
    return {name: added(name, specifier) for one in alone for name, specifier in one.wanted if name not in there}


def _offering(found: tuple[Explanation, ...], additions: Mapping[str, Fix]) -> tuple[Explanation, ...]:
    """Return the explanations with what --fix would add, each where the error says so."""
    return tuple(
        one._replace(remarks=(*one.remarks, *(f"the spec does not list {name}: --fix adds it" for name, _ in one.wanted if name in additions))) for one in found
    )


def _mended(judged: Judged, found: tuple[Explanation, ...], additions: Mapping[str, Fix], world: World, tell: Tell) -> dict[str, str]:
    fixes = [finding.fix for one in found for finding in one.findings if finding.fix is not None and offered(finding, one is found[0])]
    before, changed = judged.source.files, {}
    for name, new in edited_together((judged.source, fix) for fix in (*fixes, *additions.values())).items():
        world.perform(WriteFile(Path(name), new, mode=None), tell)
        changed[name] = "".join(difflib.unified_diff(before[name].splitlines(True), new.splitlines(True), name, name))
    return changed
