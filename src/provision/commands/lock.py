"""Resolve a spec into its lock file, or say whether the lock still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from provision.commands.lock_check import MAX_LOCK_BYTES, read_lock_file
from provision.commands.lock_upgrade import canonical_upgrade_names, remove_packages
from provision.commands.shared.load import LoadedSpec, SpecHasErrors, check_resolved
from provision.diagnostics import Diagnostic, RouteLocation, Severity
from provision.effects import ProgressCallback, Reader, System, WriteFile
from provision.errors import CondaUnsatisfiable, LockError, Refused, Unsatisfiable
from provision.lock import Lock, compute_text_digest, dumps, with_digest
from provision.lock.inputs import list_changed_inputs
from provision.lock.integrity import Flaw, find_contradictions
from provision.lock.resolve import resolve_spec
from provision.lock.salvage import (
    RepairSummary,
    SalvagedVersions,
    salvage_versions,
    summarize_repair,
)
from provision.lock.spec_agreement import find_disagreements
from provision.refusals import find_unlockable

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class LockResult:
    """A lock for a spec: `fresh` when it was resolved just now, `because` says why; `warnings` are
    the rules' words on the resolved set.

    `repair` says what became of the versions of a lock that could be read in part.
    """

    lock: Lock
    fresh: bool
    reason: str
    warnings: tuple[Diagnostic, ...]
    repair: RepairSummary | None = None


def read_lock(loaded: LoadedSpec, reader: Reader) -> Lock | None:
    """Return the lock beside the spec, or None when there is none; raises LockError when it is
    damaged or contradicts itself.
    """
    lock = read_lock_file(loaded.lock_path, reader)
    if lock is not None and (found := find_contradictions(lock)):
        raise _lock_error(loaded, found, reader)
    return lock


def check_lock(loaded: LoadedSpec, reader: Reader) -> tuple[str, ...]:
    """Return what moved since the lock was made, () when it holds: no network, no resolving.

    Raises LockError when there is no lock, or one that `provision lock` could not have written
    for the spec.
    """
    lock = read_lock_file(loaded.lock_path, reader)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path}",
            hint=f"make it with `provision lock {quote(str(loaded.path))}`",
        )
    _refuse_unavailable(loaded)
    moved = list_changed_inputs(loaded.spec, lock)
    if found := _find_flaws(loaded, lock, moved):
        raise _lock_error(loaded, found, reader)
    return moved


def ensure_lock(
    loaded: LoadedSpec,
    world: System,
    tell: ProgressCallback,
    *,
    upgrade: bool | frozenset[str] = False,
    frozen: bool = False,
    repair: bool = False,
) -> LockResult:
    """Return the lock that holds for the spec: the one on disk when it is current, else one
    resolved now (not written yet).

    `upgrade` has every version chosen anew, or those of the packages it names and what must move
    with them. `repair` makes a new lock in the place of one
    that is damaged or does not agree with the spec, with the versions that it names. Raises
    UsageError for a name that neither the spec nor its lock holds,
    Refused for what this version cannot lock, LockError when nothing resolves, when the lock on
    disk is damaged, or (`frozen`) missing or stale, Findings
    when the rules find an error in the resolved set.
    """
    _refuse_unavailable(loaded)
    salvaged: SalvagedVersions | None = None
    try:
        old = None if upgrade is True else read_lock_file(loaded.lock_path, world)
        moved = list_changed_inputs(loaded.spec, old) if old is not None else ()
        if old is not None and (found := _find_flaws(loaded, old, moved)):
            raise _lock_error(loaded, found, world)
    except LockError as error:
        salvaged = _salvage_lock(loaded, world) if repair else None
        if salvaged is None:
            raise
        old, moved = salvaged.keep, (error.what,)
    names = (
        canonical_upgrade_names(upgrade, loaded, old)
        if isinstance(upgrade, frozenset)
        else frozenset()
    )
    if old is not None and not moved and not names:
        return LockResult(old, False, "the lock holds", _check_lock_rules(loaded, old))
    because = (
        "asked for"
        if upgrade is True
        else "there is no lock yet"
        if old is None
        else _lock_reason(names, moved, salvaged)
    )
    if frozen:
        what = (
            f"there is no {loaded.lock_path}"
            if old is None
            else f"{loaded.lock_path} does not hold: {because}"
        )
        raise LockError(
            what, hint=f"run `provision lock {quote(str(loaded.path))}` and commit the lock"
        )
    tell(f"locking: {because}")
    try:
        lock = resolve_spec(
            loaded.spec,
            loaded.facts,
            world,
            tell,
            keep=remove_packages(old, names, loaded) if old is not None else None,
        )
    except LockError as error:
        raise _with_hints(loaded, error, world, tell) from error
    return LockResult(
        _with_text(loaded, lock),
        True,
        because,
        _check_lock_rules(loaded, lock),
        summarize_repair(salvaged, lock) if salvaged is not None else None,
    )


def _find_flaws(loaded: LoadedSpec, lock: Lock, moved: tuple[str, ...]) -> tuple[Flaw, ...]:
    """Return what is wrong with a lock; one that is stale is not compared with a spec that it was
    not made for.
    """
    return (
        find_contradictions(lock) if moved else find_disagreements(lock, loaded.spec, loaded.facts)
    )


def _lock_error(loaded: LoadedSpec, found: tuple[Flaw, ...], reader: Reader) -> LockError:
    """Return the error for a lock that `provision lock` would not have written, with the line of
    each flaw.
    """
    lines = reader.read(loaded.lock_path, MAX_LOCK_BYTES).decode("utf-8", "replace").splitlines()
    listed = [_flaw_line(flaw, loaded.lock_path, lines) for flaw in found[:_SHOWN]]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    hint = (
        f"if nobody meant to change it, take back the last change of {loaded.lock_path}\n"
        f"else make it again with `provision lock {quote(str(loaded.path))}`, which keeps "
        "the versions that the spec admits, and review the difference"
    )
    return LockError(
        f"{loaded.lock_path} is not what `provision lock` makes of {loaded.path}",
        why="\n".join([*listed, *more]),
        hint=hint,
    )


def _flaw_line(flaw: Flaw, path: Path, lines: list[str]) -> str:
    number = next(
        (
            number
            for number, line in enumerate(lines, 1)
            if flaw.line and line.lstrip().startswith(flaw.line)
        ),
        None,
    )
    return f"{path}{f':{number}' if number is not None else ''}: {flaw.part}: {flaw.what}"


def _salvage_lock(loaded: LoadedSpec, reader: Reader) -> SalvagedVersions | None:
    return salvage_versions(
        reader.read(loaded.lock_path, MAX_LOCK_BYTES).decode("utf-8", "replace"), loaded.spec
    )


def write_lock(loaded: LoadedSpec, lock: Lock, world: System, tell: ProgressCallback) -> Path:
    """Write the lock beside the spec and return its path."""
    world.perform(WriteFile(loaded.lock_path, dumps(lock)), tell)
    return loaded.lock_path


def _lock_reason(
    names: frozenset[str], moved: tuple[str, ...], salvaged: SalvagedVersions | None
) -> str:
    asked = [f"asked for: {', '.join(sorted(names))}"] if names else []
    label = "the spec moved: " if salvaged is None else ""
    return "; ".join([*asked, *([label + "; ".join(moved)] if moved else [])])


def _refuse_unavailable(loaded: LoadedSpec) -> None:
    for refusal in find_unlockable(loaded.spec):
        span = loaded.source.span(RouteLocation(refusal.route))
        position = f"{span.file}:{span.start.line}:{span.start.column}"
        raise Refused(f"{position}: this cannot be locked", why=refusal.why)


def _with_hints(
    loaded: LoadedSpec, error: LockError, world: System, tell: ProgressCallback
) -> LockError:
    from provision.commands.shared import (
        resolution_hints,
    )  # here: a lock that resolves does without the search

    asking = resolution_hints.find_conflicting_packages(loaded, error.why)
    found = (
        resolution_hints.find_relaxation(loaded, error.why, world, tell)
        if isinstance(error, Unsatisfiable) and not isinstance(error, CondaUnsatisfiable)
        else ""
    )
    lines = (
        *resolution_hints.locate_requirements(loaded, asking),
        *resolution_hints.locate_python_requirement(loaded, error.why),
    )
    hint = "\n".join([error.hint, *lines, *([found] if found else [])])
    return type(error)(error.what, why=error.why, hint=hint)


def _with_text(loaded: LoadedSpec, lock: Lock) -> Lock:
    return (
        with_digest(replace(lock, text_digest=compute_text_digest(loaded.source.data)))
        if loaded.source.data is not None
        else lock
    )


def _check_lock_rules(loaded: LoadedSpec, lock: Lock) -> tuple[Diagnostic, ...]:
    if (
        loaded.sandbox_sources is not None
    ):  # the rules spoke of the spec; nobody wrote its substitute
        return ()
    refused = {
        (d.id, d.where) for error in loaded.target_errors.values() for d in error.diagnostics
    }
    found = tuple(d for d in check_resolved(loaded, lock) if (d.id, d.where) not in refused)
    if any(d.severity is Severity.ERROR for d in found):
        raise SpecHasErrors(
            loaded.source, found, "the resolved set has errors; nothing was written"
        )
    known = {(d.id, d.where) for d in loaded.diagnostics}
    return tuple(
        d for d in found if (d.id, d.where) not in known
    )  # what the spec was told already needs no second telling
