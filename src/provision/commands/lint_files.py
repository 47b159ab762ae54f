"""Finds the files to lint: names, folders, patterns, and standard input."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from provision.errors import ExternalError, SourceError, UsageError

if TYPE_CHECKING:
    from provision.effects.system import System

STDIN = Path("-")
MAX_FILES = 20_000
"""Files of one folder or pattern: a larger one is a mistake, such as `/` (our choice)."""
_SPEC_SUFFIXES = (".yaml", ".yml")
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})


class InputFile(NamedTuple):
    """A file to lint; `named` is False if a folder or a pattern matched it."""

    path: Path
    named: bool


class SkippedFile(NamedTuple):
    """A file of another tool, and how it was recognized."""

    reason: str


UnmatchedWord = tuple[Path, SourceError]
"""A folder or a pattern that matches no file, and the reason."""


def find_files(words: Iterable[Path]) -> tuple[tuple[InputFile, ...], tuple[UnmatchedWord, ...]]:
    """Return the files that the words name, each once, and the words that match no file.

    A word is a file, a folder with all *.yaml and *.yml files below it, or a pattern with `*`, `?`,
    `[...]` and `**`. Folders whose names begin with a dot, links to folders, and the folders of
    environments are not searched.

    Raises:
        UsageError: a folder or a pattern matches too many files.
    """
    files: dict[Path, bool] = {}
    unmatched = []
    for word in words:
        if word.is_dir():
            matches = _files_below(word)
        elif not word.exists() and any(sign in str(word) for sign in "*?["):
            matches = _matching_files(str(word))
        else:
            files[word] = True
            continue
        count = 0
        for count, path in enumerate(matches, start=1):
            if count > MAX_FILES:
                hint = "use a smaller folder, or a pattern such as 'specs/*.yaml'"
                raise UsageError(f"{word} matches more than {MAX_FILES} files", hint=hint)
            files.setdefault(path, False)
        if not count:
            what = f"the folder {word} has no *.yaml file"
            if not word.is_dir():
                what = f"no file matches the pattern {word}"
            unmatched.append((word, SourceError(what)))
    return tuple(InputFile(*item) for item in files.items()), tuple(unmatched)


def is_searched(parent: str, name: str) -> bool:
    """Return whether a folder is searched for specs."""
    return (
        not name.startswith(".")
        and name not in _SKIPPED_FOLDERS
        # Path.exists raises for a folder that may not be searched.
        and not os.path.exists(f"{parent}/{name}/pyvenv.cfg")  # noqa: PTH110
    )


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if is_searched(parent, name))
        for name in sorted(names):
            if name.endswith(_SPEC_SUFFIXES) and not name.startswith("."):
                yield Path(parent) / name


def _matching_files(pattern: str) -> Iterator[Path]:
    import glob

    real = set()  # a link to a folder may lead to the same files again and again
    names = glob.iglob(pattern, recursive=True)  # noqa: PTH207 (keeps the name as written)
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        path = Path(name)
        if path.is_file() and path.resolve() not in real:
            real.add(path.resolve())
            yield path


class SystemWithStdin:
    """A system in which a text from standard input has the place of a file."""

    def __init__(self, system: System, path: Path, content: bytes) -> None:
        self._system, self._path, self._content = system, path, content

    def read(self, path: Path, limit: int) -> bytes:
        """See Reader."""
        if path.absolute() != self._path.absolute():
            return self._system.read(path, limit)
        if len(self._content) > limit:
            raise ExternalError(
                f"{path} cannot be read", why=f"it is larger than {limit >> 20} MiB"
            )
        return self._content

    def exists(self, path: Path) -> bool:
        """See Reader."""
        return path.absolute() == self._path.absolute() or self._system.exists(path)

    def __getattr__(self, name: str) -> Any:
        """Return the other methods of the system."""
        return getattr(self._system, name)


def with_stdin(system: System, path: Path, content: bytes) -> System:
    """Return a system that reads a content instead of the file at `path`."""
    return cast("System", SystemWithStdin(system, path, content))


def read_stdin(
    files: tuple[Path, ...], name: Path | None, default: str, system: System
) -> tuple[tuple[Path, ...], System]:
    """Return the files with the name of standard input for `-`, and a system that reads it.

    Without a name, a notebook is called stdin.ipynb, and another text `default`.
    """
    from provision.imports.notebook import MAX_NOTEBOOK_BYTES

    content = sys.stdin.buffer.read(MAX_NOTEBOOK_BYTES + 1)
    if name is None:
        is_object = content.removeprefix(BOM_UTF8).lstrip().startswith(b"{")
        is_notebook = is_object and b'"cells"' in content and b'"nbformat"' in content
        name = Path("stdin.ipynb" if is_notebook else default)
    named = tuple(name if path == STDIN else path for path in files)
    return named, with_stdin(system, name, content)
