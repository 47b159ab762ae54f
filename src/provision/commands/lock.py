"""Resolves a spec into its lock file, or checks that the lock is current."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from provision.commands.lock_upgrade import CODE, canonical_upgrade_names, remove_packages
from provision.commands.shared.code_lock import lock_code
from provision.commands.shared.load import LoadedSpec, SpecHasErrors, check_resolved
from provision.commands.shared.lock_file import (
    flawed_lock_error,
    missing_lock_error,
    read_lock_file,
    read_lock_text,
)
from provision.commands.shared.package_origins import list_changed_origins, read_origins
from provision.commands.shared.sandbox_lock import describe_other_versions, read_declared_lock
from provision.diagnostics import Diagnostic, Severity
from provision.effects.local import WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import CondaUnsatisfiable, LockError, Refused, Unsatisfiable
from provision.lock import Lock, LockedPackage, compute_text_digest, dumps, with_digest
from provision.lock.inputs import list_changed_inputs
from provision.lock.integrity import find_lock_flaws
from provision.lock.resolve import resolve_spec
from provision.lock.salvage import (
    RepairSummary,
    SalvagedVersions,
    salvage_versions,
    summarize_repair,
)
from provision.lock.spec_agreement import find_disagreements
from provision.spelling import pluralize
from provision.target_facts import find_unlockable

_MAX_NAMES = 8
"""Packages that the warning about unconfirmed hashes names."""


@dataclass(frozen=True, slots=True)
class LockResult:
    """A lock for a spec.

    Attributes:
        path: The file of the lock.
        fresh: The lock was made now, for `reason`, and is not written yet.
        warnings: The findings on the spec and on the resolved set.
        repair: The fate of the versions of a lock that could be read in part.
    """

    lock: Lock
    path: Path
    fresh: bool
    reason: str
    warnings: tuple[Diagnostic, ...]
    repair: RepairSummary | None = None

    @property
    def change(self) -> str:
        """The line of a plan about a lock that is written anew; "" for one that is kept."""
        if not self.fresh:
            return ""
        return (
            f"{self.path}: {pluralize(len(self.lock.packages), 'package')} locked ({self.reason})"
        )

    @property
    def unconfirmed(self) -> tuple[LockedPackage, ...]:
        """The packages whose hashes nothing has confirmed."""
        return tuple(package for package in self.lock.packages if package.unconfirmed)

    @property
    def unconfirmed_note(self) -> str:
        """A warning that names the unconfirmed packages; "" without one."""
        names = [f"{package.name} {package.version}" for package in self.unconfirmed]
        if not names:
            return ""
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        return (
            "warning: the hashes of these packages come from files on this machine, and no "
            f"index or other source has confirmed them: {', '.join(names[:_MAX_NAMES])}{more}"
        )


def check_lock(loaded: LoadedSpec, reader: Reader) -> tuple[str, ...]:
    """Return the changes of the spec since the lock was made, without network or resolving.

    Raises:
        LockError: there is no lock, or one that `provision lock` could not have written for the
            spec.
    """
    _refuse_unlockable(loaded)
    lock, changes = _read_checked_lock(loaded, reader)
    if lock is None:
        raise missing_lock_error(loaded)
    return changes


def ensure_lock(
    loaded: LoadedSpec,
    system: System,
    progress: ProgressCallback,
    *,
    upgrade: bool | frozenset[str] = False,
    frozen: bool = False,
    repair: bool = False,
) -> LockResult:
    """Return the lock on disk if it is current, else one resolved now (not written yet).

    Args:
        loaded: the spec.
        system: resolves and reads.
        progress: called with each line for people.
        upgrade: choose every version anew, or those of the named packages and what must move
            with them.
        frozen: never resolve.
        repair: replace a lock that is damaged or does not agree with the spec, keeping the
            versions that it names.

    Raises:
        UsageError: a name in `upgrade` is neither in the spec nor in its lock.
        Refused: this version cannot lock the spec.
        LockError: nothing resolves, the lock on disk is damaged, or (`frozen`) missing or stale.
        SpecHasErrors: the rules find an error in the resolved set.
    """
    _refuse_unlockable(loaded)
    existing = _ExistingLock(None, ())
    if upgrade is not True:
        existing = _read_existing(loaded, system, repair=repair)
    old, changes = existing.lock, existing.changes
    declared = read_declared_lock(loaded, system)
    others = describe_other_versions(loaded, old, declared) if old is not None else ""
    names: frozenset[str] = frozenset()
    if isinstance(upgrade, frozenset):
        names = canonical_upgrade_names(upgrade, loaded, old)
    if old is not None and not changes and not names and not others:
        warnings = _check_lock_rules(loaded, old)
        return LockResult(old, loaded.lock_path, False, "the lock is up to date", warnings)
    reason = "upgrade requested" if upgrade is True else _lock_reason(names, existing, others)
    if frozen:
        raise _frozen_lock_error(loaded, old, reason)
    progress(f"locking: {reason}")
    keep = declared
    if keep is None and old is not None:
        keep = remove_packages(old, names, loaded)
    lock = _resolve(loaded, keep, system, progress, keeps_code=CODE not in names)
    summary = None
    if existing.salvaged is not None:
        summary = summarize_repair(existing.salvaged, lock)
    warnings = _check_new_lock(loaded, lock, system, progress)
    lock = _with_text_digest(loaded, lock)
    if others := describe_other_versions(loaded, lock, declared):
        progress(f"SANDBOX: {others}: the sandbox could not resolve these versions")
    if declared is not None and old is not None and dumps(lock) == dumps(old):
        return LockResult(lock, loaded.lock_path, False, "the lock is up to date", warnings)
    return LockResult(lock, loaded.lock_path, True, reason, warnings, summary)


def _resolve(
    loaded: LoadedSpec,
    keep: Lock | None,
    system: System,
    progress: ProgressCallback,
    *,
    keeps_code: bool,
) -> Lock:
    """Return a new lock, with the versions of `keep` that still fit, and its commit of `code`."""
    try:
        code = lock_code(loaded, keep if keeps_code else None, system, progress)
        origins = read_origins(loaded, keep, system, progress)
        lock = resolve_spec(loaded.spec, loaded.facts, system, progress, keep=keep, origins=origins)
    except LockError as error:
        raise _with_hints(loaded, error, system, progress) from error
    return lock if code is None else with_digest(replace(lock, code=code))


def _frozen_lock_error(loaded: LoadedSpec, old: Lock | None, reason: str) -> LockError:
    problem = f"{loaded.lock_path} is out of date: {reason}"
    if old is None:
        problem = f"there is no {loaded.lock_path}"
    return LockError(problem, hint=f"run `{loaded.command('lock')}` and commit the lock")


class _ExistingLock(NamedTuple):
    """The lock on disk and the changes of the spec since it was made, or what is left of it."""

    lock: Lock | None
    changes: tuple[str, ...]
    salvaged: SalvagedVersions | None = None


def _read_existing(loaded: LoadedSpec, reader: Reader, *, repair: bool) -> _ExistingLock:
    try:
        return _ExistingLock(*_read_checked_lock(loaded, reader))
    except LockError as error:
        salvaged = None
        if repair:
            salvaged = salvage_versions(read_lock_text(loaded.lock_path, reader), loaded.spec)
        if salvaged is None:
            raise
        return _ExistingLock(salvaged.keep, (error.what,), salvaged)


def _read_checked_lock(loaded: LoadedSpec, reader: Reader) -> tuple[Lock | None, tuple[str, ...]]:
    """Return the lock on disk, and the changes of the spec since it was made.

    Raises:
        LockError: it is damaged or contradicts itself, or it is current and disagrees with the
            spec.
    """
    lock = read_lock_file(loaded, reader)
    if lock is None:
        return None, ()
    changes = list_changed_inputs(loaded.spec, lock)
    if not changes:
        changes = list_changed_origins(loaded, lock, reader)
    if changes:
        flaws = find_lock_flaws(lock)
    else:
        flaws = find_disagreements(lock, loaded.spec, loaded.facts)
    if flaws:
        raise flawed_lock_error(loaded, flaws, reader)
    return lock, changes


def write_lock(locked: LockResult, system: System, progress: ProgressCallback) -> None:
    """Write the lock next to the spec."""
    system.perform(WriteFile(locked.path, dumps(locked.lock)), progress)


def _lock_reason(names: frozenset[str], existing: _ExistingLock, others: str) -> str:
    if existing.lock is None:
        return "there is no lock yet"
    reasons = [others] if others else []
    reasons += [f"upgrade requested: {', '.join(sorted(names))}"] if names else []
    if existing.changes:
        label = "the spec changed: " if existing.salvaged is None else ""
        reasons.append(label + "; ".join(existing.changes))
    return "; ".join(reasons)


def _refuse_unlockable(loaded: LoadedSpec) -> None:
    for refusal in find_unlockable(loaded.spec):
        position = loaded.position(*refusal.route)
        raise Refused(f"{position}: the spec cannot be locked", why=refusal.why)


def _with_hints(
    loaded: LoadedSpec, error: LockError, system: System, progress: ProgressCallback
) -> LockError:
    # Imported here: a lock that resolves does not need the search.
    from provision.commands.shared import resolution_hints

    conflicting = resolution_hints.find_conflicting_packages(loaded, error.why)
    relaxation = ""
    if isinstance(error, Unsatisfiable) and not isinstance(error, CondaUnsatisfiable):
        relaxation = resolution_hints.find_relaxation(loaded, error.why, system, progress)
    hints = [
        error.hint,
        *resolution_hints.list_lookalikes(loaded, conflicting),
        *resolution_hints.locate_requirements(loaded, conflicting),
        *resolution_hints.locate_python_requirement(loaded, error.why),
    ]
    if relaxation:
        hints.append(relaxation)
    return type(error)(error.what, why=error.why, hint="\n".join(hints))


def _with_text_digest(loaded: LoadedSpec, lock: Lock) -> Lock:
    data = loaded.source.data
    if data is None:
        return lock
    return with_digest(replace(lock, text_digest=compute_text_digest(data)))


def _check_new_lock(
    loaded: LoadedSpec, lock: Lock, system: System, progress: ProgressCallback
) -> tuple[Diagnostic, ...]:
    """Return the same as `_check_lock_rules`; errors name the lines that exclude newer releases."""
    try:
        return _check_lock_rules(loaded, lock)
    except SpecHasErrors as error:
        # Imported here: a lock without errors does not need it.
        from provision.commands.shared.old_releases import explain_old_releases

        raise explain_old_releases(loaded, lock, error, system, progress) from error


def _check_lock_rules(loaded: LoadedSpec, lock: Lock) -> tuple[Diagnostic, ...]:
    """Return the findings on the spec, and those on the resolved set that are not among them.

    Raises:
        SpecHasErrors: an error that is not one of a single, refused target.
    """
    if loaded.sandbox_sources is not None:  # nobody wrote the spec that is locked in a sandbox
        return loaded.diagnostics
    refused = {
        (diagnostic.id, diagnostic.where)
        for error in loaded.target_errors.values()
        for diagnostic in error.diagnostics
    }
    known = {(diagnostic.id, diagnostic.where) for diagnostic in loaded.diagnostics}
    diagnostics = tuple(
        diagnostic
        for diagnostic in check_resolved(loaded, lock)
        if (diagnostic.id, diagnostic.where) not in refused
    )
    if any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics):
        raise SpecHasErrors(
            loaded.source, diagnostics, "the resolved packages have errors; nothing was written"
        )
    fresh = [item for item in diagnostics if (item.id, item.where) not in known]
    return (*loaded.diagnostics, *fresh)
