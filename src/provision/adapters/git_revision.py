"""Reads the files of a commit from git's objects; nothing of the checkout is run."""

from __future__ import annotations

import os
import posixpath
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.adapters import files
from provision.adapters.diagnostic_log import format_argv, log
from provision.assets import find_builtin_profile, list_builtin_profiles
from provision.errors import ExternalError, UsageError

_TIMEOUT_S = 60
_MAX_LINKS = 8
_LINK, _SUBMODULE = b"120000", b"160000"
_GIT = (
    "git",
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.allow=never"),
    # A pull request may add files that look like the folder of a repository.
    *("-c", "safe.bareRepository=explicit"),
)
_VARIABLES = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class _Entry(NamedTuple):
    mode: bytes
    blob: str


class GitRevision:
    """The files of a commit, by their paths in the checkout.

    Files outside the repository are not there, but for those of this installation.
    """

    def __init__(self, root: Path, commit: str, environment: Mapping[str, str]) -> None:
        self.root, self.commit = root, commit
        self._environment = environment
        listing = _run(root, environment, "ls-tree", "-r", "-z", "--full-tree", commit)
        self._entries: dict[str, _Entry] = {}
        self._folders = {""}
        for line in filter(None, listing.stdout.split(b"\0")):
            about, _, name = line.partition(b"\t")
            mode, _, blob = about.split(b" ")
            path = os.fsdecode(name)
            self._entries[path] = _Entry(mode, blob.decode())
            while (path := path.rpartition("/")[0]) not in self._folders:
                self._folders.add(path)
        self._reader: subprocess.Popen[bytes] | None = None
        profiles = map(find_builtin_profile, list_builtin_profiles())
        self._profiles = frozenset(path.resolve() for path in profiles)

    def files(self) -> tuple[Path, ...]:
        """Return the paths of all files."""
        return tuple(self.root / name for name in self._entries)

    def exists(self, path: Path) -> bool:
        """See Reader."""
        name = self._name(path)
        if name is None or name == ".git":
            return path.exists()
        return name in self._folders or self._follow(name) is not None

    def read(self, path: Path, limit: int) -> bytes:
        """See Reader."""
        name = self._name(path)
        if name is None:
            return files.read(path, limit)
        entry = self._follow(name)
        if entry is None:
            why = f"it is not in commit {self.commit[:12]}"
            raise ExternalError(f"{path} cannot be read", why=why)
        content = self._blob(entry.blob)
        if len(content) > limit:
            why = f"it is larger than {limit >> 20} MiB in commit {self.commit[:12]}"
            raise ExternalError(f"{path} cannot be read", why=why)
        return content

    def close(self) -> None:
        """End the program that reads objects."""
        if self._reader is not None:
            self._reader.communicate()
            self._reader = None

    def _name(self, path: Path) -> str | None:
        """Return the path below the root; None for what the commit does not decide."""
        absolute = Path(os.path.realpath(path.parent)) / path.name
        try:
            name = absolute.relative_to(self.root).as_posix()
        except ValueError:
            return None
        if name not in self._entries and absolute in self._profiles:
            return None
        return "" if name == "." else name

    def _follow(self, name: str) -> _Entry | None:
        """Return the entry of a file, through links that stay in the tree."""
        for _ in range(_MAX_LINKS):
            entry = self._entries.get(name)
            if entry is None or entry.mode == _SUBMODULE:
                return None
            if entry.mode != _LINK:
                return entry
            target = os.fsdecode(self._blob(entry.blob))
            name = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        return None

    def _blob(self, blob: str) -> bytes:
        if self._reader is None:
            self._reader = subprocess.Popen(
                [*_GIT, "-C", str(self.root), "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment,
            )
        stdin, stdout = self._reader.stdin, self._reader.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("git's stdin or stdout is not a pipe")
        stdin.write(blob.encode() + b"\n")
        stdin.flush()
        header = stdout.readline().split()
        if len(header) != 3:
            why = "the object is not in this clone"
            hint = (
                "fetch the complete history with `git fetch --unshallow`, or set "
                "`fetch-depth: 0` in a workflow"
            )
            raise ExternalError(f"git cannot read object {blob[:12]}", why=why, hint=hint)
        content = stdout.read(int(header[2]))
        stdout.read(1)  # the line break after each object
        return content


def open_revision(
    folder: Path, reference: str, environment: Mapping[str, str], *, common: bool
) -> GitRevision:
    """Return the files of a commit, or with `common` of its last common commit with HEAD.

    Raises:
        UsageError: git is missing, the folder is not in a repository, or there is no such commit.
    """
    variables = {**environment, **_VARIABLES}
    found = _run(folder, variables, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    if found.returncode:
        why = _last_line(found.stderr)
        raise UsageError(f"{folder} is not in a git repository", why=why)
    root, is_shallow = os.fsdecode(found.stdout).rstrip("\n").rsplit("\n", 1)
    hint = "use a branch, a tag or a commit, such as origin/main"
    if is_shallow == "true":
        hint = (
            "this is a shallow clone: fetch the history with `git fetch --unshallow`, or set "
            "`fetch-depth: 0` for actions/checkout"
        )
    name = f"{reference}^{{commit}}"
    found = _run(folder, variables, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    if found.returncode:
        raise UsageError(f"there is no commit {reference} in {root}", hint=hint)
    commit = found.stdout.decode().strip()
    if common:
        found = _run(folder, variables, "merge-base", commit, "HEAD")
        if found.returncode:
            why = "this clone contains no common commit"
            raise UsageError(f"HEAD cannot be compared with {reference}", why=why, hint=hint)
        commit = found.stdout.decode().strip()
    return GitRevision(Path(root), commit, variables)


def _run(
    folder: Path, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[bytes]:
    argv = [*_GIT, "-C", str(folder), *words]
    log.info("run %s", format_argv(argv))
    try:
        return subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", hint="install git to compare revisions") from None
    except subprocess.TimeoutExpired:
        raise ExternalError(f"git {words[0]} did not finish within {_TIMEOUT_S} s") from None


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
