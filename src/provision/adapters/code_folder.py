"""Reads the code of a project: the tracked files of a folder, or all of one without git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from provision.adapters.process import capture
from provision.agent.core.code_files import CodeFile, CodeManifest, leaves_folder, read_code_file
from provision.effects.code import CodeProblem, CodeTree
from provision.sanitize import escape_line
from provision.spelling import pluralize

MAX_BYTES = 100 * 2**20
"""Bytes of all files; data and checkpoints belong in `paths`. Our choice."""
_LFS = b"version https://git-lfs.github.com/spec/"
"""First line of a pointer (Git LFS specification)."""
_MAX_POINTER_BYTES = 1024
_MAX_NAMED = 5
_IGNORED_FOLDERS = frozenset(
    {"__pycache__", "node_modules", "venv", "env", "build", "dist", "wandb", "mlruns", "runs"}
)
_IGNORED_FILES = ("*.pyc", "*.pyo", "*.egg-info", "*.swp", "*~")
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
_RENDERED_NAMES = (".colab.py", ".ipynb")
_RENDERED_MARK = b"Written by `provision render`"
"""In a rendered cell and notebook, which contain the code themselves."""
_OR_EXCLUDE = ", or add it to `code.exclude`"
_SUBMODULE = "160000"
_FORBIDDEN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
_GIT_S = 60.0
_NOTHING = r"(?!)"
"""An expression that matches nothing."""
_REPLACEMENT = "\ufffd"
"""In place of bytes that are not UTF-8."""


@dataclass
class _Listing:
    """The files below a folder, before they are read."""

    paths: list[str]
    commit: str = ""
    changed: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    submodules: list[str] = field(default_factory=list)


def read_code(
    folder: Path,
    root: Path,
    exclude: Sequence[str],
    environment: Mapping[str, str],
    *,
    of_package: bool = False,
) -> CodeTree:
    """Return the code of a folder; what cannot be used is among its problems.

    Args:
        folder: the folder, absolute.
        root: the project, which the folder may not leave.
        exclude: patterns of paths, or of names of files and folders, that are left out.
        environment: the caller's variables.
        of_package: it is the folder of a package: the files that git neither tracks nor ignores
            are taken too, and no field of the spec leaves files out.
    """
    real = Path(os.path.realpath(folder))
    if problem := _folder_problem(folder, real, root):
        return CodeTree(folder, CodeManifest(()), problems=(problem,))
    listing = _list_files(real, environment, untracked=of_package)
    kept = [path for path in listing.paths if not is_excluded(path, exclude)]
    secret = [path for path in kept if _is_secret_name(path)]
    kept = [path for path in kept if not _is_secret_name(path) and _exists(real, path)]
    problems = list(_submodule_problems(listing, exclude))
    files: list[CodeFile] = []
    contents: dict[str, bytes] = {}
    if size_problem := _find_size_problem(real, kept, of_package=of_package):
        problems.append(size_problem)
        kept = []
    for path in kept:
        try:
            file, content = read_code_file(real, path)
        except OSError as error:
            why = f"{escape_line(path)} cannot be read: {error.strerror}"
            problems.append(CodeProblem(why, f"make it readable{_OR_EXCLUDE}"))
            continue
        if path.endswith(_RENDERED_NAMES) and _RENDERED_MARK in content:
            continue
        problems += _content_problems(path, file, content)
        files.append(file)
        contents[path] = content
    if not files and not problems:
        hint = "add files to git, or use a different folder"
        problems.append(CodeProblem(f"{folder} contains no files", hint))
    changed = [path for path in listing.changed if not is_excluded(path, exclude)]
    made = (*exclude, *_IGNORED_FOLDERS, *_IGNORED_FILES)
    left_out = [path for path in listing.untracked if not is_excluded(path, made)]
    return CodeTree(
        real,
        CodeManifest(tuple(files), listing.commit, bool(changed)),
        contents,
        tuple(secret),
        tuple(left_out),
        tuple(changed),
        tuple(_without_exclude(problem) if of_package else problem for problem in problems),
    )


def _without_exclude(problem: CodeProblem) -> CodeProblem:
    return replace(problem, hint=problem.hint.removesuffix(_OR_EXCLUDE))


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


def _folder_problem(folder: Path, real: Path, root: Path) -> CodeProblem | None:
    if not real.is_relative_to(root):
        return CodeProblem(
            f"{folder} is outside the project {root}", "use a folder inside the project"
        )
    if not real.is_dir():
        return CodeProblem(f"{folder} is not a folder", "use the folder that contains the code")
    return None


def _submodule_problems(listing: _Listing, exclude: Sequence[str]) -> Iterator[CodeProblem]:
    for path in listing.submodules:
        if not is_excluded(path, exclude):
            yield CodeProblem(
                f"{escape_line(path)} is a submodule, and git does not track its files in this "
                "repository",
                f"copy the files you need from it into the repository{_OR_EXCLUDE}",
            )


def _list_files(folder: Path, environment: Mapping[str, str], *, untracked: bool) -> _Listing:
    listing = _list_tracked(folder, environment) or _Listing(list(_walk(folder)))
    if untracked:
        ignored = (*_IGNORED_FOLDERS, *_IGNORED_FILES, ".*")
        new = [path for path in listing.untracked if not is_excluded(path, ignored)]
        listing.paths, listing.untracked = sorted([*listing.paths, *new]), []
    return listing


def _list_tracked(folder: Path, environment: Mapping[str, str]) -> _Listing | None:
    """Return the files that git tracks below a folder; None without git or a repository."""
    variables = {
        **{name: value for name, value in environment.items() if name not in _FORBIDDEN_VARIABLES},
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    # A monitor of the file system is a program that the repository's configuration names.
    git = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]

    def ask(*words: str) -> str | None:
        try:
            answer = capture([*git, *words], variables, timeout_s=_GIT_S)
        except FileNotFoundError:
            return None
        return answer.stdout if answer.code == 0 else None

    listed = ask("ls-files", "-z", "--stage")
    if listed is None:
        return None
    paths, submodules = list[str](), list[str]()
    for row in filter(None, listed.split("\0")):
        about, _, path = row.partition("\t")
        (submodules if about.startswith(_SUBMODULE) else paths).append(path)
    found = _Listing(list(dict.fromkeys(paths)), submodules=submodules)
    found.commit = (ask("rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    prefix = (ask("rev-parse", "--show-prefix") or "").strip("\n")
    status = ask("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", ".")
    for row in filter(None, (status or "").split("\0")):
        path = row[3:].removeprefix(prefix)
        (found.untracked if row.startswith("??") else found.changed).append(path)
    return found


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, without hidden ones and those that tools make."""
    for current, folders, names in os.walk(folder):
        above = Path(current)
        links = [name for name in folders if (above / name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _IGNORED_FOLDERS and name not in links
        )
        for name in sorted((*names, *links)):
            if not name.startswith(".") and not is_excluded(name, _IGNORED_FILES):
                yield (above / name).relative_to(folder).as_posix()


def _exists(folder: Path, path: str) -> bool:
    """Return whether a tracked file is still there; a removed one makes the tree dirty."""
    return _REPLACEMENT in path or os.path.lexists(folder / path)


def _is_secret_name(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return is_excluded(name, _SECRET_FILES) and not is_excluded(name, _SECRET_SAMPLES)


def _find_size_problem(
    folder: Path, paths: Sequence[str], *, of_package: bool
) -> CodeProblem | None:
    sizes = {
        path: os.lstat(folder / path).st_size for path in paths if os.path.lexists(folder / path)
    }
    total = sum(sizes.values())
    if total <= MAX_BYTES:
        return None
    largest = sorted(sizes, key=lambda path: -sizes[path])[:_MAX_NAMED]
    named = ", ".join(f"{escape_line(path)} ({sizes[path] / 2**20:.1f} MiB)" for path in largest)
    hint = "add data and checkpoints to `code.exclude`, and keep them in a folder under `paths`"
    if of_package:
        hint = "move data and checkpoints out of the folder of the package"
    return CodeProblem(
        f"the code has {total / 2**20:.1f} MiB in {pluralize(len(paths), 'file')}, which is above "
        f"the limit of {MAX_BYTES >> 20} MiB; the largest: {named}",
        hint,
    )


def _content_problems(path: str, file: CodeFile, content: bytes) -> Iterator[CodeProblem]:
    shown = escape_line(path)
    if _REPLACEMENT in path:
        yield CodeProblem(
            f"the file name {shown} is not valid UTF-8",
            f"rename the file{_OR_EXCLUDE}",
        )
    if file.mode == 0o120000 and leaves_folder(path, os.fsdecode(content)):
        yield CodeProblem(
            f"{shown} is a link out of the folder, to {escape_line(os.fsdecode(content))}",
            f"replace the link with the file{_OR_EXCLUDE}",
        )
    if len(content) < _MAX_POINTER_BYTES and content.startswith(_LFS):
        yield CodeProblem(
            f"{shown} is a Git LFS pointer, not the file itself",
            f"run `git lfs pull`{_OR_EXCLUDE}",
        )
