"""The code of a folder: what is in it, what is left out, and what stands in its way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from provision.adapters import code_selection
from provision.adapters.code_folder import read_code
from provision.adapters.code_selection import is_excluded
from provision.commands.shared.project_code import describe_code
from provision.effects.code import CodeTree

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    write(folder, train_py="1\n", pkg__model_py="2\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def read(folder: Path, *exclude: str, root: Path | None = None) -> CodeTree:
    return read_code(folder, root or folder, exclude, os.environ)


def paths(code: CodeTree) -> list[str]:
    return sorted(file.path for file in code.manifest.files)


def why(code: CodeTree) -> str:
    return "; ".join(f"{problem.why} | {problem.hint}" for problem in code.problems)


def test_tracked_files_with_their_commit(repository: Path) -> None:
    write(repository, notes="untracked\n")
    code = read(repository)
    assert (paths(code), why(code)) == (["pkg/model.py", "train.py"], "")
    assert (code.untracked, code.changed, code.manifest.dirty) == (("notes",), (), False)
    assert len(code.manifest.commit) == 40
    assert paths(read(repository / "pkg", root=repository)) == ["model.py"]


def test_an_edited_file_makes_it_dirty_and_changes_the_digest(repository: Path) -> None:
    before = read(repository)
    write(repository, pkg__model_py="3\n")
    after = read(repository)
    assert (after.changed, after.manifest.dirty) == (("pkg/model.py",), True)
    assert after.digest != before.digest
    assert after.manifest.commit == before.manifest.commit
    inner = read(repository / "pkg", root=repository)
    assert inner.changed == ("model.py",)
    assert read(repository, "pkg").changed == ()


def test_git_without_a_commit_and_during_a_merge(repository: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    write(new, **{"a b.py": "1\n", "line\nbreak": "2\n"})
    git(new, "init", "-q")
    git(new, "add", "a b.py")
    code = read(new)
    assert (paths(code), code.manifest.commit) == (["a b.py"], "")
    assert (code.changed, code.untracked) == (("a b.py",), ("line\nbreak",))
    git(repository, "checkout", "-qb", "other")
    write(repository, pkg__model_py="3\n")
    git(repository, "commit", "-qam", "two")
    git(repository, "checkout", "-q", "-")
    write(repository, pkg__model_py="4\n")
    git(repository, "commit", "-qam", "three")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "other")
    inner = read(repository / "pkg", root=repository)
    assert (paths(inner), inner.changed) == (["model.py"], ("model.py",))


def test_a_removed_file_is_left_out(repository: Path) -> None:
    (repository / "train.py").unlink()
    code = read(repository)
    assert (paths(code), code.changed) == (["pkg/model.py"], ("train.py",))


def test_without_git_all_files_but_hidden_and_made_ones(tmp_path: Path) -> None:
    write(
        tmp_path,
        train_py="1\n",
        **{".hidden": "", "__pycache__x": "", "venv/lib/a.py": "", "a.pyc": "", "data/a.txt": ""},
    )
    code = read(tmp_path)
    assert "train.py" in paths(code)
    assert not {".hidden", "a.pyc", "venv/lib/a.py"} & set(paths(code))
    assert (code.manifest.commit, code.manifest.dirty) == ("", False)


def test_both_forms_have_one_digest(repository: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain, train_py="1\n", pkg__model_py="2\n")
    assert read(plain).digest == read(repository).digest


@pytest.mark.parametrize(
    ("path", "pattern", "excluded"),
    [
        ("data/a.bin", "data", True),
        ("data/a.bin", "data/", True),
        ("src/data/a.bin", "data", True),
        ("a.log", "*.log", True),
        ("x/a.log", "*.log", True),
        ("x/y/a.txt", "x/y", True),
        ("x/y/a.txt", "y/a.txt", False),
        ("database.py", "data", False),
        ("a/out", "/a/out", True),
        ("a/out/x", "/a/out", True),
        ("b/a/out", "/a/out", False),
        ("b/out", "/out", False),
    ],
)
def test_patterns_of_excluded_files(path: str, pattern: str, excluded: bool) -> None:
    assert is_excluded(path, [pattern]) is excluded


def test_files_that_look_like_secrets_are_named_and_left_out(repository: Path) -> None:
    write(repository, **{".env": "A=1\n", ".env.example": "A=\n", "keys/id_rsa": "x\n"})
    git(repository, "add", "-f", ".")
    code = read(repository)
    assert code.secret_files == (".env", "keys/id_rsa")
    assert not {".env", "keys/id_rsa"} & set(paths(code))
    assert ".env.example" in paths(code)
    assert read(repository, "keys").secret_files == (".env",)


def test_what_render_wrote_is_left_out(repository: Path) -> None:
    own = {
        "spec.colab.py": "# Written by `provision render`.\n",
        "spec.payload": "PK document.json\n",
        "own.ipynb": "{}\n",
    }
    write(repository, **own)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "two")
    write(repository, **{"spec.colab.py": "# Written by `provision render`, later.\n"})
    code = read(repository)
    assert paths(code) == ["own.ipynb", "pkg/model.py", "train.py"]
    assert (code.changed, code.manifest.dirty) == ((), False)


def test_links_inside_are_kept_and_links_out_are_refused(repository: Path) -> None:
    (repository / "pkg/again.py").symlink_to("../train.py")
    git(repository, "add", ".")
    assert why(read(repository)) == ""
    (repository / "out").symlink_to("/etc/passwd")
    git(repository, "add", ".")
    assert "out is a link out of the folder, to /etc/passwd" in why(read(repository))
    assert why(read(repository, "out")) == ""


def test_pointers_of_lfs_and_submodules_are_named(repository: Path, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    write(repository, **{"weights.bin": pointer})
    git(repository, "add", ".")
    assert "weights.bin is a Git LFS pointer" in why(read(repository))
    other = tmp_path / "other"
    other.mkdir()
    write(other, a_py="1\n")
    git(other, "init", "-q")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "sub")
    assert "sub is a submodule" in why(read(repository, "weights.bin"))
    assert why(read(repository, "weights.bin", "sub")) == ""
    assert "add it to `code.exclude`" in why(read(repository))
    package = read_code(repository, repository, (), os.environ, of_package=True)
    assert "sub is a submodule" in why(package)
    assert "weights.bin is a Git LFS pointer" in why(package)
    assert "exclude" not in why(package)


def test_too_much_code_is_refused_with_what_is_large(repository: Path) -> None:
    with (repository / "big.bin").open("wb") as file:
        file.truncate(code_selection.MAX_BYTES + 1)
    git(repository, "add", "train.py")
    (repository / ".git/info/attributes").write_text("* -text\n")
    git(repository, "update-index", "--add", "--cacheinfo", "100644", "0" * 39 + "1", "big.bin")
    code = read(repository)
    assert "above the limit of 100 MiB; the largest: big.bin (100.0 MiB)" in why(code)
    assert (code.manifest.files, code.contents) == ((), {})


def test_folders_that_cannot_be_code(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file").write_text("x")
    assert "is outside the project" in why(read(tmp_path, root=tmp_path / "in"))
    assert "is not a folder" in why(read(tmp_path / "missing", root=tmp_path))
    assert "is not a folder" in why(read(tmp_path / "file", root=tmp_path))
    assert "contains no files" in why(read(tmp_path / "in", root=tmp_path))
    (tmp_path / "away").symlink_to("/etc")
    assert "is outside the project" in why(read(tmp_path / "away", root=tmp_path))


def test_a_program_that_the_repository_names_is_not_started(repository: Path) -> None:
    marker = repository.parent / "started"
    hook = repository.parent / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    marker.unlink(missing_ok=True)
    assert paths(read(repository)) == ["pkg/model.py", "train.py"]
    assert not marker.exists()


def test_files_that_git_does_not_track_yet(tmp_path: Path) -> None:
    write(tmp_path, train_py="1\n")
    git(tmp_path, "init", "-q")
    assert f"{tmp_path} contains no files that git tracks" in why(read(tmp_path))
    git(tmp_path, "add", ".")
    code = read(tmp_path)
    assert (code.manifest.commit, code.changed, code.problems) == ("", ("train.py",), ())
    (note,) = [line for line in describe_code(code) if line.startswith("warning")]
    assert note == "warning: files are not committed: train.py"
