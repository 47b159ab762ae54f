"""A lock with conflict markers, of an older format or changed by hand: other commands refuse it,
`provision lock` makes a clean one with its versions.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import Bench, make_index, make_wheel, small_spec
from tests.support import make_once


def lock(bench: Bench, *packages: str) -> str:
    """Lock those packages and return the lock's text."""
    bench.spec(small_spec(*packages))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    return (bench.folder / "spec.lock").read_text()


def upgrade(bench: Bench, name: str, *packages: str) -> str:
    """Return the text of a lock in which one package has its newest version."""
    bench.spec(small_spec(*packages))
    done = bench.run("lock", "spec.yaml", "--upgrade", name)
    assert done.returncode == 0, done.stderr
    return (bench.folder / "spec.lock").read_text()


def versions(bench: Bench) -> dict[str, str]:
    document = json.loads((bench.folder / "spec.lock").read_text())
    return {row["name"]: row["version"] for row in document["packages"]}


def merge(bench: Bench, base: str, ours: str, theirs: str, *style: str) -> str:
    """Return what git makes of two changes of a lock."""
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (bench.folder / name).write_text(text)
    words = [
        "git",
        "merge-file",
        "-p",
        *style,
        "-L",
        "HEAD",
        "-L",
        "base",
        "-L",
        "topic",
        "ours",
        "base",
        "theirs",
    ]
    return subprocess.run(
        words, cwd=bench.folder, capture_output=True, text=True, check=False
    ).stdout


WANTED = ("alpha", "alpine", "delta")


@pytest.fixture
def sides(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """Three locks of one project, spec.yaml: the base, one with a newer alpha, and one with a newer
    alpine. Each package has a newer version by now.
    """
    more = tuple(
        make_wheel(bench.folder.parent / "more", name, version)
        for name in ("alpine", "delta")
        for version in ("1.0", "1.1")
    )
    make_index(bench.folder.parent / "index", more)

    def make(folder: Path) -> None:
        lock(bench, "alpha==1.0", "alpine==1.0", "delta==1.0")
        base = lock(bench, *WANTED)
        (folder / "base").write_text(base)
        (folder / "ours").write_text(upgrade(bench, "alpha", *WANTED))
        (bench.folder / "spec.lock").write_text(base)
        (folder / "theirs").write_text(upgrade(bench, "alpine", *WANTED))

    folder = make_once(tmp_path_factory, "merged-locks", make)
    bench.spec(small_spec(*WANTED))
    base, ours, theirs = ((folder / name).read_text() for name in ("base", "ours", "theirs"))
    return base, ours, theirs


@pytest.mark.parametrize("style", [(), ("--diff3",)])
def test_both_sides_of_a_merge_are_kept(
    bench: Bench, sides: tuple[str, str, str], style: tuple[str, ...]
) -> None:
    merged = merge(bench, *sides, *style)
    line = 1 + next(
        number for number, text in enumerate(merged.splitlines()) if text.startswith("<<<<<<< ")
    )
    path = bench.folder / "spec.lock"
    path.write_text(merged)
    for words in (
        ("lock", "--check"),
        ("plan",),
        ("apply", "--yes"),
        ("apply", "--locked", "--yes"),
    ):
        command, *options = words
        refused = bench.run(command, "spec.yaml", *options)
        assert refused.returncode == 1, refused.stdout
        assert f"spec.lock:{line}: the lock has conflict markers" in refused.stderr
        assert "repair the lock with `provision lock`" in refused.stderr
    assert path.read_text() == merged
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert versions(bench) == {"alpha": "2.0", "alpine": "1.1", "delta": "1.0"}, (
        "the newer of two, and what both sides had, though there is a newer one"
    )
    assert "1 version is kept" in done.stdout
    assert "alpha: 2.0 on one side, 1.0 on the other; now 2.0" in done.stdout
    assert "alpine: 1.0 on one side, 1.1 on the other; now 1.1" in done.stdout
    assert bench.run("lock", "spec.yaml", "--check").returncode == 0


def test_of_two_versions_the_one_that_the_spec_admits_is_taken(
    bench: Bench, sides: tuple[str, str, str]
) -> None:
    (bench.folder / "spec.lock").write_text(merge(bench, *sides))
    bench.spec(small_spec("alpha<2", "alpine", "delta"))
    done = bench.run("lock", "spec.yaml", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert versions(bench) == {"alpha": "1.0", "alpine": "1.1", "delta": "1.0"}
    told = json.loads(done.stdout)["repaired"]
    assert told["kept"] == 1
    assert "alpha: 2.0 on one side, 1.0 on the other; now 1.0" in told["changed"]


def test_conflict_markers_in_the_spec_come_first(bench: Bench, sides: tuple[str, str, str]) -> None:
    merged = merge(bench, *sides)
    (bench.folder / "spec.lock").write_text(merged)
    bench.spec("<<<<<<< HEAD\n" + small_spec("alpha") + "=======\n>>>>>>> topic\n")
    assert bench.run("lock", "spec.yaml").returncode != 0
    assert (bench.folder / "spec.lock").read_text() == merged


def _older(text: str) -> str:
    return text.replace("provision.lock/2", "provision.lock/1").replace('"targets"', '"places"')


def _cut(text: str) -> str:
    return text[: text.index('{"name": "alpine"')]


def _edited(text: str) -> str:
    return text.replace('"index": "pypi"', '"index": "evil"', 1)


def _unmarked(text: str) -> str:
    return re.sub(r'("packages": \[\n)', r"\1=======\n", text)


@pytest.mark.parametrize(
    ("change", "said", "kept"),
    [
        (
            _older,
            "was written by an older version of provision",
            {"alpha": "1.0", "alpine": "1.0", "delta": "1.0"},
        ),
        (_cut, "is damaged", {"alpha": "1.0", "alpine": "1.1", "delta": "1.1"}),
        (_edited, "was edited by hand", {"alpha": "1.0", "alpine": "1.0", "delta": "1.0"}),
        (_unmarked, "has conflict markers", {"alpha": "1.0", "alpine": "1.0", "delta": "1.0"}),
    ],
)
def test_what_can_be_read_of_a_lock_is_kept(
    bench: Bench,
    sides: tuple[str, str, str],
    change: Callable[[str], str],
    said: str,
    kept: dict[str, str],
) -> None:
    path = bench.folder / "spec.lock"
    path.write_text(change(sides[0]))
    refused = bench.run("plan", "spec.yaml")
    assert refused.returncode == 1
    assert said in refused.stderr
    assert "repair the lock with `provision lock`" in refused.stderr
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert versions(bench) == kept
    assert said in done.stdout
    if kept == {"alpha": "1.0", "alpine": "1.0", "delta": "1.0"}:
        assert "3 versions are kept" in done.stdout
        assert path.read_text() == sides[0]


def test_hostile_rows_give_no_versions(bench: Bench, sides: tuple[str, str, str]) -> None:
    text = _older(sides[0])
    rows = [
        {"name": "--foo", "version": "1", "index": "pypi"},
        {"name": "alpha", "version": "1.0\n[tool.uv]", "index": "pypi"},
        {"name": "alpine", "version": ["1"], "index": "pypi"},
        {"name": "delta", "version": "1.1", "index": 'x"\n', "in": {"a": 1}},
        "delta",
        None,
    ]
    document = json.loads(text)
    document["packages"] = rows
    (bench.folder / "spec.lock").write_text(json.dumps(document))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert versions(bench) == {"alpha": "2.0", "alpine": "1.1", "delta": "1.1"}
    assert bench.run("lock", "spec.yaml", "--check").returncode == 0


@pytest.mark.parametrize("schema", ["provision.lock/99", "somebody.else/1"])
def test_a_file_of_a_newer_or_another_program_is_left(
    bench: Bench, sides: tuple[str, str, str], schema: str
) -> None:
    path: Path = bench.folder / "spec.lock"
    path.write_text(sides[0].replace("provision.lock/2", schema))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "provision lock --upgrade" in done.stderr
    assert schema in path.read_text()
