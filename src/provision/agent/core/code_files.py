"""The files of a project's code: their digest, and the archive that carries them to a device."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

SCHEMA = "provision.code/1"
FILE_MODE, PROGRAM_MODE, LINK_MODE = 0o100644, 0o100755, 0o120000
"""The modes that git knows for files."""
TREE, MANIFEST = "tree", "manifest.json"
"""The folder of the files, and the list of them, in an archive and where it is unpacked."""
ARCHIVE = "code.zip"
"""The name of the archive on a device."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


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


def pack_code(manifest: CodeManifest, contents: Mapping[str, bytes]) -> bytes:
    """Return the archive of code: the manifest and the files, the same bytes everywhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, mode: int, content: bytes) -> None:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = 3, mode << 16
            archive.writestr(entry, content)

        add(MANIFEST, FILE_MODE, json.dumps(manifest.to_json(), sort_keys=True).encode())
        for file in sorted(manifest.files, key=lambda file: file.path):
            add(f"{TREE}/{file.path}", file.mode, contents[file.path])
    return buffer.getvalue()


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
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = {name: opened.read(name) for name in opened.namelist()}
            manifest = CodeManifest.from_json(json.loads(members[MANIFEST]))
            contents = {file.path: members[f"{TREE}/{file.path}"] for file in manifest.files}
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise CodeError("the code archive is damaged") from None
    if manifest.digest != digest:
        raise CodeError("the digest of the code archive does not match the expected digest")
    for file in manifest.files:
        if hashlib.sha256(contents[file.path]).hexdigest() != file.sha256:
            raise CodeError(f"{file.path} in the code archive does not match its listed sha256")
        _require_inside(file, contents[file.path])
    tree = code_folder(parent, digest)
    target = tree.parent
    if target.is_dir() and not find_changed_files(tree, manifest)[1]:
        return tree
    parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=parent, prefix=f".{target.name}."))
    try:
        _write_files(temporary / TREE, manifest, contents)
        (temporary / MANIFEST).write_bytes(members[MANIFEST])
        os.chmod(temporary, 0o755)
        if target.exists():
            os.replace(target, _free_name(target))
        os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return tree


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
