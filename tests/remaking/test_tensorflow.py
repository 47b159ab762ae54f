"""TensorFlow releases, read from build_info.py in small wheels on an index on loopback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import remake_tensorflow
from remaking.running import TABLES, rows_of
from remaking.sheets import rewritten, sheet
from tests.remaking.serving import served, wheel
from tests.remaking.test_scripts import run

INFO = """# of a build
import collections

build_info = collections.OrderedDict([('cpu_compiler', 'clang'), \
('cuda_compute_capabilities', {codes}), ('cuda_version', '12.5.1'), ('cudnn_version', '9')])
"""
READ = {"cuda": "12.5.1", "cudnn": "9", "sm": "6.0 8.9 12.0", "ptx": "12.0"}
CODES = ["sm_60", "sm_120", "sm_89", "compute_120"]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        (INFO.format(codes=CODES), READ),
        (INFO.format(codes=["sm_60"]), {**READ, "sm": "6.0", "ptx": ""}),
        (
            "import collections\nbuild_info = collections.OrderedDict([('is_cuda_build', False)])",
            dict.fromkeys(READ, ""),
        ),
        ("", dict.fromkeys(READ, "")),
    ],
)
def test_what_a_wheel_is_compiled_for(source: str, read: dict[str, str]) -> None:
    assert remake_tensorflow.compiled_for(source) == read


@pytest.mark.long
def test_releases_are_read_by_ranges_and_written(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(TABLES, tables)
    path = tables / "parts/tensorflow.yaml"
    old = sheet(path.read_text(encoding="utf-8"), "rows")
    path.write_text(rewritten(old, ("release",), [old.rows[-1].values]), encoding="utf-8")
    members = {remake_tensorflow.MEMBER: INFO.format(codes=CODES)}
    files: dict[str, bytes] = {}
    for tags in ("cp313-cp313-manylinux_2_27_x86_64", "cp314-cp314-manylinux_2_27_x86_64"):
        files |= wheel("tensorflow", "2.99.0", tags, members=members)
    files |= wheel("tensorflow", "2.99.0", "cp315-cp315-win_amd64", members={})
    with served(files) as server:
        checked = run("remake_tensorflow", tables, server.address, "--check")
        assert checked.returncode == 1, checked.stderr
        assert "lacks 2.99.0, the newest release on the index" in checked.stdout
        assert run("remake_tensorflow", tables, server.address, "--write").returncode == 0
        assert any(span for _, span in server.requests)
    row = rows_of(tables, "parts/tensorflow")[-1]
    assert row == {"release": "2.99.0", "pythons": ["3.13", "3.14"], **READ}
