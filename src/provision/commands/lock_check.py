"""Lock checks without a network: what moved in the spec since its lock was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision import source
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.spec_paths import check_spec_name, lock_path
from provision.diagnostics import Severity
from provision.errors import ProvisionError
from provision.facts import load_facts
from provision.lock import Lock, compute_text_digest, loads

if TYPE_CHECKING:
    from provision.effects.system import Reader

MAX_LOCK_BYTES = 64 * 2**20
"""Longest lock in bytes."""


def list_lock_differences(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return what moved in the spec at `path` since its lock was made, () when the lock holds: no
    network, no resolving.

    A spec whose text has the same packages as then is not judged by the rules: that is for
    `lint`. Raises LockError when there is no usable lock, and
    all that loading a spec raises.
    """
    from provision.commands.lock import check_lock

    return check_lock(_load_if_text_unchanged(path, reader) or load_spec(path, reader), reader)


def _load_if_text_unchanged(path: Path, reader: Reader) -> LoadedSpec | None:
    """Return the spec without the findings of the rules when its lock was made of this very text,
    as far as it decides packages; else None.
    """
    try:
        check_spec_name(path, reader)
        first, *others = source.read_spec_file(path, reader)
        lock = read_lock_file(lock_path(path), reader)
    except ProvisionError:
        return None  # the whole way meets it again and raises it there
    if (
        lock is None
        or others
        or first.data is None
        or lock.text_digest != compute_text_digest(first.data)
    ):
        return None
    spec, problems = source.validate_source(first)
    if spec is None or any(
        found.severity is Severity.ERROR for found in (*first.diagnostics, *problems)
    ):
        return None
    return LoadedSpec(path, first, spec, load_facts(), ())


def read_lock_file(path: Path, reader: Reader) -> Lock | None:
    """Return the lock at `path`, or None when there is none; raises LockError when it is damaged."""  # noqa: E501
    return (
        loads(reader.read(path, MAX_LOCK_BYTES).decode("utf-8", "replace"), str(path))
        if reader.exists(path)
        else None
    )
