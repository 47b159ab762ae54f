"""Reads commits of git repositories, with the user's own git and credentials."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from provision.adapters import files
from provision.adapters.diagnostic_log import format_argv, log
from provision.adapters.user_cache import REPOSITORIES, mark_used, prune_cache
from provision.agent.core.code_files import FILE_MODE, PROGRAM_MODE
from provision.agent.core.git_objects import (
    MAX_POINTER_BYTES,
    SUBMODULE_MODE,
    GitError,
    TreeEntry,
    find_error_line,
    is_lfs_pointer,
    list_commit,
    read_blobs,
    run_git,
)
from provision.effects.wheels import RepositoryPackage
from provision.errors import ExternalError, LockError, NetworkError
from provision.sanitize import escape_control, redact

_FILE_MODES = (FILE_MODE, PROGRAM_MODE)
_WITHOUT_LFS = (
    *("-c", "filter.lfs.process="),
    *("-c", "filter.lfs.smudge="),
    *("-c", "filter.lfs.required=false"),
)
"""The cache has no remote that the filter of Git LFS could ask."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORBIDDEN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
_MISSING = re.compile(r"couldn't find remote ref|not our ref|no such remote ref|upload-pack: not")


def fetch_package(
    url: str,
    revision: str,
    subdirectory: str,
    environment: Mapping[str, str],
    *,
    offline: bool = False,
) -> RepositoryPackage:
    """Return the commit of a branch, a tag or a commit, with the package's pyproject.toml.

    It stays in the user's cache. May block for minutes.

    Raises:
        LockError: the repository does not have the revision or folder.
        NetworkError: the repository cannot be reached.
    """
    commit = find_commit(url, revision, environment, offline=offline)
    repository = _open(url, environment)
    folder = f"{subdirectory}/" if subdirectory not in ("", ".") else ""
    require_folder(url, commit, subdirectory, environment)
    entries = list_entries(url, commit, "", repository, environment)
    pyproject = None
    shown = _git(repository, environment, "show", f"{commit}:{folder}pyproject.toml")
    if shown.returncode == 0:
        pyproject = shown.stdout.decode("utf-8", "replace")
    submodules = tuple(entry.path for entry in entries if entry.mode == SUBMODULE_MODE)
    small = [
        entry
        for entry in entries
        if entry.mode in _FILE_MODES
        and 0 < entry.size < MAX_POINTER_BYTES
        and entry.path.startswith(folder)
    ]
    contents = read_blobs(repository, [entry.blob for entry in small], git_variables(environment))
    pairs = zip(small, contents, strict=True)
    pointers = tuple(entry.path for entry, content in pairs if is_lfs_pointer(content))
    return RepositoryPackage(commit, pyproject, submodules, pointers)


def find_commit(
    url: str, revision: str, environment: Mapping[str, str], *, offline: bool = False
) -> str:
    """Return the full commit of a branch, a tag or a commit; it stays in the user's cache.

    Raises:
        LockError: the repository does not have the revision.
        NetworkError: the repository cannot be reached, or is not in the cache (`offline`).
    """
    repository = _open(url, environment)
    commit = revision.lower() if _COMMIT.fullmatch(revision.lower()) else ""
    if commit and _has(repository, commit, environment):
        return commit
    if not offline:
        commit = _fetch(repository, url, revision, environment)
        prune_cache(environment)
        return commit
    name = f"{_name_ref(revision)}^{{commit}}"
    kept = _git(repository, environment, "rev-parse", "--verify", name)
    if kept.returncode:
        raise NetworkError(
            f"{url} at {revision or 'HEAD'} is not in the cache", hint="omit --offline"
        )
    return kept.stdout.decode().strip()


def list_entries(
    url: str, commit: str, subdirectory: str, repository: Path, environment: Mapping[str, str]
) -> list[TreeEntry]:
    """Return the entries of a commit that is in the cache."""
    try:
        return list_commit(repository, commit, subdirectory, git_variables(environment))
    except GitError as error:
        raise ExternalError(f"git cannot read {commit[:12]} from {url}", why=str(error)) from None


def require_folder(
    url: str, commit: str, subdirectory: str, environment: Mapping[str, str]
) -> None:
    """Raise LockError if a commit in the cache does not have a folder."""
    if subdirectory in ("", "."):
        return
    repository = _open(url, environment)
    if _git(repository, environment, "cat-file", "-e", f"{commit}:{subdirectory}/").returncode:
        raise LockError(
            f"{url} has no folder {subdirectory} at commit {commit[:12]}",
            hint="correct `subdirectory`",
        )


def open_commit(
    url: str, commit: str, environment: Mapping[str, str], *, offline: bool = False
) -> Path:
    """Return the cached repository with a commit; raises as `find_commit` does."""
    find_commit(url, commit, environment, offline=offline)
    return _open(url, environment)


def export_commit(url: str, commit: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Write the files of a commit into an empty folder; raises as `fetch_package` does."""
    repository = open_commit(url, commit, environment)
    packed = _git(repository, environment, *_WITHOUT_LFS, "archive", "--format=tar", commit)
    if packed.returncode:
        raise ExternalError(
            f"git cannot read commit {commit[:12]} from {url}", why=_why(packed.stderr)
        )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _open(url: str, environment: Mapping[str, str]) -> Path:
    """Return the cached repository, which is created if it is missing."""
    name = hashlib.sha256(url.encode()).hexdigest()[:32]
    folder = files.user_cache_folder(environment) / REPOSITORIES / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as scratch:
            new_folder = Path(scratch, "repository")
            made = _git(folder.parent, environment, "init", "--quiet", "--bare", str(new_folder))
            if made.returncode:
                raise ExternalError("git cannot create a repository", why=_why(made.stderr))
            try:
                new_folder.rename(folder)
            except OSError:  # another process was first
                log.debug("%s exists", folder)
    mark_used(folder)
    return folder


def _has(repository: Path, commit: str, environment: Mapping[str, str]) -> bool:
    return not _git(repository, environment, "cat-file", "-e", f"{commit}^{{tree}}").returncode


def _fetch(repository: Path, url: str, revision: str, environment: Mapping[str, str]) -> str:
    """Fetch a revision and return its commit."""
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
    kept = _name_ref(revision)
    names = [revision] if revision else ["HEAD"]
    if revision and not _COMMIT.fullmatch(revision):
        names = [f"refs/tags/{revision}", f"refs/heads/{revision}", revision]
    error = b""
    for depth in (("--depth=1",), ()):
        for name in names:
            answer = _git(repository, environment, *words, *depth, url, f"+{name}:{kept}")
            if answer.returncode == 0:
                found = _git(repository, environment, "rev-parse", f"{kept}^{{commit}}")
                return found.stdout.decode().strip()
            error = answer.stderr
            if not _MISSING.search(error.decode(errors="replace")):
                break
        if _MISSING.search(error.decode(errors="replace")):
            break
        if b"shallow" not in error and b"depth" not in error and b"dumb" not in error:
            break
    if _MISSING.search(error.decode(errors="replace")):
        # A server may refuse a commit that no branch or tag ends in: look in all of them.
        everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        answer = _git(repository, environment, *words, url, *everything)
        found = _git(repository, environment, "rev-parse", "--verify", f"{revision}^{{commit}}")
        if answer.returncode == 0 and found.returncode == 0:
            return found.stdout.decode().strip()
        hint = "correct `rev`"
        if _COMMIT.fullmatch(revision):
            hint += ", or if the lock has it, choose a current one: `provision lock --upgrade NAME`"
        raise LockError(
            f"{url} has no branch, tag or commit {revision or 'HEAD'}",
            why=_why(error),
            hint=hint,
        )
    raise NetworkError(
        f"the repository {url} cannot be read",
        why=_why(error),
        hint=f"check the URL, and test your access with `git ls-remote {url}`",
    )


def _name_ref(revision: str) -> str:
    """Return the name under which the cache keeps a revision."""
    return "refs/provision/" + hashlib.sha256(revision.encode()).hexdigest()[:16]


def git_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of git: no prompts, and the folder that is named."""
    variables = {
        **{name: value for name, value in environment.items() if name not in _FORBIDDEN_VARIABLES},
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    if "GIT_SSH_COMMAND" not in variables and "GIT_SSH" not in variables:
        variables["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    return variables


def _git(
    folder: Path, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[bytes]:
    log.info("run %s", format_argv(["git", "-C", str(folder), *words]))
    try:
        return run_git(folder, git_variables(environment), *words)
    except FileNotFoundError:
        raise ExternalError(
            "git is not installed",
            hint="install git to use code and packages from git repositories",
        ) from None
    except subprocess.TimeoutExpired as error:
        raise NetworkError(f"git did not finish within {error.timeout:.0f} s") from None


def _why(output: bytes) -> str:
    return redact(escape_control(find_error_line(output)))
