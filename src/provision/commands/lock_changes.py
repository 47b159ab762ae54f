"""Compare another lock with the one beside the spec: what differs, what the rules make of it, and what the facts say follows for the spec's cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from provision.commands.holding import LIMIT, lock_at
from provision.commands.loading import Loaded, judge_resolved
from provision.diagnostics import Diagnostic, Severity, Where
from provision.effects import Reader
from provision.errors import LockError, UsageError, WorldError
from provision.facts import moving
from provision.facts.moving import Built, Meaning
from provision.facts.versions import parsed
from provision.lock import Environment, Lock, loads
from provision.lock.comparing import Consequence, Review, compare
from provision.rules import Case

_FLAVOUR = re.compile(r"cpu|cu\d{3,4}")
_NUMBERS = re.compile(r"\d+(\.\d+)*(\+\w+)?")
_RANKS = list(Severity)
_GIVE = "give a lock that this version can read, as in: git show main:SPEC.lock | provision lock SPEC.yaml --diff -"


def old_lock(path: Path | None, given: bytes, reader: Reader) -> tuple[str, Lock]:
    """Return how messages call the older lock, and the lock: the file at `path`, or the bytes that were given where it is None.

    Raises WorldError when it cannot be read, UsageError when nothing was given, LockError when it is no lock, damaged, or of another version.
    """
    name = str(path) if path is not None else "the lock on standard input"
    try:
        content = reader.read(path, LIMIT) if path is not None else given
    except WorldError as error:
        raise WorldError(error.what, why=error.why, hint=_GIVE) from None
    if len(content) > LIMIT:
        raise LockError(f"{name} is longer than {LIMIT} bytes", hint=_GIVE)
    if path is None and not content.strip():
        raise UsageError("standard input is empty", why="--diff - reads the older lock from it", hint=_GIVE)
    try:
        lock = loads(content.decode("utf-8", "replace"), name)
    except LockError as error:
        raise LockError(error.what, why=error.why, hint=_GIVE) from None
    return name, lock


def new_lock(loaded: Loaded, reader: Reader) -> Lock:
    """Return the lock beside the spec; raises LockError when there is none, or it is damaged."""
    lock = lock_at(loaded.lock_path, reader)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path} to compare with", hint=f"make it with `provision lock {loaded.path}`")
    return lock


def review(loaded: Loaded, old: Lock, new: Lock, name: str) -> Review:
    """Return what differs from `old`, which messages call `name`, to `new`; the rules are asked of both sets of versions with the spec as it is now."""
    before, after = _judged(loaded, old), _judged(loaded, new)
    case = Case(loaded.spec, loaded.source, loaded.facts)
    return Review(
        name,
        str(loaded.lock_path),
        compare(old, new),
        tuple(_follows(case, old, new)),
        tuple(_elsewhere(case, old, new)),
        _only(after, before),
        _only(before, after),
    )


def _judged(loaded: Loaded, lock: Lock) -> tuple[Diagnostic, ...]:
    """Return what the rules find in a lock, without what no lock of ours could hold: an older lock may come from anywhere."""
    if parsed(lock.python) is None or not all(environment.flavour is None or _FLAVOUR.fullmatch(environment.flavour) for environment in lock.environments):
        return ()
    known = tuple(package for package in lock.packages if parsed(package.version) is not None)
    return judge_resolved(loaded, replace(lock, packages=known))


def _only(these: Iterable[Diagnostic], others: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the findings that are not among the others. One that says the same of another version is the same finding."""
    known = {_key(finding) for finding in others}
    return tuple(finding for finding in these if _key(finding) not in known)


def _key(finding: Diagnostic) -> tuple[str, Severity, Where, str]:
    return finding.id, finding.severity, finding.where, _NUMBERS.sub("#", finding.message)


def _follows(case: Case, old: Lock, new: Lock) -> Iterator[Consequence]:
    found: dict[Meaning, list[str]] = {}
    for meaning in moving.for_python(old.python, new.python, case.facts):
        found[meaning] = []
    for site in case.sites:
        for was, now in _moves(site.name, old, new):
            meanings = list(moving.for_pythons(was, now, case.facts))
            if site.device.nvidia:
                driver, by = (site.driver.value, site.driver.by) if site.driver else (None, "")
                meanings += [*moving.for_driver(was, now, case.facts, driver, by)]
                meanings += [*moving.for_card(site.card, was, now, case.facts)] if site.card else []
            for meaning in meanings:
                found.setdefault(meaning, []).append(site.name)
    for meaning, names in sorted(found.items(), key=lambda item: _RANKS.index(item[0].severity)):
        yield Consequence(meaning, tuple(dict.fromkeys(names)))


def _elsewhere(case: Case, old: Lock, new: Lock) -> Iterator[Meaning]:
    named = frozenset(site.card.name for site in case.sites if site.card is not None)
    moves = (move for site in case.sites for move in _moves(site.name, old, new))
    yield from dict.fromkeys(meaning for was, now in moves for meaning in moving.for_others(named, was, now, case.facts))


def _moves(target: str, old: Lock, new: Lock) -> Iterator[tuple[Built, Built]]:
    """Yield the torch of a target before and after, on each platform that has another one now."""
    for platform in sorted({environment.platform for environment in new.environments}):
        was, now = (_built(lock, lock.environment(target, platform)) for lock in (old, new))
        if was is not None and now is not None and was != now:
            yield was, now


def _built(lock: Lock, environment: Environment | None) -> Built | None:
    torch = lock.versions(environment).get("torch") if environment is not None else None
    if environment is None or torch is None or not _FLAVOUR.fullmatch(environment.flavour or ""):
        return None
    return Built(torch, str(environment.flavour), environment.platform)
