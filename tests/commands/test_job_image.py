"""The image of a job is looked up before a job is created, by the real command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from provision.sandbox.image_registry import build_images
from tests.commands.test_job_run import prepare
from tests.commands.test_vertex_job import (
    APPLY,
    SPEC,
    assert_nothing_costs,
    jobs,
    logs,
    reports,
)
from tests.conftest import ROOT
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

ZERO = "sha256:" + 64 * "0"
IMAGES = build_images()[0]
PLAN = ("plan", "spec.yaml", "--sandbox")


def with_image(digest: str) -> str:
    assert ZERO in SPEC
    return SPEC.replace(ZERO, digest)


def test_the_plan_names_the_python_of_the_image(bench: Bench) -> None:
    bench.spec(with_image(IMAGES["3.12"].digest))
    plan = bench.run(*PLAN)
    assert plan.returncode == 0, plan.stderr
    assert "image: exists, for linux/amd64, Python 3.12.1" in plan.stdout
    bench.spec(SPEC)
    plan = bench.run(*PLAN)
    assert plan.returncode == 0, plan.stderr
    assert "image: not looked up: registry-1.docker.io refuses access" in plan.stdout


def test_an_image_that_machines_cannot_run_is_refused_before_a_job_is_requested(
    bench: Bench,
) -> None:
    new = IMAGES["3.12"]
    cases = [
        (IMAGES["3.9"].digest, (), "has Python 3.9.1; jobs need Python 3.10 or newer"),
        (new.manifests["arm64"], (), "is for linux/arm64; jobs run on linux/amd64"),
        (new.digest, ("--fault", "no-image"), "the registry does not have the image docker.io/"),
    ]
    for digest, fault, why in cases:
        bench.spec(with_image(digest))
        done = bench.run(*APPLY, *fault)
        assert done.returncode == 2, done.stderr
        text = " ".join(done.stderr.split())
        assert why in text
        assert "spec.yaml:" in text
        assert not (bench.folder / ".provision/sandbox/store.json").exists(), "nothing was written"


def test_the_page_has_the_digests_of_the_emulated_images() -> None:
    page = (ROOT / "docs/how-to/vertex-job.md").read_text()
    new = IMAGES["3.12"]
    for digest in (IMAGES["3.9"].digest, new.digest, new.manifests["arm64"]):
        assert f"`{digest}`" in page


OWN = SPEC.replace("docker.io/library/python", "us-docker.pkg.dev/my-project/images/train")
BAKED = OWN.replace("    replicas: 2\n", "    environment: baked\n")
RUN = ("run", "spec.yaml", "--sandbox", "--", "python3", "-c", "import alpha; print(alpha)")


@pytest.fixture
def baked(applied: Bench) -> Bench:
    """The environment with alpha is the Python of emulated images."""
    python = str(find_environment(applied) / "bin/python")
    applied.spec(BAKED)
    return replace(applied, extra={**applied.extra, "PROVISION_SANDBOX_IMAGE_PYTHON": python})


def find_environment(bench: Bench) -> Path:
    folders = (bench.folder / ".provision/envs").iterdir()
    (folder,) = [path for path in folders if not path.is_symlink()]
    return folder


def list_files(bench: Bench) -> set[Path]:
    paths = find_environment(bench).rglob("*")
    return {path for path in paths if "__pycache__" not in path.parts}


def test_the_environment_of_an_image_is_verified_and_not_changed(baked: Bench) -> None:
    files = list_files(baked)
    done = baked.run(*APPLY)
    assert done.returncode == 0, done.stderr + logs(baked)
    assert "nothing is installed: the packages of the image are compared" in done.stderr
    assert "wheels" not in done.stderr
    assert "packages     1 preinstalled" in done.stdout
    assert "none is installed" in logs(baked)
    statuses = {row["id"]: row["status"] for row in reports(baked)["report"]["checks"]}
    assert {statuses["P01"], statuses["P02"], statuses["P07"]} == {"pass"}
    assert list_files(baked) == files


@pytest.mark.long
def test_a_program_runs_in_the_environment_of_an_image(baked: Bench) -> None:
    files = list_files(baked)
    prepare(baked, BAKED)
    done = baked.run(*RUN)
    assert done.returncode == 0, done.stderr + logs(baked)
    assert str(find_environment(baked)) in done.stdout, "alpha is imported from the image"
    assert list_files(baked) == files
    (alpha,) = find_environment(baked).rglob("alpha/__init__.py")
    alpha.write_text(alpha.read_text() + "# changed\n")
    done = baked.run(*RUN)
    assert done.returncode == 2, done.stderr
    text = " ".join(done.stderr.split())
    assert "the image does not contain the locked environment: alpha: " in text, text
    done = baked.run(*APPLY)
    assert done.returncode == 1, done.stderr
    assert "FAIL P07" in done.stdout
    assert_nothing_costs(baked)


@pytest.mark.long
def test_an_image_that_lacks_a_package_names_it(baked: Bench) -> None:
    baked.spec(BAKED.replace("[alpha]", "[alpha, beta]"))
    done = baked.run(*APPLY)
    assert done.returncode == 1, done.stderr + logs(baked)
    assert "beta is not installed, locked" in " ".join(done.stdout.split())
    assert "the image was not built from this lock" in done.stdout
    (job,) = jobs(baked)
    assert job["state"] == "JOB_STATE_SUCCEEDED", "a failed verification is a finished job"
    done = baked.run(*RUN)
    assert done.returncode == 2, done.stderr
    assert "beta is not installed, locked" in " ".join(done.stderr.split())
    assert_nothing_costs(baked)


def test_a_baked_image_with_another_python_is_refused(bench: Bench) -> None:
    bench.spec(BAKED.replace(ZERO, IMAGES["3.12"].digest))
    done = bench.run(*PLAN)
    assert done.returncode == 2, done.stdout
    text = " ".join(done.stderr.split())
    assert "has Python 3.12.1, the environment is locked for 3.11" in text
    bench.spec(SPEC.replace("replicas: 2", "environment: baked"))
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 1
    assert "IMG035" in done.stdout, done.stdout


def test_a_python_of_emulated_images_that_is_none(bench: Bench, tmp_path: Path) -> None:
    bench.spec(OWN)
    for path in (tmp_path / "none", tmp_path):
        done = bench.run(*APPLY, PROVISION_SANDBOX_IMAGE_PYTHON=str(path))
        assert done.returncode == 3, done.stderr
        assert "PROVISION_SANDBOX_IMAGE_PYTHON does not name a program" in done.stderr
