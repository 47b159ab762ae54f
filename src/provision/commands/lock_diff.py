"""Compare another lock with the one beside the spec: what differs, what the rules make of it, and
what the facts say follows for the spec's cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from provision.commands.lock_check import MAX_LOCK_BYTES, read_lock_file
from provision.commands.shared.load import LoadedSpec, check_resolved
from provision.diagnostics import Diagnostic, Location, Severity
from provision.effects.system import Reader
from provision.errors import ExternalError, LockError, UsageError
from provision.facts import torch_upgrade
from provision.facts.torch_upgrade import Implication, TorchVariant
from provision.facts.versions import parse_version
from provision.lock import Lock, LockedEnvironment, loads
from provision.lock.diff import Consequence, LockReview, diff_locks
from provision.rules import LintContext

_FLAVOUR = re.compile(r"cpu|cu\d{3,4}")
_NUMBERS = re.compile(r"\d+(\.\d+)*(\+\w+)?")
_RANKS = list(Severity)
_OLD_LOCK_HINT = (
    "give a lock that this version can read, as in: git show main:SPEC.lock | provision lock "
    "SPEC.yaml --diff -"
)


def read_old_lock(path: Path | None, given: bytes, reader: Reader) -> tuple[str, Lock]:
    """Return how messages call the older lock, and the lock: the file at `path`, or the bytes that
    were given where it is None.

    Raises WorldError when it cannot be read, UsageError when nothing was given, LockError when
    it is no lock, damaged, or of another version.
    """
    name = str(path) if path is not None else "the lock on standard input"
    try:
        content = reader.read(path, MAX_LOCK_BYTES) if path is not None else given
    except ExternalError as error:
        raise ExternalError(error.what, why=error.why, hint=_OLD_LOCK_HINT) from None
    if len(content) > MAX_LOCK_BYTES:
        raise LockError(f"{name} is longer than {MAX_LOCK_BYTES} bytes", hint=_OLD_LOCK_HINT)
    if path is None and not content.strip():
        raise UsageError(
            "standard input is empty",
            why="--diff - reads the older lock from it",
            hint=_OLD_LOCK_HINT,
        )
    try:
        lock = loads(content.decode("utf-8", "replace"), name)
    except LockError as error:
        raise LockError(error.what, why=error.why, hint=_OLD_LOCK_HINT) from None
    return name, lock


def read_new_lock(loaded: LoadedSpec, reader: Reader) -> Lock:
    """Return the lock beside the spec; raises LockError when there is none, or it is damaged."""
    lock = read_lock_file(loaded.lock_path, reader)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path} to compare with",
            hint=f"make it with `provision lock {loaded.path}`",
        )
    return lock


def review_lock_changes(loaded: LoadedSpec, old: Lock, new: Lock, name: str) -> LockReview:
    """Return what differs from `old`, which messages call `name`, to `new`; the rules are asked of
    both sets of versions with the spec as it is now.
    """
    before, after = _check_locked_set(loaded, old), _check_locked_set(loaded, new)
    case = LintContext(loaded.spec, loaded.source, loaded.facts)
    return LockReview(
        name,
        str(loaded.lock_path),
        diff_locks(old, new),
        tuple(_list_consequences(case, old, new)),
        tuple(_implications_for_other_cards(case, old, new)),
        _without_common(after, before),
        _without_common(before, after),
    )


def _check_locked_set(loaded: LoadedSpec, lock: Lock) -> tuple[Diagnostic, ...]:
    """Return what the rules find in a lock, without what no lock of ours could hold: an older lock
    may come from anywhere.
    """
    if parse_version(lock.python) is None or not all(
        environment.flavour is None or _FLAVOUR.fullmatch(environment.flavour)
        for environment in lock.environments
    ):
        return ()
    known = tuple(
        package for package in lock.packages if parse_version(package.version) is not None
    )
    return check_resolved(loaded, replace(lock, packages=known))


def _without_common(
    these: Iterable[Diagnostic], others: Iterable[Diagnostic]
) -> tuple[Diagnostic, ...]:
    """Return the findings that are not among the others. One that says the same of another version
    is the same finding.
    """
    known = {_key(finding) for finding in others}
    return tuple(finding for finding in these if _key(finding) not in known)


def _key(finding: Diagnostic) -> tuple[str, Severity, Location, str]:
    return finding.id, finding.severity, finding.where, _NUMBERS.sub("#", finding.message)


def _list_consequences(case: LintContext, old: Lock, new: Lock) -> Iterator[Consequence]:
    found: dict[Implication, list[str]] = {}
    for meaning in torch_upgrade.python_implications(old.python, new.python, case.facts):
        found[meaning] = []
    for site in case.targets:
        for was, now in _torch_changes(site.name, old, new):
            meanings = list(torch_upgrade.torch_python_implications(was, now, case.facts))
            if site.gpu_settings.is_nvidia:
                driver, by = (
                    (site.driver.value, site.driver.provider) if site.driver else (None, "")
                )
                meanings += [*torch_upgrade.driver_implications(was, now, case.facts, driver, by)]
                meanings += (
                    [*torch_upgrade.card_implications(site.card, was, now, case.facts)]
                    if site.card
                    else []
                )
            for meaning in meanings:
                found.setdefault(meaning, []).append(site.name)
    for meaning, names in sorted(found.items(), key=lambda item: _RANKS.index(item[0].severity)):
        yield Consequence(meaning, tuple(dict.fromkeys(names)))


def _implications_for_other_cards(case: LintContext, old: Lock, new: Lock) -> Iterator[Implication]:
    named = frozenset(site.card.name for site in case.targets if site.card is not None)
    moves = (move for site in case.targets for move in _torch_changes(site.name, old, new))
    yield from dict.fromkeys(
        meaning
        for was, now in moves
        for meaning in torch_upgrade.other_card_implications(named, was, now, case.facts)
    )


def _torch_changes(
    target: str, old: Lock, new: Lock
) -> Iterator[tuple[TorchVariant, TorchVariant]]:
    """Yield the torch of a target before and after, on each platform that has another one now."""
    for platform in sorted({environment.platform for environment in new.environments}):
        was, now = (_built(lock, lock.environment(target, platform)) for lock in (old, new))
        if was is not None and now is not None and was != now:
            yield was, now


def _built(lock: Lock, environment: LockedEnvironment | None) -> TorchVariant | None:
    torch = lock.versions(environment).get("torch") if environment is not None else None
    if environment is None or torch is None or not _FLAVOUR.fullmatch(environment.flavour or ""):
        return None
    return TorchVariant(torch, str(environment.flavour), environment.platform)
