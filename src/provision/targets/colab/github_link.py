"""Link that opens a notebook in Colab, if the repository's configuration names GitHub.

No program is started and nothing is requested.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from provision.effects.system import Reader
from provision.errors import ExternalError

_LIMIT = 2**20
_GITHUB = re.compile(
    r"(?:https?://(?:[^/@]*@)?github\.com/|(?:ssh://)?git@github\.com[:/])([A-Za-z0-9-]+)/([A-Za-z0-9._-]+?)(?:\.git)?/?"
)


def build_colab_link(notebook: Path, reader: Reader) -> str | None:
    """Return the address that opens a notebook from its branch; None if it is not on GitHub.

    It is not known whether the notebook was pushed and the repository is public.
    """
    found = find_github_file(notebook, reader)
    root = _find_root(notebook, reader)
    if found is None or root is None:
        return None
    try:
        head, _ = _folders(root, reader)
        branch = re.fullmatch(r"ref: refs/heads/(\S+)\s*", _text(head / "HEAD", reader))
    except ExternalError:
        return None
    if branch is None:
        return None
    path = f"{quote(branch[1])}/{quote(found.path)}"
    return f"https://colab.research.google.com/github/{found.owner}/{found.repository}/blob/{path}"


class GithubFile(NamedTuple):
    """A file of a repository on GitHub, by its path there."""

    owner: str
    repository: str
    path: str


def find_github_file(file: Path, reader: Reader) -> GithubFile | None:
    """Return where a file is on GitHub once it is pushed; None if its repository is elsewhere."""
    root = _find_root(file, reader)
    if root is None:
        return None
    try:
        _, common = _folders(root, reader)
        owner = _owner(_text(common / "config", reader))
    except ExternalError:
        return None
    return None if owner is None else GithubFile(*owner, file.relative_to(root).as_posix())


def _find_root(file: Path, reader: Reader) -> Path | None:
    """Return the folder of the repository that a file is in; None outside a repository."""
    return next((root for root in file.parents if reader.exists(root / ".git")), None)


def _folders(root: Path, reader: Reader) -> tuple[Path, Path]:
    """Return the folder with HEAD and the one with the configuration.

    In a linked work tree, .git is a file that names the first, which names the second.
    """
    git = root / ".git"
    if reader.exists(git / "HEAD"):
        return git, git
    head = root / _text(git, reader).removeprefix("gitdir:").strip()
    common = (
        head / _text(head / "commondir", reader).strip()
        if reader.exists(head / "commondir")
        else head
    )
    return head, common


def _owner(config: str) -> tuple[str, str] | None:
    """Return (owner, repository) of the remote origin, else of the only remote."""
    remotes = dict(_remotes(config))
    url = remotes.get("origin") or (next(iter(remotes.values())) if len(remotes) == 1 else "")
    match = _GITHUB.fullmatch(url)
    return (match[1], match[2]) if match else None


def _remotes(config: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string("\n".join(line.strip() for line in config.splitlines()))
    except configparser.Error:
        return
    for section in parser.sections():
        if (remote := re.fullmatch(r'remote "(.*)"', section)) and (
            url := parser.get(section, "url", fallback=None)
        ):
            yield remote[1], url


def _text(path: Path, reader: Reader) -> str:
    return reader.read(path, _LIMIT).decode("utf-8", "replace")
