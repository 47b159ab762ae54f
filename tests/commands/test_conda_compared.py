"""One lock as an environment of uv and as one of conda: what `parity` and `diff` say of the two,
from reports of both.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conda_rig import CondaChannel
from tests.rig import Bench, make_index, make_wheel, small_spec

TARGETS = "targets: {plain: {kind: local}, local: {kind: local, manager: conda}}\n"


@pytest.fixture(scope="module")
def both(conda: CondaChannel, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench where both targets of a spec are made and verified; alpha comes from conda at one of
    them.
    """
    folder = tmp_path_factory.mktemp("both")
    wheels = (
        make_wheel(folder / "wheels", "alpha", "2.0"),
        make_wheel(folder / "wheels", "gamma", "1.0", requires=("alpha>=2",)),
    )
    (folder / "project/home").mkdir(parents=True)
    bench = Bench(folder / "project", make_index(folder / "index", wheels))
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", "{name: alpha, source: conda}", extra=TARGETS))
    done = bench.run("apply", "spec.yaml", "--all", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return bench


def stated(bench: Bench) -> dict[str, dict[str, Any]]:
    done = bench.run("parity", "spec.yaml", "--output-format", "json")
    return {one["subject"]: one for one in json.loads(done.stdout)["statements"]}


@pytest.mark.long
def test_parity_says_that_a_package_of_conda_is_another_build(both: Bench) -> None:
    done = both.run("parity", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "packages: 2 in one version; observed: 2 of 2 as locked on all targets" in said
    assert (
        "as declared package builds: alpha from the package index on plain, alpha pyh0_0 from "
        "conda on local; observed: alpha 2.0 on plain and local" in said
    )
    assert stated(both)["package builds"]["found"] == "apart"


def test_diff_finds_no_difference_of_identity(both: Bench) -> None:
    done = both.run("diff", "plain", "local", "--spec", "spec.yaml", "--output-format", "json")
    found = json.loads(done.stdout)
    assert [one for one in found["differences"] if one["class"] == "identity"] == []
    # Python of conda asks for a C library, and no wheel at the other target does: both hold, and
    # neither is another environment for it.
    assert (found["checks"], done.returncode) == ([], 0), done.stdout


def test_a_package_of_conda_in_another_version_is_a_difference(both: Bench) -> None:
    (info,) = (
        (both.own / "envs/spec.local").resolve().glob("lib/python*/site-packages/alpha-*.dist-info")
    )
    original = (info / "METADATA").read_text()
    (info / "METADATA").write_text(original.replace("Version: 2.0", "Version: 2.5"))
    try:
        assert both.run("verify", "spec.yaml", "--target", "local").returncode == 1
        done = both.run("diff", "plain", "local", "--spec", "spec.yaml")
        assert (done.returncode, "package.alpha 2.0 -> 2.5" in " ".join(done.stdout.split())) == (
            1,
            True,
        ), done.stdout
        builds = stated(both)["package builds"]
        assert (builds["found"], builds["observed"]["local"]) == ("differs", "alpha 2.5")
        assert "alpha 2.5, locked 2.0" in builds["why"]
    finally:
        (info / "METADATA").write_text(original)
