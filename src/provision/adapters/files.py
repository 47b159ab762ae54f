"""Reads files with limits, and writes them in one step: whole, or unchanged."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import hashlib
import itertools
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision.errors import ExternalError
from provision.spelling import did_you_mean

PROVISION_FOLDER = ".provision"
_MAX_NAMES = 2000
"""Names of a folder that are compared with a missing one, which takes 10 ms (our choice)."""
_SPACE_HINT = "free some space and run the command again; it continues where it stopped"
_REASONS = {
    errno.ENOSPC: ("the disk is full", _SPACE_HINT),
    errno.EDQUOT: ("the disk quota is used up", _SPACE_HINT),
    errno.EROFS: (
        "the file system is read-only",
        "choose a writable file or folder; if it is next to the spec, move the spec",
    ),
    errno.EACCES: ("permission denied", "check the owner and mode of this path"),
    errno.EPERM: ("not permitted", "check the owner and mode of this path"),
    errno.ENOTDIR: ("part of the path is a file, not a folder", "remove or rename that file"),
    errno.EEXIST: (
        "it already exists",
        "move it out of the way, or choose a different path",
    ),
    errno.EISDIR: ("it is a folder", "use the path of a file, or move the folder out of the way"),
    errno.ELOOP: (
        os.strerror(errno.ELOOP),
        "point the link to a file, or use the path of the file itself",
    ),
}


@contextlib.contextmanager
def wrap_os_errors(operation: str, path: Path) -> Iterator[None]:
    """Turn an OSError into an ExternalError with the operation, the path, the reason and a hint."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        hint = ""
        if operation == "write" and error.errno == errno.ENOENT:
            hint = "create the parent folder first, or choose a different path"
        if operation == "read" and error.errno == errno.ENOENT:
            hint = _suggest_similar_name(path)
        why, hint = _REASONS.get(error.errno or 0, (why, hint))
        if operation == "read" and error.errno == errno.EISDIR:
            hint = (
                "use the path of a regular file; rename or move what is at this path if it "
                "is in the way"
            )
        raise ExternalError(f"cannot {operation} {path}", why=why, hint=hint) from error


def _suggest_similar_name(path: Path) -> str:
    """Return the question whether a file with a similar name was meant, "" if there is none."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MAX_NAMES)]
    except OSError:
        return ""
    hidden = path.name.startswith(".")
    return did_you_mean(path.name, (name for name in names if name.startswith(".") == hidden))


def format_limit(count: int) -> str:
    """Return a limit in bytes for people, such as "8 MiB"."""
    if count < 2**20:
        return f"{count >> 10} KiB" if count >= 2**10 else f"{count} bytes"
    return f"{count >> 20} MiB"


def user_cache_folder(environment: Mapping[str, str]) -> Path:
    """Return our folder in the user's cache.

    A relative XDG_CACHE_HOME is ignored (https://specifications.freedesktop.org/basedir-spec/latest/).
    """
    root = Path(environment.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():
        root = Path(environment.get("HOME") or Path.home()) / ".cache"
    return root / "provision"


def read(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; raises ExternalError."""
    with wrap_os_errors("read", path):
        if not stat.S_ISREG(mode := path.stat().st_mode):
            why = "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file"
            raise ExternalError(
                f"cannot read {path}",
                why=why,
                hint="use the path of a regular file; rename or move what is at this path if "
                "it is in the way",
            )
        with path.open("rb") as file:
            content = file.read(limit + 1)
    if len(content) > limit:
        raise ExternalError(
            f"cannot read {path}",
            why=f"it is larger than {format_limit(limit)}",
            hint="check the path",
        )
    return content


def write(path: Path, content: str | bytes, mode: int | None) -> None:
    """Write a file by temporary file, fsync and rename.

    Raises:
        ExternalError: it could not be written; the old content stays.
    """
    with wrap_os_errors("write", path):
        if path.is_dir() and not path.is_symlink():
            # A rename onto "." fails with "busy".
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode is None:
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make a rename in a folder survive a power failure, if the file system can sync folders."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folder(path: Path, mode: int) -> None:
    """Create a folder and its parents; raises ExternalError."""
    with wrap_os_errors("create the folder", path):
        path.mkdir(parents=True, exist_ok=True, mode=mode)


def set_symlink(path: Path, target: str) -> None:
    """Create a symbolic link in one step, in place of an older link.

    Raises:
        ExternalError: something that is not a link exists there.
    """
    if path.exists() and not path.is_symlink():
        raise ExternalError(
            f"cannot create the link {path}",
            why="it already exists and is not a link",
            hint="move it out of the way",
        )
    with wrap_os_errors("create the link", path):
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        fresh.symlink_to(target)
        fresh.replace(path)


def create_symlink(path: Path, target: str, instead_of: str) -> None:
    """Create a symbolic link among files of others.

    Nothing that exists is replaced, except a link to `instead_of`; raises ExternalError.
    """
    with wrap_os_errors("create the link", path):
        if (target_now := read_symlink(path)) == target:
            return
        if target_now is not None and target_now == instead_of:
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)  # fails where anything is: another program may have been faster


def read_symlink(path: Path) -> str | None:
    """Return the target of a symbolic link, None if it is not one."""
    try:
        return str(path.readlink())
    except OSError:
        return None


def remove_symlink(path: Path, target: str, *, dead: bool) -> bool:
    """Remove a link to `target`; return False if something else is there, which stays.

    With `dead`, a link whose target exists stays too; raises ExternalError.
    """
    with wrap_os_errors("remove", path):
        if not os.path.lexists(path):
            return True
        if read_symlink(path) != target or (dead and path.exists()):
            return False
        path.unlink()
    return True


def move(path: Path, to: Path) -> None:
    """Move a file, or a link itself, on the same disk; raises ExternalError."""
    with wrap_os_errors("move", path), contextlib.suppress(FileNotFoundError):
        path.replace(to)


def remove_tree(path: Path, *, in_background: bool = False) -> None:
    """Remove a file, a link or a folder with its content; raises ExternalError.

    Links inside are removed, never followed. Below a folder `.provision`, nothing behind a link is
    removed either, since it is not ours. With `in_background`, a folder is renamed at once, and a
    thread removes its content: see `await_removals`.
    """
    with wrap_os_errors("remove", path):
        try:
            parent = _open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            _doom_entry(parent, path.name)
            if in_background:
                _start_removal(os.dup(parent), path.name)
                return
            _remove_doomed(parent, path.name, sweep=PROVISION_FOLDER in path.parts)
        finally:
            os.close(parent)


_removals: list[threading.Thread] = []


def await_removals() -> None:
    """Wait until all removals in the background are done. May block for seconds."""
    while _removals:
        _removals.pop().join()


def _start_removal(parent: int, name: str) -> None:
    def remove() -> None:
        try:
            # What cannot be removed stays for the next command.
            with contextlib.suppress(OSError):
                _remove_doomed(parent, name, sweep=True)
        finally:
            os.close(parent)

    _removals.append(threading.Thread(target=remove, name="removal"))
    _removals[-1].start()


def _doom_entry(parent: int, name: str) -> None:
    """Remove a file or a link; rename a folder."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISDIR(mode):
        # Renamed first, so that an interrupted removal never leaves a folder that looks whole.
        os.rename(name, f".doomed-{name}-{os.getpid()}", src_dir_fd=parent, dst_dir_fd=parent)
    elif mode:
        os.unlink(name, dir_fd=parent)


def _remove_doomed(parent: int, name: str, *, sweep: bool) -> None:
    """Remove what was renamed from a name; `sweep`: what other commands left as well."""
    pattern, current = f".doomed-{glob.escape(name)}-*", f"-{os.getpid()}"
    for doomed in os.listdir(parent):
        if fnmatch.fnmatchcase(doomed, pattern):
            shutil.rmtree(doomed, dir_fd=parent)
        elif sweep and doomed.startswith(".doomed-") and not doomed.endswith(current):
            shutil.rmtree(doomed, dir_fd=parent, ignore_errors=True)


def _open_parent(path: Path) -> int:
    """Return a descriptor of the folder of a path.

    Each folder from `.provision` on is opened from the one above it, never through a link.
    """
    parts = path.parent.parts
    base = len(parts)
    if PROVISION_FOLDER in parts:
        base -= 1 + parts[::-1].index(PROVISION_FOLDER)
    folder = os.open(Path(*parts[:base]), os.O_RDONLY | os.O_DIRECTORY)
    for depth, name in enumerate(parts[base:], start=base + 1):
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            link = Path(*parts[:depth])
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and link.is_symlink():
                raise ExternalError(
                    f"cannot remove {path}",
                    why=f"{link} is a symbolic link, and provision does not delete through "
                    "symbolic links",
                    hint="remove the link yourself",
                ) from None
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder


def remove_if_unmodified(path: Path, sha256: str) -> bool:
    """Remove a regular file with this sha256; return False if it differs, and then it stays."""
    with wrap_os_errors("remove", path):
        if not path.is_symlink() and not path.exists():
            return True
        if path.is_symlink() or not path.is_file():
            return False
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            return False
        path.unlink()
    return True


def is_writable(path: Path) -> bool:
    """Return whether `path`, or the nearest existing folder above it, is writable."""
    folder = path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if folder != path and not folder.is_dir():
        return False
    if not os.access(folder, os.W_OK):
        return False
    return not (hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY)
