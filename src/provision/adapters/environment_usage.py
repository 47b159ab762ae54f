"""The programs that run in an environment: each locks a file of its own while it lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_LIMIT = 300
USE_FOLDER = "use"
"""In `.provision`, next to `envs`: use/ENVIRONMENT/PID."""


def mark_in_use(environment: Path, program: str) -> None:
    """Mark an environment as used while this process or a program that it starts lives.

    Marks of dead processes are removed. If the mark cannot be written, the program runs without it.
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
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                break
            os.close(descriptor)  # another program took it for one that nobody holds
        os.write(descriptor, f"process {os.getpid()}: {program}".encode()[:_LIMIT])
    except OSError:
        return
    os.set_inheritable(descriptor, True)


def list_users(environment: Path) -> tuple[str, ...]:
    """Return the programs that use an environment, as "process PID: PROGRAM"; changes nothing."""
    folder, users = _use_folder(environment), []
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
            users.append(os.pread(note, _LIMIT, 0).decode("utf-8", "replace") or f"process {name}")
        finally:
            os.close(note)
    return tuple(users)


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
    """Return whether the marks are behind a link: then nothing is written or removed there."""
    return folder.is_symlink() or folder.parent.is_symlink()


def _use_folder(environment: Path) -> Path:
    return environment.parent.parent / USE_FOLDER / environment.name
