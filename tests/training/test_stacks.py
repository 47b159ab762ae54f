"""The training proof with three releases of transformers: each stack is made from a spec of its
own, with an adapter and two processes, and verified.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
from tests import fork_server
from tests.support import make_once

pytestmark = [pytest.mark.hf, pytest.mark.long(minutes=True), pytest.mark.network]

SPEC = """apiVersion: provision/v1
name: {name}
gpu: none
python: "3.11"
packages: [torch==2.13.*, "transformers=={transformers}", accelerate, peft, "datasets>=3", safetensors{more}]
training:
  {{precision: {precision}, optimizer: {optimizer}, method: lora, strategy: ddp, launcher: {launcher}, gradient_checkpointing: true, dataloader_workers: 1,
   arguments: {{use_cpu: true}}}}
"""  # noqa: E501
STACKS = {
    "4.49.0": ("fp32", "adamw_torch", "torchrun"),
    "4.57.6": ("bf16", "adamw_torch", "accelerate"),
    "5.23.0": ("fp32", "adamw_bnb_8bit", "accelerate"),
}
"""Precision, optimizer and launcher by the release of transformers; accelerate and what else comes
along is the newest that fits.
"""
PROVEN = ("R01", "R02", "R03", "R04", "R05", "R06", "R07", "R10", "R11", "R12", "R13")


@pytest.fixture(scope="session", params=STACKS)
def report(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The report of one stack, made and verified once."""
    release: str = request.param
    precision, optimizer, launcher = STACKS[release]

    def make(folder: Path) -> None:
        more = ", bitsandbytes" if "bnb" in optimizer else ""
        (folder / "stack.yaml").write_text(
            SPEC.format(
                name="stack",
                transformers=release,
                precision=precision,
                optimizer=optimizer,
                launcher=launcher,
                more=more,
            )
        )
        words = ["apply", "stack.yaml", "--yes", "--output-format", "json"]
        done = fork_server.run(
            [*fork_server.ARGV, *words], cwd=folder, capture_output=True, text=True, timeout=1200
        )
        assert list(folder.glob(".provision/reports/*/report.json")), done.stderr[-3000:]

    (found,) = make_once(tmp_path_factory, f"stack-{release}", make).glob(
        ".provision/reports/*/report.json"
    )
    document: dict[str, Any] = expand(json.loads(found.read_text()))
    return document


def test_each_check_of_the_training_holds(report: dict[str, Any]) -> None:
    checks = {check["id"]: check for check in report["checks"]}
    assert {name: checks[name]["status"] for name in PROVEN} == dict.fromkeys(PROVEN, "pass"), [
        checks[name] for name in PROVEN
    ]
    assert report["verdict"]["result"] == "verified", report["verdict"]


def test_the_adapter_and_the_processes_are_measured(report: dict[str, Any]) -> None:
    readings = {reading["key"]: reading["value"] for reading in report["readings"]}
    assert readings["launch.weights_agree"] is True
    rounded = (
        readings["train.dtype"] == "bfloat16"
        or readings["train.options"]["optimizer"][1] == "adamw_bnb_8bit"
    )
    assert 0 <= readings["launch.weights_error"] < (0.05 if rounded else 1e-5)
    assert readings["launch.wrapper"].startswith("DistributedDataParallel")
    first, last = readings["train.adapter_loss"]
    assert last / first == pytest.approx(0.89, abs=0.02)
