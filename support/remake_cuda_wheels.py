"""Remakes the table of CUDA majors that packages are compiled for (cuda_wheels.yaml).

Of each package of the list, from its first release on: the libcudart.so.N that compiled modules in
the Linux x86_64 wheel need (DT_NEEDED). Modules are read by HTTP range, the smallest first, up to
the first that needs libcudart; those of more than 8 MB are not read, so no wheel is fetched whole.
A row is a run of releases with the same major.

Not touched: which packages the list has, and `effect`. Releases whose small modules need no
libcudart, or more than one major, begin no run; between two releases of one major they belong to
its run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.version import Version

from remaking.declaring import linux_wheel
from remaking.elf import needed_libraries
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, each

MODULE = re.compile(r"\.so(\.\d+)*$")
RUNTIME = re.compile(r"libcudart(?:-\w+)?\.so\.(\d+)")
LARGEST = 8 << 20
"""Bytes of the largest module that is read, as it lies in the wheel."""


def read(shelf: Shelf, known: Iterable[Row]) -> list[dict[str, Any]]:
    """Return all rows as the wheels have them."""
    rows: dict[str, list[Row]] = {}
    for row in known:
        rows.setdefault(row["package"], []).append(row)
    return [row for package in rows for row in _package(shelf, package, rows[package])]


def _package(shelf: Shelf, package: str, known: list[Row]) -> Iterator[dict[str, Any]]:
    releases = {
        version: files
        for version, files in shelf.releases(package).items()
        if version >= Version(known[0]["first"])
    }
    majors = each(lambda files: cuda_major(shelf, files), releases.values())
    old = {row["first"]: row for row in known}
    run: dict[str, Any] = {}
    for version, major in zip(map(str, releases), majors, strict=True):
        if not major:
            continue
        if run.get("cuda_major") == major:
            run["last"] = version
            continue
        if run:
            yield run
        read = {"package": package, "first": version, "last": version, "cuda_major": major}
        run = {**read, "effect": old.get(version, known[-1])["effect"]}
    if run:
        yield run


def cuda_major(shelf: Shelf, files: list[File]) -> str:
    """Return the CUDA major that the modules of a release need, "" if it cannot be told."""
    wheel = shelf.wheel(linux_wheel(files))
    modules = sorted((size, name) for name, size in wheel.members().items() if MODULE.search(name))
    for size, name in modules:
        if size > LARGEST:
            break
        needed = needed_libraries(wheel.read(name) or b"")
        majors = {found[1] for found in map(RUNTIME.match, needed) if found}
        if len(majors) == 1:
            return majors.pop()
    return ""


def remade(shelf: Shelf, known: list[Row]) -> Iterator[Remade]:
    """Yield the list as read."""
    rows = tuple(read(shelf, known))
    yield Remade("cuda_wheels", "rows", ("package", "first"), rows)


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known = rows_of(chosen.tables, "cuda_wheels")
    return ask(chosen, lambda shelf: remade(shelf, known))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
