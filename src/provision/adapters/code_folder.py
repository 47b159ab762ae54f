"""Reads the code of a project from a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from provision.adapters.code_digests import SIZE, CodeDigests, Metadata, read_metadata
from provision.adapters.code_listing import list_files
from provision.adapters.code_selection import (
    OR_EXCLUDE,
    SECRET_RULES,
    select_code,
)
from provision.adapters.files import wrap_os_errors
from provision.agent.core.code_files import CodeFile, CodeManifest, read_code_file
from provision.effects.code import CodeProblem, CodeTree
from provision.errors import ExternalError
from provision.sanitize import escape_line


class _FolderFiles:
    """The files of a folder, as `code_selection.FileSource`."""

    pointer_hint = "run `git lfs pull`"

    def __init__(self, folder: Path, digests: CodeDigests) -> None:
        self._folder, self._digests = folder, digests
        self.ordinary: Set[str] = digests.rows.keys()
        self.metadata: Mapping[str, Metadata] = {}
        self.has_read = False

    def measure(self, paths: Sequence[str]) -> Mapping[str, int]:
        """Return the size of each file; a removed one is left out, and makes the tree dirty."""
        self.metadata = read_metadata(self._folder, paths)
        return {path: metadata[SIZE] for path, metadata in self.metadata.items()}

    def read(self, paths: Sequence[str]) -> Iterator[tuple[CodeFile, bytes | None] | CodeProblem]:
        """Yield each file, or why it cannot be read."""
        for path in paths:
            metadata = self.metadata.get(path)
            if metadata is not None and (file := self._digests.find(path, metadata)):
                yield file, None
                continue
            self.has_read = True
            try:
                yield read_code_file(self._folder, path)
            except OSError as error:
                why = f"{escape_line(path)} cannot be read: {error.strerror}"
                yield CodeProblem(why, f"make it readable{OR_EXCLUDE}")


class _FolderContents(Mapping[str, bytes]):
    """The content of the files of a folder; of those that were not read before, when needed.

    Raises ExternalError for a file that has changed since it was planned.
    """

    def __init__(
        self, folder: Path, files: Sequence[CodeFile], contents: Mapping[str, bytes]
    ) -> None:
        self._folder, self._contents = folder, contents
        self._files = {file.path: file for file in files}

    def __getitem__(self, path: str) -> bytes:
        if path in self._contents:
            return self._contents[path]
        try:
            file, content = read_code_file(self._folder, path)
        except OSError:
            with wrap_os_errors("read", self._folder / path):  # 10 us, so only for errors
                raise
        if file != self._files[path]:
            raise ExternalError(
                f"{self._folder / path} changed while the command was running",
                hint="run the command again",
            )
        return content

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def read_code(
    folder: Path,
    root: Path,
    exclude: Sequence[str],
    environment: Mapping[str, str],
    *,
    of_package: bool = False,
    now_ns: Callable[[], int] = time.time_ns,
) -> CodeTree:
    """Return the code of a folder; what cannot be used is among its problems.

    Args:
        folder: the folder, absolute.
        root: the project, which the folder may not leave.
        exclude: patterns of paths, or of names of files and folders, that are left out.
        environment: the caller's variables.
        of_package: it is the folder of a package, which needs its pyproject.toml; the caller's
            spec need not have `code.exclude`.
        now_ns: the clock.
    """
    real = Path(os.path.realpath(folder))
    if problem := _folder_problem(folder, real, root):
        return CodeTree(folder, CodeManifest(()), problems=(problem,))
    with list_files(real, environment) as listing:
        rules = (tuple(exclude), of_package, SECRET_RULES)
        digests = CodeDigests(environment, real, rules, now_ns())
        source = _FolderFiles(real, digests)
        code = select_code(real, listing, exclude, source, of_package=of_package)
    files = code.manifest.files
    if source.has_read and not code.problems:
        digests.save(files, source.metadata)
    return replace(code, contents=_FolderContents(real, files, code.contents))


def _folder_problem(folder: Path, real: Path, root: Path) -> CodeProblem | None:
    if not real.is_relative_to(root):
        return CodeProblem(
            f"{folder} is outside the project {root}", "use a folder inside the project"
        )
    if not real.is_dir():
        return CodeProblem(f"{folder} is not a folder", "use the folder that contains the code")
    return None
