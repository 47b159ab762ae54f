"""Remakes the table of TensorFlow releases (parts/tensorflow.yaml) from the wheels on the index.

Of each release from the first row on: the Pythons with a wheel for Linux x86_64 (file names), and
from `tensorflow/python/platform/build_info.py` in the wheel of the newest Python the CUDA and cuDNN
versions and the compute capabilities that it was compiled for. The member is read by HTTP range, so
no wheel is fetched whole.

Not touched: releases before the first row.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.version import Version

from remake_torch import capability, pythons
from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, each

TABLE = "parts/tensorflow"
MEMBER = "tensorflow/python/platform/build_info.py"


def read(shelf: Shelf, known: Iterable[Row], newest: int | None = None) -> list[dict[str, Any]]:
    """Return the rows as the wheels have them; with `newest`, only so many are read."""
    rows = {row["release"]: dict(row) for row in known}
    first = min(map(Version, rows))
    wanted = [item for item in shelf.releases("tensorflow").items() if item[0] >= first]
    for row in each(lambda item: _release(shelf, *item), wanted[-newest:] if newest else wanted):
        if row:
            rows[row["release"]] = row
    return sorted(rows.values(), key=lambda row: Version(row["release"]))


def _release(shelf: Shelf, version: Version, files: list[File]) -> dict[str, Any]:
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
    return {
        "release": str(version),
        "pythons": found,
        **compiled_for(shelf.wheel(newest).text(MEMBER)),
    }


def compiled_for(source: str) -> dict[str, str]:
    """Return the CUDA, cuDNN and compute capabilities in build_info.py, which is not run."""
    told: dict[str, Any] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "OrderedDict":
            told = dict(ast.literal_eval(node.args[0]))
    codes: dict[str, list[str]] = {"sm": [], "compute": []}
    for code in told.get("cuda_compute_capabilities", ()):
        kind, _, number = code.partition("_")
        codes[kind].append(capability(number))
    return {
        "cuda": str(told.get("cuda_version", "")),
        "cudnn": str(told.get("cudnn_version", "")),
        "sm": " ".join(sorted(codes["sm"], key=Version)),
        "ptx": " ".join(sorted(codes["compute"], key=Version)),
    }


def remade(shelf: Shelf, known: list[Row], newest: int | None = None) -> Iterator[Remade]:
    """Yield the table as read."""
    rows, last = tuple(read(shelf, known, newest)), shelf.newest("tensorflow")
    yield Remade(TABLE, "rows", ("release",), rows, ({"release": last},), whole=newest is None)


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "", newest=True)
    known = rows_of(chosen.tables, TABLE)
    return ask(chosen, lambda shelf: remade(shelf, known, chosen.newest))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
