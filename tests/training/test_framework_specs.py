"""specs/jax.yaml, specs/keras.yaml and variants, made from the real index and verified."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
from tests.training.framework_stacks import STACKS, Stack, make_stack

pytestmark = [pytest.mark.long, pytest.mark.network]


@pytest.fixture(scope="session", params=STACKS)
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Stack, dict[str, Any]]:
    """A stack and its report."""
    (path,) = make_stack(tmp_path_factory, request.param).glob(".provision/reports/*/report.json")
    return STACKS[request.param], expand(json.loads(path.read_text(encoding="utf-8")))


def test_it_is_verified_with_its_training_proof(stack: tuple[Stack, dict[str, Any]]) -> None:
    chosen, report = stack
    assert report["verdict"]["result"] == "verified", report["verdict"]
    assert f"(proof: {chosen.spec})" in report["verdict"]["sentence"]
    passed = {check["id"] for check in report["checks"] if check["status"] == "pass"}
    assert passed >= {"J05", "J06", "J07", "J08"}
    # The checks of torch are in place of J01 and J02 if Keras computes with it.
    assert passed >= ({"T01", "N01"} if chosen.library == "torch" else {"J01", "J02"})
    assert ("J09" in passed) == (chosen.spec == "keras")


def test_the_declared_library_and_precision_are_in_effect(
    stack: tuple[Stack, dict[str, Any]],
) -> None:
    chosen, report = stack
    readings = {reading["key"]: reading["value"] for reading in report["readings"]}
    assert readings.get("framework.name", "torch") == chosen.library
    assert readings["framework.dtype"] == chosen.dtype
