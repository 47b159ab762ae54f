"""Remakes the table of releases without a wheel (source_only.yaml) from the default index.

Of each package of the list `rows`: its final releases that have a wheel for Linux x86_64 or any
platform, and the 40 newest of those that have only a source distribution (file names); from the
newest of the former whether it contains source code to compile (names of its members). Of each
package of the list `brings`: its final releases whose METADATA requires such a package without an
extra, with the version specifiers, and those that do not. At most the 120 newest releases are read.

Not touched: which packages the two lists have. Add a row with the name and empty columns, and write
the table again. Releases of a bringing package that have no wheel are not read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, bound, each, requirement_of

COMPILED = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".pyx", ".rs", ".f", ".f90"})
"""Suffixes of files that a build compiles."""
NOT_BUILT = re.compile(r"/(tests?|docs?|examples?|benchmarks?)/")
NEWEST = 120
"""Releases of a bringing package that are read."""
LISTED = 40
"""Releases without a wheel that a row has."""


def read(shelf: Shelf, known: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows of packages with releases that have no wheel."""
    return each(lambda row: _package(shelf, row["package"]), known)


def _package(shelf: Shelf, package: str) -> dict[str, Any]:
    wheels = [
        version for version, files in shelf.releases(package).items() if any(map(_usual, files))
    ]
    lacking = {
        version: source
        for version, source in shelf.sources(package).items()
        if version not in wheels
    }
    return {
        "package": package,
        "sources": " ".join(map(str, list(lacking)[-LISTED:])),
        "wheels": " ".join(map(str, wheels)),
        "compiles": compiles(shelf.members(lacking[max(lacking)])) if lacking else False,
    }


def _usual(file: File) -> bool:
    return any(
        tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64"))
        for tag in file.tags
    )


def compiles(members: Iterable[str]) -> bool:
    """Return whether members of a source distribution are code to compile."""
    return any(
        PurePosixPath(name).suffix.lower() in COMPILED and not NOT_BUILT.search(name)
        for name in members
    )


def lacks_wheels(row: Row, specifier: SpecifierSet) -> bool:
    """Return whether a specifier admits releases of a package, but none with a wheel."""
    with_wheel, without = row["wheels"].split(), row["sources"].split()
    return any(specifier.filter(without)) and not any(specifier.filter(with_wheel))


def bringing(shelf: Shelf, known: Iterable[Row], rows: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Return the rows of packages that require releases without a wheel of those in `rows`."""
    return [
        row
        for name in dict.fromkeys(row["package"] for row in known)
        for row in _bringing(shelf, name, rows)
    ]


def _bringing(shelf: Shelf, name: str, rows: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    releases = list(shelf.releases(name).items())[-NEWEST:]
    required = each(lambda item: _required(shelf, item[1], rows), releases)
    versions = [str(version) for version, _ in releases]
    by_release = dict(zip(versions, required, strict=True))
    for brought in sorted({package for found in required for package in found}):
        others = [version for version in versions if brought not in by_release[version]]
        specifiers = [by_release[version].get(brought) for version in versions]
        for specifier in dict.fromkeys(text for text in specifiers if text is not None):
            yield {
                "package": name,
                "brings": brought,
                "requires": specifier,
                "releases": " ".join(
                    version
                    for version, text in zip(versions, specifiers, strict=True)
                    if text == specifier
                ),
                "others": " ".join(others),
            }


def _required(shelf: Shelf, files: list[File], rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the packages of `rows` that wheels require in releases without a wheel."""
    metadata = shelf.wheel(max(files, key=lambda file: file.name)).metadata()
    found = {}
    for text in metadata.get_all("Requires-Dist", []):
        name = canonicalize_name(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0])
        if name in rows:
            requirement = requirement_of(text)
            is_extra = "extra" in str(requirement.marker or "")
            if not is_extra and lacks_wheels(rows[name], requirement.specifier):
                found[name] = bound(requirement.specifier)
    return found


def remade(shelf: Shelf, known: list[Row], bringers: list[Row]) -> Iterator[Remade]:
    """Yield both lists as read."""
    rows = read(shelf, known)
    yield Remade("source_only", "rows", ("package",), tuple(rows))
    by_package = {row["package"]: row for row in rows}
    key = ("package", "brings", "requires")
    yield Remade("source_only", "brings", key, tuple(bringing(shelf, bringers, by_package)))


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known = rows_of(chosen.tables, "source_only")
    bringers = rows_of(chosen.tables, "source_only", "brings")
    return ask(chosen, lambda shelf: remade(shelf, known, bringers))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
