"""Windows between the releases of two packages, read from small wheels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import remake_windows
from remaking.index import File
from remaking.wheels import Shelf
from tests.remaking.serving import Folder, wheel
from windows.packages import PACKAGES

READ = [package for package in PACKAGES if package.name in ("peft", "pyarrow")]
DAYS = {"1.0": "2024-01-01", "1.1": "2024-02-01", "1.1.1": "2024-02-15", "2.0": "2024-06-01"}
"""Days of upload of the releases of pyarrow here."""
OLD_AND_NEW = {
    "1.0": "both = 1\nold = 1\ndef f(a, gone): pass",
    "1.1": "both = 1\nold = 1\ndef f(a, gone): pass",
    "1.1.1": "both = 1\nold = 1\nnew = 1\ndef f(a, gone): pass",
    "2.0": "both = 1\nnew = 1\ndef f(a): pass",
}


class Dated(Folder):
    """An index in memory with days of upload."""

    def __init__(self, files: Mapping[str, bytes], days: Mapping[str, str]) -> None:
        super().__init__(files)
        self.days = days

    def wheels(self, package: str) -> list[File]:
        """The wheels of a package."""
        return [
            replace(file, uploaded=self.days[f"{package} {file.version}"])
            for file in super().wheels(package)
        ]


def windows_of(
    folder: Path,
    uses: Mapping[str, str],
    *,
    day: str = "2024-02-20",
    requires: str = "",
    has: Mapping[str, str] = OLD_AND_NEW,
) -> list[str]:
    """The windows of releases of peft, each with a source, beside releases of pyarrow."""
    files: dict[str, bytes] = {}
    days = {f"pyarrow {version}": DAYS[version] for version in has}
    for version, text in has.items():
        files |= wheel("pyarrow", version, members={"pyarrow/__init__.py": text})
    for version, text in uses.items():
        head = f"Requires-Dist: pyarrow{requires}" if requires else ""
        files |= wheel("peft", version, members={"peft/__init__.py": text}, head=head)
        days[f"peft {version}"] = day
    shelf = Shelf(Dated(files, days), folder)
    found, read = remake_windows.remade(shelf, folder, (), READ)
    assert {row["package"]: row["releases"] for row in read.rows}["pyarrow"] == " ".join(has)
    return [
        f"{row['first']}..{row['last']} {row['of']}{row['specifier']} {row['name']} "
        f"{row['severity']} {row['uses']} | {row['has']}"
        for row in found.rows
    ]


@pytest.mark.parametrize(
    ("source", "windows"),
    [
        ("from pyarrow import both", []),
        (
            "\nfrom pyarrow import new",
            [
                (
                    "1.0.. pyarrow>=1.1.1 pyarrow.new error peft/__init__.py:2 | "
                    "pyarrow/__init__.py in 1.1.1, not in 1.1"
                )
            ],
        ),
        (
            "import pyarrow\npyarrow.old",
            [
                (
                    "1.0.. pyarrow<2.0 pyarrow.old error peft/__init__.py:2 | "
                    "pyarrow/__init__.py in 1.1.1, not in 2.0"
                )
            ],
        ),
        (
            "from pyarrow import f\nx = f(1, gone=2)",
            [
                (
                    "1.0.. pyarrow<2.0 pyarrow.f(gone=) error peft/__init__.py:2 | "
                    "pyarrow/__init__.py:4 in 1.1.1, not in 2.0"
                )
            ],
        ),
        ("from pyarrow import f\nx = f(1, a=2)", []),
        ("try:\n    from pyarrow import old\nexcept ImportError:\n    old = None", []),
        ("if is_pyarrow_available():\n    from pyarrow import new", []),
        (
            "if is_pyarrow_available():\n    from pyarrow import old",
            [
                (
                    "1.0.. pyarrow<2.0 pyarrow.old error peft/__init__.py:2 | "
                    "pyarrow/__init__.py in 1.1.1, not in 2.0"
                )
            ],
        ),
        ("from pyarrow import never", []),
        ("try:\n    from pyarrow import old\nexcept ImportError:\n    def old(): 0\nx = old()", []),
        ("import pyarrow\nif 'new' not in dir(pyarrow):\n    pyarrow.new = 1\npyarrow.new", []),
        ("if sys.version_info > (3, 9):\n    import pyarrow\nx = pyarrow.old", []),
    ],
)
def test_windows_of_one_release(tmp_path: Path, source: str, windows: list[str]) -> None:
    assert windows_of(tmp_path, {"1.0": source}) == windows


def test_a_run_of_releases_is_one_window(tmp_path: Path) -> None:
    uses = {
        "0.9": "from pyarrow import both",
        "1.0": "from pyarrow import old",
        "1.1": "import pyarrow\nfrom pyarrow import both, old",
        "1.2": "from pyarrow import both",
    }
    assert windows_of(tmp_path, uses) == [
        (
            "1.0..1.1 pyarrow<2.0 pyarrow.old error peft/__init__.py:1 | "
            "pyarrow/__init__.py in 1.1.1, not in 2.0"
        )
    ]


def test_a_declared_requirement_closes_a_window(tmp_path: Path) -> None:
    uses = {"1.0": "from pyarrow import new"}
    assert windows_of(tmp_path / "open", uses, requires=">=1.1")
    assert windows_of(tmp_path / "closed", uses, requires=">=1.1.1") == []


def test_what_failed_on_its_first_day_was_misread(tmp_path: Path) -> None:
    uses = {"1.0": "from pyarrow import old"}
    assert windows_of(tmp_path / "before", uses, day="2024-05-01")
    assert windows_of(tmp_path / "after", uses, day="2024-06-02") == []


def test_a_release_that_may_have_a_name_is_no_window(tmp_path: Path) -> None:
    anything = {**OLD_AND_NEW, "2.0": "def __getattr__(name): return getattr(other, name)"}
    uses = {"1.0": "from pyarrow import old"}
    assert windows_of(tmp_path / "all", uses)
    assert windows_of(tmp_path / "any", uses, has=anything) == []


def test_a_name_that_is_only_listed_sets_no_floor(tmp_path: Path) -> None:
    has = {"1.0": "both = 1", "1.1": "both = 1", "1.1.1": "both = 1\n__all__ = ['both', 'new']"}
    assert windows_of(tmp_path, {"1.0": "import pyarrow\nx = pyarrow.new"}, has=has) == []


def test_a_part_can_need_more_than_the_import(tmp_path: Path) -> None:
    part = "class LoraConfig:\n    def f(self):\n        return pyarrow.new"
    uses = {"1.0": f"import pyarrow\nx = pyarrow.mid\n{part}"}
    has = {"1.0": "", "1.1": "mid = 1", "1.1.1": "mid = 1\nnew = 1"}
    assert [row.partition(" pyarrow/")[0] for row in windows_of(tmp_path, uses, has=has)] == [
        "1.0.. pyarrow>=1.1 pyarrow.mid error peft/__init__.py:2 |",
        "1.0.. pyarrow>=1.1.1 pyarrow.new warning peft/__init__.py:5 |",
    ]


def test_what_people_wrote_stays(tmp_path: Path) -> None:
    files = wheel("pyarrow", "1.0", members={"pyarrow/__init__.py": "old = 1"})
    files |= wheel("pyarrow", "2.0", members={"pyarrow/__init__.py": ""})
    files |= wheel("peft", "1.0", members={"peft/__init__.py": "from pyarrow import old"})
    days = {"pyarrow 1.0": "2024-01-01", "pyarrow 2.0": "2024-06-01", "peft 1.0": "2024-02-01"}
    shelf = Shelf(Dated(files, days), tmp_path)
    key = "peft-1.0-until-pyarrow-2.0-old"
    known = [{"id": key, "threads": "example/peft#1", "confidence": "high", "first": "0.1"}]
    found, _ = remake_windows.remade(shelf, tmp_path, known, READ)
    (row,) = found.rows
    assert (row["id"], row["threads"], row["confidence"]) == (key, "example/peft#1", "high")
    assert row["first"] == "1.0"
