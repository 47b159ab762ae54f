"""Remakes the table of CUDA plugins of jax (parts/jax.yaml) from the wheels on the index.

Of each release of jax-cuda12-plugin and jax-cuda13-plugin: the Pythons with a wheel for Linux
x86_64 (file names), and the compute capabilities of the code in `_prng.so` of the wheel of the
newest Python. The other libraries with code have the same. The member is read by HTTP range.

Not touched: releases before the first row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.version import Version

from remake_torch import capability, pythons
from remaking.fatbin import compiled_code
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, each

TABLE = "parts/jax"
MEMBER = "jax_cuda{cuda}_plugin/_prng.so"
MAJORS = ("12", "13")


def read(shelf: Shelf, known: Iterable[Row], newest: int | None = None) -> list[dict[str, Any]]:
    """Return the rows as the wheels have them; `newest` limits how many of each plugin are read."""
    rows = {(row["release"], row["cuda"]): dict(row) for row in known}
    first = min(Version(release) for release, _ in rows)
    wanted = []
    for cuda in MAJORS:
        releases = [
            item for item in shelf.releases(f"jax-cuda{cuda}-plugin").items() if item[0] >= first
        ]
        wanted += [(cuda, *item) for item in (releases[-newest:] if newest else releases)]
    for row in each(lambda item: _release(shelf, *item), wanted):
        if row:
            rows[row["release"], row["cuda"]] = row
    return sorted(rows.values(), key=lambda row: (Version(row["release"]), row["cuda"]))


def _release(shelf: Shelf, cuda: str, version: Version, files: list[File]) -> dict[str, Any]:
    """Return a row; {} for a release without wheels for Linux x86_64."""
    fitting = [
        file
        for file in files
        if any("linux" in tag.platform and tag.platform.endswith("x86_64") for tag in file.tags)
    ]
    found = pythons(fitting)
    if not found:
        return {}
    newest = next(file for file in fitting if pythons([file])[-1] == found[-1])
    code = compiled_code(shelf.wheel(newest).read(MEMBER.format(cuda=cuda)) or b"")
    return {
        "release": str(version),
        "cuda": cuda,
        "pythons": found,
        "sm": " ".join(capability(str(number)) for number in code.machine),
        "ptx": " ".join(capability(str(number)) for number in code.ptx),
    }


def remade(shelf: Shelf, known: list[Row], newest: int | None = None) -> Iterator[Remade]:
    """Yield the table as read."""
    rows = tuple(read(shelf, known, newest))
    last = tuple(
        {"release": shelf.newest(f"jax-cuda{cuda}-plugin"), "cuda": cuda} for cuda in MAJORS
    )
    yield Remade(TABLE, "rows", ("release", "cuda"), rows, last, whole=newest is None)


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "", newest=True)
    known = rows_of(chosen.tables, TABLE)
    return ask(chosen, lambda shelf: remade(shelf, known, chosen.newest))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
