"""The image of a job is looked up before a job is created, by the real command."""

from __future__ import annotations

import pytest

from provision.sandbox.image_registry import build_images
from tests.commands.test_vertex_job import APPLY, SPEC
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
