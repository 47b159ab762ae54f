"""The lines of a spec that keep the resolver from newer releases of a package."""

from __future__ import annotations

from collections.abc import Iterator

from provision.commands.shared.load import LoadedSpec, SpecHasErrors
from provision.commands.shared.resolution_hints import find_conflicting_packages
from provision.diagnostics import Diagnostic, Severity
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError
from provision.facts.package_releases import load_releases
from provision.facts.versions import parse_version
from provision.lock import Lock
from provision.lock.resolve import resolve_spec


def explain_old_releases(
    loaded: LoadedSpec,
    lock: Lock,
    error: SpecHasErrors,
    system: System,
    progress: ProgressCallback,
) -> SpecHasErrors:
    """Return an error whose findings name the lines that exclude newer releases of a package.

    uv runs once for each package that an error is about, at most twice.
    """
    versions = {package.name: package.version for package in lock.from_indexes}
    numbers = {package.key: number for number, package in enumerate(loaded.spec.packages)}
    subjects = dict.fromkeys(_find_subjects(error.diagnostics, versions))
    reasons = {
        name: _explain_release(loaded, numbers[name], versions[name], system, progress)
        for name in [name for name in subjects if name in numbers][:2]
    }
    findings = []
    for finding in error.diagnostics:
        reason = reasons.get(finding.message.partition(" ")[0], "")
        if reason and finding.severity is Severity.ERROR:
            findings.append(finding._replace(why=f"{finding.why} {reason}".strip()))
        else:
            findings.append(finding)
    return SpecHasErrors(error.source, tuple(findings), error.what)


def _find_subjects(findings: tuple[Diagnostic, ...], versions: dict[str, str]) -> Iterator[str]:
    """Yield the packages whose locked release an error is about."""
    for finding in findings:
        name = finding.message.partition(" ")[0]
        if finding.message.startswith(f"{name} {versions.get(name)} "):
            yield name


def _explain_release(
    loaded: LoadedSpec, number: int, version: str, system: System, progress: ProgressCallback
) -> str:
    """Return why uv did not choose the newest known release of a package, "" if unknown."""
    package = loaded.spec.packages[number]
    releases, locked = load_releases().get(package.key), parse_version(version)
    if releases is None or locked is None or not package.is_from_index:
        return ""
    admitted = releases.admitted(str(package.specifiers)) or 0
    usable = releases.on_python(loaded.spec.python, may_build=False)
    newest = parse_version(releases.newest_of(admitted & usable))
    if newest is None or newest <= locked:
        return ""
    packages = list(loaded.spec.packages)
    packages[number] = package.model_copy(update={"version": f">={newest}"})
    progress(f"searching for the reason why {package.key} {version} was chosen")
    try:
        resolve_spec(
            loaded.spec.model_copy(update={"packages": packages}), loaded.facts, system, progress
        )
    except LockError as error:
        others = set(find_conflicting_packages(loaded, error.why)) - {number}
    except ExternalError:
        return ""
    else:
        return ""
    lines = [
        f"{loaded.position('packages', other)} requires {loaded.spec.packages[other].requirement}"
        for other in sorted(others)
    ]
    if not lines:
        return ""
    return f"{package.key} {version} was chosen because {newest} does not fit: {', '.join(lines)}."
