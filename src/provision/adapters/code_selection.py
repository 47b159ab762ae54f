"""Selects the files of a project's code: what is left out, and what stands in its way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from provision.agent.core.code_files import LINK_MODE, CodeFile, CodeManifest, leaves_folder
from provision.agent.core.git_objects import is_lfs_pointer
from provision.effects.code import CodeProblem, CodeTree
from provision.sanitize import escape_line
from provision.spelling import pluralize

MAX_BYTES = 100 * 2**20
"""Bytes of all files; data and checkpoints belong in `paths`. Our choice."""
_MAX_NAMED = 5
IGNORED_FOLDERS = frozenset(
    {"__pycache__", "node_modules", "venv", "env", "build", "dist", "wandb", "mlruns", "runs"}
)
IGNORED_FILES = ("*.pyc", "*.pyo", "*.egg-info", "*.swp", "*~")
_SECRET_FILES = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pypirc",
    ".git-credentials",
    "credentials.json",
    "application_default_credentials.json",
    "service-account*.json",
    "service_account*.json",
    "kaggle.json",
    "secrets.json",
    "secrets.y*ml",
)
_SECRET_SAMPLES = ("*.example", "*.sample", "*.template", "*.dist")
"""Files that show the form of such a file, without values."""
SECRET_RULES = (_SECRET_FILES, _SECRET_SAMPLES)
_RENDERED_NAMES = (".colab.py", ".ipynb")
_PAYLOAD_NAME, _PAYLOAD_MEMBER = ".payload", b"document.json"
_RENDERED_MARK = b"Written by `provision render`"
"""In a rendered cell and notebook, which contain the code themselves."""
_PROJECT_FILE = "pyproject.toml"
_UNTRACKED_PROJECT = CodeProblem(
    f"git does not track {_PROJECT_FILE}, and only tracked files belong to the package",
    "run `git add` for it and the files of the package",
)
OR_EXCLUDE = ", or add it to `code.exclude`"
_NOTHING = r"(?!)"
"""An expression that matches nothing."""
REPLACEMENT = "\ufffd"
"""In place of bytes that are not UTF-8."""


@dataclass
class CommitState:
    """The commit that is checked out, "" without one, and the differences of the files from it."""

    commit: str = ""
    changed: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)


@dataclass
class Listing:
    """The files below a folder, before they are read.

    `compare` may block: the comparison with the commit takes as long as the reading.
    """

    paths: list[str]
    submodules: list[str] = field(default_factory=list)
    compare: Callable[[], CommitState] = CommitState


class FileSource(Protocol):
    """The files of a listing, in a folder or in a commit."""

    pointer_hint: str
    """Advice to get the file in place of a pointer of Git LFS."""

    ordinary: Set[str]
    """Files that were selected before, by the same rules, and had no problem. They may have changed
    since."""

    def measure(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the size in bytes of each file that exists."""

    def read(self, paths: Sequence[str]) -> Iterator[tuple[CodeFile, bytes | None] | CodeProblem]:
        """Yield each file that exists with its content, or why it cannot be read.

        An ordinary file that has not changed has None in place of its content.
        """


def select_code(
    folder: Path,
    listing: Listing,
    exclude: Sequence[str],
    source: FileSource,
    *,
    of_package: bool = False,
    name: str = "",
) -> CodeTree:
    """Return the code in a listing; what cannot be used is among its problems.

    Messages call the whole `name`, else by the folder.
    """
    kept, secret = list[str](), list[str]()
    for path in listing.paths:
        if path in source.ordinary:
            kept.append(path)
        elif not is_excluded(path, exclude):
            (secret if _is_secret_name(path) else kept).append(path)
    problems = list(_submodule_problems(listing, exclude))
    sizes = source.measure(kept)
    if size_problem := _find_size_problem(sizes, of_package=of_package):
        problems.append(size_problem)
        kept = []
    files: list[CodeFile] = []
    contents: dict[str, bytes] = {}
    rendered = set[str]()
    for item in source.read([path for path in kept if path in sizes or REPLACEMENT in path]):
        if isinstance(item, CodeProblem):
            problems.append(item)
            continue
        file, content = item
        if content is None:
            files.append(file)
            continue
        if _is_rendered(file.path, content):
            rendered.add(file.path)
            continue
        problems += _content_problems(file, content, source.pointer_hint)
        files.append(file)
        contents[file.path] = content
    state = listing.compare()
    if of_package and _PROJECT_FILE in state.untracked:
        problems.append(_UNTRACKED_PROJECT)
    if not files and not problems:
        problems.append(_describe_empty_folder(name or str(folder), state.untracked))
    own = (path for path in state.changed if path not in rendered)
    changed = [path for path in own if not is_excluded(path, exclude)]
    made = (*exclude, *IGNORED_FOLDERS, *IGNORED_FILES)
    left_out = [path for path in state.untracked if not is_excluded(path, made)]
    return CodeTree(
        folder,
        CodeManifest(tuple(files), state.commit, bool(changed)),
        contents,
        tuple(secret),
        tuple(left_out),
        tuple(changed),
        tuple(_without_exclude(problem) if of_package else problem for problem in problems),
    )


def _describe_empty_folder(name: str, untracked: Sequence[str]) -> CodeProblem:
    what = "contains no files that git tracks" if untracked else "contains no files"
    return CodeProblem(f"{name} {what}", "add files to git, or use a different folder")


def _without_exclude(problem: CodeProblem) -> CodeProblem:
    return replace(problem, hint=problem.hint.removesuffix(OR_EXCLUDE))


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a path, a folder above it, or the name of one of them matches a pattern.

    A pattern that begins with a slash is not compared with names.
    """
    paths, names = _compile_patterns(tuple(patterns))
    parts = path.split("/")
    above = ("/".join(parts[: count + 1]) for count in range(len(parts)))
    return any(map(paths.match, above)) or any(map(names.match, parts))


@lru_cache(maxsize=64)
def _compile_patterns(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the expressions that match an excluded path, and an excluded name."""
    forms = {pattern: translate(pattern.strip("/")) for pattern in patterns}
    names = [form for pattern, form in forms.items() if not pattern.startswith("/")]
    return re.compile("|".join(forms.values()) or _NOTHING), re.compile("|".join(names) or _NOTHING)


def _submodule_problems(listing: Listing, exclude: Sequence[str]) -> Iterator[CodeProblem]:
    for path in listing.submodules:
        if not is_excluded(path, exclude):
            yield CodeProblem(
                f"{escape_line(path)} is a submodule, and git does not track its files in this "
                "repository",
                f"copy the files you need from it into the repository{OR_EXCLUDE}",
            )


def _is_rendered(path: str, content: bytes) -> bool:
    """Return whether `provision render` wrote a file, which contains the code itself."""
    if path.endswith(_PAYLOAD_NAME):
        return content.startswith(b"PK") and _PAYLOAD_MEMBER in content
    return path.endswith(_RENDERED_NAMES) and _RENDERED_MARK in content


def _is_secret_name(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return is_excluded(name, _SECRET_FILES) and not is_excluded(name, _SECRET_SAMPLES)


def _find_size_problem(sizes: Mapping[str, int], *, of_package: bool) -> CodeProblem | None:
    total = sum(sizes.values())
    if total <= MAX_BYTES:
        return None
    largest = sorted(sizes, key=lambda path: -sizes[path])[:_MAX_NAMED]
    named = ", ".join(f"{escape_line(path)} ({sizes[path] / 2**20:.1f} MiB)" for path in largest)
    hint = "add data and checkpoints to `code.exclude`, and keep them in a folder under `paths`"
    if of_package:
        hint = "move data and checkpoints out of the folder of the package"
    return CodeProblem(
        f"the code has {total / 2**20:.1f} MiB in {pluralize(len(sizes), 'file')}, which is above "
        f"the limit of {MAX_BYTES >> 20} MiB; the largest: {named}",
        hint,
    )


def _content_problems(file: CodeFile, content: bytes, pointer_hint: str) -> Iterator[CodeProblem]:
    shown = escape_line(file.path)
    if REPLACEMENT in file.path:
        yield CodeProblem(
            f"the file name {shown} is not valid UTF-8",
            f"rename the file{OR_EXCLUDE}",
        )
    if file.mode == LINK_MODE and leaves_folder(file.path, os.fsdecode(content)):
        yield CodeProblem(
            f"{shown} is a link out of the folder, to {escape_line(os.fsdecode(content))}",
            f"replace the link with the file{OR_EXCLUDE}",
        )
    if is_lfs_pointer(content):
        yield CodeProblem(
            f"{shown} is a Git LFS pointer, not the file itself",
            f"{pointer_hint}{OR_EXCLUDE}",
        )
