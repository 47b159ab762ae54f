"""Resolve a spec into its lock file, or say whether the lock still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from provision.commands.holding import LIMIT, lock_at
from provision.commands.loading import Findings, Loaded, judge_resolved
from provision.commands.upgrading import upgradable, without
from provision.diagnostics import Diagnostic, Place, Severity
from provision.effects import Reader, Tell, World, WriteFile
from provision.errors import LockError, NoCondaSet, Refused, Unsatisfiable
from provision.lock import Lock, dumps, sealed, written_of
from provision.lock.agreement import disagreements
from provision.lock.asked import differences, unavailable
from provision.lock.integrity import Flaw, contradictions
from provision.lock.resolve import resolve
from provision.lock.salvage import Repair, Salvage, compare, salvage

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Locked:
    """A lock for a spec: `fresh` when it was resolved just now, `because` says why; `warnings` are the rules' words on the resolved set.

    `repair` says what became of the versions of a lock that could be read in part.
    """

    lock: Lock
    fresh: bool
    because: str
    warnings: tuple[Diagnostic, ...]
    repair: Repair | None = None


def read_lock(loaded: Loaded, reader: Reader) -> Lock | None:
    """Return the lock beside the spec, or None when there is none; raises LockError when it is damaged or contradicts itself."""
    lock = lock_at(loaded.lock_path, reader)
    if lock is not None and (found := contradictions(lock)):
        raise _flawed(loaded, found, reader)
    return lock


def check_lock(loaded: Loaded, reader: Reader) -> tuple[str, ...]:
    """Return what moved since the lock was made, () when it holds: no network, no resolving.

    Raises LockError when there is no lock, or one that `provision lock` could not have written for the spec.
    """
    lock = lock_at(loaded.lock_path, reader)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=f"make it with `provision lock {quote(str(loaded.path))}`")
    _refuse_unavailable(loaded)
    moved = differences(loaded.spec, lock)
    if found := _flaws(loaded, lock, moved):
        raise _flawed(loaded, found, reader)
    return moved


def settle(loaded: Loaded, world: World, tell: Tell, *, upgrade: bool | frozenset[str] = False, frozen: bool = False, repair: bool = False) -> Locked:
    """Return the lock that holds for the spec: the one on disk when it is current, else one resolved now (not written yet).

    `upgrade` has every version chosen anew, or those of the packages it names and what must move with them. `repair` makes a new lock in the place of one
    that is damaged or does not agree with the spec, with the versions that it names. Raises UsageError for a name that neither the spec nor its lock holds,
    Refused for what this version cannot lock, LockError when nothing resolves, when the lock on disk is damaged, or (`frozen`) missing or stale, Findings
    when the rules find an error in the resolved set.
    """
    _refuse_unavailable(loaded)
    salvaged: Salvage | None = None
    try:
        old = None if upgrade is True else lock_at(loaded.lock_path, world)
        moved = differences(loaded.spec, old) if old is not None else ()
        if old is not None and (found := _flaws(loaded, old, moved)):
            raise _flawed(loaded, found, world)
    except LockError as error:
        salvaged = _salvaged(loaded, world) if repair else None
        if salvaged is None:
            raise
        old, moved = salvaged.keep, (error.what,)
    names = upgradable(upgrade, loaded, old) if isinstance(upgrade, frozenset) else frozenset()
    if old is not None and not moved and not names:
        return Locked(old, False, "the lock holds", _judged(loaded, old))
    because = "asked for" if upgrade is True else "there is no lock yet" if old is None else _because(names, moved, salvaged)
    if frozen:
        what = f"there is no {loaded.lock_path}" if old is None else f"{loaded.lock_path} does not hold: {because}"
        raise LockError(what, hint=f"run `provision lock {quote(str(loaded.path))}` and commit the lock")
    tell(f"locking: {because}")
    try:
        lock = resolve(loaded.spec, loaded.facts, world, tell, keep=without(old, names, loaded) if old is not None else None)
    except LockError as error:
        raise _with_ways_out(loaded, error, world, tell) from error
    return Locked(_with_text(loaded, lock), True, because, _judged(loaded, lock), compare(salvaged, lock) if salvaged is not None else None)


def _flaws(loaded: Loaded, lock: Lock, moved: tuple[str, ...]) -> tuple[Flaw, ...]:
    """Return what is wrong with a lock; one that is stale is not compared with a spec that it was not made for."""
    return contradictions(lock) if moved else disagreements(lock, loaded.spec, loaded.facts)


def _flawed(loaded: Loaded, found: tuple[Flaw, ...], reader: Reader) -> LockError:
    """Return the error for a lock that `provision lock` would not have written, with the line of each flaw."""
    lines = reader.read(loaded.lock_path, LIMIT).decode("utf-8", "replace").splitlines()
    listed = [_located(flaw, loaded.lock_path, lines) for flaw in found[:_SHOWN]]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    hint = (
        f"if nobody meant to change it, take back the last change of {loaded.lock_path}\n"
        f"else make it again with `provision lock {quote(str(loaded.path))}`, which keeps the versions that the spec admits, and review the difference"
    )
    return LockError(f"{loaded.lock_path} is not what `provision lock` makes of {loaded.path}", why="\n".join([*listed, *more]), hint=hint)


def _located(flaw: Flaw, path: Path, lines: list[str]) -> str:
    number = next((number for number, line in enumerate(lines, 1) if flaw.line and line.lstrip().startswith(flaw.line)), None)
    return f"{path}{f':{number}' if number is not None else ''}: {flaw.part}: {flaw.what}"


def _salvaged(loaded: Loaded, reader: Reader) -> Salvage | None:
    return salvage(reader.read(loaded.lock_path, LIMIT).decode("utf-8", "replace"), loaded.spec)


def write_lock(loaded: Loaded, lock: Lock, world: World, tell: Tell) -> Path:
    """Write the lock beside the spec and return its path."""
    world.perform(WriteFile(loaded.lock_path, dumps(lock)), tell)
    return loaded.lock_path


def _because(names: frozenset[str], moved: tuple[str, ...], salvaged: Salvage | None) -> str:
    asked = [f"asked for: {', '.join(sorted(names))}"] if names else []
    label = "the spec moved: " if salvaged is None else ""
    return "; ".join([*asked, *([label + "; ".join(moved)] if moved else [])])


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
