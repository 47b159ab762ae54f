"""What may be done when no set of versions satisfies a spec: which lines ask for what, and the least change that uv can resolve."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision import rules
from provision.commands.loading import Loaded
from provision.diagnostics import Place, Severity
from provision.effects import Tell, World
from provision.errors import LockError, WorldError
from provision.facts import Facts
from provision.lock import Lock, resolve
from provision.rules import Case, Resolved
from provision.rules.suggest import Unwritten, suggest
from provision.spec import Spec

_TRIED = 3
"""Changes of each kind that are tried with uv, a second or so each. Our choice."""


def asking(loaded: Loaded, said: str) -> tuple[int, ...]:
    """Return the numbers of the spec's packages that uv's words name."""
    names = ((number, {package.key, package.name}) for number, package in enumerate(loaded.spec.packages))
    return tuple(number for number, known in names if any(re.search(rf"(?<![\w.\[-]){re.escape(name)}(?![\w-])", said) for name in known))


def lines_asking(loaded: Loaded, numbers: tuple[int, ...]) -> Iterator[str]:
    """Yield where each of these packages is asked for: a line of the spec, or of a file that it extends."""
    for number in numbers:
        span = loaded.source.span(Place(("packages", number)))
        yield f"{span.file}:{span.start.line}:{span.start.column} asks for {loaded.spec.packages[number].requirement}"


def way_out(loaded: Loaded, numbers: tuple[int, ...], world: World, tell: Tell) -> str:
    """Return a change that uv was able to resolve and that no rule minds: one line without its bounds, else what `suggest` finds; "" for none.

    Asks uv a few times at most; a network that fails ends the search.
    """
    tell("looking for a way out")
    try:
        return next(_loosened(loaded, numbers, world, tell), "") or next(_suggested(loaded, world, tell), "")
    except WorldError:
        return ""


def tried(spec: Spec, facts: Facts, world: World, tell: Tell) -> tuple[Lock, str]:
    """Return the lock of a spec that nobody has written, and "" or what a rule minds of it. Raises LockError when there is none, WorldError."""
    lock = resolve(spec, facts, world, tell)
    for environment in lock.environments:
        resolved = Resolved(lock.versions(environment), lock.python, environment.flavour, lock.built(environment))
        for finding in rules.judge(Case(spec, Unwritten(), facts, resolved)):
            if finding.severity is Severity.ERROR:
                return lock, f"{finding.id}: {finding.message}"
    return lock, ""


def _loosened(loaded: Loaded, numbers: tuple[int, ...], world: World, tell: Tell) -> Iterator[str]:
    bounded = [number for number in numbers if loaded.spec.packages[number].version]
    for number in bounded[:_TRIED]:
        asked = loaded.spec.packages[number]
        packages = [package.model_copy(update={"version": ""}) if package is asked else package for package in loaded.spec.packages]
        lock = _lock_of(loaded.spec.model_copy(update={"packages": packages}), loaded.facts, world, tell)
        version = next((package.version for package in lock.packages if package.name == asked.key), "") if lock else ""
        if version:
            yield f"tried with uv: {asked.key}=={version.partition('+')[0]} in place of {asked.requirement} resolves"


def _suggested(loaded: Loaded, world: World, tell: Tell) -> Iterator[str]:
    for suggestion in [one for one in suggest(loaded.spec, loaded.facts, most=_TRIED).found if one.changes]:
        if _lock_of(suggestion.spec, loaded.facts, world, tell) is not None:
            changes = ", ".join(f"{change.now} in place of {change.was}" for change in suggestion.changes)
            yield f"tried with uv: {changes} resolves (`provision suggest {loaded.path} --resolve` tells more)"


def _lock_of(spec: Spec, facts: Facts, world: World, tell: Tell) -> Lock | None:
    try:
        lock, trouble = tried(spec, facts, world, tell)
    except LockError:
        return None
    return None if trouble else lock
