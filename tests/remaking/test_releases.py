"""The table of all releases, read from small wheels and source distributions made here."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import parse_tag
from packaging.version import Version

import remake_releases
from remaking.index import File
from remaking.wheels import Shelf
from tests.remaking.serving import wheel
from tests.remaking.test_source_only import Index

PYTHONS = ["3.10", "3.11", "3.12"]
NAMES = ["own", "numpy", "scipy"]


@pytest.mark.parametrize(
    ("requirements", "text"),
    [
        (["numpy>=1.17,<2", "requests>=2"], "numpy<2,>=1.17"),
        (["numpy"], ""),
        (
            ["numpy>=1.21", 'numpy>=1.26; python_version >= "3.12"'],
            "numpy>=1.21@3.10-3.11 numpy>=1.21,>=1.26@3.12-3.12",
        ),
        (['scipy>=1; extra == "dev"', 'scipy>=1; sys_platform == "win32"'], ""),
    ],
)
def test_requirements_on_packages_of_the_table(requirements: list[str], text: str) -> None:
    listed = {python: list(map(Requirement, requirements)) for python in PYTHONS}
    assert remake_releases.requires_text(listed, NAMES) == text


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        (["cp310-cp310-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_17_x86_64"], "3.10-3.12"),
        (["cp39-abi3-manylinux_2_17_x86_64"], "3.9-"),
        (["py3-none-any"], ""),
        (["cp310-cp310-manylinux_2_17_x86_64", "cp313-cp313t-manylinux_2_17_x86_64"], "3.10-3.10"),
        (["cp310-cp310-manylinux_2_17_x86_64", "cp311-cp311-musllinux_1_2_x86_64"], "3.10-3.10"),
    ],
)
def test_pythons_of_wheels(tags: list[str], text: str) -> None:
    files = [File(f"w-{tag}", "", Version("1"), parse_tag(tag)) for tag in tags]
    assert remake_releases.wheel_pythons(files) == text


def test_equal_releases_share_a_row_and_sources_are_read(tmp_path: Path) -> None:
    made = {}
    for version, requires in (("1.0", "numpy<2"), ("1.1", "numpy<2"), ("1.2", "numpy>=2")):
        made |= wheel("own", version, head=f"Requires-Dist: {requires}\n")
    text = "numpy<1.20\n[dev]\nx"
    sources = {"own-0.9.tar.gz": _source("own-0.9/own.egg-info/requires.txt", text)}
    shelf = Shelf(Index(made, sources), tmp_path / "cache")
    rows = list(remake_releases.read(shelf, tmp_path / "cache", ["own", "numpy"], PYTHONS))
    assert rows == [
        ("own", "0.9", "", "none", "numpy<1.20"),
        ("own", "1.0 1.1", "", "", "numpy<2"),
        ("own", "1.2", "", "", "numpy>=2"),
    ]


def test_wheels_of_a_release_that_require_different_things(tmp_path: Path) -> None:
    made: dict[str, bytes] = {}
    for tag, requires in (("cp310", ">=1.21"), ("cp311", ">=1.24"), ("cp312", ">=1.26")):
        head = f"Requires-Dist: numpy{requires}\n"
        made |= wheel("own", "1.0", head=head, tag=f"{tag}-{tag}-manylinux_2_17_x86_64")
    shelf = Shelf(Index(made, {}), tmp_path / "cache")
    rows = list(remake_releases.read(shelf, tmp_path / "cache", NAMES[:2], PYTHONS))
    requires = "numpy>=1.21@3.10-3.10 numpy>=1.24@3.11-3.11 numpy>=1.26@3.12-3.12"
    assert rows == [("own", "1.0", "", "3.10-3.12", requires)]


def _source(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()
