"""The index of a repository is read as git reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from provision.state_store.git_index import is_tracked_by_git, read_tracked_names


@pytest.mark.parametrize("version", ["2", "4"])
def test_the_index_is_read_as_git_reads_it(tmp_path: Path, version: str) -> None:
    names = ["a", "a-" * 110 + "b", "deep/er/file.py", "deep/er/other.py", "ü\n.txt", "z" * 200]
    git = ["git", "-C", str(tmp_path), "-c", f"index.version={version}"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "add", "--intent-to-add", "."], check=True)
    told = subprocess.run([*git, "ls-files", "-z"], check=True, capture_output=True).stdout.split(
        b"\0"
    )[:-1]
    assert list(read_tracked_names((tmp_path / ".git/index").read_bytes())) == told
    assert is_tracked_by_git(tmp_path / "deep")
    assert is_tracked_by_git(tmp_path / "DEEP")
    assert not is_tracked_by_git(tmp_path / "dee")
    with pytest.raises(ValueError, match="does not start with a git index header"):
        list(read_tracked_names(b"DIRX" + b"\0" * 100))
