"""Reading with limits, and writing in one step: a file is there whole or as it was before."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from provision.errors import ExternalError

PROVISION_FOLDER = ".provision"
_REASONS = {
    errno.ENOSPC: (
        "the disk is full",
        "free some space there and run the command again: it goes on where it stopped",
    ),
    errno.EDQUOT: (
        "the disk quota is used up",
        "free some space there and run the command again: it goes on where it stopped",
    ),
    errno.EROFS: (
        "the file system is read-only",
        (
            "name a file or a folder that you may write to; where it lies beside the spec, "
            "move the spec"
        ),
    ),
    errno.EACCES: ("permission denied", "check the owner and mode of that path"),
    errno.EPERM: ("not permitted", "check the owner and mode of that path"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "remove or rename that file"),
    errno.EEXIST: (
        "something of that name is there",
        "look at it, and move it away or name another place",
    ),
    errno.EISDIR: ("it is a folder", "move it away, or name a file"),
    errno.ELOOP: (os.strerror(errno.ELOOP), "make it lead to a file, or name the file itself"),
}


@contextlib.contextmanager
def wrap_os_errors(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError into a WorldError that says what was being done, where, why it failed, and
    the way out.
    """
    try:
        yield
    except OSError as error:
        above = (
            "make the folder above it first, or name another place"
            if doing == "write" and error.errno == errno.ENOENT
            else ""
        )
        why, hint = _REASONS.get(
            error.errno or 0, (os.strerror(error.errno) if error.errno else str(error), above)
        )
        raise ExternalError(f"cannot {doing} {path}", why=why, hint=hint) from error


def read(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; raises WorldError."""
    with wrap_os_errors("read", path):
        if not stat.S_ISREG(mode := path.stat().st_mode):
            what = "a folder, and no regular file" if stat.S_ISDIR(mode) else "no regular file"
            raise ExternalError(
                f"cannot read {path}", why=f"it is {what}", hint="move it away, or name a file"
            )
        with path.open("rb") as file:
            content = file.read(limit + 1)
    if len(content) > limit:
        raise ExternalError(
            f"cannot read {path}",
            why=f"it is longer than {limit} bytes",
            hint="is this the right file?",
        )
    return content


def write(path: Path, content: str | bytes, mode: int | None) -> None:
    """Write a file by temporary file, fsync and rename; raises WorldError and leaves the old
    content in place.
    """
    with wrap_os_errors("write", path):
        if path.is_dir() and not path.is_symlink():
            # A rename onto "." says that it is busy.
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode if mode is not None else _mode_of(path))
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        sync_folder(path.parent)


def _mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644


def sync_folder(path: Path) -> None:
    """Make a rename inside the folder outlive a power cut; does nothing where folders cannot be
    synced.
    """
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folder(path: Path, mode: int) -> None:
    """Make a folder and its parents; raises WorldError."""
    with wrap_os_errors("make the folder", path):
        path.mkdir(parents=True, exist_ok=True, mode=mode)


def set_symlink(path: Path, target: str) -> None:
    """Make a symbolic link in one step, in place of an older link; raises WorldError when something
    else is there.
    """
    if path.exists() and not path.is_symlink():
        raise ExternalError(
            f"cannot make the link {path}",
            why="something that is no link is there",
            hint="move it away",
        )
    with wrap_os_errors("make the link", path):
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        fresh.symlink_to(target)
        fresh.replace(path)


def create_symlink(path: Path, target: str, instead_of: str) -> None:
    """Make a symbolic link among what is not ours: nothing that is there gives way but a link to
    `instead_of`; raises WorldError.
    """
    with wrap_os_errors("make the link", path):
        if (found := read_symlink(path)) == target:
            return
        if found is not None and found == instead_of:
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)  # fails where anything is: another program may have been faster


def read_symlink(path: Path) -> str | None:
    """Return what a symbolic link points at, None where there is none."""
    try:
        return str(path.readlink())
    except OSError:
        return None


def remove_symlink(path: Path, target: str, *, dead: bool) -> bool:
    """Remove a link that points at `target`; False when something else is there, or with `dead`
    what it points at, and then it stays. Raises WorldError.
    """
    with wrap_os_errors("remove", path):
        if not os.path.lexists(path):
            return True
        if read_symlink(path) != target or (dead and path.exists()):
            return False
        path.unlink()
    return True


def move(path: Path, to: Path) -> None:
    """Give a file, or a link itself, another place on the same disk; raises WorldError."""
    with wrap_os_errors("move", path), contextlib.suppress(FileNotFoundError):
        path.replace(to)


def remove_tree(path: Path) -> None:
    """Remove a file, link or folder and all it holds; raises WorldError. Links inside are removed,
    never followed.

    Below a folder `.provision`, nothing is removed behind a link either: what such a link leads
    to is not ours.
    """
    with wrap_os_errors("remove", path):
        try:
            parent = _open_parent(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            _remove_entry(parent, path.name)
        finally:
            os.close(parent)


def _remove_entry(parent: int, name: str) -> None:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISDIR(mode):
        # Renamed first, so that a removal cut short never leaves something of that name that looks
        # whole.
        os.rename(name, f".doomed-{name}-{os.getpid()}", src_dir_fd=parent, dst_dir_fd=parent)
    elif mode:
        os.unlink(name, dir_fd=parent)
    for doomed in os.listdir(parent):
        if fnmatch.fnmatchcase(doomed, f".doomed-{glob.escape(name)}-*"):
            shutil.rmtree(doomed, dir_fd=parent)


def _open_parent(path: Path) -> int:
    """Return a descriptor of the folder that holds a path; each folder from `.provision` on is
    opened from the one above it, never through a link.
    """
    parts = path.parent.parts
    base = (
        len(parts) - 1 - parts[::-1].index(PROVISION_FOLDER)
        if PROVISION_FOLDER in parts
        else len(parts)
    )
    folder = os.open(Path(*parts[:base]), os.O_RDONLY | os.O_DIRECTORY)
    for place, name in enumerate(parts[base:], start=base + 1):
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            link = Path(*parts[:place])
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and link.is_symlink():
                raise ExternalError(
                    f"cannot remove {path}",
                    why=f"{link} is a link, and what it leads to is not ours",
                    hint="remove that link",
                ) from None
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder


def remove_if_unmodified(path: Path, sha256: str) -> bool:
    """Remove a regular file that still has this sha256; False when another one is there, which
    stays. Raises WorldError.
    """
    with wrap_os_errors("remove", path):
        if not path.is_symlink() and not path.exists():
            return True
        if (
            path.is_symlink()
            or not path.is_file()
            or hashlib.sha256(path.read_bytes()).hexdigest() != sha256
        ):
            return False
        path.unlink()
    return True


def is_writable(path: Path) -> bool:
    """Tell whether `path`, or the nearest folder above it that exists, may be written to."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return False
    if os.access(place, os.W_OK) is False:
        return False
    return not os.statvfs(place).f_flag & os.ST_RDONLY if hasattr(os, "statvfs") else True
