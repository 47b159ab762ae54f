"""Compares another lock with the spec's own: differences, findings, and consequences."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from pathlib import Path

from provision.commands.shared.load import LoadedSpec, check_resolved
from provision.commands.shared.lock_file import (
    MAX_LOCK_BYTES,
    missing_lock_error,
    read_lock_file,
)
from provision.diagnostics import Diagnostic, Severity
from provision.effects.system import Reader
from provision.errors import LockError, ProvisionError, UsageError
from provision.facts import torch_upgrade
from provision.facts.torch_upgrade import Implication, TorchVariant
from provision.facts.versions import parse_version
from provision.lock import Lock, LockedEnvironment, loads
from provision.lock.diff import Consequence, LockReview, diff_locks
from provision.lock.inputs import name_default_target
from provision.rules import LintContext

_FLAVOUR = re.compile(r"cpu|cu\d{3,4}")
_NUMBERS = re.compile(r"\d+(\.\d+)*(\+\w+)?")
_RANKS = list(Severity)
_OLD_LOCK_HINT = (
    "use a lock that this version of provision can read, as in: git show main:SPEC.lock | "
    "provision lock SPEC.yaml --diff -"
)


def read_old_lock(path: Path | None, piped: bytes, reader: Reader) -> tuple[str, Lock]:
    """Return the older lock with its name for messages, from `piped` if `path` is None.

    Raises:
        ExternalError: the file cannot be read.
        UsageError: standard input is empty.
        LockError: it is not a lock, damaged, or of another version.
    """
    name = str(path) if path is not None else "the lock on standard input"
    try:
        content = reader.read(path, MAX_LOCK_BYTES) if path is not None else piped
        if len(content) > MAX_LOCK_BYTES:
            raise LockError(f"{name} is larger than {MAX_LOCK_BYTES >> 20} MiB")
        if path is None and not content.strip():
            why = "--diff - reads the older lock from standard input"
            raise UsageError("standard input is empty", why=why)
        return name, loads(content.decode("utf-8", "replace"), name)
    except ProvisionError as error:
        error.hint = _OLD_LOCK_HINT
        raise


def read_new_lock(loaded: LoadedSpec, reader: Reader) -> Lock:
    """Return the lock next to the spec; raises LockError if it is missing or damaged."""
    lock = read_lock_file(loaded, reader)
    if lock is None:
        raise missing_lock_error(loaded)
    return lock


def review_lock_changes(loaded: LoadedSpec, old: Lock, new: Lock, name: str) -> LockReview:
    """Return the differences from `old` (called `name`) to `new`.

    The rules run on both sets of versions with the current spec.
    """
    old = name_default_target(old, loaded.spec)
    before, after = _check_locked_set(loaded, old), _check_locked_set(loaded, new)
    context = LintContext(loaded.spec, loaded.source, loaded.facts)
    return LockReview(
        name,
        str(loaded.lock_path),
        diff_locks(old, new),
        tuple(_list_consequences(context, old, new)),
        _implications_for_other_cards(context, old, new),
        tuple(after[key] for key in after if key not in before),
        tuple(before[key] for key in before if key not in after),
    )


def _check_locked_set(loaded: LoadedSpec, lock: Lock) -> dict[Hashable, Diagnostic]:
    """Return the findings in a lock from anywhere, without its invalid versions.

    The keys are equal for findings that differ in versions alone.
    """
    if parse_version(lock.python) is None or not all(
        environment.flavour is None or _FLAVOUR.fullmatch(environment.flavour)
        for environment in lock.environments
    ):
        return {}
    packages = [item for item in lock.packages if parse_version(item.version) is not None]
    return {
        (item.id, item.severity, item.where, _NUMBERS.sub("#", item.message)): item
        for item in check_resolved(loaded, replace(lock, packages=tuple(packages)))
    }


def _list_consequences(context: LintContext, old: Lock, new: Lock) -> Iterator[Consequence]:
    names_by_implication: dict[Implication, list[str]] = {}
    for meaning in torch_upgrade.python_implications(old.python, new.python, context.facts):
        names_by_implication[meaning] = []
    for target in context.targets:
        for was, now in _torch_changes(target.name, old, new):
            meanings = list(torch_upgrade.torch_python_implications(was, now, context.facts))
            if target.gpu_settings.is_nvidia:
                driver, provider = None, ""
                if target.driver is not None:
                    driver, provider = target.driver.value, target.driver.provider
                meanings += torch_upgrade.driver_implications(
                    was, now, context.facts, driver, provider
                )
                if target.card is not None:
                    meanings += torch_upgrade.card_implications(
                        target.card, was, now, context.facts
                    )
            for meaning in meanings:
                names_by_implication.setdefault(meaning, []).append(target.name)
    for meaning, names in sorted(
        names_by_implication.items(), key=lambda item: _RANKS.index(item[0].severity)
    ):
        yield Consequence(meaning, tuple(dict.fromkeys(names)))


def _implications_for_other_cards(
    context: LintContext, old: Lock, new: Lock
) -> tuple[Implication, ...]:
    named = frozenset(target.card.name for target in context.targets if target.card is not None)
    implications: dict[Implication, None] = {}
    for target in context.targets:
        for was, now in _torch_changes(target.name, old, new):
            others = torch_upgrade.other_card_implications(named, was, now, context.facts)
            implications |= dict.fromkeys(others)
    return tuple(implications)


def _torch_changes(
    target: str, old: Lock, new: Lock
) -> Iterator[tuple[TorchVariant, TorchVariant]]:
    """Yield the torch of a target before and after, on each platform on which it differs."""
    for platform in sorted({environment.platform for environment in new.environments}):
        was, now = (_torch_variant(lock, lock.environment(target, platform)) for lock in (old, new))
        if was is not None and now is not None and was != now:
            yield was, now


def _torch_variant(lock: Lock, environment: LockedEnvironment | None) -> TorchVariant | None:
    torch = lock.versions(environment).get("torch") if environment is not None else None
    if environment is None or torch is None or not _FLAVOUR.fullmatch(environment.flavour or ""):
        return None
    return TorchVariant(torch, str(environment.flavour), environment.platform)
