"""Environments made from a lock: how each package came there is kept and shown, and nothing
half-installed comes into use.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
from tests.rig import MINOR, Bench, make_index, make_wheel, served, small_spec


def kept(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bench.own / "envs/spec.local/installed.json").read_text())
    return found


def tampered(tmp_path: Path, name: str, version: str) -> None:
    """Put another file of the same name on the index."""
    shutil.rmtree(tmp_path / "index" / name)
    make_index(
        tmp_path / "index",
        (
            make_wheel(
                tmp_path / "tampered", name, version, code="import os  # not what was locked\n"
            ),
        ),
    )


def test_how_packages_came_there_is_kept_shown_and_reported(bench: Bench) -> None:
    bench.spec(small_spec("beta"))
    first = bench.run("apply", "spec.yaml", "--yes")
    assert first.returncode == 0, first.stderr
    assert (
        "packages     2 hash-checked\ncompared     downloads against the lock, and installed "
        "files against their RECORDs, by sha256\n" in first.stdout
    )
    result = kept(bench)
    assert {name: one["provenance"] for name, one in result["packages"].items()} == {
        "alpha": "hash-checked",
        "beta": "hash-checked",
    }
    assert str(bench.folder) not in json.dumps(result), (
        "an environment's note holds no path of this machine"
    )
    report = expand(json.loads((bench.own / "reports/spec.local/report.json").read_text()))
    reading = next(one for one in report["readings"] if one["key"] == "packages.provenance")
    assert reading == {
        "key": "packages.provenance",
        "value": {"hash-checked": 2},
        "class": "context",
    }
    told = json.loads(bench.run("apply", "spec.yaml", "--yes", "--output-format", "json").stdout)
    assert told["results"][0]["packages"] == {"hash-checked": 2}
    assert (told["results"][0]["fresh"], told["results"][0]["packages_fresh"]) == (False, False)
    assert told["results"][0]["compared"] == (
        "the packages match the lock, and the files match the installation "
        "(by size and modification time)"
    )
    for words in ((), ("--verify",)):
        again = bench.run("apply", "spec.yaml", "--yes", *words).stdout
        assert "packages     2 hash-checked (when the environment was created)\n" in again
        assert (
            "compared     the packages match the lock, and the files match the installation "
            "(by size and modification time)\n" in again
        )
    report = expand(json.loads((bench.own / "reports/spec.local/report.json").read_text()))
    report["readings"] = [one for one in report["readings"] if one["key"] != "packages.provenance"]
    (bench.own / "reports/spec.local/report.json").write_text(json.dumps(report))
    older = bench.run("apply", "spec.yaml", "--yes")
    assert older.returncode == 0, "a report of an older probe does not tell"
    assert "hash-checked" not in older.stdout


def test_what_was_changed_by_hand_is_told_from_what_stayed(bench: Bench) -> None:
    bench.spec(small_spec("beta", "alpha==1.0"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    packages = bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages"
    shutil.rmtree(packages / "beta-1.0.dist-info")
    (packages / "alpha/__init__.py").unlink()
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert "packages     1 hash-checked, 1 reinstalled\n" in done.stdout
    assert (packages / "alpha/__init__.py").exists(), (
        "the damage that no version tells is found by its RECORD"
    )


def test_a_wheel_whose_own_record_is_wrong_is_verified_with_a_warning(
    bench: Bench, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path / "wrong", "zeta", "1.0")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["zeta-1.0.dist-info/RECORD"] = files["zeta-1.0.dist-info/RECORD"].replace(
        b",20\n", b",21\n"
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    make_index(tmp_path / "index", (wheel,))
    bench.spec(small_spec("zeta"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout
    assert (
        "warn P07 package files: files already differed from their RECORD when they were "
        "installed" in " ".join(done.stdout.split())
    )


def test_a_tampered_wheel_among_several_leaves_the_environment_before_in_use(
    bench: Bench, tmp_path: Path
) -> None:
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    old = (bench.own / "envs/spec.local").readlink().name
    bench.spec(small_spec("alpha==2.0", "gamma", "zeta"))
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "zeta", "1.0"),))
    assert bench.run("lock", "spec.yaml").returncode == 0
    tampered(tmp_path, "gamma", "1.0")
    shutil.rmtree(bench.folder / "uv-cache")
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1
    assert "a file on the index differs from the locked file" in done.stderr
    assert "gamma" in done.stderr
    assert "provision lock --upgrade" in done.stderr
    assert "Traceback" not in done.stderr
    assert (bench.own / "envs/spec.local").readlink().name == old
    (made,) = (
        path for path in (bench.own / "envs").iterdir() if path.name not in ("spec.local", old)
    )
    assert not (made / "provision.json").exists()
    assert not (made / "installed.json").exists()
    assert list((made / f"lib/python{MINOR}/site-packages").glob("*.dist-info")) == []
    assert (bench.own / "envs/spec.local/provision.json").exists()
    refused = bench.run("run", "spec.yaml", "--", "python", "-c", "pass")
    assert refused.returncode == 2
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert (bench.own / "envs/spec.local").readlink().name == old
    assert not made.exists(), "what was begun is removed"


def test_a_locked_wheel_in_uvs_cache_is_taken_whatever_the_index_holds_now(
    bench: Bench, tmp_path: Path
) -> None:
    bench.spec(small_spec("alpha==1.0"))
    with served(tmp_path / "index") as address:
        assert (
            bench.run("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address).returncode == 0
        )
        assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
        tampered(tmp_path, "alpha", "1.0")
        done = bench.run("apply", "spec.yaml", "--yes", "--offline", PROVISION_INDEX_PYPI=address)
    assert done.returncode == 0, done.stderr
    assert (
        bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages/alpha/__init__.py"
    ).read_text() == "__version__ = '1.0'\n"


@pytest.mark.long
def test_an_edit_of_an_installed_file_does_not_come_into_the_next_environment(bench: Bench) -> None:
    link = {"UV_LINK_MODE": "hardlink"}
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("apply", "spec.yaml", "--yes", **link).returncode == 0
    with (bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages/alpha/__init__.py").open(
        "a"
    ) as file:
        file.write("edited = True\n")
    bench.spec(small_spec("alpha==1.0", "beta"))
    done = bench.run("apply", "spec.yaml", "--yes", **link)
    assert done.returncode == 0, done.stderr
    assert (
        "alpha: uv's cache contained damaged files; `uv cache clean alpha` removes them"
        in done.stderr
    )
    assert (
        "edited"
        not in (
            bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages/alpha/__init__.py"
        ).read_text()
    )


@pytest.mark.long
def test_a_wheel_of_pips_find_links_is_installed_from_there(bench: Bench, tmp_path: Path) -> None:
    make_wheel(tmp_path / "links", "homemade", "1.0", requires=("alpha",))
    bench.spec(small_spec("homemade"))
    done = bench.run("apply", "spec.yaml", "--yes", PIP_FIND_LINKS=str(tmp_path / "links"))
    assert done.returncode == 0, done.stderr
    assert kept(bench)["counts"]["hash-checked"] == 2


def test_an_index_that_lies_about_its_hash_is_found_out(bench: Bench, tmp_path: Path) -> None:
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    shutil.rmtree(bench.folder / "uv-cache")
    make_wheel(tmp_path / "index", "alpha", "1.0", code="import os  # not what was locked\n")
    (tmp_path / "index/alpha-1.0-py3-none-any.whl").replace(
        tmp_path / "index/alpha/alpha-1.0-py3-none-any.whl"
    )
    done = bench.run(
        "apply", "spec.yaml", "--yes"
    )  # the page still names the hash of the locked file
    assert done.returncode == 1
    assert "a file on the index differs from the locked file" in done.stderr
