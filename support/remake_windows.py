"""Read the windows between packages (windows.yaml) anew from the wheels of the default index.

A window is a range of releases of one package that use a name which only some releases of another
package have: an import, an attribute, a keyword argument of a call, or the parameters of a method
that it replaces. The releases of the packages in windows/packages.py since its first day are read
as text, and never imported; of each wheel only the Python files are fetched, by HTTP ranges.
Packages with few wheels are read from their source distributions.

Not counted: uses in a try, under a condition about a version, and for type checkers; names of
modules that are compiled or that answer any name. Calls are read in the modules of entry points
only. A use that did not work with the newest releases on the day of its own upload is left out,
since it was misread, and a name for which the same module has a substitute (windows/confirming.py).

Not touched: `threads` and `confidence` of a row, which people write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, bound
from windows.comparing import Limit, Window
from windows.gathering import gather
from windows.packages import PACKAGES, Package
from windows.reading import Release

KEPT = ("threads", "confidence", "as_of")
"""Columns that people write."""


def rows(windows: Iterable[Window], known: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    """Yield the rows of windows, each with what people wrote in the row of the same id."""
    for window in sorted(windows, key=_order):
        limit = min(window.limits, key=_clearness)
        row = {
            "id": window_id(window, limit),
            "package": window.package,
            "first": str(window.first),
            "last": "" if window.is_newest else str(window.last),
            "of": window.of,
            "specifier": window.specifier,
            "name": written_name(limit),
            "severity": window.severity,
            "uses": f"{limit.name.file}:{limit.name.line}",
            "has": _has(limit),
        }
        if window.declared:
            row["declared"] = bound(SpecifierSet(window.declared))
        old = known.get(row["id"], {})
        yield row | {column: old[column] for column in KEPT if column in old}


def window_id(window: Window, limit: Limit) -> str:
    """Return a key that stays when newer releases are read."""
    side = "from" if limit.is_floor else "until"
    name = limit.name.path.rpartition(".")[2]
    if limit.name.argument:
        is_override = limit.name.argument.startswith("(")
        name += ".override" if is_override else f".{limit.name.argument}"
    return f"{window.package}-{window.first}-{side}-{window.of}-{limit.bound}-{name}"


def written_name(limit: Limit) -> str:
    """Return the name that sets a bound: "accelerate.Accelerator(dispatch_batches=)".

    A replaced method has the parameters of the replacement: "transformers.Trainer.log(logs)".
    """
    path, argument = limit.name.path, limit.name.argument
    if argument.startswith("("):
        return path + argument.partition("!")[0].replace("=", "")
    return f"{path}({argument}=)" if argument else path


def read_releases(releases: Mapping[str, Sequence[Release]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each package: the releases that were read, "" for none."""
    for package in PACKAGES:
        found = releases.get(package.name, ())
        versions = " ".join(str(release.version) for release in found)
        yield {"package": package.name, "uses": bool(found), "releases": versions}


def remade(
    shelf: Shelf,
    cache: Path,
    known: Iterable[Row],
    packages: Sequence[Package] = PACKAGES,
    run_all: Callable[..., Iterable[Any]] = map,
) -> Iterator[Remade]:
    """Yield both lists as read."""
    windows, releases = gather(shelf, packages, cache, _report, run_all)
    by_id = {row["id"]: row for row in known}
    yield Remade("windows", "rows", ("id",), tuple(rows(windows, by_id)))
    yield Remade("windows", "read", ("package",), tuple(read_releases(releases)))


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known = rows_of(chosen.tables, "windows")
    with ProcessPoolExecutor() as pool:
        return ask(chosen, lambda shelf: remade(shelf, chosen.cache, known, run_all=pool.map))


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _order(window: Window) -> tuple[str, str, Any, str, bool]:
    is_floor = window.specifier.startswith(">=")
    return window.package, window.of, window.first, window.severity, is_floor


def _clearness(limit: Limit) -> tuple[bool, int, str]:
    """Sort names that people import before others, and short ones before long ones."""
    return bool(limit.name.argument), limit.name.path.count("."), limit.name.path


def _has(limit: Limit) -> str:
    place = f"{limit.has.file}:{limit.has.line}" if limit.has.line else limit.has.file
    last = f"{place} in {limit.at_has}" if place else limit.at_has
    return f"{last}, not in {limit.lacks}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
