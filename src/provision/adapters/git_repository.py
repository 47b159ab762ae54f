"""Reads packages from git repositories, with the user's own git and credentials."""

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
from provision.effects.wheels import RepositoryPackage
from provision.errors import ExternalError, LockError, NetworkError
from provision.sanitize import escape_control, redact

_TIMEOUT_S = 600.0
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORBIDDEN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
_MISSING = re.compile(r"couldn't find remote ref|not our ref|no such remote ref|upload-pack: not")


def fetch_package(
    url: str, revision: str, subdirectory: str, environment: Mapping[str, str]
) -> RepositoryPackage:
    """Return the commit of a branch, a tag or a commit, with the package's pyproject.toml.

    It stays in the user's cache. May block for minutes.

    Raises:
        LockError: the repository does not have the revision or folder.
        NetworkError: the repository cannot be reached.
    """
    repository = _open(url, environment)
    commit = revision.lower() if _COMMIT.fullmatch(revision.lower()) else ""
    if not commit or not _has(repository, commit, environment):
        commit = _fetch(repository, url, revision, environment)
    folder = f"{subdirectory}/" if subdirectory not in ("", ".") else ""
    shown = _git(repository, environment, "show", f"{commit}:{folder}pyproject.toml")
    if shown.returncode == 0:
        pyproject = shown.stdout.decode("utf-8", "replace")
        return RepositoryPackage(
            commit, pyproject, _list_submodules(repository, commit, environment)
        )
    if folder and _git(repository, environment, "cat-file", "-e", f"{commit}:{folder}").returncode:
        raise LockError(
            f"{url} has no folder {subdirectory} at commit {commit[:12]}",
            hint="correct the package's `subdirectory`",
        )
    return RepositoryPackage(commit, None, _list_submodules(repository, commit, environment))


def _list_submodules(
    repository: Path, commit: str, environment: Mapping[str, str]
) -> tuple[str, ...]:
    listed = _git(repository, environment, "ls-tree", "-r", "-z", commit)
    rows = listed.stdout.decode("utf-8", "replace").split("\0")
    return tuple(row.partition("\t")[2] for row in rows if row.startswith("160000 "))


def export_commit(url: str, commit: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Write the files of a commit into an empty folder; raises as `fetch_package` does."""
    repository = _open(url, environment)
    if not _has(repository, commit, environment):
        _fetch(repository, url, commit, environment)
    packed = _git(repository, environment, "archive", "--format=tar", commit)
    if packed.returncode:
        raise ExternalError(
            f"git cannot read commit {commit[:12]} from {url}", why=_last(packed.stderr)
        )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _open(url: str, environment: Mapping[str, str]) -> Path:
    """Return the cached repository, which is created if it is missing."""
    name = hashlib.sha256(url.encode()).hexdigest()[:32]
    folder = files.user_cache_folder(environment) / "repositories" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as scratch:
            new_folder = Path(scratch, "repository")
            made = _git(folder.parent, environment, "init", "--quiet", "--bare", str(new_folder))
            if made.returncode:
                raise ExternalError("git cannot create a repository", why=_last(made.stderr))
            try:
                new_folder.rename(folder)
            except OSError:  # another process was first
                log.debug("%s exists", folder)
    return folder


def _has(repository: Path, commit: str, environment: Mapping[str, str]) -> bool:
    return not _git(repository, environment, "cat-file", "-e", f"{commit}^{{tree}}").returncode


def _fetch(repository: Path, url: str, revision: str, environment: Mapping[str, str]) -> str:
    """Fetch a revision and return its commit."""
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
    kept = "refs/provision/" + hashlib.sha256(revision.encode()).hexdigest()[:16]
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
        raise LockError(
            f"{url} has no branch, tag or commit {revision or 'HEAD'}",
            why=_last(error),
            hint="correct the package's `rev`",
        )
    raise NetworkError(
        f"the repository {url} cannot be read",
        why=_last(error),
        hint=f"check the URL, and test your access with `git ls-remote {url}`",
    )


def _git(
    folder: Path, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[bytes]:
    variables = {
        **{name: value for name, value in environment.items() if name not in _FORBIDDEN_VARIABLES},
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    if "GIT_SSH_COMMAND" not in variables and "GIT_SSH" not in variables:
        variables["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    argv = ["git", "-C", str(folder), *words]
    log.info("run %s", format_argv(argv))
    try:
        return subprocess.run(
            argv,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ExternalError(
            "git is not installed", hint="install git to use packages from git repositories"
        ) from None
    except subprocess.TimeoutExpired:
        raise NetworkError(f"git {words[0]} did not finish within {_TIMEOUT_S:.0f} s") from None


def _last(output: bytes) -> str:
    lines = redact(escape_control(output.decode(errors="replace").strip())).splitlines()
    return lines[-1] if lines else ""
