"""Which programs run in an environment: each holds a file of its own, locked, for as long as it or one of its children lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_LIMIT = 300
FOLDER = "use"
"""In `.provision`, beside `envs`: use/ENVIRONMENT/PID."""


def hold(environment: Path, words: str) -> int | None:
    """Note that this process uses an environment; the descriptor it returns is handed on to programs that it starts or becomes.

    Returns None where the note cannot be written: a program is not kept from running for that.
    """
    path = _notes(environment) / str(os.getpid())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(held), path.stat()):
                break
            os.close(held)  # somebody took it for one that was left behind
        os.write(held, f"process {os.getpid()}: {words}".encode()[:_LIMIT])
    except OSError:
        return None
    os.set_inheritable(held, True)
    return held


def users(environment: Path) -> tuple[str, ...]:
    """Return who uses an environment, as "process PID: PROGRAM"; notes that nobody holds any more are removed."""
    folder, found = _notes(environment), []
    if folder.is_symlink() or folder.parent.is_symlink():
        return ()  # nothing is removed behind a link
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are enough
    except OSError:
        return ()
    for name in filter(str.isdigit, names):
        try:
            note = os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / name).unlink(missing_ok=True)
        except BlockingIOError:
            found.append(os.pread(note, _LIMIT, 0).decode("utf-8", "replace") or f"process {name}")
        finally:
            os.close(note)
    return tuple(found)


def _notes(environment: Path) -> Path:
    return environment.parent.parent / FOLDER / environment.name
