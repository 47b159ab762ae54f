"""Read the CUDA toolkits (the list `toolkits` of cuda.yaml) anew from NVIDIA's compiler wheels on
the default index.

The newest patch of each minor is read: `gcc_max` from crt/host_config.h, and from CUDA 13.0 on
the capabilities from the names of targets in the program nvcc
(8 MB a toolkit; read as bytes, never run). A new minor takes the driver floors of its major,
which minor-version compatibility makes common to it.

Not touched, because no wheel tells: drivers, driver floors of a new major, toolkits before 11.7
(no wheels), capabilities before 13.0 (those wheels carry ptxas
without nvcc, and only running it tells; they get no more releases), the lists `drivers`,
`capabilities` and `cudnn`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from remaking.declaring import linux_wheel, newest_of_minors
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, Wheel, each

HEADERS = ("nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-crt")
"""Where crt/host_config.h lies: with the compiler up to CUDA 12, by itself from 13 on."""
COMPILER = "nvidia-cuda-nvcc"
OF_MAJOR = ("floor_linux", "floor_windows")


def read(shelf: Shelf, known: list[Row]) -> list[dict[str, Any]]:
    """Return the toolkits of the table and of the wheels, oldest first."""
    rows = {row["cuda"]: dict(row) for row in known}
    for cuda, gcc in gcc_of_toolkits(shelf, known[0]["cuda"]).items():
        if row := rows.get(cuda) or _of_same_major(cuda, rows):
            rows[cuda] = {**row, "cuda": cuda, "gcc_max": gcc}
    for cuda, made in capabilities_of_toolkits(shelf).items():
        if made and cuda in rows:
            rows[cuda] |= {"capabilities": " ".join(made), "cc_min": made[0], "cc_max": made[-1]}
    return sorted(rows.values(), key=lambda row: Version(row["cuda"]))


def gcc_of_toolkits(shelf: Shelf, first: str) -> dict[str, int]:
    """Return the newest gcc that each toolkit takes, where its header tells."""
    wheels = [item for package in HEADERS for item in _wheels(shelf, package, first)]
    found = each(lambda item: (item[0], gcc_in(item[1].text("crt/host_config.h"))), wheels)
    return {cuda: gcc for cuda, gcc in found if gcc is not None}


def capabilities_of_toolkits(shelf: Shelf) -> dict[str, list[str]]:
    """Return the capabilities that each toolkit from 13.0 on makes code for."""
    return dict(
        each(
            lambda item: (item[0], capabilities_in(item[1].read("bin/nvcc") or b"")),
            _wheels(shelf, COMPILER, "13.0"),
        )
    )


def gcc_in(header: str) -> int | None:
    """Return the newest gcc major that host_config.h lets through."""
    found = re.search(r"^#if __GNUC__ > (\d+)", header, re.MULTILINE)
    return int(found[1]) if found else None


def capabilities_in(program: bytes) -> list[str]:
    """Return the capabilities whose code (sm_90) nvcc names as a target, lowest first; what it
    names as a virtual one only is none.
    """
    named = {
        kind: set(re.findall(rb"\0" + kind + rb"_(\d+)(?=\0)", program))
        for kind in (b"sm", b"compute")
    }
    return [
        f"{number[:-1]}.{number[-1]}"
        for number in sorted((both.decode() for both in named[b"sm"] & named[b"compute"]), key=int)
    ]


def _wheels(shelf: Shelf, package: str, first: str) -> list[tuple[str, Wheel]]:
    newest = newest_of_minors(shelf.releases(package), first)
    return [
        (".".join(map(str, version.release[:2])), shelf.wheel(linux_wheel(files)))
        for version, files in newest.items()
    ]


def _of_same_major(cuda: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the beginning of a row for a new minor, {} when its major is new: then its driver
    floors are nowhere to be read.
    """
    known = [
        row for row in rows.values() if row["cuda"].split(".")[0] == cuda.split(".", maxsplit=1)[0]
    ]
    empty = {
        "cuda": cuda,
        "capabilities": None,
        "cc_min": "",
        "cc_max": "",
        "gcc_max": 0,
        "driver_first": None,
        "driver_bundled": None,
    }
    return {**empty, **{name: known[-1][name] for name in OF_MAJOR}} if known else {}


def remade(shelf: Shelf, known: list[Row]) -> Iterator[Remade]:
    """Yield the list as read."""
    newest = ".".join(shelf.newest(COMPILER).split(".")[:2])
    yield Remade(
        "cuda", "toolkits", ("cuda",), tuple(read(shelf, known)), ({"cuda": newest},), whole=False
    )


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    known = rows_of(chosen.tables, "cuda", "toolkits")
    return ask(chosen, lambda shelf: remade(shelf, known))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
