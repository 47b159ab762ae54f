"""The CUDA plugins of jax, read from fat binaries in small wheels on an index on loopback."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

import remake_jax
from remaking.fatbin import compiled_code
from remaking.running import TABLES, rows_of
from remaking.sheets import rewritten, sheet
from tests.remaking.serving import served, wheel
from tests.remaking.test_scripts import run

PTX, MACHINE = 1, 2


def fat_binary(*entries: tuple[int, int]) -> bytes:
    """Return a fat binary with code of some kinds and capabilities, as nvcc lays it out."""
    code = b"".join(
        struct.pack("<HHIQ12xI32x", kind, 0x101, 64, 24, capability) + b"c" * 24
        for kind, capability in entries
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(code)) + code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (fat_binary((MACHINE, 90), (MACHINE, 75), (PTX, 120)), ((75, 90), (120,))),
        (b"elf" + fat_binary((MACHINE, 50)) + b"\0" + fat_binary((PTX, 90)), ((50,), (90,))),
        (b"", ((), ())),
        (b"no code", ((), ())),
        (fat_binary((MACHINE, 90), (MACHINE, 75))[:90], ((90,), ())),
        (fat_binary((MACHINE, 90))[:20], ((), ())),
        (b"\x50\xed\x55\xba" + b"\xff" * 90, ((), ())),
        (fat_binary((7, 90)), ((), ())),
    ],
)
def test_the_code_in_a_library(
    content: bytes, code: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    assert compiled_code(content) == code


@pytest.mark.long
def test_plugins_are_read_by_ranges_and_written(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(TABLES, tables)
    path = tables / "parts/jax.yaml"
    old = sheet(path.read_text(encoding="utf-8"), "rows")
    path.write_text(rewritten(old, ("release", "cuda"), [old.rows[-1].values]), encoding="utf-8")
    files: dict[str, bytes] = {}
    for cuda, first in (("12", 50), ("13", 75)):
        code = fat_binary((MACHINE, first), (MACHINE, 120), (PTX, 120))
        members = {remake_jax.MEMBER.format(cuda=cuda): code}
        for tags in ("cp313-cp313-manylinux_2_27_x86_64", "cp314-cp314-manylinux_2_27_x86_64"):
            files |= wheel(f"jax_cuda{cuda}_plugin", "2.99.0", tags, members=members)
    with served(files) as server:
        checked = run("remake_jax", tables, server.address, "--check")
        assert checked.returncode == 1, checked.stderr
        assert "lacks 2.99.0" in checked.stdout
        assert run("remake_jax", tables, server.address, "--write").returncode == 0
        assert any(span for _, span in server.requests)
    made = {row["cuda"]: row for row in rows_of(tables, "parts/jax") if row["release"] == "2.99.0"}
    assert {cuda: row["sm"] for cuda, row in made.items()} == {"12": "5.0 12.0", "13": "7.5 12.0"}
    assert made["12"] == {
        "release": "2.99.0",
        "cuda": "12",
        "pythons": ["3.13", "3.14"],
        "sm": "5.0 12.0",
        "ptx": "12.0",
    }
