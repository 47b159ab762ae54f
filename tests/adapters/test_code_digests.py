"""The cache of digests: with and without it, the code of a folder is the same."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from provision.adapters.code_folder import read_code
from provision.effects.code import CodeTree
from provision.errors import ExternalError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
TICK_S = 0.02
"""Longer than the granularity of timestamps on Linux (a jiffy, at most 10 ms)."""


def later() -> int:
    """Return a time at which files that were written just now have settled."""
    return time.time_ns() + 3 * 10**9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    (path / "pkg").mkdir(parents=True)
    (path / "train.py").write_text("1\n")
    (path / "pkg/model.py").write_text("2\n")
    (path / "latest.py").symlink_to("train.py")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def read(folder: Path, cache: Path, now_ns: Callable[[], int] = later) -> CodeTree:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return read_code(folder, folder, ("*.log",), environment, now_ns=now_ns)


def read_afresh(folder: Path) -> CodeTree:
    return read(folder, Path(os.devnull))


def cache_files(cache: Path) -> list[Path]:
    return sorted((cache / "provision/code-digests").glob("*/*"))


def rewrite(cache: Path, edit: Callable[[dict[str, dict[str, object]]], None]) -> None:
    """Edit the only cache file, and keep its checksum right."""
    (path,) = cache_files(cache)
    document = json.loads(path.read_bytes().partition(b"\n")[2])
    edit(document)
    body = json.dumps(document).encode()
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def forge(document: dict[str, dict[str, object]]) -> None:
    document["files"] = {path: [*row[:-1], "0" * 64] for path, row in document["files"].items()}  # type: ignore[index]


def test_an_unchanged_file_is_not_read_again(folder: Path, cache: Path) -> None:
    first = read(folder, cache)
    rewrite(cache, forge)
    second = read(folder, cache)
    forged = [file.path for file in second.manifest.files if file.sha256 == "0" * 64]
    assert sorted(forged) == ["pkg/model.py", "train.py"]
    assert first.digest == read_afresh(folder).digest != second.digest


def test_a_file_that_has_just_changed_is_read_again(folder: Path, cache: Path) -> None:
    read(folder, cache, time.time_ns)
    assert cache_files(cache) == [] or '"train.py"' not in cache_files(cache)[0].read_text()
    before = read(folder, cache, time.time_ns)
    (folder / "train.py").write_text("2\n")
    assert read(folder, cache, time.time_ns).digest != before.digest
    assert cache_files(cache) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"\xff" + content,
        lambda content: content.replace(b"0" * 64, b"1" * 64),
        lambda content: content[:65] + b"[1]",
    ],
)
def test_a_damaged_cache_is_ignored(
    folder: Path, cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    read(folder, cache)
    rewrite(cache, forge)
    (path,) = cache_files(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert read(folder, cache).digest == read_afresh(folder).digest
    rewrite(cache, forge)  # a valid one has replaced it
    assert read(folder, cache).digest != read_afresh(folder).digest


@pytest.mark.parametrize("field", ["format", "version", "folder", "rules"])
def test_a_cache_of_something_else_is_ignored(folder: Path, cache: Path, field: str) -> None:
    read(folder, cache)
    rewrite(cache, forge)
    rewrite(cache, lambda document: document["header"].update({field: "other"}))
    assert read(folder, cache).digest == read_afresh(folder).digest


def test_other_patterns_have_another_cache(folder: Path, cache: Path) -> None:
    read(folder, cache)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    code = read_code(folder, folder, ("pkg",), environment, now_ns=later)
    assert sorted(file.path for file in code.manifest.files) == ["latest.py", "train.py"]
    assert len(cache_files(cache)) == 2


def test_a_cache_that_cannot_be_written_is_not_needed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert read(folder, file).digest == read_afresh(folder).digest
    assert file.read_text() == ""


def test_many_readers_at_once(folder: Path, cache: Path) -> None:
    expected = read_afresh(folder).digest
    with ThreadPoolExecutor(8) as pool:
        digests = {code.digest for code in pool.map(lambda _: read(folder, cache), range(24))}
    assert digests == {expected}
    assert [path.name for path in cache_files(cache)] == ["digests.json"]
    assert read(folder, cache).digest == expected


def test_contents_are_read_when_they_are_needed(folder: Path, cache: Path) -> None:
    archive = read(folder, cache).pack()
    code = read(folder, cache)
    assert code.pack() == archive
    (folder / "train.py").write_text("3\n")
    with pytest.raises(ExternalError, match=r"train\.py changed while the command was running"):
        code.pack()
    (folder / "train.py").unlink()
    with pytest.raises(ExternalError, match="cannot read"):
        code.pack()


@pytest.mark.long(after=2)
@pytest.mark.parametrize("seed", range(4))
def test_the_cache_changes_nothing(folder: Path, cache: Path, seed: int) -> None:
    """Edits of each sort, between readings with one cache, each compared with one without."""
    choice = random.Random(seed)
    if seed % 2:
        for words in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *words], cwd=folder, check=True)
    names = ["train.py", "pkg/model.py", "pkg/new.py", "a.log", ".env", "spec.ipynb", "pkg/x/y.py"]
    texts = ["1\n", "2\n", "3\n", "longer\n"] * 4
    texts += [POINTER, "# Written by `provision render`\n"]
    for _ in range(12):
        for _ in range(choice.randint(0, 2)):
            change(folder / choice.choice(names), choice, texts)
        if seed % 2 and choice.random() < 0.5:
            subprocess.run(["git", "add", "-A", "."], cwd=folder, check=True)
        time.sleep(TICK_S)
        code, expected = read(folder, cache), read_afresh(folder)
        assert code == expected
        assert code.digest == expected.digest
        if not code.problems:
            assert code.pack() == expected.pack()
    assert cache_files(cache)


def change(path: Path, choice: random.Random, texts: list[str]) -> None:
    if not os.path.lexists(path):
        path.parent.mkdir(exist_ok=True)
        path.write_text(choice.choice(texts))
        return
    match choice.choice(["write", "size", "mode", "link", "move", "remove", "touch"]):
        case "write":
            path.write_text(choice.choice(texts))
        case "size":  # an edit of equal size that restores the time of change
            status = path.stat()
            path.write_bytes(bytes(reversed(path.read_bytes())))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        case "mode":
            path.chmod(path.stat().st_mode ^ 0o100)
        case "link":
            path.unlink()
            path.symlink_to(choice.choice(["train.py", "model.py", "/etc/passwd"]))
        case "move":
            other = path.with_name(f"{path.name}.moved")
            path.replace(other)
            path.write_bytes(other.read_bytes() if not other.is_symlink() else b"")
        case "remove":
            path.unlink()
        case "touch":
            os.utime(path, follow_symlinks=False)
