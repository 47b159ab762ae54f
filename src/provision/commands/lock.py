"""Resolve a spec into its lock file, or say whether the lock still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.holding import lock_at
from provision.commands.loading import Findings, Loaded, judge_resolved
from provision.commands.upgrading import upgradable, without
from provision.diagnostics import Diagnostic, Place, Severity
from provision.effects import Reader, Tell, World, WriteFile
from provision.errors import LockError, NoCondaSet, Refused, Unsatisfiable
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
    _refuse_unavailable(loaded)
    return differences(loaded.spec, lock)


def settle(loaded: Loaded, world: World, tell: Tell, *, upgrade: bool | frozenset[str] = False, frozen: bool = False) -> Locked:
    """Return the lock that holds for the spec: the one on disk when it is current, else one resolved now (not written yet).

    `upgrade` has every version chosen anew, or those of the packages it names and what must move with them. Raises UsageError for a name that neither the
    spec nor its lock holds, Refused for what this version cannot lock, LockError when nothing resolves or (`frozen`) when the lock on disk is missing or
    stale, Findings when the rules find an error in the resolved set.
    """
    _refuse_unavailable(loaded)
    old = None if upgrade is True else read_lock(loaded, world)
    names = upgradable(upgrade, loaded, old) if isinstance(upgrade, frozenset) else frozenset()
    moved = differences(loaded.spec, old) if old is not None else ()
    if old is not None and not moved and not names:
        return Locked(old, False, "the lock holds", _judged(loaded, old))
    because = "asked for" if upgrade is True else "there is no lock yet" if old is None else _because(names, moved)
    if frozen:
        raise LockError(f"{loaded.lock_path} does not hold: {because}", hint=f"run `provision lock {loaded.path}` and commit the lock")
    tell(f"locking: {because}")
    try:
        lock = resolve(loaded.spec, loaded.facts, world, tell, keep=without(old, names, loaded) if old is not None else None)
    except LockError as error:
        raise _with_ways_out(loaded, error, world, tell) from error
    return Locked(_with_text(loaded, lock), True, because, _judged(loaded, lock))


def write_lock(loaded: Loaded, lock: Lock, world: World, tell: Tell) -> Path:
    """Write the lock beside the spec and return its path."""
    world.perform(WriteFile(loaded.lock_path, dumps(lock)), tell)
    return loaded.lock_path


def _because(names: frozenset[str], moved: tuple[str, ...]) -> str:
    asked = [f"asked for: {', '.join(sorted(names))}"] if names else []
    return "; ".join([*asked, *(["the spec moved: " + "; ".join(moved)] if moved else [])])


def _refuse_unavailable(loaded: Loaded) -> None:
    for route, why in unavailable(loaded.spec):
        span = loaded.source.span(Place(route))
        raise Refused(f"{span.file}:{span.start.line}:{span.start.column}: this cannot be locked", why=why)


def _with_ways_out(loaded: Loaded, error: LockError, world: World, tell: Tell) -> LockError:
    from provision.commands import ways_out  # here: a lock that resolves does without the search

    asking = ways_out.asking(loaded, error.why)
    found = ways_out.way_out(loaded, error.why, world, tell) if isinstance(error, Unsatisfiable) and not isinstance(error, NoCondaSet) else ""
    lines = (*ways_out.lines_asking(loaded, asking), *ways_out.python_asking(loaded, error.why))
    hint = "\n".join([error.hint, *lines, *([found] if found else [])])
    return type(error)(error.what, why=error.why, hint=hint)


def _with_text(loaded: Loaded, lock: Lock) -> Lock:
    return sealed(replace(lock, written=written_of(loaded.source.data))) if loaded.source.data is not None else lock


def _judged(loaded: Loaded, lock: Lock) -> tuple[Diagnostic, ...]:
    if loaded.stand_in is not None:  # the rules spoke of the spec; nobody wrote its substitute
        return ()
    refused = {(d.id, d.where) for error in loaded.refused.values() for d in error.diagnostics}
    found = tuple(d for d in judge_resolved(loaded, lock) if (d.id, d.where) not in refused)
    if any(d.severity is Severity.ERROR for d in found):
        raise Findings(loaded.source, found, "the resolved set has errors; nothing was written")
    known = {(d.id, d.where) for d in loaded.diagnostics}
    return tuple(d for d in found if (d.id, d.where) not in known)  # what the spec was told already needs no second telling
