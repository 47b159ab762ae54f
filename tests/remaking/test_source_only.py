"""Releases without a wheel, read from an index of small files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from packaging.version import Version

import remake_source_only
from remaking.index import Source
from remaking.wheels import Shelf
from tests.remaking.serving import Folder, wheel


def archive(*members: str) -> bytes:
    """A source distribution with empty files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as file:
        for name in members:
            file.addfile(tarfile.TarInfo(name))
    return data.getvalue()


class Index(Folder):
    """An index in memory that has source distributions too."""

    def __init__(self, wheels: dict[str, bytes], sources: dict[str, bytes]) -> None:
        super().__init__(wheels, sources)

    def sources(self, package: str) -> list[Source]:
        """The source distributions of a package."""
        found = []
        for name in self.metadata:
            project, _, version = name.removesuffix(".tar.gz").rpartition("-")
            if project == package:
                found.append(Source(name, name, Version(version)))
        return found


def shelf(folder: Path, wheels: dict[str, bytes], sources: dict[str, bytes]) -> Shelf:
    """The shelf of such an index."""
    return Shelf(Index(wheels, sources), folder / "cache")


def test_releases_with_and_without_a_wheel(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        {**wheel("kern", "1.1"), **wheel("kern", "1.2", "cp311-cp311-macosx_11_0_arm64")},
        {
            "kern-1.0.tar.gz": archive("kern-1.0/setup.py"),
            "kern-1.1.tar.gz": archive("kern-1.1/setup.py"),
            "kern-1.2.tar.gz": archive("kern-1.2/setup.py", "kern-1.2/src/fast.pyx"),
            "kern-1.3rc1.tar.gz": archive("kern-1.3rc1/setup.py"),
        },
    )
    assert remake_source_only.read(held, [{"package": "kern"}]) == [
        {"package": "kern", "sources": "1.0 1.2", "wheels": "1.1", "compiles": True}
    ]


@pytest.mark.parametrize(
    ("members", "compiled"),
    [
        (["kern-1.0/kern/__init__.py", "kern-1.0/README"], False),
        (["kern-1.0/csrc/op.cu"], True),
        (["kern-1.0/src/lib.rs"], True),
        (["kern-1.0/tests/data/example.c"], False),
        (["kern-1.0/kern/latest.cfg"], False),
    ],
)
def test_code_to_compile(members: list[str], compiled: bool) -> None:
    assert remake_source_only.compiles(members) is compiled


def test_who_brings_a_package(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        {
            **wheel("user", "1.0"),
            **wheel("user", "1.1", head="Requires-Dist: kern (==1.0)\nRequires-Dist: yaml >=1<2"),
            **wheel("user", "1.2", head="Requires-Dist: Kern==1.0\nRequires-Dist: other"),
            **wheel("user", "2.0", head="Requires-Dist: kern>=1.1,<2"),
            **wheel("user", "2.1", head="Requires-Dist: kern>=1.1"),
            **wheel("user", "3.0", head='Requires-Dist: kern>=1.1; extra == "fast"'),
        },
        {},
    )
    shared = {"package": "user", "brings": "kern", "others": "1.0 2.1 3.0"}
    kern = {"sources": "1.0 1.1 1.2", "wheels": "2.0"}
    assert remake_source_only.bringing(held, [{"package": "user"}] * 2, {"kern": kern}) == [
        {**shared, "requires": "==1.0", "releases": "1.1 1.2"},
        {**shared, "requires": "<2,>=1.1", "releases": "2.0"},
    ]
