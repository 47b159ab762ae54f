"""Builds for NumPy 2, read from the modules of small wheels."""

from __future__ import annotations

from pathlib import Path

import remake_numpy
from remaking.wheels import Shelf
from tests.remaking.serving import wheel
from tests.remaking.test_windows import Dated

LINUX = "cp310-cp310-manylinux_2_28_x86_64"
OLD, NEW = b"\x7fELF numpy.core._multiarray_umath", b"\x7fELF numpy._core._multiarray_umath"


def shelf(folder: Path, name: str, releases: dict[str, tuple[bytes, str]]) -> Shelf:
    """The shelf of an index with releases of a package: a module, and what they require."""
    files: dict[str, bytes] = {}
    days = {f"{name} {version}": "2024-02-20" for version in releases}
    for version, (module, requires) in releases.items():
        members = {f"{name}/_core.so": module, f"{name}/data.txt": NEW}
        head = f"Requires-Dist: {requires}"
        files |= wheel(name, version, LINUX, head=head, members=members)
    return Shelf(Dated(files, days), folder / "cache")


def test_the_first_build_and_the_releases_that_declare_it(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        "cv",
        {
            "1.0": (OLD, "numpy<2"),
            "1.1": (OLD, "numpy>=1.20"),
            "1.2": (OLD, "numpy>=1.20,<1.27"),
            "1.3": (OLD, "numpy<2"),
            "1.4": (NEW, "numpy<3"),
            "1.5": (NEW, "numpy"),
        },
    )
    assert remake_numpy.read(held, [{"package": "cv"}]) == [
        {"package": "cv", "first": "1.4", "declared_first": "1.2", "declared_last": "1.3"}
    ]


def test_releases_that_declare_nothing(tmp_path: Path) -> None:
    held = shelf(tmp_path, "cv", {"1.0": (OLD, "numpy>=1.20"), "1.1": (NEW, "numpy")})
    assert remake_numpy.read(held, [{"package": "cv"}]) == [{"package": "cv", "first": "1.1"}]


def test_packages_without_a_first_build_have_no_row(tmp_path: Path) -> None:
    for name, first, last in (("a", OLD, OLD), ("b", NEW, NEW), ("c", b"\x7fELF", b"\x7fELF")):
        held = shelf(tmp_path, name, {"1.0": (first, "numpy"), "1.1": (last, "numpy")})
        assert remake_numpy.read(held, [{"package": name}]) == []
