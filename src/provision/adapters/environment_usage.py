"""Which programs run in an environment: each holds a file of its own, locked, for as long as it or
one of its children lives.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_LIMIT = 300
USE_FOLDER = "use"
"""In `.provision`, next to `envs`: use/ENVIRONMENT/PID."""


def mark_in_use(environment: Path, words: str) -> None:
    """Note that this process uses an environment, for as long as it, or a program that it starts or
    becomes, lives.

    Notes that nobody holds are removed. If the note cannot be written, the program runs without
    one.
    """
    folder = _use_folder(environment)
    path = folder / str(os.getpid())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_linked(folder):
            return
        for name in _names(folder):
            _remove_if_unlocked(folder / name)
        while True:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(held), path.stat()):
                break
            os.close(held)  # another program took it for one that nobody holds
        os.write(held, f"process {os.getpid()}: {words}".encode()[:_LIMIT])
    except OSError:
        return
    os.set_inheritable(held, True)


def list_users(environment: Path) -> tuple[str, ...]:
    """Return who uses an environment, as "process PID: PROGRAM"; changes nothing."""
    folder, found = _use_folder(environment), []
    for name in () if _is_linked(folder) else _names(folder):
        try:
            note = os.open(
                folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            )
        except OSError:
            continue
        try:
            fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(os.pread(note, _LIMIT, 0).decode("utf-8", "replace") or f"process {name}")
        finally:
            os.close(note)
    return tuple(found)


def _remove_if_unlocked(path: Path) -> None:
    try:
        note = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # a link, or gone meanwhile
        return
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return
    finally:
        os.close(note)


def _names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.isdigit()) if folder.is_dir() else []  # noqa: PTH208


def _is_linked(folder: Path) -> bool:
    """Tell whether the notes lie behind a link: nothing is written or removed there."""
    return folder.is_symlink() or folder.parent.is_symlink()


def _use_folder(environment: Path) -> Path:
    return environment.parent.parent / USE_FOLDER / environment.name
