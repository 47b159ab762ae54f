"""The probe in a real Hugging Face environment: all of it holds, and every negative control really
fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import compact, expand, to_canonical_json
from tests.agent.probe.test_texts import assert_readable

pytestmark = pytest.mark.hf

LIST = """
import json, sys, importlib.metadata as m
found = {d.metadata["Name"]: d.version for d in m.distributions()}
version = "%d.%d" % sys.version_info[:2]
print(json.dumps({"packages": found, "prefix": sys.prefix, "version": version}))
"""
PROOF = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", WANDB_DISABLED="true")
from pathlib import Path
from provision_probe.probe.proofs import {module} as proof
from provision_probe.probe.proofs.recipe import (Recipe)
recipe, folder = Recipe(**json.loads(sys.argv[2])), Path(sys.argv[3])
outcome = proof.Run(recipe, folder, {{}}).train(Path(sys.argv[4]) if len(sys.argv) > 4 else None)
print("\\n" + json.dumps([outcome.losses, outcome.weights_sha, outcome.dtype, outcome.steps]))
"""
Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="session")
def inventory(hf_python: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        subprocess.run([hf_python, "-c", LIST], capture_output=True, text=True, check=True).stdout
    )
    return found


@pytest.fixture(scope="session")
def verify(
    hf_python: str,
    inventory: dict[str, Any],
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Verify:
    def ask(
        *only: str, environ: dict[str, str] | None = None, **changes: Any
    ) -> tuple[int, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("asked")
        promised = {
            "packages": [
                {"name": name, "version": version}
                for name, version in inventory["packages"].items()
            ],
            "direct": ["torch", "transformers", "accelerate", "safetensors"],
            "flavour": "cpu",
            "python": {"version": inventory["version"], "prefix": inventory["prefix"]},
            **changes,
        }
        (folder / "expectations.json").write_text(
            json.dumps(document(**promised)), encoding="utf-8"
        )
        command = [
            hf_python,
            str(probe),
            "verify",
            "--expectations",
            str(folder / "expectations.json"),
            "--out",
            str(folder / "report.json"),
        ]
        command += [part for one in only for part in ("--only", one)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(environ or {})},
        )
        assert (folder / "report.json").exists(), done.stderr
        return done.returncode, expand(
            json.loads((folder / "report.json").read_text(encoding="utf-8"))
        )

    return ask


@pytest.fixture(scope="session")
def prove(hf_python: str, probe: Path) -> Callable[..., tuple[list[float], str, str, int]]:
    def run(
        folder: Path, resume_from: Path | None = None, module: str = "trainer", **recipe: Any
    ) -> tuple[list[float], str, str, int]:
        command = [
            hf_python,
            "-c",
            PROOF.format(module=module),
            str(probe),
            json.dumps(recipe),
            str(folder),
        ]
        done = subprocess.run(
            command + ([str(resume_from)] if resume_from else []),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        losses, weights, dtype, steps = json.loads(done.stdout.splitlines()[-1])
        return losses, weights, dtype, steps

    return run


def checks(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in report["checks"]}


def value(report: dict[str, Any], key: str) -> Any:
    return next(reading["value"] for reading in report["readings"] if reading["key"] == key)


def left(losses: list[float]) -> float:
    return sum(losses[-5:]) / sum(losses[:5])


def test_a_hugging_face_environment_is_verified_by_a_trainer_run(verify: Verify) -> None:
    code, report = verify()
    assert report["verdict"]["counts"]["fail"] == report["verdict"]["counts"]["unknown"] == 0, (
        report["verdict"]
    )
    assert (code, report["verdict"]["result"], report["subject"]["proof"]) == (
        0,
        "verified",
        "hf-trainer",
    )
    assert "proof: hf-trainer" in report["verdict"]["sentence"]
    assert (
        value(report, "train.weights_sha")
        == value(report, "train.repeat_sha")
        == value(report, "resume.weights_sha")
    )
    assert [stage["name"] for stage in report["stages"]] == [
        "host",
        "packages",
        "torch",
        "loaders",
        "training",
        "imports",
        "resume",
    ]
    assert len(to_canonical_json(compact(report))) < 24_000
    assert_readable(report)
    assert [
        check["id"]
        for check in report["checks"]
        if check["status"] == "pass" and check["observed"] in (None, "", [], {})
    ] == []


@pytest.mark.long
def test_declared_options_are_in_effect(verify: Verify) -> None:
    code, report = verify(
        "R03",
        "R07",
        "R05",
        training__precision="bf16",
        training__dataloader_workers=2,
        training__gradient_checkpointing=True,
        training__arguments={
            "warmup_steps": 10,
            "lr_scheduler_type": "cosine",
            "push_to_hub": True,
            "learning_rate": 1e-4,
            "use_cpu": True,
        },
    )
    found = checks(report)
    assert code == 3
    assert [found[name]["status"] for name in ("R01", "R02", "R03", "R06", "R07", "R05")] == [
        "pass"
    ] * 6, found
    assert value(report, "train.dtype") == "bfloat16"
    assert found["R07"]["observed"]["arguments.warmup_steps"] == 10
    assert found["R07"]["observed"]["dataloader_workers"] == 2
    assert value(report, "train.not_exercised") == ["push_to_hub"]


@pytest.mark.long
def test_a_precision_that_trainer_refuses_on_a_cpu_unless_told_is_said(verify: Verify) -> None:
    code, report = verify("R01", training__precision="bf16")
    found = checks(report)["R01"]
    assert (code, found["status"], "setup doesn't support bf16" in found["message"]) == (
        3,
        "warn",
        True,
    ), found
    assert "use_cpu: true" in found["fix"]


@pytest.mark.long
def test_a_number_that_arrives_as_text_is_not_in_effect(verify: Verify) -> None:
    code, report = verify("R07", training__arguments={"learning_rate": "1e-4"})
    assert code == 1
    assert "not a number" in checks(report)["R07"]["message"]


def test_another_torch_than_the_locked_one_fails(verify: Verify, inventory: dict[str, Any]) -> None:
    packages = [
        {"name": name, "version": "2.0.1+cu118" if name == "torch" else version}
        for name, version in inventory["packages"].items()
    ]
    code, report = verify("P02", "T01", packages=packages, flavour="cu118")
    assert code == 1
    assert [checks(report)[name]["status"] for name in ("P02", "T01")] == ["fail", "fail"]
    assert report["packages"]["differences"][0]["name"] == "torch"


@pytest.mark.long
def test_another_flavour_than_the_locked_one_fails(
    verify: Verify, inventory: dict[str, Any]
) -> None:
    code, report = verify("T01", flavour="cu130")
    assert code == 1
    assert "but cu130 is locked" in checks(report)["T01"]["message"]


@pytest.mark.long
def test_a_declared_gpu_that_is_not_there_fails(verify: Verify) -> None:
    code, report = verify("T02", "T03", gpu={"type": "L4", "count": 1})
    assert code == 1
    assert checks(report)["T02"]["status"] == "fail"
    assert checks(report)["T03"]["status"] == "unknown"


@pytest.mark.long
def test_fp16_on_a_cpu_is_not_in_effect(verify: Verify) -> None:
    code, report = verify("R03", training__precision="fp16")
    assert code == 1
    assert checks(report)["R02"]["status"] == "pass"
    assert "fp16 is not in effect" in checks(report)["R03"]["message"]


@pytest.mark.long
def test_a_variable_that_chooses_another_precision_is_seen(verify: Verify) -> None:
    code, report = verify("R03", environ={"ACCELERATE_MIXED_PRECISION": "bf16"})
    found = checks(report)["R03"]
    assert (code, found["observed"]) == (1, "bfloat16")
    assert "ACCELERATE_MIXED_PRECISION" in found["cause"]


@pytest.mark.long
def test_arguments_that_transformers_does_not_know_or_take_fail(verify: Verify) -> None:
    code, report = verify("R01", training__arguments={"warmup_stepz": 10, "no_cuda": True})
    assert code == 1
    assert checks(report)["R01"]["observed"] == ["no_cuda", "warmup_stepz"]
    code, report = verify("R01", training__arguments={"lr_scheduler_type": "cosin"})
    assert code == 1
    assert "cosin" in checks(report)["R01"]["message"]


@pytest.mark.long
def test_an_optimizer_that_is_not_installed_keeps_the_original_words(verify: Verify) -> None:
    code, report = verify("R01", training__optimizer="adamw_8bit")
    assert code == 1
    assert "bitsandbytes" in checks(report)["R01"]["message"]


def test_a_broken_accelerate_keeps_the_original_words(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "accelerate").mkdir()
    (tmp_path / "accelerate" / "__init__.py").write_text(
        "raise ImportError('accelerate was broken on purpose')\n", encoding="utf-8"
    )
    code, report = verify("R01", "P03", environ={"PYTHONPATH": str(tmp_path)})
    assert code == 1
    assert "broken on purpose" in checks(report)["R01"]["message"]
    assert "accelerate from" in checks(report)["P03"]["message"]


@pytest.mark.long
def test_a_stack_without_transformers_is_proved_by_a_torch_loop(verify: Verify) -> None:
    changes = {
        "training__framework": "torch",
        "training__optimizer": "adamw",
        "training__dataloader_workers": 2,
        "training__gradient_checkpointing": True,
    }
    code, report = verify("R04", "R05", "R07", **changes)
    assert report["subject"]["proof"] == "torch"
    assert {check["status"] for check in report["checks"]} == {"pass"}, checks(report)
    assert code == 3


@pytest.mark.long
@pytest.mark.parametrize(
    "recipe",
    [{"learning_rate": 0.0}, {"optimizer": "sgd", "learning_rate": 3e-3}],
    ids=["rate 0", "sgd"],
)
def test_a_run_that_cannot_learn_leaves_the_loss_where_it_was(
    prove: Callable[..., Any], tmp_path: Path, recipe: dict[str, Any]
) -> None:
    losses, *_ = prove(tmp_path, **recipe)
    assert len(losses) == 40
    assert left(losses) > 0.9


@pytest.mark.long(minutes=True)
def test_the_hash_of_a_resumed_run_shows_every_part_of_the_state(
    prove: Callable[..., Any], tmp_path: Path
) -> None:
    losses, straight, _, _ = prove(tmp_path / "straight")
    checkpoint = tmp_path / "straight" / "checkpoint-20"
    assert left(losses) < 0.5
    assert prove(tmp_path / "again", checkpoint)[1] == straight
    (checkpoint / "rng_state.pth").rename(tmp_path / "kept")
    assert prove(tmp_path / "no-rng", checkpoint)[1] != straight
    (tmp_path / "kept").rename(checkpoint / "rng_state.pth")
    (checkpoint / "optimizer.pt").unlink()
    _, resumed, _, steps = prove(tmp_path / "no-optimizer", checkpoint)
    assert steps == 40
    assert resumed != straight


@pytest.mark.long
def test_the_hash_of_the_torch_loop_shows_its_state_too(
    prove: Callable[..., Any], tmp_path: Path
) -> None:
    losses, straight, _, _ = prove(tmp_path / "straight", module="loop")
    checkpoint = tmp_path / "straight" / "checkpoint-20"
    assert left(losses) < 0.5
    assert prove(tmp_path / "again", checkpoint, module="loop")[1] == straight
    assert prove(tmp_path / "seed", module="loop", seed=21)[1] != straight


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "optimizer"),
    [
        ("trainer", "adafactor"),
        ("trainer", "sgd"),
        ("trainer", "adagrad"),
        ("trainer", "rmsprop"),
        ("loop", "adafactor"),
        ("loop", "sgd"),
    ],
)
def test_the_run_learns_with_each_optimizer_it_knows(
    verify: Verify, module: str, optimizer: str
) -> None:
    code, report = verify(
        "R02",
        training__optimizer=optimizer,
        training__framework="hf-trainer" if module == "trainer" else "torch",
    )
    assert code == 3
    assert checks(report)["R02"]["status"] == "pass", checks(report)["R02"]["message"]


@pytest.mark.long
def test_the_libraries_in_memory_are_the_environments(
    verify: Verify, hf_python: str, tmp_path: Path
) -> None:
    _, report = verify("P08")
    assert checks(report)["P08"]["status"] == "pass", checks(report)["P08"]
    assert "libgomp" in value(report, "libraries.openmp")[0]

    own = next(Path(hf_python).parents[1].glob("lib/python*/site-packages/torch/lib/libgomp*.so*"))
    front = tmp_path / "libgomp.so.1"
    front.write_bytes(own.read_bytes())
    code, report = verify("P08", environ={"LD_PRELOAD": str(front)})

    found = checks(report)["P08"]
    assert (code, found["status"], found["observed"]) == (1, "fail", [str(front)])
    assert found["cause"].startswith("LD_PRELOAD put these libraries before")
