"""What may be done when no set of versions satisfies a spec: which lines ask for what, and the least change that uv can resolve."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision import rules
from provision.commands.loading import Loaded, resolved_parts
from provision.diagnostics import Place, Severity
from provision.effects import Tell, World
from provision.errors import LockError, WorldError
from provision.facts import Facts
from provision.lock import Lock
from provision.lock.resolve import resolve
from provision.rules import Case
from provision.rules.suggest import Unwritten, suggest
from provision.spec import Spec

_OF_PYTHON = re.compile(r"Python (version |ABI )?tag|(requires|requested) Python|Python ?[<>=!~]|requires-python|Requires-Python|`python_full_version")
_TRIED = 3
"""Changes of each kind that are tried with uv, a second or so each. Our choice."""


def asking(loaded: Loaded, said: str) -> tuple[int, ...]:
    """Return the numbers of the spec's packages that uv's words name."""
    names = ((number, {package.key, package.name}) for number, package in enumerate(loaded.spec.packages))
    return tuple(number for number, known in names if any(re.search(rf"(?<![\w.\[-]){re.escape(name)}(?![\w-])", said) for name in known))


def lines_asking(loaded: Loaded, numbers: tuple[int, ...]) -> Iterator[str]:
    """Yield where each of these packages is asked for: a line of the spec, or of a file that it extends."""
    for number in numbers:
        yield f"{_where(loaded, 'packages', number)} asks for {loaded.spec.packages[number].requirement}"


def python_asking(loaded: Loaded, said: str) -> Iterator[str]:
    """Yield where the Python is asked for, when uv's words hold it against a version."""
    if _is_of_python(said):
        yield f"{_where(loaded, 'python')} asks for Python {loaded.spec.python}"


def way_out(loaded: Loaded, said: str, world: World, tell: Tell) -> str:
    """Return a change that uv was able to resolve and that no rule minds; "" for none.

    That is one line without its bounds, or another Python where uv's words (`said`) speak of it, or what `suggest` finds. Asks uv a few times at most; a
    network that fails ends the search.
    """
    tell("looking for a way out")
    numbers = asking(loaded, said)
    try:
        ways = (_loosened(loaded, numbers, world, tell), _other_pythons(loaded, said, world, tell), _suggested(loaded, numbers, world, tell))
        return next((found for way in ways for found in way), "")
    except WorldError:
        return ""


def tried(spec: Spec, facts: Facts, world: World, tell: Tell) -> tuple[Lock, str]:
    """Return the lock of a spec that nobody has written, and "" or what a rule minds of it. Raises LockError when there is none, WorldError."""
    lock = resolve(spec, facts, world, tell)
    for part, resolved in resolved_parts(spec, lock):
        for finding in rules.judge(Case(part, Unwritten(), facts, resolved)):
            if finding.severity is Severity.ERROR:
                return lock, f"{finding.id}: {finding.message}"
    return lock, ""


def _is_of_python(said: str) -> bool:
    return bool(_OF_PYTHON.search(" ".join(said.split())))  # uv breaks lines anywhere


def _where(loaded: Loaded, *route: str | int) -> str:
    span = loaded.source.span(Place(route))
    return f"{span.file}:{span.start.line}:{span.start.column}"


def _loosened(loaded: Loaded, numbers: tuple[int, ...], world: World, tell: Tell) -> Iterator[str]:
    bounded = [number for number in numbers if loaded.spec.packages[number].version]
    for number in bounded[:_TRIED]:
        asked = loaded.spec.packages[number]
        packages = [package.model_copy(update={"version": ""}) if package is asked else package for package in loaded.spec.packages]
        lock = _lock_of(loaded.spec.model_copy(update={"packages": packages}), loaded.facts, world, tell)
        version = next((package.version for package in lock.packages if package.name == asked.key), "") if lock else ""
        if version:
            yield f"tried with uv: {asked.key}=={version.partition('+')[0]} in place of {asked.requirement} resolves"


def _other_pythons(loaded: Loaded, said: str, world: World, tell: Tell) -> Iterator[str]:
    if not _is_of_python(said):
        return
    own = int(loaded.spec.python.partition(".")[2])
    near = sorted((row.version for row in loaded.facts.pythons if row.version != loaded.spec.python), key=lambda version: abs(int(version[2:]) - own))
    for version in near[:_TRIED]:
        if _lock_of(loaded.spec.model_copy(update={"python": version}), loaded.facts, world, tell) is not None:
            yield f'tried with uv: python: "{version}" in place of "{loaded.spec.python}" resolves'


def _suggested(loaded: Loaded, numbers: tuple[int, ...], world: World, tell: Tell) -> Iterator[str]:
    lines = tuple(("packages", number) for number in numbers)
    found = suggest(loaded.spec, loaded.facts, most=2 * _TRIED, refuted=(("python",), *lines)).found
    for suggestion in [one for one in found if all(change.now for change in one.changes)][:_TRIED]:  # to leave a package out is no way to have it
        if _lock_of(suggestion.spec, loaded.facts, world, tell) is not None:
            changes = ", ".join(f"{change.now} in place of {change.was}" for change in suggestion.changes)
            yield f"tried with uv: {changes} resolves (`provision suggest {loaded.path} --resolve` tells more)"


def _lock_of(spec: Spec, facts: Facts, world: World, tell: Tell) -> Lock | None:
    try:
        lock, trouble = tried(spec, facts, world, tell)
    except LockError:
        return None
    return None if trouble else lock
