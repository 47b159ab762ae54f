"""Finds the public repository that has the commit of some code, as a stranger's git sees it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from provision.adapters.diagnostic_log import log
from provision.adapters.git_repository import git_variables, open_commit
from provision.agent.core.code_clone import CodeClone, read_entries, select_entries
from provision.agent.core.code_files import compute_code_digest
from provision.agent.core.git_objects import GitError, list_commit, run_git
from provision.effects.code import CodeTree
from provision.errors import ProvisionError

_TIMEOUT_S = 20.0
"""Our choice: a plan goes on with an archive when a server does not answer."""
_SCP_FORM = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!//)(?P<path>\S+)")
_OF_THE_USER = ("HOME", "XDG_CONFIG_HOME", "GIT_ASKPASS", "SSH_ASKPASS")
"""Variables by which git finds configuration and credentials."""


def may_have_copy(
    code: CodeTree, clone: CodeClone, environment: Mapping[str, str], *, compare_files: bool
) -> bool:
    """See `CodeReader.may_have_copy`."""
    if clone.url not in _list_public_addresses(code, environment):
        return False
    if code.git:
        return clone.commit == code.manifest.commit and clone.subdirectory == code.subdirectory
    variables = {**git_variables(environment), "GIT_NO_LAZY_FETCH": "1"}
    words = ("branch", "--remotes", "--contains", clone.commit)
    try:
        branches = run_git(code.folder, variables, *words, timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return True
    if branches.returncode != 0:  # this clone does not have the commit
        return True
    if not branches.stdout or not compare_files:
        return bool(branches.stdout)
    try:
        entries = list_commit(code.folder, clone.commit, clone.subdirectory, variables)
        own = select_entries(entries, frozenset(clone.left_out))
        files, _ = read_entries(code.folder, own, variables)
    except (GitError, OSError, subprocess.TimeoutExpired) as error:
        log.info("the code is not compared with commit %s: %s", clone.commit, error)
        return False
    return compute_code_digest(files) == code.digest


def _list_public_addresses(code: CodeTree, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the https addresses of the repositories that may have the code, offline."""
    if code.git:
        urls = [code.git]
    else:
        listed = _ask(code.folder, environment, "config", "--get-regexp", r"^remote\..*\.url$")
        rows = (line.partition(" ") for line in listed.splitlines())
        by_remote = {key.split(".", 1)[1].removesuffix(".url"): url for key, _, url in rows}
        urls = [by_remote[name] for name in sorted(by_remote, key=lambda name: name != "origin")]
    return tuple(dict.fromkeys(filter(None, map(_to_public_address, urls))))


def find_public_copy(code: CodeTree, environment: Mapping[str, str]) -> CodeClone | None:
    """Return the public commit with exactly these files; None if there is none.

    May block for 20 s. A commit that no remote branch contains, by the records of this clone,
    is not looked for.
    """
    commit = code.manifest.commit
    if code.problems or code.manifest.dirty or not commit:
        return None
    try:
        repository, subdirectory = code.folder, code.subdirectory
        if code.git:
            repository = open_commit(code.git, commit, environment, offline=True)
        else:
            if not _ask(repository, environment, "branch", "--remotes", "--contains", commit):
                return None
            subdirectory = _ask(repository, environment, "rev-parse", "--show-prefix").strip("/\n")
        variables = {**git_variables(environment), "GIT_NO_LAZY_FETCH": "1"}
        entries = list_commit(repository, commit, subdirectory, variables)
        own = {file.path for file in code.manifest.files}
        left_out = tuple(sorted(entry.path for entry in entries if entry.path not in own))
        files, _ = read_entries(repository, select_entries(entries, frozenset(left_out)), variables)
    except (GitError, ProvisionError, OSError, subprocess.TimeoutExpired) as error:
        log.info("the code is not compared with commit %s: %s", commit, error)
        return None
    if compute_code_digest(files) != code.digest:
        return None
    for url in _list_public_addresses(code, environment):
        if _is_public(url, commit, tuple(sorted(git_variables(environment).items()))):
            return CodeClone(url, commit, subdirectory, left_out, code.digest)
    return None


@lru_cache(maxsize=32)
def _is_public(url: str, commit: str, environment: tuple[tuple[str, str], ...]) -> bool:
    """Return whether anybody can fetch a commit: without configuration, keys or credentials."""
    variables = {
        **{name: value for name, value in environment if name not in _OF_THE_USER},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_SSH_COMMAND": "false",
    }
    words = ("fetch", "--quiet", "--no-tags", "--depth=1", "--filter=tree:0", url, commit)
    with tempfile.TemporaryDirectory(prefix="provision-") as scratch:
        try:
            for command in (("init", "--quiet", "--bare", "."), words):
                log.info("run git %s", " ".join(command))
                answer = run_git(
                    Path(scratch),
                    variables,
                    *("-c", "credential.helper="),
                    *command,
                    timeout_s=_TIMEOUT_S,
                )
                if answer.returncode:
                    return False
        except (OSError, subprocess.TimeoutExpired):
            return False
    return True


def _to_public_address(url: str) -> str | None:
    """Return an address without a user; None if it is neither https nor ssh."""
    if match := _SCP_FORM.fullmatch(url):
        return f"https://{match['host']}/{match['path'].lstrip('/')}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("https", "ssh") or not host or parts.query or parts.fragment:
        return None
    at = f":{port}" if port and parts.scheme == "https" else ""
    return f"https://{host}{at}/{parts.path.lstrip('/')}"


def _ask(folder: Path, environment: Mapping[str, str], *words: str) -> str:
    try:
        answer = run_git(folder, git_variables(environment), *words, timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else ""
