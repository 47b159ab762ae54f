"""The scripts as they are run: exit codes, what they print and write, and that a missing newest
release is never passed over.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

import remake_cuda
import remake_packages
import remake_transformers
from remaking.running import TABLES, Remade, finish, options, rows_of
from remaking.sheets import rewritten, sheet
from remaking.wheels import Shelf
from tests.remaking.serving import Folder, copied, served, wheel

ROOT = Path(__file__).parents[2]
TODAY = datetime.date(2027, 1, 2)
FLAGS = "code=sm_75;code=sm_90;"
VERSION = "cuda: Optional[str] = '13.2'\n"


def run(script: str, tables: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script with pip configured to an index."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tables),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": f"{address}/simple",
        "PIP_RETRIES": "0",
    }
    command = [
        sys.executable,
        f"support/{script}.py",
        "--tables",
        str(tables),
        "--cache",
        str(tables / "cache"),
        *words,
    ]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def torch_wheels(
    version: str, platforms: tuple[str, ...] = ("x86_64", "aarch64")
) -> dict[str, bytes]:
    """Wheels of one release for Python 3.12."""
    header = f'#define NVCC_FLAGS_EXTRA "{FLAGS}"\n'
    members = {
        "torch/version.py": VERSION,
        "torch/include/ATen/cuda/CUDAConfig.h": header,
        "torch/cuda/__init__.py": "",
    }
    head = "Requires-Python: >=3.11\nRequires-Dist: triton~=3.9.0"
    made = (
        wheel(
            "torch", version, f"cp312-cp312-manylinux_2_28_{platform}", head=head, members=members
        )
        for platform in platforms
    )
    return {name: content for each in made for name, content in each.items()}


COMPANIONS = {
    **wheel(
        "torchvision",
        "0.30.0",
        "cp312-cp312-manylinux_2_28_x86_64",
        head="Requires-Dist: torch>=2.14",
    ),
    **wheel("torchaudio", "2.11.0", "cp312-cp312-manylinux_2_28_x86_64"),
}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Tables of torch 2.15.0 alone."""

    def shortened(name: str, text: str) -> str:
        if name not in ("torch", "builds"):
            return text
        old = sheet(text, "rows")
        return rewritten(
            old,
            tuple(yaml.load(text, yaml.CSafeLoader)["keys"]["rows"]),
            [row.values for row in old.rows if row.values["release"] == "2.15.0"],
        )

    return copied(TABLES, tmp_path / "tables", shortened)


@pytest.mark.long
def test_what_differs_is_named_and_written_and_then_as_read(tables: Path) -> None:
    with served({**torch_wheels("2.15.0"), **COMPANIONS}) as server:
        shown = run("remake_torch", tables, server.address)
        assert shown.returncode == 0, shown.stderr
        assert (
            "torch.rows 2.15.0: pythons is ['3.11', '3.12', '3.13', '3.14', '3.15'], read ['3.12']"
            in shown.stdout
        )
        assert "+++ torch.yaml as read" in shown.stdout
        before = (tables / "torch.yaml").read_text()
        checked = run("remake_torch", tables, server.address, "--check")
        assert (checked.returncode, (tables / "torch.yaml").read_text()) == (1, before)
        assert (
            "builds.rows 2.15.0 cu132 linux-x86_64: sm is '7.5 8.0 8.6 9.0 10.0 12.0', "
            "read '7.5 9.0'" in checked.stdout
        )
        assert run("remake_torch", tables, server.address, "--write").returncode == 0
        again = run("remake_torch", tables, server.address, "--check")
        assert (again.returncode, again.stdout) == (
            0,
            "torch.rows: as read, 1 rows\nbuilds.rows: as read, 6 rows\n",
        )
    (row,) = rows_of(tables, "torch")
    assert (row["pythons"], row["cudnn"], row["torchvision"]) == (["3.12"], "", ["0.30.0"])
    assert row["builds"] == {
        "cu130": "medium",
        "cu132": "high",
        "cu134": "medium",
    }  # not told by this index
    assert (
        f"as_of: {datetime.datetime.now(tz=datetime.UTC).date()}"
        in (tables / "torch.yaml").read_text()
    )
    as_of = yaml.load((TABLES / "builds.yaml").read_text(), yaml.CSafeLoader)["as_of"]
    assert f"as_of: {as_of}" in (tables / "builds.yaml").read_text()  # holds rows of other sources


@pytest.mark.parametrize("words", [(), ("--check",)])
def test_a_newest_release_that_the_table_lacks_fails_loudly(
    tables: Path, words: tuple[str, ...]
) -> None:
    with served(
        {
            **torch_wheels("2.15.0"),
            **torch_wheels("2.16.0"),
            **torch_wheels("2.17.0rc1"),
            **COMPANIONS,
        }
    ) as server:
        done = run("remake_torch", tables, server.address, *words)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "MISSING: torch.rows lacks 2.16.0, the newest release on the index\n"
    )
    assert "MISSING: builds.rows lacks 2.16.0 cu132 linux-x86_64" in done.stdout


def test_only_the_newest_are_read_where_that_is_asked(tables: Path) -> None:
    with served({**torch_wheels("2.15.0"), **torch_wheels("2.16.0"), **COMPANIONS}) as server:
        done = run("remake_torch", tables, server.address, "--check", "--newest", "1")
        assert not any("torch-2.15.0" in path for path, _ in server.requests)
    assert done.stdout == (
        "MISSING: torch.rows lacks 2.16.0, the newest release on the index\ntorch.rows "
        "2.16.0: read, not in the table\n"
        "MISSING: builds.rows lacks 2.16.0 cu132 linux-x86_64, the newest release on the index\n"
        "builds.rows 2.16.0 cu132 linux-x86_64: read, not in the table\nbuilds.rows 2.16.0 "
        "cu132 linux-aarch64: read, not in the table\n"
    )
    assert done.stderr.startswith("read 0.0 MB")


@pytest.mark.long
def test_a_missing_release_is_written(tables: Path) -> None:
    with served({**torch_wheels("2.16.0"), **COMPANIONS}) as server:
        assert run("remake_torch", tables, server.address, "--write").returncode == 0
        assert run("remake_torch", tables, server.address, "--check").returncode == 0
    assert [row["release"] for row in rows_of(tables, "torch")] == ["2.15.0", "2.16.0"]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "script", ["remake_torch", "remake_transformers", "remake_packages", "remake_cuda"]
)
def test_without_an_index_nothing_is_claimed(tables: Path, script: str) -> None:
    before = (tables / "torch.yaml").read_text()
    done = run(script, tables, "http://127.0.0.1:1", "--write")
    assert (done.returncode, (tables / "torch.yaml").read_text()) == (2, before)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(
        "cannot read anew: the package index does not answer for "
    )


def test_a_wheel_that_is_no_zip_is_said_so(tables: Path) -> None:
    with served({**dict.fromkeys(torch_wheels("2.15.0"), b"not a zip"), **COMPANIONS}) as server:
        done = run("remake_torch", tables, server.address, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "cannot read anew: File is not a zip file\n",
    )


@pytest.mark.long
def test_every_script_says_what_it_does_not_touch() -> None:
    scripts = sorted(ROOT.glob("support/remake_*.py"))
    (tables,) = re.findall(r"for table in ([\w ]+); do", (ROOT / "Makefile").read_text())
    names = {script.stem.removeprefix("remake_") for script in scripts}
    assert names == set(tables.split()), "`make remake` runs all of them"
    for script in scripts:
        done = subprocess.run(
            [sys.executable, str(script), "--help"], capture_output=True, text=True, check=True
        )
        assert "Not touched" in done.stdout, script.name


# The same of the other tables, without a server


def finished(remade: Remade, tmp_path: Path, *words: str) -> int:
    """The exit code of comparing with a copy of the tables."""
    tables = copied(TABLES, tmp_path / "copy")
    return finish(options(["--tables", str(tables), *words], ""), [remade], TODAY)


def _remade(name: str, tmp_path: Path) -> Remade:
    files = {
        "transformers": wheel(
            "transformers", "99.0.0", members={"transformers/utils/import_utils.py": ""}
        ),
        "packages": wheel("accelerate", "99.0.0"),
        "cuda": {
            **wheel("nvidia-cuda-nvcc", "99.0.1", members={"x/bin/nvcc": b""}),
            **wheel("nvidia-cuda-crt", "99.0.1", members={"x/crt/host_config.h": ""}),
        },
    }
    shelf = Shelf(Folder(files[name]), tmp_path / "cache")
    known: list[Any] = rows_of(
        TABLES, name, {"packages": "runs", "cuda": "toolkits"}.get(name, "rows")
    )
    if name == "packages":
        return next(
            remake_packages.remade(
                shelf, [row for row in known if row["package"] == "accelerate"], ["3.12"]
            )
        )
    return next(
        remake_transformers.remade(shelf, known, ["3.12"])
        if name == "transformers"
        else remake_cuda.remade(shelf, known)
    )


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("transformers", "transformers.rows lacks 99.0.0"),
        ("packages", "packages.runs lacks accelerate 99.0.0"),
        ("cuda", "cuda.toolkits lacks 99.0"),
    ],
)
def test_a_newest_release_that_another_table_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, newest: str
) -> None:
    assert finished(_remade(name, tmp_path), tmp_path) == 1
    assert capsys.readouterr().out.startswith(
        f"MISSING: {newest}, the newest release on the index\n"
    )


def test_what_cannot_be_written_stays_missing(tmp_path: Path) -> None:
    """The driver floors of a new CUDA major are in no wheel: a person must add the row."""
    assert finished(_remade("cuda", tmp_path), tmp_path, "--write") == 1


def test_a_table_as_it_is_read_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tuple(rows_of(TABLES, "transformers"))
    assert (
        finished(
            Remade("transformers", "rows", ("first",), rows, ({"last": rows[-1]["last"]},)),
            tmp_path,
            "--check",
        )
        == 0
    )
    assert capsys.readouterr().out == f"transformers.rows: as read, {len(rows)} rows\n"


def test_a_row_that_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tuple(rows_of(TABLES, "transformers"))
    assert finished(Remade("transformers", "rows", ("first",), rows[1:]), tmp_path, "--check") == 1
    assert (
        capsys.readouterr().out
        == f"transformers.rows {rows[0]['first']}: in the table, not as read\n"
    )


def test_options() -> None:
    assert options([], "") == Namespace(
        write=False, check=False, tables=TABLES, cache=ROOT / ".cache" / "remake"
    )
    with pytest.raises(SystemExit):
        options(["--write", "--check"], "")
