"""Resolve a spec into its lock file, or say whether the lock still holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.holding import lock_at
from provision.commands.loading import Findings, Loaded, judge_resolved
from provision.diagnostics import Diagnostic, Place, Severity
from provision.effects import Reader, Tell, World, WriteFile
from provision.errors import LockError, Refused
from provision.lock import Lock, dumps, sealed, written_of
from provision.lock.asked import differences, unavailable
from provision.lock.resolve import resolve


@dataclass(frozen=True, slots=True)
class Locked:
    """A lock for a spec: `fresh` when it was resolved just now, `because` says why; `warnings` are the rules' words on the resolved set."""

    lock: Lock
    fresh: bool
    because: str
    warnings: tuple[Diagnostic, ...]


def read_lock(loaded: Loaded, reader: Reader) -> Lock | None:
    """Return the lock beside the spec, or None when there is none; raises LockError when it is damaged."""
    return lock_at(loaded.lock_path, reader)


def check_lock(loaded: Loaded, reader: Reader) -> tuple[str, ...]:
    """Return what moved since the lock was made, () when it holds: no network, no resolving. Raises LockError when there is no usable lock."""
    lock = read_lock(loaded, reader)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=f"make it with `provision lock {loaded.path}`")
    return differences(loaded.spec, lock)


def settle(loaded: Loaded, world: World, tell: Tell, *, upgrade: bool = False, frozen: bool = False) -> Locked:
    """Return the lock that holds for the spec: the one on disk when it is current, else one resolved now (not written yet).

    Raises Refused for what this version cannot lock, LockError when nothing resolves or (`frozen`) when the lock on disk is missing or stale, Findings when
    the rules find an error in the resolved set.
    """
    _refuse_unavailable(loaded)
    old = None if upgrade else read_lock(loaded, world)
    moved = differences(loaded.spec, old) if old is not None else ()
    if old is not None and not moved:
        return Locked(old, False, "the lock holds", _judged(loaded, old))
    because = "asked for" if upgrade else "there is no lock yet" if old is None else "the spec moved: " + "; ".join(moved)
    if frozen:
        raise LockError(f"{loaded.lock_path} does not hold: {because}", hint=f"run `provision lock {loaded.path}` and commit the lock")
    tell(f"locking: {because}")
    try:
        lock = resolve(loaded.spec, loaded.facts, world, tell, keep=old)
    except LockError as error:
        raise LockError(error.what, why=error.why, hint=_ways_out(loaded, error)) from error
    return Locked(_with_text(loaded, lock), True, because, _judged(loaded, lock))


def write_lock(loaded: Loaded, lock: Lock, world: World, tell: Tell) -> Path:
    """Write the lock beside the spec and return its path."""
    world.perform(WriteFile(loaded.lock_path, dumps(lock)), tell)
    return loaded.lock_path


def _refuse_unavailable(loaded: Loaded) -> None:
    for route, why in unavailable(loaded.spec):
        span = loaded.source.span(Place(route))
        raise Refused(f"{span.file}:{span.start.line}:{span.start.column}: this cannot be locked", why=why)


def _with_text(loaded: Loaded, lock: Lock) -> Lock:
    return sealed(replace(lock, written=written_of(loaded.source.data))) if loaded.source.data is not None else lock


def _judged(loaded: Loaded, lock: Lock) -> tuple[Diagnostic, ...]:
    found = judge_resolved(loaded, lock)
    if any(d.severity is Severity.ERROR for d in found):
        raise Findings(loaded.source, found, "the resolved set has errors; nothing was written")
    return tuple(d for d in found if d not in loaded.diagnostics)


def _ways_out(loaded: Loaded, error: LockError) -> str:
    lines = []
    for number, package in enumerate(loaded.spec.packages):
        if any(re.search(rf"(?<![\w.\[-]){re.escape(name)}(?![\w-])", error.why) for name in (package.key, package.name)):
            span = loaded.source.span(Place(("packages", number)))
            lines.append(f"{span.file}:{span.start.line}:{span.start.column} asks for {package.requirement}")
    return "\n".join([error.hint, *lines])
