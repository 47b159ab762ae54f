"""The digest of code, its archive, and what an archive may not do on a device."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from provision.agent.core.code_files import (
    LINK_MODE,
    PROGRAM_MODE,
    CodeError,
    CodeFile,
    CodeManifest,
    code_folder,
    compute_code_digest,
    find_changed_files,
    leaves_folder,
    pack_code,
    read_code_file,
    unpack_code,
)

FILES = {"train.py": b"print(1)\n", "pkg/model.py": b"X = 1\n", "run.sh": b"#!/bin/sh\n"}


def read_tree(folder: Path) -> tuple[CodeManifest, dict[str, bytes]]:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("pkg/model.py")
    read = [read_code_file(folder, name) for name in (*FILES, "latest")]
    contents = {file.path: content for file, content in read}
    return CodeManifest(tuple(file for file, _ in read), "c" * 40, dirty=True), contents


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    manifest, contents = read_tree(tmp_path / "here")
    modes = {file.path: file.mode for file in manifest.files}
    assert (modes["run.sh"], modes["latest"]) == (PROGRAM_MODE, LINK_MODE)
    tree = unpack_code(pack_code(manifest, contents), manifest.digest, tmp_path / "code")
    assert tree == code_folder(tmp_path / "code", manifest.digest)
    assert str((tree / "latest").readlink()) == "pkg/model.py"
    assert find_changed_files(tree, manifest) == (manifest, [])
    assert CodeManifest.from_json(manifest.to_json()) == manifest


def test_the_bytes_do_not_depend_on_order_or_time(tmp_path: Path) -> None:
    manifest, contents = read_tree(tmp_path / "here")
    turned = CodeManifest(tuple(reversed(manifest.files)), manifest.commit, manifest.dirty)
    os.utime(tmp_path / "here/train.py", (0, 0))
    assert turned.digest == manifest.digest == compute_code_digest(manifest.files)
    assert pack_code(turned, contents) == pack_code(manifest, contents)


@pytest.mark.parametrize("changed", ["content", "mode", "path"])
def test_the_digest_is_over_path_mode_and_content(changed: str) -> None:
    file = CodeFile("a.py", 0o100644, "0" * 64)
    other = {
        "content": CodeFile("a.py", 0o100644, "1" * 64),
        "mode": CodeFile("a.py", 0o100755, "0" * 64),
        "path": CodeFile("b.py", 0o100644, "0" * 64),
    }[changed]
    assert compute_code_digest([file]) != compute_code_digest([other])


def test_edited_and_removed_files_are_named(tmp_path: Path) -> None:
    manifest, _ = read_tree(tmp_path)
    (tmp_path / "train.py").write_text("print(2)\n")
    (tmp_path / "run.sh").unlink()
    present, changed = find_changed_files(tmp_path, manifest)
    assert sorted(changed) == ["run.sh", "train.py"]
    assert present.digest != manifest.digest


def test_older_code_and_edits_of_people_stay(tmp_path: Path) -> None:
    manifest, contents = read_tree(tmp_path / "here")
    archive, parent = pack_code(manifest, contents), tmp_path / "code"
    tree = unpack_code(archive, manifest.digest, parent)
    (tree / "train.py").write_text("edited\n")
    newer = {**contents, "train.py": b"print(2)\n"}
    rows = [
        CodeFile(f.path, f.mode, hashlib.sha256(newer[f.path]).hexdigest()) for f in manifest.files
    ]
    second = CodeManifest(tuple(rows))
    unpack_code(pack_code(second, newer), second.digest, parent)
    assert len(list(parent.iterdir())) == 2
    assert (tree / "train.py").read_bytes() == b"edited\n"
    assert unpack_code(archive, manifest.digest, parent) == tree
    assert (tree / "train.py").read_bytes() == FILES["train.py"]
    edited = tree.parent.with_name(f"{tree.parent.name}.edited-1")
    assert (edited / "tree/train.py").read_bytes() == b"edited\n"


def broken(name: str, mode: int = 0o100644, content: bytes = b"x") -> tuple[bytes, str]:
    manifest = CodeManifest((CodeFile(name, mode, hashlib.sha256(content).hexdigest()),))
    return pack_code(manifest, {name: content}), manifest.digest


@pytest.mark.parametrize(
    ("name", "mode", "content", "words"),
    [
        ("../evil", 0o100644, b"x", "invalid path"),
        ("/etc/evil", 0o100644, b"x", "invalid path"),
        ("a\\b", 0o100644, b"x", "invalid path"),
        ("a", 0o104755, b"x", "invalid path"),
        ("a", LINK_MODE, b"/etc/passwd", "link that points outside its folder"),
        ("d/a", LINK_MODE, b"../../x", "link that points outside its folder"),
    ],
)
def test_an_archive_writes_nothing_outside_its_folder(
    name: str, mode: int, content: bytes, words: str, tmp_path: Path
) -> None:
    archive, digest = broken(name, mode, content)
    with pytest.raises(CodeError, match=words):
        unpack_code(archive, digest, tmp_path / "code")
    assert not (tmp_path / "code").exists()


def test_a_damaged_or_foreign_archive_is_refused(tmp_path: Path) -> None:
    archive, digest = broken("a.py")
    for content, wanted, words in (
        (b"not a zip", digest, "damaged"),
        (archive[:-1], digest, "damaged"),
        (archive[:-3], digest, "damaged"),
        (archive + b"x", digest, "damaged"),
        (archive.replace(b" 1 ", b" -9 "), digest, "damaged"),
        (archive.replace(b"100644", b"10064x"), digest, "damaged"),
        (b"{}" + archive[archive.find(b"\0") :], digest, "damaged"),
        (b"[]\0", digest, "damaged"),
        (archive, "sha256:" + "0" * 64, "does not match the expected digest"),
    ):
        with pytest.raises(CodeError, match=words):
            unpack_code(content, wanted, tmp_path / "code")
    assert not (tmp_path / "code").exists()
    for document in ({}, [], {"schema": "provision.code/1", "files": [["a"]]}):
        with pytest.raises(CodeError, match="damaged"):
            CodeManifest.from_json(document)


@pytest.mark.parametrize(
    ("path", "target", "leaves"),
    [
        ("a", "b", False),
        ("d/a", "../b", False),
        ("d/a", "../../b", True),
        ("a", "/b", True),
        ("a", "d/../../b", True),
        ("a", "./b", False),
    ],
)
def test_a_link_that_leaves_its_folder(path: str, target: str, leaves: bool) -> None:
    assert leaves_folder(path, target) is leaves
