"""Remakes the table of packages whose compiled code was built for NumPy 1 (numpy_builds.yaml).

Of each package of the list: the first release with a compiled module for Linux x86_64 that names
`numpy._core`, the package that NumPy 2 loads its C interface from, among those uploaded from SINCE
to UNTIL; and the releases right before it whose METADATA has a bound below NumPy 2. Modules are
read by HTTP range, the largest that is read and then the smallest first. A build for NumPy 2 is
taken to stay one, so that releases are searched by halves.

Not touched: which packages the list has, and rows with a source of their own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from remaking.declaring import linux_wheel
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, each, requirements

MODULE = re.compile(r"\.so(\.\d+)*$")
SINCE, UNTIL = "2023-03", "2025-07"
"""From a year before NumPy 2 to a year after it."""
LARGEST = 30 << 20
"""Bytes of the largest module that is read, as it lies in the wheel."""
MODULES = 9
"""Modules of a wheel that are read."""
Releases = list[tuple[Version, list[File]]]


def read(shelf: Shelf, known: Iterable[Row]) -> list[dict[str, Any]]:
    """Return all rows as the wheels have them; a package without a first release has none."""
    rows = each(lambda row: row if "source" in row else _package(shelf, row["package"]), known)
    return [dict(row) for row in rows if row is not None]


def _package(shelf: Shelf, package: str) -> dict[str, Any] | None:
    releases = list(shelf.releases(package).items())
    near = [item for item in releases if SINCE <= item[1][0].uploaded <= UNTIL]
    first = _first_for_numpy_2(shelf, near)
    if first is None:
        return None
    row = {"package": package, "first": str(first)}
    declaring = []
    for version, files in reversed([item for item in releases if item[0] < first]):
        if not declares_numpy_1(shelf, files):
            break
        declaring.append(str(version))
    if declaring:
        row |= {"declared_first": declaring[-1], "declared_last": declaring[0]}
    return row


def _first_for_numpy_2(shelf: Shelf, releases: Releases) -> Version | None:
    """Return the first release for NumPy 2; None if all are, or none is."""
    low, high = 0, len(releases) - 1
    if high < 1 or is_for_numpy_2(shelf, releases[low][1]):
        return None
    if not is_for_numpy_2(shelf, releases[high][1]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if is_for_numpy_2(shelf, releases[middle][1]):
            high = middle
        else:
            low = middle
    return releases[high][0]


def is_for_numpy_2(shelf: Shelf, files: list[File]) -> bool:
    """Return whether a module of a release was built with the headers of NumPy 2."""
    wheel = shelf.wheel(linux_wheel(files))
    sizes = sorted((size, name) for name, size in wheel.members().items() if MODULE.search(name))
    modules = [name for size, name in sizes if size < LARGEST]
    chosen = dict.fromkeys([*modules[-1:], *modules[: MODULES - 1]])
    return any(b"numpy._core" in (wheel.read(name) or b"") for name in chosen)


def declares_numpy_1(shelf: Shelf, files: list[File]) -> bool:
    """Return whether METADATA of a release has a bound on numpy that excludes NumPy 2."""
    metadata = shelf.wheel(linux_wheel(files)).metadata()
    bounds = [
        requirement.specifier
        for requirement in requirements(metadata)
        if canonicalize_name(requirement.name) == "numpy"
        and "extra" not in str(requirement.marker or "")
    ]
    return bool(bounds) and not any(_admits_numpy_2(bound) for bound in bounds)


def _admits_numpy_2(bound: SpecifierSet) -> bool:
    return bound.contains("2.0.0") or bound.contains("2.2.0")


def remade(shelf: Shelf, known: list[Row]) -> Iterable[Remade]:
    """Yield the list as read."""
    yield Remade("numpy_builds", "rows", ("package",), tuple(read(shelf, known)))


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known = rows_of(chosen.tables, "numpy_builds")
    return ask(chosen, lambda shelf: remade(shelf, known))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
