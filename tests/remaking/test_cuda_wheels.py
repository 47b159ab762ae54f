"""CUDA majors, read from the modules of small wheels."""

from __future__ import annotations

import _ctypes
import random
import struct
import sys
from pathlib import Path

import pytest

import remake_cuda_wheels
from remaking.elf import needed_libraries
from remaking.wheels import Shelf
from tests.remaking.serving import Folder, wheel

LINUX = "cp311-cp311-manylinux_2_28_x86_64"


def module(*needed: str) -> bytes:
    """A 64-bit ELF file with these libraries in its dynamic section, and nothing else."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    strings, base = 64 + 2 * 56, 0x1000
    dynamic = strings + len(names)
    entries = [(5, base + strings)]
    at = 1
    for name in needed:
        entries.append((1, at))
        at += len(name) + 1
    table = b"".join(struct.pack("<QQ", *entry) for entry in (*entries, (0, 0)))
    size = dynamic + len(table)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    linked = struct.pack(
        "<IIQQQQQQ", 2, 6, dynamic, base + dynamic, base + dynamic, len(table), len(table), 8
    )
    return header + load + linked + names + table


def test_the_libraries_of_a_module() -> None:
    assert needed_libraries(module("libcudart.so.13", "libc.so.6")) == [
        "libcudart.so.13",
        "libc.so.6",
    ]
    assert needed_libraries(module()) == []
    assert needed_libraries(b"MZ no elf") == []
    assert needed_libraries(b"") == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads a module of this Python")
def test_the_libraries_of_a_real_module() -> None:
    path = getattr(_ctypes, "__file__", sys.executable)
    assert "libc.so.6" in needed_libraries(Path(path).read_bytes())


def shelf(folder: Path, releases: dict[str, dict[str, bytes]]) -> Shelf:
    """The shelf of an index with the Linux wheels of kern."""
    files: dict[str, bytes] = {}
    for version, members in releases.items():
        files |= wheel("kern", version, LINUX, members=members)
    return Shelf(Folder(files), folder / "cache")


def test_runs_of_one_major(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        {
            "0.9": {"kern/_C.so": module("libcudart.so.11")},
            "1.0": {"kern/_C.so": module("libcudart.so.12"), "kern/host.so": module("libc.so.6")},
            "1.1": {"kern/__init__.py": b""},
            "1.2": {"kern/lib.so.1": module("libcudart-1a2b.so.12.4.127")},
            "2.0": {"kern/_C.so": module("libcudart.so.13")},
            "2.1": {"kern/_C.so": module("libcudart.so.12", "libcudart.so.13")},
        },
    )
    known = [{"package": "kern", "first": "1.0", "last": "", "cuda_major": "", "effect": "import"}]
    assert remake_cuda_wheels.read(held, known) == [
        {
            "package": "kern",
            "first": first,
            "last": last,
            "cuda_major": major,
            "effect": "import",
        }
        for first, last, major in (("1.0", "1.2", "12"), ("2.0", "2.0", "13"))
    ]


def test_large_modules_are_not_read(tmp_path: Path) -> None:
    large = module("libcudart.so.12") + random.Random(0).randbytes(remake_cuda_wheels.LARGEST)
    held = shelf(tmp_path, {"1.0": {"kern/_C.so": large}})
    (files,) = held.releases("kern").values()
    assert remake_cuda_wheels.cuda_major(held, files) == ""
