"""Files of an environment that were lost or edited are found before a stored verdict is shown, and
`apply` puts them right.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.test_in_use import program
from tests.rig import MINOR, Bench, small_spec

CODE = "alpha/__init__.py"


def site_of(project: Bench) -> Path:
    return project.own / f"envs/spec.local/lib/python{MINOR}/site-packages"


def edited(site: Path) -> None:
    """An edit that keeps the size."""
    (site / CODE).write_text((site / CODE).read_text().replace("2.0", "6.6"))


def edited_with_its_record(site: Path) -> None:
    """The same, and the RECORD lists it as it is now."""
    before = (
        base64.urlsafe_b64encode(hashlib.sha256((site / CODE).read_bytes()).digest())
        .decode()
        .rstrip("=")
    )
    edited(site)
    after = (
        base64.urlsafe_b64encode(hashlib.sha256((site / CODE).read_bytes()).digest())
        .decode()
        .rstrip("=")
    )
    record = site / "alpha-2.0.dist-info/RECORD"
    assert before in record.read_text()
    record.write_text(record.read_text().replace(before, after))


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "deleted": (
        lambda site: (site / CODE).unlink(),
        f"~    environment {{name}}: it was changed after it was created: alpha: {CODE} is missing",
    ),
    "same size": (edited, f"alpha: {CODE} was changed"),
    "truncated": (
        lambda site: (site / CODE).write_text(""),
        f"alpha: {CODE} has 0 bytes, expected 20",
    ),
    "with its RECORD": (edited_with_its_record, "alpha: its RECORD was changed"),
    "garbled RECORD": (
        lambda site: (site / "alpha-2.0.dist-info/RECORD").write_bytes(b"\x00\xff"),
        "alpha: its RECORD is malformed",
    ),
    "no RECORD": (
        lambda site: (site / "alpha-2.0.dist-info/RECORD").unlink(),
        "alpha: its RECORD cannot be read: No such file or directory",
    ),
    "no dist-info": (
        lambda site: shutil.rmtree(site / "alpha-2.0.dist-info"),
        "it was changed after it was created: alpha is missing",
    ),
    "read at each start": (
        lambda site: (site / "evil.pth").write_text("import os\n"),
        "evil.pth, which Python reads at startup, belongs to no package",
    ),
    "no pyvenv.cfg": (
        lambda site: (site.parents[2] / "pyvenv.cfg").unlink(),
        "its pyvenv.cfg is missing",
    ),
}


@pytest.mark.long(after=2)
@pytest.mark.parametrize("case", list(DAMAGE))
def test_damage_is_found_said_and_put_right(applied: Bench, case: str) -> None:
    damage, says = DAMAGE[case]
    site = site_of(applied)
    damage(site)
    environment = (applied.own / "envs/spec.local").resolve().name
    plan = applied.run("plan", "spec.yaml")
    assert says.format(name=environment).partition("environment")[0] in plan.stdout
    assert says.rpartition("created: ")[2] in plan.stdout
    assert "then quick verification on this device: the environment will change" in plan.stdout
    standing = applied.run("status", "spec.yaml")
    assert standing.returncode == 1
    assert ("incomplete" if case == "no pyvenv.cfg" else "changed by hand") in standing.stdout
    done = applied.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED" in done.stdout
    assert "stored verdict" not in done.stdout
    assert (site / CODE).read_text() == "__version__ = '2.0'\n"
    assert not (site / "evil.pth").exists()
    assert "stored verdict" in applied.run("apply", "spec.yaml", "--yes").stdout
    assert applied.run("status", "spec.yaml").returncode == 0


@pytest.mark.long(after=1)
@pytest.mark.parametrize("case", ["same size", "deleted", "with its RECORD"])
def test_damage_that_verify_found_first_is_put_right_by_apply(applied: Bench, case: str) -> None:
    DAMAGE[case][0](site_of(applied))
    found = applied.run("verify", "spec.yaml")
    assert found.returncode == 1
    assert "FAIL P07 package files" in found.stdout
    assert "fix run `provision apply` to repair the environment" in " ".join(found.stdout.split())
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    assert (site_of(applied) / CODE).read_text() == "__version__ = '2.0'\n"


@pytest.mark.long
def test_a_failure_that_nothing_can_put_right_is_verified_again(applied: Bench) -> None:
    """A file in a package's folder that no RECORD lists is not looked for: here it shadows the
    module.
    """
    shadow = site_of(applied) / "alpha/__init__.abi3.so"
    shadow.write_bytes(b"no library")
    assert applied.run("verify", "spec.yaml").returncode == 1
    again = applied.run("apply", "spec.yaml", "--yes")
    assert (again.returncode, "stored verdict" in again.stdout) == (1, False)
    assert "FAIL P06:alpha" in again.stdout
    shadow.unlink()
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


@pytest.mark.long
def test_an_edit_that_keeps_size_and_time_is_found_once_a_verification_failed(
    applied: Bench,
) -> None:
    """The time of change is all that tells such an edit without reading the file: `apply` says so,
    and reads every file after a failure.
    """
    site = site_of(applied)
    about = (site / CODE).stat()
    edited(site)
    os.utime(site / CODE, ns=(about.st_atime_ns, about.st_mtime_ns))
    plan = applied.run("plan", "spec.yaml").stdout
    assert (
        "the packages match the lock, and the files match the installation "
        "(by size and modification time)" in plan
    )
    state = json.loads(applied.run("status", "spec.yaml", "--output-format", "json").stdout)
    assert state["targets"][0]["condition"] == "current"
    applied.spec(small_spec("alpha", extra="verify: {tier: deep}\n"))
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 1
    assert f"alpha: {CODE} was changed" in applied.run("plan", "spec.yaml").stdout
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


def test_a_file_that_was_touched_is_read_and_is_no_damage(applied: Bench) -> None:
    os.utime(site_of(applied) / CODE)
    assert applied.run("status", "spec.yaml").returncode == 0
    assert "stored verdict" in applied.run("apply", "spec.yaml", "--yes").stdout


def test_an_environment_of_an_earlier_version_is_compared_by_size(applied: Bench) -> None:
    path = applied.own / "envs/spec.local/installed.json"
    note = json.loads(path.read_text())
    for package in note["packages"].values():
        del package["record"], package["snapshot"]
    path.write_text(json.dumps(note))
    assert "files match the installation (by size)" in applied.run("plan", "spec.yaml").stdout
    edited(site_of(applied))
    assert "No changes" in applied.run("plan", "spec.yaml").stdout
    (site_of(applied) / CODE).unlink()
    assert f"alpha: {CODE} is missing" in applied.run("plan", "spec.yaml").stdout


def test_an_environment_in_use_is_left_and_the_refusal_names_the_damage(applied: Bench) -> None:
    with program(applied):
        (site_of(applied) / CODE).unlink()
        refused = applied.run("apply", "spec.yaml", "--yes")
        assert refused.returncode == 2
        assert f"alpha: {CODE} is missing" in refused.stderr
        assert "in use by process" in refused.stderr
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["zeta", "beta"])
def test_a_record_that_lists_files_of_another_package_takes_none_away(
    bench: Bench, name: str
) -> None:
    """An installer removes what a RECORD lists: here that of a locked package was edited, or a
    package was added by hand.
    """
    bench.spec(small_spec("beta"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    site = site_of(bench)
    (site / f"{name}-1.0.dist-info").mkdir(exist_ok=True)
    (site / f"{name}-1.0.dist-info/METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    )
    with (site / f"{name}-1.0.dist-info/RECORD").open("a") as record:
        record.write(f"{CODE},sha256=x,20\n")
        record.write(f"{name}-1.0.dist-info/METADATA,,\n{name}-1.0.dist-info/RECORD,,\n")
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / CODE).read_text() == "__version__ = '1.0'\n"
    assert "No changes" in bench.run("plan", "spec.yaml").stdout


def test_an_edit_in_uvs_cache_that_keeps_the_size_is_not_installed(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    (cached,) = (bench.folder / "uv-cache").glob(f"archive-v0/*/{CODE}")
    cached.write_text(cached.read_text().replace("2.0", "6.6"))
    offline = bench.run("apply", "spec.yaml", "--yes", "--offline")
    assert offline.returncode == 2
    assert (
        "uv's cache contains damaged files for alpha, and network access is off" in offline.stderr
    )
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert (
        "alpha: uv's cache contained damaged files; `uv cache clean alpha` removes them"
        in done.stderr
    )
    assert (site_of(bench) / CODE).read_text() == "__version__ = '2.0'\n"


@pytest.mark.long
def test_a_verdict_whose_report_is_gone_is_proven_anew(applied: Bench) -> None:
    shutil.rmtree(applied.own / "reports")
    status = applied.run("status", "spec.yaml")
    assert (status.returncode, "its report is missing" in status.stdout) == (1, True), status.stdout
    assert "its report is missing" in applied.run("plan", "spec.yaml").stdout
    done = applied.run("apply", "spec.yaml", "--yes")
    assert (done.returncode, "VERIFIED" in done.stdout) == (0, True), done.stderr
    assert applied.run("status", "spec.yaml").returncode == 0
