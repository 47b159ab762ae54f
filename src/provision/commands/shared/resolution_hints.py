"""Hints for a spec that no set of versions satisfies: its lines, and a change that resolves."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from provision.commands.shared.load import LoadedSpec, run_rules_on_lock
from provision.diagnostics import RouteLocation, Severity
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError
from provision.facts import Facts
from provision.lock import Lock
from provision.lock.resolve import resolve_spec
from provision.spec import Spec
from provision.suggest.search import EmptySourceText, find_suggestions

_PYTHON_CONFLICT = re.compile(
    r"Python (version |ABI )?tag|(requires|requested) Python|Python "
    r"?[<>=!~]|requires-python|Requires-Python|`python_full_version"
)
_MAX_TRIES = 3
"""Changes of each kind that are tried with uv, about a second each; ours."""


def find_conflicting_packages(loaded: LoadedSpec, message: str) -> tuple[int, ...]:
    """Return the positions of the packages that uv's message names."""
    names = (
        (number, {package.key, package.name}) for number, package in enumerate(loaded.spec.packages)
    )
    return tuple(
        number
        for number, known in names
        if any(re.search(rf"(?<![\w.\[-]){re.escape(name)}(?![\w-])", message) for name in known)
    )


def locate_requirements(loaded: LoadedSpec, numbers: tuple[int, ...]) -> Iterator[str]:
    """Yield the position and requirement of each package in the spec or a file it extends."""
    for number in numbers:
        requirement = loaded.spec.packages[number].requirement
        yield f"{loaded.position('packages', number)} requires {requirement}"


def list_lookalikes(loaded: LoadedSpec, numbers: tuple[int, ...]) -> Iterator[str]:
    """Yield the well-known name that each misspelled one of some packages looks like."""
    routes = [("packages", number) for number in numbers]
    for finding in loaded.diagnostics:
        where = finding.where
        if finding.id == "PKG005" and isinstance(where, RouteLocation) and where.route in routes:
            yield finding.message


def locate_python_requirement(loaded: LoadedSpec, message: str) -> Iterator[str]:
    """Yield the position of `python` if a version in uv's message does not fit it."""
    if _mentions_python(message):
        yield f"{loaded.position('python')} requires Python {loaded.spec.python}"


def find_relaxation(
    loaded: LoadedSpec, message: str, system: System, progress: ProgressCallback
) -> str:
    """Return a change that uv can resolve and that no rule reports, "" if none was found.

    That is a line without its bounds, another Python if uv's message names it, or a suggestion of
    `suggest`. uv runs a few times at most; a network error ends the search.
    """
    if not all(package.is_from_index for package in loaded.spec.packages):
        return ""  # each try would read the paths and repositories
    progress("searching for a change that resolves")
    numbers = find_conflicting_packages(loaded, message)
    try:
        hints = itertools.chain(
            _try_unbounded(loaded, numbers, system, progress),
            _try_other_pythons(loaded, message, system, progress),
            _try_suggestions(loaded, numbers, system, progress),
        )
        return next(hints, "")
    except ExternalError:
        return ""


def resolve_and_check(
    spec: Spec, facts: Facts, system: System, progress: ProgressCallback
) -> tuple[Lock, str]:
    """Return the lock of a candidate spec, and the first error of a rule about it or "".

    Raises:
        LockError: nothing resolves.
        ExternalError: an index cannot be reached.
    """
    lock = resolve_spec(spec, facts, system, progress)
    for finding in run_rules_on_lock(spec, lock, EmptySourceText(), facts):
        if finding.severity is Severity.ERROR:
            return lock, f"{finding.id}: {finding.message}"
    return lock, ""


def _mentions_python(message: str) -> bool:
    return bool(_PYTHON_CONFLICT.search(" ".join(message.split())))  # uv breaks lines anywhere


def _try_unbounded(
    loaded: LoadedSpec, numbers: tuple[int, ...], system: System, progress: ProgressCallback
) -> Iterator[str]:
    bounded = [number for number in numbers if loaded.spec.packages[number].version]
    for number in bounded[:_MAX_TRIES]:
        bound = loaded.spec.packages[number]
        packages = list(loaded.spec.packages)
        packages[number] = bound.model_copy(update={"version": ""})
        candidate = loaded.spec.model_copy(update={"packages": packages})
        lock = _try_lock(candidate, loaded.facts, system, progress)
        for package in lock.packages if lock is not None else ():
            if package.name == bound.key:
                version = package.version.partition("+")[0]
                yield (
                    f"tried with uv: {bound.key}=={version} instead of {bound.requirement} resolves"
                )
                break


def _try_other_pythons(
    loaded: LoadedSpec, message: str, system: System, progress: ProgressCallback
) -> Iterator[str]:
    if not _mentions_python(message):
        return
    own = int(loaded.spec.python.partition(".")[2])
    near = sorted(
        (row.version for row in loaded.facts.pythons if row.version != loaded.spec.python),
        key=lambda version: abs(int(version[2:]) - own),
    )
    for version in near[:_MAX_TRIES]:
        candidate = loaded.spec.model_copy(update={"python": version})
        if _try_lock(candidate, loaded.facts, system, progress) is not None:
            yield f'tried with uv: python: "{version}" instead of "{loaded.spec.python}" resolves'


def _try_suggestions(
    loaded: LoadedSpec, numbers: tuple[int, ...], system: System, progress: ProgressCallback
) -> Iterator[str]:
    lines = tuple(("packages", number) for number in numbers)
    result = find_suggestions(
        loaded.spec, loaded.facts, most=2 * _MAX_TRIES, refuted=(("python",), *lines)
    )
    suggestions = [
        suggestion
        for suggestion in result.suggestions
        if all(change.now for change in suggestion.changes)  # removes no package
    ]
    for suggestion in suggestions[:_MAX_TRIES]:
        if _try_lock(suggestion.spec, loaded.facts, system, progress) is not None:
            changes = ", ".join(
                f"{change.now} instead of {change.was}" for change in suggestion.changes
            )
            yield (
                f"tried with uv: {changes} resolves (details: `{loaded.command('suggest')} "
                "--resolve`)"
            )


def _try_lock(spec: Spec, facts: Facts, system: System, progress: ProgressCallback) -> Lock | None:
    try:
        lock, trouble = resolve_and_check(spec, facts, system, progress)
    except LockError:
        return None
    return None if trouble else lock
