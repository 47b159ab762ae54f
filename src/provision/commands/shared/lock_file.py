"""Reads the lock file next to a spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import LockError
from provision.lock import Lock, loads
from provision.lock.inputs import list_changed_inputs, name_default_target
from provision.lock.integrity import Flaw, find_lock_flaws

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import Reader

MAX_LOCK_BYTES = 64 * 2**20
"""Size of the largest lock in bytes."""
_SHOWN = 8
"""Flaws of a lock that are listed. Our choice."""


def read_lock_file(loaded: LoadedSpec, reader: Reader) -> Lock | None:
    """Return the lock next to the spec as it is written, None if there is none.

    Raises:
        LockError: it is damaged.
    """
    path = loaded.lock_path
    if not reader.exists(path):
        return None
    return name_default_target(loads(read_lock_text(path, reader), str(path)), loaded.spec)


def read_lock(loaded: LoadedSpec, reader: Reader) -> Lock | None:
    """Return the lock next to the spec, None if there is none.

    Raises:
        LockError: it is damaged or contradicts itself.
    """
    lock = read_lock_file(loaded, reader)
    flaws = find_lock_flaws(lock) if lock is not None else ()
    if flaws:
        raise flawed_lock_error(loaded, flaws, reader)
    return lock


def require_lock(loaded: LoadedSpec, reader: Reader, *, hint: str = "") -> Lock:
    """Return the lock next to the spec.

    Raises:
        LockError: it is missing, damaged or contradicts itself.
    """
    lock = read_lock(loaded, reader)
    if lock is None:
        raise missing_lock_error(loaded, hint)
    return lock


def missing_lock_error(loaded: LoadedSpec, hint: str = "") -> LockError:
    """Return the error for a spec without a lock."""
    hint = hint or f"create it with `{loaded.command('lock')}`"
    return LockError(f"there is no {loaded.lock_path}", hint=hint)


def require_current_lock(
    loaded: LoadedSpec, reader: Reader, *, product: str = "lock", hint: str = ""
) -> Lock:
    """Return the lock next to the spec; `product` names what was made with it.

    Raises:
        LockError: it is missing or damaged, or the spec has changed since.
    """
    lock = require_lock(loaded, reader, hint=hint)
    if changes := list_changed_inputs(loaded.spec, lock):
        raise LockError(
            f"the spec has changed since the {product} was created",
            why="; ".join(changes),
            hint=hint or f"update it with `{loaded.command('lock')}`",
        )
    return lock


def flawed_lock_error(loaded: LoadedSpec, flaws: tuple[Flaw, ...], reader: Reader) -> LockError:
    """Return the error for a lock that `provision lock` would not have written."""
    path = loaded.lock_path
    lines = read_lock_text(path, reader).splitlines()
    listed = [_flaw_line(flaw, path, lines) for flaw in flaws[:_SHOWN]]
    if len(flaws) > _SHOWN:
        listed.append(f"and {len(flaws) - _SHOWN} more")
    hint = (
        f"if you did not intend the change, restore the previous version of {path}\n"
        f"otherwise write the lock again with `{loaded.command('lock')}`, which keeps the "
        "versions that the spec allows, and review the differences"
    )
    return LockError(
        f"{path} differs from what `provision lock` writes for {loaded.path}",
        why="\n".join(listed),
        hint=hint,
    )


def _flaw_line(flaw: Flaw, path: Path, lines: list[str]) -> str:
    position = str(path)
    for number, line in enumerate(lines, 1):
        if flaw.line and line.lstrip().startswith(flaw.line):
            position = f"{path}:{number}"
            break
    return f"{position}: {flaw.part}: {flaw.what}"


def read_lock_text(path: Path, reader: Reader) -> str:
    """Return the text of a lock file, whatever its bytes are."""
    return reader.read(path, MAX_LOCK_BYTES).decode("utf-8", "replace")
