"""Files are there whole or as they were, links are never followed by a removal, and every failure
says why.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.adapters import files
from provision.errors import ExternalError

WRITE_FOR_EVER = """
import sys
from pathlib import Path
from provision.adapters import files
path, sizes = Path(sys.argv[1]), (10, 300_000)
number = 0
while True:
    number += 1
    files.write(path, f"{number}\\n" * sizes[number % 2], 0o600)
    if number == 1:
        print("begun", flush=True)
"""


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for attempt in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
        time.sleep(0.003 * attempt)
        writer.kill()
        assert writer.wait(300) == -signal.SIGKILL
        lines = path.read_text().splitlines()
        assert len(set(lines)) == 1, "a mixture of two writes"
        assert len(lines) == (10, 300_000)[int(lines[0]) % 2], "cut short"


def test_a_write_replaces_content_and_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "old", 0o644)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    files.write(path, b"\x00new", 0o600)
    assert path.read_bytes() == b"\x00new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "old", 0o644)
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "lone \ud800 surrogate", 0o644)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_link_in_the_way_is_replaced_and_what_it_points_at_stays(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "link").symlink_to(precious)
    files.write(tmp_path / "link", "ours", 0o600)
    assert precious.read_text() == "precious"
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_text() == "ours"


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda root: files.write(root / "file/below", "x", 0o600), "part of the path is a file"),
        (lambda root: files.write(root / "folder", "x", 0o600), "it is a folder"),
        (lambda root: files.write(root / "folder/..", "x", 0o600), "it is a folder"),
        (lambda root: files.write(root / "nowhere/file", "x", 0o600), "No such file"),
        (
            lambda root: files.make_folder(root / "file/below", 0o700),
            "part of the path is a file",
        ),
        (lambda root: files.make_folder(root / "file", 0o700), "it already exists"),
        (lambda root: files.read(root / "folder", 10), "it is a folder"),
        (lambda root: files.read(root / "pipe", 10), "it is not a regular file"),
        (lambda root: files.read(root / "file", 3), "larger than 3 bytes"),
        (lambda root: files.read(root / "nowhere", 3), "No such file"),
        (lambda root: files.set_symlink(root / "file", "x"), "it already exists and is not a link"),
        (
            lambda root: files.set_symlink(root / "folder", "x"),
            "it already exists and is not a link",
        ),
    ],
)
def test_every_failure_names_path_and_reason(tmp_path: Path, act, why: str) -> None:
    (tmp_path / "file").write_text("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ExternalError) as caught:
        act(tmp_path)
    assert str(tmp_path) in caught.value.what
    assert why in caught.value.why
    assert (
        caught.value.hint or "nowhere" in caught.value.what.split("/")[-1]
    )  # who reads knows best what was meant
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "file"


def test_a_link_is_pointed_elsewhere_in_one_step_even_when_its_end_is_gone(tmp_path: Path) -> None:
    files.set_symlink(tmp_path / "link", "first")
    files.set_symlink(tmp_path / "link", "second")
    assert (tmp_path / "link").readlink() == Path("second")
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


def test_removing_a_tree_never_follows_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    doomed = tmp_path / "doomed"
    (doomed / "below").mkdir(parents=True)
    (doomed / "to-folder").symlink_to(outside)
    (doomed / "below/to-file").symlink_to(outside / "precious")
    (doomed / "dangling").symlink_to("nowhere")
    files.remove_tree(doomed)
    assert (outside / "precious").read_text() == "precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["outside"]
    (tmp_path / "link").symlink_to(outside)
    files.remove_tree(tmp_path / "link")
    assert (outside / "precious").read_text() == "precious"
    (tmp_path / "dangling").symlink_to("nowhere")
    files.remove_tree(tmp_path / "dangling")
    files.remove_tree(tmp_path / "never-was")
    files.remove_tree(outside / "precious" / "below-a-file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["outside"]


def test_a_removal_cut_short_leaves_nothing_at_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "envs/one"
    folder.mkdir(parents=True)
    for number in range(2000):
        (folder / f"{number:04}").touch()
    code = (
        "import sys, pathlib, provision.adapters.files as f; print(1, flush=True); "
        "f.remove_tree(pathlib.Path(sys.argv[1]))"
    )
    remover = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    assert remover.stdout is not None
    remover.stdout.readline()
    remover.kill()
    remover.wait(300)
    whole = folder.exists() and len(list(folder.iterdir())) == 2000
    assert whole or not folder.exists()


def test_writable_looks_at_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    assert files.is_writable(tmp_path / "a/b/c")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_a_folder_without_write_permission_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert not files.is_writable(tmp_path / "a/b")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("requirments.txt", "did you mean 'requirements.txt'?"),
        ("requirements", "did you mean 'requirements.txt'?"),
        (".hiden", "did you mean '.hidden'?"),
        ("hidden", ""),
        ("other.yaml", ""),
        ("missing/requirements.txt", ""),
        ("requirements.txt/x", "remove or rename that file"),
    ],
)
def test_a_missing_file_may_be_one_with_a_similar_name(
    tmp_path: Path, name: str, hint: str
) -> None:
    for other in ("requirements.txt", ".hidden", "train.ipynb"):
        (tmp_path / other).write_text("x")
    with pytest.raises(ExternalError) as caught:
        files.read(tmp_path / name, 3)
    assert caught.value.hint == hint


def test_a_file_that_is_written_is_not_another_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExternalError) as caught:
        files.write(tmp_path / "foldr/x", "x", 0o600)
    assert "did you mean" not in caught.value.hint


def test_a_folder_that_is_removed_in_the_background_is_out_of_the_way_at_once(
    tmp_path: Path,
) -> None:
    envs = tmp_path / ".provision/envs"
    for name in ("a/lib", "b/lib", ".doomed-c-1/lib"):
        (envs / name).mkdir(parents=True)
    files.remove_tree(envs / "a", in_background=True)
    assert not (envs / "a").exists()
    files.remove_tree(envs / "b", in_background=True)
    files.remove_tree(envs / "absent", in_background=True)
    files.await_removals()
    assert list(envs.iterdir()) == []


def test_what_an_interrupted_removal_left_goes_with_the_next_one(tmp_path: Path) -> None:
    envs, outside = tmp_path / ".provision/envs", tmp_path / "elsewhere"
    for folder in (envs / ".doomed-a-1/lib", envs / "b", outside / ".doomed-a-1", outside / "b"):
        folder.mkdir(parents=True)
    for folder in (envs, outside):
        files.remove_tree(folder / "b")
    assert list(envs.iterdir()) == []
    assert [path.name for path in outside.iterdir()] == [".doomed-a-1"]
