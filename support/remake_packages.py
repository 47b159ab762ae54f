"""Read the table of what releases of packages declare (packages.yaml) anew from the wheels of the
default index.

Of each package in the table the newest patch of each minor is read (of xformers every release),
from the table's first minor on: `python` and `declared` from
METADATA, `floors` from the *_MIN_VERSION constants of its import_utils.py, which is parsed and
never imported. Which other packages `declared` speaks of is
taken from the table: those that any row of the package names. Where bounds differ with the
Python, the one with the lowest floor is taken.

Not touched: packages that the table does not have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from remaking.declaring import declared, in_runs, linux_wheel, newest_of_minors, project
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, constants, each, python_of, requirements

EVERY = ("xformers",)
"""Packages whose every release is made for another torch."""


def read(shelf: Shelf, known: Iterable[Row], pythons: list[str]) -> list[dict[str, Any]]:
    """Return all rows as the wheels have them; bounds are read for `pythons`."""
    rows = list(known)
    packages = dict.fromkeys(row["package"] for row in rows)
    return [
        row
        for package in packages
        for row in _package(
            shelf, package, [row for row in rows if row["package"] == package], pythons
        )
    ]


def _package(
    shelf: Shelf, package: str, rows: list[Row], pythons: list[str]
) -> Iterator[dict[str, Any]]:
    names = dict.fromkeys(name.replace("_", "-") for row in rows for name in row["declared"])
    floors = {name for row in rows for name in row.get("floors", ())}
    found, first = shelf.releases(package), rows[0]["first"]
    wanted = (
        {version: files for version, files in found.items() if version >= Version(first)}
        if package in EVERY
        else newest_of_minors(found, first)
    )
    read = each(
        lambda item: (item[0], _release(shelf, item[1], names, floors, pythons)), wanted.items()
    )
    for run in in_runs(read):
        yield {"package": package, **run}


def _release(
    shelf: Shelf, files: list[File], names: Iterable[str], floors: set[str], pythons: list[str]
) -> dict[str, Any]:
    wheel = shelf.wheel(linux_wheel(files))
    metadata = wheel.metadata()
    checked = constants(wheel.text("/import_utils.py"), "_MIN_VERSION") if floors else {}
    own = {project(name): version for name, version in checked.items() if project(name) in floors}
    python = python_of(metadata)
    asked = declared(
        requirements(metadata),
        names,
        [minor for minor in pythons if SpecifierSet(python).contains(f"{minor}.99")],
    )
    return {"python": python, "declared": asked, **({"floors": own} if own else {})}


def remade(shelf: Shelf, known: list[Row], pythons: list[str]) -> Iterator[Remade]:
    """Yield the table as read; each package's newest release must be in it."""
    rows = read(shelf, known, pythons)
    newest = {row["package"]: {"package": row["package"], "last": row["last"]} for row in rows}
    yield Remade("packages", "runs", ("package", "first"), tuple(rows), tuple(newest.values()))


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known, pythons = (
        rows_of(chosen.tables, "packages", "runs"),
        [row["version"] for row in rows_of(chosen.tables, "pythons")],
    )
    return ask(chosen, lambda shelf: remade(shelf, known, pythons))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
