"""The files of a project's code: their digest, and the archive that carries them to a device."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

SCHEMA = "provision.code/1"
FILE_MODE, PROGRAM_MODE, LINK_MODE = 0o100644, 0o100755, 0o120000
"""The modes that git knows for files."""
TREE, MANIFEST = "tree", "manifest.json"
"""The folder of the files, and the list of them, where an archive is unpacked."""
ARCHIVE = "code.archive"
"""The name of the archive on a device."""
_DAMAGED = "the code archive is damaged"


class CodeError(Exception):
    """An archive or a manifest that cannot be used; the text is one line."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file with `/` in its path, its mode as in git, and the sha256 of its content.

    The content of a link is its target.
    """

    path: str
    mode: int
    sha256: str


# Without slots, so that the digest is computed once: a plan uses it several times.
@dataclass(frozen=True)
class CodeManifest:
    """The files of a code folder; `commit` is "" if it is not known.

    `dirty` says that a tracked file differs from the commit.
    """

    files: tuple[CodeFile, ...]
    commit: str = ""
    dirty: bool = False

    @cached_property
    def digest(self) -> str:
        """The digest over path, mode and content of every file."""
        return compute_code_digest(self.files)

    def describe_origin(self) -> bytes:
        """Return digest, commit and dirty state as JSON, the same bytes for the same values."""
        origin = {"digest": self.digest, "commit": self.commit, "dirty": self.dirty}
        return json.dumps(origin, sort_keys=True).encode()

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object."""
        rows = [[file.path, f"{file.mode:o}", file.sha256] for file in self.files]
        return {
            "schema": SCHEMA,
            "digest": self.digest,
            "commit": self.commit,
            "dirty": self.dirty,
            "files": rows,
        }

    @classmethod
    def from_json(cls, document: Any) -> CodeManifest:
        """Return the manifest of a decoded document. Raises CodeError if it is not one."""
        try:
            if document["schema"] != SCHEMA:
                raise CodeError(f"the schema of the list of code files is not {SCHEMA}")
            files = tuple(
                CodeFile(str(path), int(mode, 8), str(sha256))
                for path, mode, sha256 in document["files"]
            )
            manifest = cls(files, str(document["commit"]), document["dirty"] is True)
            digest = document["digest"]
        except (KeyError, TypeError, ValueError):
            raise CodeError("the list of code files is damaged") from None
        if manifest.digest != digest:
            raise CodeError("the list of code files does not match its digest")
        return manifest


def compute_code_digest(files: Iterable[CodeFile]) -> str:
    """Return `sha256:` and the digest over path, mode and content of files in any order."""
    total = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        total.update(
            f"{file.mode:o} {file.sha256} {file.path}\0".encode("utf-8", "surrogateescape")
        )
    return f"sha256:{total.hexdigest()}"


def read_code_file(folder: Path, path: str) -> tuple[CodeFile, bytes]:
    """Return a file or link below a folder with its content. Raises OSError."""
    full = os.path.join(folder, path)
    status = os.lstat(full)
    if stat.S_ISLNK(status.st_mode):
        content, mode = os.fsencode(os.readlink(full)), LINK_MODE
    else:
        with open(full, "rb") as file:
            content = file.read()
        mode = to_git_mode(status.st_mode)
    return CodeFile(path, mode, hashlib.sha256(content).hexdigest()), content


def to_git_mode(mode: int) -> int:
    """Return the mode that git gives a regular file."""
    return PROGRAM_MODE if mode & stat.S_IXUSR else FILE_MODE


def find_changed_files(folder: Path, manifest: CodeManifest) -> tuple[CodeManifest, list[str]]:
    """Return the files of a manifest as they are now, and the paths of those that differ."""
    present, changed = [], []
    for declared in manifest.files:
        try:
            file, _ = read_code_file(folder, declared.path)
        except OSError:
            changed.append(declared.path)
            continue
        present.append(file)
        if file != declared:
            changed.append(file.path)
    return CodeManifest(tuple(present), manifest.commit, manifest.dirty), changed


class ArchiveEntry(NamedTuple):
    """A file in an archive: where its header and its content begin, and where the content ends."""

    path: str
    mode: int
    header: int
    start: int
    end: int


def pack_code(manifest: CodeManifest, contents: Mapping[str, bytes]) -> bytes:
    """Return the archive of code, the same bytes everywhere.

    It begins with digest and commit as JSON and a zero byte. For each file follow mode, size and
    path, separated by blanks, a zero byte, and the content. The digest covers everything else that
    a zip file would have: with its checksums, and with a sha256 of each file, 5,000 small files
    take ten times as long to pack, and three times as much when they are compressed.
    """
    pieces = [manifest.describe_origin(), b"\0"]
    for file in sorted(manifest.files, key=lambda file: file.path):
        content = contents[file.path]
        path = file.path.encode("utf-8", "surrogateescape")
        pieces += (b"%o %d %s\0" % (file.mode, len(content), path), content)
    return b"".join(pieces)


def list_archive(archive: bytes) -> Iterator[ArchiveEntry]:
    """Yield the files of an archive in their order. Raises CodeError if it is damaged."""
    end = archive.find(b"\0") + 1
    while end < len(archive):
        header = end
        start = archive.find(b"\0", header) + 1
        try:
            mode, size, path = archive[header : max(start - 1, header)].split(b" ", 2)
            end = start + int(size)
            if not start <= end <= len(archive):
                raise ValueError("the size is wrong")
            name = path.decode("utf-8", "surrogateescape")
            yield ArchiveEntry(name, int(mode, 8), header, start, end)
        except ValueError:
            raise CodeError(_DAMAGED) from None


def code_folder(parent: Path, digest: str) -> Path:
    """Return the folder of the files of code on a device, one for each digest."""
    return parent / digest.removeprefix("sha256:")[:12] / TREE


def unpack_code(archive: bytes, digest: str, parent: Path) -> Path:
    """Unpack an archive of code below a folder, and return the folder of its files.

    A folder of the same digest is used as it is. If somebody edited its files, it is kept under
    another name, as are the folders of other code.

    Raises:
        CodeError: the archive is not that of the digest, or contains a path that leaves its folder.
        OSError: a file cannot be written.
    """
    manifest, contents = _read_archive(archive)
    if manifest.digest != digest:
        raise CodeError("the digest of the code archive does not match the expected digest")
    for file in manifest.files:
        _require_inside(file, contents[file.path])
    tree = code_folder(parent, digest)
    target = tree.parent
    if target.is_dir() and not find_changed_files(tree, manifest)[1]:
        return tree
    parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=parent, prefix=f".{target.name}."))
    try:
        _write_files(temporary / TREE, manifest, contents)
        document = json.dumps(manifest.to_json(), sort_keys=True)
        (temporary / MANIFEST).write_text(document, encoding="utf-8")
        os.chmod(temporary, 0o755)
        if target.exists():
            os.replace(target, _free_name(target))
        os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return tree


def _read_archive(archive: bytes) -> tuple[CodeManifest, dict[str, bytes]]:
    """Return the files of an archive, with the content of each by its path."""
    files, contents = [], {}
    try:
        origin = json.loads(archive[: archive.find(b"\0")])
        commit, dirty = str(origin["commit"]), origin["dirty"] is True
    except (KeyError, TypeError, ValueError):
        raise CodeError(_DAMAGED) from None
    for entry in list_archive(archive):
        content = archive[entry.start : entry.end]
        contents[entry.path] = content
        files.append(CodeFile(entry.path, entry.mode, hashlib.sha256(content).hexdigest()))
    return CodeManifest(tuple(files), commit, dirty), contents


def _free_name(folder: Path) -> Path:
    number = 1
    while (free := folder.with_name(f"{folder.name}.edited-{number}")).exists():
        number += 1
    return free


def leaves_folder(path: str, target: str) -> bool:
    """Return whether a link at a path below a folder leads out of the folder."""
    if target.startswith("/"):
        return True
    depth = len(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _require_inside(file: CodeFile, content: bytes) -> None:
    path = PurePosixPath(file.path)
    is_outside = path.is_absolute() or ".." in path.parts or "\\" in file.path or not path.parts
    if is_outside or file.mode not in (FILE_MODE, PROGRAM_MODE, LINK_MODE):
        raise CodeError(f"the code archive contains an invalid path: {file.path!r}")
    if file.mode == LINK_MODE and leaves_folder(file.path, os.fsdecode(content)):
        raise CodeError(
            f"the code archive contains a link that points outside its folder: {file.path}"
        )


def _write_files(tree: Path, manifest: CodeManifest, contents: Mapping[str, bytes]) -> None:
    tree.mkdir()
    # Links come last: no file is written through one.
    for file in sorted(manifest.files, key=lambda file: file.mode == LINK_MODE):
        path = tree / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.mode == LINK_MODE:
            os.symlink(os.fsdecode(contents[file.path]), path)
        else:
            path.write_bytes(contents[file.path])
            os.chmod(path, file.mode & 0o777)
