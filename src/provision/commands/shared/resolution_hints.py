"""What may be done when no set of versions satisfies a spec: which lines ask for what, and the
least change that uv can resolve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision import rules
from provision.commands.shared.load import LoadedSpec, resolved_sets
from provision.diagnostics import RouteLocation, Severity
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError
from provision.facts import Facts
from provision.lock import Lock
from provision.lock.resolve import resolve_spec
from provision.rules import LintContext
from provision.spec import Spec
from provision.suggest.search import EmptySourceText, find_suggestions

_PYTHON_CONFLICT = re.compile(
    r"Python (version |ABI )?tag|(requires|requested) Python|Python "
    r"?[<>=!~]|requires-python|Requires-Python|`python_full_version"
)
_MAX_TRIES = 3
"""Changes of each kind that are tried with uv, a second or so each. Our choice."""


def find_conflicting_packages(loaded: LoadedSpec, said: str) -> tuple[int, ...]:
    """Return the numbers of the spec's packages that uv's words name."""
    names = (
        (number, {package.key, package.name}) for number, package in enumerate(loaded.spec.packages)
    )
    return tuple(
        number
        for number, known in names
        if any(re.search(rf"(?<![\w.\[-]){re.escape(name)}(?![\w-])", said) for name in known)
    )


def locate_requirements(loaded: LoadedSpec, numbers: tuple[int, ...]) -> Iterator[str]:
    """Yield where each of these packages is asked for: a line of the spec, or of a file that it
    extends.
    """
    for number in numbers:
        (
            yield f"{_where(loaded, 'packages', number)} asks for "
            f"{loaded.spec.packages[number].requirement}"
        )


def locate_python_requirement(loaded: LoadedSpec, said: str) -> Iterator[str]:
    """Yield where the Python is asked for, when uv's words hold it against a version."""
    if _mentions_python(said):
        yield f"{_where(loaded, 'python')} asks for Python {loaded.spec.python}"


def find_relaxation(loaded: LoadedSpec, said: str, world: System, tell: ProgressCallback) -> str:
    """Return a change that uv was able to resolve and that no rule minds; "" for none.

    That is one line without its bounds, or another Python where uv's words (`said`) speak of it,
    or what `suggest` finds. Asks uv a few times at most; a
    network that fails ends the search.
    """
    tell("looking for a way out")
    numbers = find_conflicting_packages(loaded, said)
    try:
        ways = (
            _try_unbounded(loaded, numbers, world, tell),
            _try_other_pythons(loaded, said, world, tell),
            _try_suggestions(loaded, numbers, world, tell),
        )
        return next((found for way in ways for found in way), "")
    except ExternalError:
        return ""


def resolve_and_check(
    spec: Spec, facts: Facts, world: System, tell: ProgressCallback
) -> tuple[Lock, str]:
    """Return the lock of a spec that nobody has written, and "" or what a rule minds of it. Raises
    LockError when there is none, WorldError.
    """
    lock = resolve_spec(spec, facts, world, tell)
    for part, resolved in resolved_sets(spec, lock):
        for finding in rules.run_rules(LintContext(part, EmptySourceText(), facts, resolved)):
            if finding.severity is Severity.ERROR:
                return lock, f"{finding.id}: {finding.message}"
    return lock, ""


def _mentions_python(said: str) -> bool:
    return bool(_PYTHON_CONFLICT.search(" ".join(said.split())))  # uv breaks lines anywhere


def _where(loaded: LoadedSpec, *route: str | int) -> str:
    span = loaded.source.span(RouteLocation(route))
    return f"{span.file}:{span.start.line}:{span.start.column}"


def _try_unbounded(
    loaded: LoadedSpec, numbers: tuple[int, ...], world: System, tell: ProgressCallback
) -> Iterator[str]:
    bounded = [number for number in numbers if loaded.spec.packages[number].version]
    for number in bounded[:_MAX_TRIES]:
        asked = loaded.spec.packages[number]
        packages = [
            package.model_copy(update={"version": ""}) if package is asked else package
            for package in loaded.spec.packages
        ]
        lock = _try_lock(
            loaded.spec.model_copy(update={"packages": packages}), loaded.facts, world, tell
        )
        version = (
            next((package.version for package in lock.packages if package.name == asked.key), "")
            if lock
            else ""
        )
        if version:
            (
                yield f"tried with uv: {asked.key}=={version.partition('+')[0]} in place of "
                f"{asked.requirement} resolves"
            )


def _try_other_pythons(
    loaded: LoadedSpec, said: str, world: System, tell: ProgressCallback
) -> Iterator[str]:
    if not _mentions_python(said):
        return
    own = int(loaded.spec.python.partition(".")[2])
    near = sorted(
        (row.version for row in loaded.facts.pythons if row.version != loaded.spec.python),
        key=lambda version: abs(int(version[2:]) - own),
    )
    for version in near[:_MAX_TRIES]:
        if (
            _try_lock(loaded.spec.model_copy(update={"python": version}), loaded.facts, world, tell)
            is not None
        ):
            yield f'tried with uv: python: "{version}" in place of "{loaded.spec.python}" resolves'


def _try_suggestions(
    loaded: LoadedSpec, numbers: tuple[int, ...], world: System, tell: ProgressCallback
) -> Iterator[str]:
    lines = tuple(("packages", number) for number in numbers)
    found = find_suggestions(
        loaded.spec, loaded.facts, most=2 * _MAX_TRIES, refuted=(("python",), *lines)
    ).suggestions
    for suggestion in [one for one in found if all(change.now for change in one.changes)][
        :_MAX_TRIES
    ]:  # to leave a package out is no way to have it
        if _try_lock(suggestion.spec, loaded.facts, world, tell) is not None:
            changes = ", ".join(
                f"{change.now} in place of {change.was}" for change in suggestion.changes
            )
            (
                yield f"tried with uv: {changes} resolves (`provision suggest {loaded.path} "
                "--resolve` tells more)"
            )


def _try_lock(spec: Spec, facts: Facts, world: System, tell: ProgressCallback) -> Lock | None:
    try:
        lock, trouble = resolve_and_check(spec, facts, world, tell)
    except LockError:
        return None
    return None if trouble else lock
