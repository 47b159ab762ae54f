"""The rig of a conda channel: a Python that runs, builds that follow the virtual packages, and a
second making that is none.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import rattler
from rattler.exceptions import SolverError

from tests.conda_rig import VERSION, CondaChannel, conda_channel
from tests.rig import MINOR


def solved(channel: CondaChannel, *specs: str, **virtual: str) -> dict[str, Any]:
    """What py-rattler chooses with these virtual packages, by name."""
    known = [_virtual(f"__{name}", version) for name, version in virtual.items()]
    gateway = rattler.Gateway(cache_dir=channel.folder.parent / "cache")
    wanted = [rattler.MatchSpec(spec) for spec in specs]
    solving = rattler.solve(
        [channel.address],
        wanted,
        gateway=gateway,
        platforms=["linux-64", "noarch"],
        virtual_packages=known,
    )
    return {record.name.normalized: record for record in asyncio.run(solving)}


def _virtual(name: str, version: str) -> Any:
    return rattler.GenericVirtualPackage(
        rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0")
    )


def test_the_python_of_the_channel_runs_from_its_own_prefix(
    conda: CondaChannel, tmp_path: Path
) -> None:
    records = solved(conda, f"python {MINOR}.*", "pip", "alpha ==1.0", glibc="2.28")
    asyncio.run(
        rattler.install(
            list(records.values()),
            tmp_path / "env",
            cache_dir=tmp_path / "cache",
            show_progress=False,
        )
    )
    code = (
        "import sys, ssl, sqlite3, json, alpha; print(json.dumps([sys.prefix, "
        "'.'.join(map(str, sys.version_info[:3])), alpha.__version__]))"
    )
    done = subprocess.run(
        [tmp_path / "env/bin/python", "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [str(tmp_path / "env"), VERSION, "1.0"]
    assert (
        subprocess.run(
            [tmp_path / "env/bin/python", "-m", "pip", "--version"],
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


@pytest.mark.parametrize(("cuda", "build"), [("", "cpu"), ("12.6", "cuda126"), ("13.0", "cuda130")])
def test_the_build_follows_the_virtual_package(conda: CondaChannel, cuda: str, build: str) -> None:
    records = solved(conda, "pytorch", glibc="2.28", **({"cuda": cuda} if cuda else {}))
    assert str(records["pytorch"].build).startswith(build + "_")


def test_an_old_c_library_falls_to_the_cpu_in_silence(conda: CondaChannel) -> None:
    """As on conda-forge: why a build has to be asked for by name."""
    assert str(solved(conda, "pytorch", glibc="2.17", cuda="12.6")["pytorch"].build).startswith(
        "cpu_"
    )
    with pytest.raises(SolverError):
        solved(conda, "pytorch=*=cuda126*", glibc="2.17", cuda="12.6")


def test_it_is_made_once(conda: CondaChannel) -> None:
    before = {path: path.stat().st_mtime_ns for path in conda.folder.rglob("*")}
    again = conda_channel(conda.folder.parent.parent)
    assert again == conda
    assert {path: path.stat().st_mtime_ns for path in again.folder.rglob("*")} == before
