"""The ledger in a folder next to the spec: one writer, every step on disk before the next."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from provision.adapters.diagnostic_log import open_state_log
from provision.adapters.files import await_removals
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import Notice, ProgressCallback, Reader, System
from provision.errors import ExternalError, StateError
from provision.plan import REQUESTED_AT, Intent
from provision.state import (
    Ledger,
    State,
    StateBinding,
    StateRecord,
    create_empty_state,
    dumps,
    loads,
)
from provision.state_store.git_index import is_tracked_by_git

_LIMIT = 16 * 2**20
_JOURNAL = "provision.journal/2"

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
"""machine-id(5): the same as long as a system is installed, another in each."""
_MACHINE_ID_LIMIT = 4096
_NOT_A_PLAIN_FILE_HINT = (
    "this path must be a regular file that provision created; move anything else away"
)
_HINTS_BY_ERRNO = {
    errno.EROFS: "the spec's folder must be writable: copy the spec and its lock into a "
    "writable folder",
    errno.EACCES: "check the owner and mode of this path",
    errno.ENOSPC: "free some space on this disk",
}


class LocalStore:
    """State, journal and lock file in `folder` (0700, ignored by git).

    Writing needs the lock of `exclusive`.
    """

    def __init__(self, folder: Path, system: System) -> None:
        self.folder = folder
        self._system = system

    def load(self) -> State:
        """Return the saved state, or an empty one of a new lineage.

        Raises:
            StateError: it is damaged.
        """
        path = self.folder / "state.json"
        if not self._system.exists(path):
            return create_empty_state(self._system.token())
        return loads(self._read(path), str(path))

    def save(self, state: State, *, expecting: int) -> None:
        """Save the state in one step; raise StateError if the saved serial is not `expecting`."""
        path = self.folder / "state.json"
        saved = self.load() if self._system.exists(path) else create_empty_state("")
        if saved.serial != expecting:
            raise StateError(
                f"{path} was changed by another process",
                why=f"its serial is {saved.serial}, not {expecting}",
                hint="run the command again",
            )
        binding = state.binding or read_current_binding(self.folder, self._system)
        # The accounts of intents were saved meanwhile.
        accounts = {*saved.accounts, *saved.recorded_accounts}
        self._write(path, dumps(replace(state, binding=binding, accounts=tuple(accounts))))

    def bind(self, state: State) -> State:
        """Save a state as written here; its serial stays. Needs the lock."""
        bound = replace(state, binding=read_current_binding(self.folder, self._system))
        self._write(self.folder / "state.json", dumps(bound))
        return bound

    def load_or_create_ledger(self) -> Ledger:
        """Return the ledger with its lineage on disk. Needs the lock.

        So what has the lineage elsewhere is known as ours, however this run ends.
        """
        ledger = self.load_ledger()
        if ledger.state.serial == 0 and not self._system.exists(self.folder / "state.json"):
            return replace(ledger, state=self.bind(ledger.state))
        return ledger

    def open_intent(self, intent: Intent) -> None:
        """Write an intent to the journal, in place of an open one with the same key."""
        self._save_accounts(intent.accounts)
        self._write_journal([*self._other_intents(intent), intent])

    def _save_accounts(self, accounts: set[str]) -> None:
        """Save the accounts in which a machine is requested.

        They outlive the intent, which is closed when no instance is shown.
        """
        path = self.folder / "state.json"
        if not accounts or not self._system.exists(path):
            return
        state = self.load()
        if not accounts <= set(state.accounts):
            self._write(path, dumps(replace(state, accounts=tuple({*state.accounts, *accounts}))))

    def close_intent(self, intent: Intent) -> None:
        """Close an intent: the state contains its result, or nothing is left of it."""
        self._write_journal(self._other_intents(intent))

    def _other_intents(self, intent: Intent) -> list[Intent]:
        return [other for other in self.read_intents() if other.key != intent.key]

    def read_intents(self) -> tuple[Intent, ...]:
        """Return the intents that no run has closed, oldest first.

        Raises:
            StateError: the journal is damaged, or of a newer version.
        """
        path = self.folder / "journal.json"
        if not self._system.exists(path):
            return ()
        text = self._read(path).strip()
        if not text:
            return ()
        try:
            document = json.loads(text)
            if "schema" not in document:  # an older version: one intent
                intent = _parse_intent(document)
                if intent.names:
                    details = StateRecord({**intent.details, REQUESTED_AT: intent.began})
                    intent = replace(intent, details=details)
                return (intent,)
            if document["schema"] == _JOURNAL:
                return tuple(map(_parse_intent, document["intents"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StateError(
                f"the journal {path} is damaged",
                hint=f"check the environments in {self.folder / 'envs'}, then remove the journal",
            ) from None
        raise StateError(
            f"{path} was written by a different version of provision ({document['schema']})",
            hint="upgrade provision",
        )

    def _write_journal(self, intents: list[Intent]) -> None:
        document = {"schema": _JOURNAL, "intents": list(map(asdict, intents))}
        text = json.dumps(document, indent=1) + "\n" if intents else ""
        self._write(self.folder / "journal.json", text)

    def _read(self, path: Path) -> str:
        return self._system.read(path, _LIMIT).decode("utf-8", "replace")

    def load_ledger(self) -> Ledger:
        """Return the saved state with the open intents, and whether it was written here.

        Raises:
            StateError: it is damaged, of a newer version, tracked by git, or in the folder of
                another user.
        """
        if self.folder.exists():
            _check_folder(self.folder)
        state, foreign_reason = self.load(), ""
        if state.binding is not None:
            here = read_current_binding(self.folder, self._system)
            foreign_reason = explain_foreign_binding(state.binding, here)
        return Ledger(state, self.read_intents(), foreign_reason)

    @contextmanager
    def exclusive(self, wait_s: float, progress: ProgressCallback) -> Iterator[None]:
        """Acquire the lock for a block, and make the folder if needed.

        It waits at most `wait_s` seconds. The kernel releases the lock when its holder ends,
        however it ends.

        Raises:
            StateError: another run has the lock.
            ExternalError: the folder cannot be made.
        """
        deadline = time.monotonic() + wait_s
        handle = self._acquire_lock(deadline, progress)
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} since {self._system.now()}".encode(), 0)
            open_state_log(self.folder, self._system.environment())
            self._settle_binding(progress)
            yield
        finally:
            await_removals()
            os.close(handle)

    def _settle_binding(self, progress: ProgressCallback) -> None:
        """Bind a state without a binding, or whose folder was moved; report a foreign one."""
        path = self.folder / "state.json"
        if not self._system.exists(path):
            return
        state, here = self.load(), read_current_binding(self.folder, self._system)
        if state.binding is None:
            progress(Notice(f"{path} is now bound to this machine and folder"))
            self.bind(state)
        elif why := explain_foreign_binding(state.binding, here):
            progress(
                Notice(
                    f"{path} belongs to another machine or folder: {why}; run `provision "
                    "adopt` to use it here"
                )
            )
        elif state.binding != here:
            self.bind(state)

    def _acquire_lock(self, deadline: float, progress: ProgressCallback) -> int:
        """Return a descriptor of the lock file, locked.

        It starts anew if the file was removed meanwhile (a destroy ended).
        """
        path = self.folder / "lock"
        while True:
            self._prepare()
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise ExternalError(
                    f"cannot open {path}",
                    why=os.strerror(error.errno or 0),
                    hint=_HINTS_BY_ERRNO.get(error.errno or 0, _NOT_A_PLAIN_FILE_HINT),
                ) from error
            try:
                _wait_for_lock(handle, path, deadline, progress)
                if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _prepare(self) -> None:
        for name in ("", "envs", "reports", "use"):
            folder = self.folder / name
            if folder.is_symlink():
                raise StateError(
                    f"{folder} is a link",
                    why="provision would create and remove files in the folder it points to",
                    hint="remove the link",
                )
        if self.folder.exists():
            _check_folder(self.folder)
            _restrict_permissions(self.folder)
        self._system.perform(MakeFolder(self.folder, 0o700), _ignore_progress)
        ignore = self.folder / ".gitignore"
        if not self._system.exists(ignore):
            self._write(ignore, "*\n")

    def _write(self, path: Path, content: str) -> None:
        self._system.perform(WriteFile(path, content, 0o600), _ignore_progress)


def _check_folder(folder: Path) -> None:
    """Raise StateError for a folder that another user owns, or that git tracks."""
    about = folder.stat()
    if hasattr(os, "geteuid") and about.st_uid != os.geteuid() and os.geteuid() != 0:
        hint = f"run the command as that user, or move {folder} away"
        raise StateError(
            f"{folder} belongs to a different user",
            why=f"its owner has the user ID {about.st_uid}, but yours is {os.geteuid()}",
            hint=hint,
        )
    if is_tracked_by_git(folder):
        why = (
            "a state file from a repository was written on a different machine, and using it "
            "could remove your own files"
        )
        hint = (
            "if the folder was created here, remove it from version control: git rm -r "
            f"--cached {folder.name}; otherwise, delete it: git rm -r {folder.name}"
        )
        raise StateError(f"cannot use {folder}: it is tracked by git", why=why, hint=hint)


def _restrict_permissions(folder: Path) -> None:
    """Remove the permissions of others from our folder, if the file system has modes."""
    if folder.stat().st_mode & 0o022:
        with suppress(OSError):
            folder.chmod(0o700)


def _parse_intent(document: dict[str, Any]) -> Intent:
    """Return an intent from the journal.

    Raises ValueError, KeyError, TypeError or AttributeError for anything else.
    """
    address, part, verb, began = (document[name] for name in ("address", "part", "verb", "began"))
    paths, names = tuple(document["paths"]), tuple(document.get("names", ()))
    details = document.get("details", {})
    texts = (address, part, verb, began, *paths, *names)
    are_texts = all(isinstance(text, str) for text in texts)
    if not are_texts or not isinstance(details, dict) or "/" not in address:
        raise ValueError("a field is missing or has the wrong type")
    return Intent(address, part, verb, paths, began, names, StateRecord(details))


def _wait_for_lock(handle: int, path: Path, deadline: float, progress: ProgressCallback) -> None:
    is_reported = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode("utf-8", "replace") or "another process"
            if time.monotonic() >= deadline:
                raise StateError(
                    f"another provision process is running: {holder}",
                    why=f"it has locked {path}",
                    hint="wait for it to finish, or set --lock-timeout",
                ) from None
            if not is_reported:
                progress(f"waiting for another provision process ({holder})")
                is_reported = True
            time.sleep(0.1)
        else:
            return


def _ignore_progress(_: str) -> None:
    return None


def read_current_binding(folder: Path, reader: Reader) -> StateBinding:
    """Return the binding of a state that is written into a folder now."""
    about = folder.stat() if folder.exists() else None
    inode = f"{about.st_dev}:{about.st_ino}" if about is not None else ""
    return StateBinding(_machine(reader), os.path.realpath(folder), inode)


def explain_foreign_binding(bound: StateBinding, here: StateBinding) -> str:
    """Return why a bound state was made elsewhere; "" if it was made here.

    On one machine a state belongs to its folder, even when that was moved or restored from a
    backup. Without an identity of the machine (as in many containers),
    path and inode of the folder have to agree.
    """
    if bound.machine != here.machine:
        return f"it was written on another machine, in {bound.folder}"
    same = (bound.folder == here.folder, bound.inode == here.inode)
    if any(same) if here.machine else all(same):
        return ""
    return f"it was written in {bound.folder}, but this folder is {here.folder}"


def _machine(reader: Reader) -> str:
    """Return a digest of the identity of this machine; "" if it has none."""
    for path in _MACHINE_IDS:
        try:
            text = reader.read(path, _MACHINE_ID_LIMIT).decode("ascii", "replace").strip()
        except ExternalError:
            continue
        if len(text) == 32:
            return _digest(text.encode())
    return _digest(_hardware_uuid()) if sys.platform == "darwin" else ""


def _hardware_uuid() -> bytes:
    """Return the UUID of a macOS host (gethostuuid(2)); b"" if it is unknown."""
    uuid, patience = ctypes.create_string_buffer(16), (ctypes.c_long * 2)(1, 0)
    try:
        failed = ctypes.CDLL(None).gethostuuid(uuid, patience)
    except (AttributeError, OSError):
        return b""
    return b"" if failed else uuid.raw


def _digest(identity: bytes) -> str:
    # Not the id itself, which machine-id(5) calls confidential.
    return hashlib.sha256(b"provision:" + identity).hexdigest()[:32] if identity else ""
