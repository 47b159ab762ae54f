"""specs/jax.yaml, specs/keras.yaml and variants, made from the real index and verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from provision.agent.probe.report_json import expand
from tests import fork_server
from tests.support import make_once

pytestmark = [pytest.mark.long, pytest.mark.network]

SPECS = Path(__file__).parents[2] / "specs"
KERAS_ON_JAX = (
    ("tensorflow-cpu==2.21.*", "jax==0.10.*"),
    ("KERAS_BACKEND: tensorflow", "KERAS_BACKEND: jax"),
    ("backend: tensorflow", "backend: jax"),
)


class Stack(NamedTuple):
    """A spec of the repository with replaced texts, and what its report contains."""

    spec: str
    replaced: tuple[tuple[str, str], ...]
    library: str
    dtype: str


STACKS = {
    "jax": Stack("jax", (), "jax", "float32"),
    "keras": Stack("keras", (), "tensorflow", "float32"),
    "jax in bf16": Stack("jax", (("precision: fp32", "precision: bf16"),), "jax", "bfloat16"),
    "keras in fp16, with workers": Stack(
        "keras",
        (("precision: fp32", "precision: fp16\n  dataloader_workers: 2"),),
        "tensorflow",
        "float16",
    ),
    "keras on jax in bf16": Stack(
        "keras",
        (*KERAS_ON_JAX, ("precision: fp32", "precision: bf16")),
        "jax",
        "bfloat16",
    ),
}


@pytest.fixture(scope="session", params=STACKS)
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Stack, dict[str, Any]]:
    """A stack and its report, made and verified once."""
    name: str = request.param
    chosen = STACKS[name]

    def make(folder: Path) -> None:
        text = (SPECS / f"{chosen.spec}.yaml").read_text(encoding="utf-8")
        for before, after in chosen.replaced:
            assert before in text
            text = text.replace(before, after)
        (folder / "stack.yaml").write_text(text, encoding="utf-8")
        words = ["apply", "stack.yaml", "--yes", "--output-format", "json"]
        done = fork_server.run(
            [*fork_server.ARGV, *words], cwd=folder, capture_output=True, text=True, timeout=600
        )
        assert list(folder.glob(".provision/reports/*/report.json")), done.stderr[-3000:]

    (path,) = make_once(tmp_path_factory, f"framework {name}", make).glob(
        ".provision/reports/*/report.json"
    )
    return chosen, expand(json.loads(path.read_text(encoding="utf-8")))


def test_it_is_verified_with_its_training_proof(stack: tuple[Stack, dict[str, Any]]) -> None:
    chosen, report = stack
    assert report["verdict"]["result"] == "verified", report["verdict"]
    assert f"(proof: {chosen.spec})" in report["verdict"]["sentence"]
    passed = {check["id"] for check in report["checks"] if check["status"] == "pass"}
    assert passed >= {"J01", "J02", "J05", "J06", "J07", "J08"}


def test_the_declared_library_and_precision_are_in_effect(
    stack: tuple[Stack, dict[str, Any]],
) -> None:
    chosen, report = stack
    readings = {reading["key"]: reading["value"] for reading in report["readings"]}
    assert readings["framework.name"] == chosen.library
    assert readings["framework.dtype"] == chosen.dtype
