"""The declared model, rehearsed: shapes with the declared number of parameters, what is refused
beforehand, and real runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.context import ObserverContext
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import judge
from provision.agent.probe.model import ObservationLog, ProbeError
from provision.agent.probe.observing.cgroups import memory_used
from provision.agent.probe.observing.memory_usage import available_bytes
from provision.agent.probe.observing.rehearsal import (
    OBSERVERS,
    is_out_of_memory,
    make_rehearsal_plan,
    minimum_bytes,
    reason_sharded,
    reason_too_large,
    reason_too_long,
)
from provision.agent.probe.proofs.declared_training import RehearsalPlan, reason_not_rehearsable
from provision.agent.probe.proofs.model_shape import choose_shape
from provision.agent.probe.report_json import expand
from tests.agent.probe.bench import Environment, checks
from tests.agent.probe.test_hf import LIST

GIB = 2**30
MODEL = {"parameters": 5_000_000, "hidden_size": 256, "layers": 4}
DECLARED: dict[str, Any] = {
    "tier": "deep",
    "training__model": MODEL,
    "training__batch_size": 2,
    "training__sequence_length": 64,
    "training__method": "full",
    "training__torch_compile": False,
    "training__strategy": "none",
    "training__launcher": "auto",
}
HF = [{"name": "torch", "version": "2.13.0+cpu"}, {"name": "transformers", "version": "5.23.0"}]


@pytest.mark.parametrize(
    ("parameters", "hidden", "layers"),
    [
        (5_000_000, None, None),
        (124_000_000, 768, 12),
        (494_000_000, 896, 24),
        (1_100_000_000, 2048, 22),
        (8_030_000_000, 4096, 32),
        (70_600_000_000, 8192, 80),
        (1_000_000, None, 3),
        (60_000_000, 512, None),
        (100_000, None, None),
    ],
)
def test_a_shape_has_the_declared_number_of_parameters(
    parameters: int, hidden: int | None, layers: int | None
) -> None:
    shape = choose_shape(parameters, hidden, layers)
    assert abs(shape.parameters - parameters) < 0.02 * parameters
    assert hidden in (None, shape.hidden)
    assert layers in (None, shape.layers)
    assert shape.hidden % shape.heads == shape.hidden // shape.heads % 2 == 0


def test_a_shape_that_contradicts_its_parameters_keeps_its_sizes() -> None:
    shape = choose_shape(1_000_000, 1024, 12)
    assert (shape.hidden, shape.layers) == (1024, 12)
    assert shape.parameters > 40_000_000


def planned(document: Callable[..., dict[str, Any]], **changes: Any) -> RehearsalPlan | str:
    return make_rehearsal_plan(
        parse_expectations(document(**{"packages": HF, **DECLARED, **changes}))
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"training__model": None}, "not declare the number of parameters"),
        (
            {"training__model": {**MODEL, "parameters": None}},
            "not declare the number of parameters",
        ),
        ({"training__batch_size": None}, "not both declared"),
        ({"training__sequence_length": None}, "not both declared"),
        ({"training__precision": "fp8"}, "fp8"),
        ({"training__method": "qlora"}, "4-bit"),
        (
            {"training__method": "lora", "training__framework": "torch"},
            "transformers, which is not locked",
        ),
    ],
)
def test_what_cannot_be_rehearsed_says_why(
    document: Callable[..., dict[str, Any]], changes: dict[str, Any], why: str
) -> None:
    told = planned(document, **changes)
    assert isinstance(told, str)
    assert why in told


@pytest.mark.parametrize(
    ("strategy", "cards", "skipped"),
    [
        ("fsdp", 4, True),
        ("deepspeed-zero2", 2, True),
        ("deepspeed-zero3", 4, True),
        ("fsdp", 1, False),
        ("ddp", 4, False),
        ("none", 4, False),
    ],
)
def test_a_model_that_is_spread_over_cards_is_not_put_onto_one(
    document: Callable[..., dict[str, Any]], strategy: str, cards: int, skipped: bool
) -> None:
    changes = {
        **DECLARED,
        "packages": HF,
        "training__strategy": strategy,
        "gpu": {"type": "A100-40GB", "count": cards},
        "estimate_bytes": 30 * GIB,
    }
    why = reason_sharded(parse_expectations(document(**changes)))

    assert bool(why) is skipped
    if skipped:
        assert why.startswith(
            f"{strategy} shards the model over {cards} GPUs, but a rehearsal uses only one."
        )
        assert "`provision lint` estimates the memory per GPU (30 GiB)" in why


def test_a_rehearsal_that_is_not_made_of_a_spread_model_fails_nothing(
    document: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    changes = {
        **DECLARED,
        "packages": HF,
        "training__strategy": "fsdp",
        "gpu": {"type": "A100-40GB", "count": 4},
    }
    expected = parse_expectations(document(**changes))
    seen = OBSERVERS["S01"](ObserverContext(expected, tmp_path))
    judged = {
        one.id: judge(one, expected, seen, ObservationLog(set({one.id})))
        for one in select_checks(expected)
        if one.id in ("S01", "S02", "S03")
    }

    assert {name: one.status.value for name, one in judged.items()} == {
        "S01": "skip",
        "S02": "skip",
        "S03": "skip",
    }
    assert judged["S01"].message.startswith("not rehearsed: fsdp shards the model over 4 GPUs")
    assert judged["S03"].message == "not rehearsed (see S01)"


def test_lora_needs_peft() -> None:
    assert "peft" in reason_not_rehearsable("lora", proof_is_trainer=True)
    assert reason_not_rehearsable("full", proof_is_trainer=False) == ""


def test_what_this_machine_cannot_give_is_refused_beforehand(
    document: Callable[..., dict[str, Any]],
) -> None:
    small = planned(document)
    large = planned(
        document, training__model={"parameters": 7 * 10**9, "hidden_size": 4096, "layers": 32}
    )
    assert isinstance(small, RehearsalPlan)
    assert isinstance(large, RehearsalPlan)
    assert minimum_bytes(large, None) > 100 * GIB
    assert reason_too_large(large, None, 22 * GIB).startswith("it needs about 104.")
    assert reason_too_large(large, None, 1000 * GIB) == ""
    assert reason_too_long(large, 1e10).endswith("minutes on this CPU, and the limit is 4")
    assert reason_too_long(small, 1e10) == ""
    assert reason_too_large(small, None, 22 * GIB) == ""
    assert reason_too_large(small, None, None) == ""
    assert "GiB" in reason_too_large(small, 30 * GIB, 22 * GIB), (
        "the facts' estimate counts where there is one"
    )


def test_a_check_of_a_dearer_tier_says_so(environment: Environment) -> None:
    code, report, said = environment.verify("--only", "S01")
    assert (code, report) == (2, {})
    assert "--only S01: tier quick does not include this check" in said


def test_free_memory_is_that_of_the_container(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 99 kB\nMemAvailable:  8388608 kB\n")
    assert available_bytes(tmp_path) == 8 * GIB
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    group = tmp_path / "sys/fs/cgroup/job"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{4 * GIB}\n")
    (group / "memory.current").write_text(f"{3 * GIB}\n")
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {GIB}\n")
    assert memory_used(tmp_path) == 2 * GIB
    assert available_bytes(tmp_path) == 2 * GIB
    assert available_bytes(tmp_path / "nowhere") is None


def test_levers_are_read_strictly(document: Callable[..., dict[str, Any]]) -> None:
    lever = {"change": {"optimizer": "adamw_bnb_8bit"}, "saves_bytes": 5}
    assert parse_expectations(document(levers=[lever])).levers[0].saves_bytes == 5
    assert parse_expectations(document()).levers == ()
    for wrong in ({}, {**lever, "saves_bytes": "5"}, {**lever, "change": []}, 7):
        with pytest.raises(ProbeError, match=r"levers\[0\]"):
            parse_expectations(document(levers=[wrong]))


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (
            (
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "21.96 GiB"
            ),
            True,
        ),
        (
            (
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
                "allocate memory: you tried to allocate 9 bytes. Error code 12"
            ),
            True,
        ),
        (
            (
                "[enforce fail at alloc_cpu.cpp:121] data. DefaultCPUAllocator: not enough "
                "memory: you tried to allocate 9 bytes."
            ),
            True,
        ),
        ("CUDA error: an illegal memory access was encountered", False),
    ],
)
def test_which_errors_are_a_lack_of_memory(text: str, is_it: bool) -> None:
    assert is_out_of_memory(text) is is_it


Asked = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def rehearse(
    hf_python: str,
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Asked:
    found = json.loads(
        subprocess.run([hf_python, "-c", LIST], capture_output=True, text=True, check=True).stdout
    )

    def ask(prefix: list[str] | None = None, **changes: Any) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("rehearsed")
        promised = {
            "packages": [
                {"name": name, "version": version} for name, version in found["packages"].items()
            ],
            "flavour": "cpu",
            "python": {"version": found["version"], "prefix": found["prefix"]},
            "estimate_bytes": 110 * 2**20,
            **DECLARED,
            **changes,
        }
        (folder / "expectations.json").write_text(
            json.dumps(document(**promised)), encoding="utf-8"
        )
        command = [
            *(prefix or []),
            hf_python,
            str(probe),
            "verify",
            "--expectations",
            str(folder / "expectations.json"),
            "--out",
            str(folder / "report.json"),
        ]
        done = subprocess.run(
            [*command, "--only", "S01", "--only", "S02", "--only", "S03"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert (folder / "report.json").exists(), done.stderr
        report: dict[str, Any] = expand(
            json.loads((folder / "report.json").read_text(encoding="utf-8"))
        )
        return report

    return ask


def readings(report: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in report["readings"]}


@pytest.mark.long(after=1)
@pytest.mark.hf
@pytest.mark.parametrize(
    "changes",
    [{}, {"training__framework": "torch", "training__gradient_checkpointing": True}],
    ids=["trainer", "torch"],
)
def test_a_small_declared_model_is_really_trained(rehearse: Asked, changes: dict[str, Any]) -> None:
    report = rehearse(**changes)
    assert {name: one["status"] for name, one in checks(report).items()} == {
        "S01": "pass",
        "S02": "pass",
        "S03": "pass",
    }, checks(report)
    told = readings(report)
    assert abs(told["rehearsal.parameters"] - MODEL["parameters"]) < 0.02 * MODEL["parameters"]
    assert told["rehearsal.peak_bytes"] > 16 * MODEL["parameters"], (
        "weights, gradients and AdamW's state in 32 bits"
    )


@pytest.mark.long
@pytest.mark.hf
def test_a_shape_that_is_another_model_is_told(rehearse: Asked) -> None:
    told = checks(rehearse(training__model={**MODEL, "parameters": 1_000_000}))["S01"]
    assert told["status"] == "fail"
    assert "1 million are declared" in told["message"]


@pytest.mark.long
@pytest.mark.hf
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_memory_that_runs_out_is_a_result_with_a_way_out(rehearse: Asked) -> None:
    limited = ["prlimit", f"--data={640 * 2**20}", "env", f"HOME={os.environ['HOME']}"]
    lever = {"change": {"batch_size": 1}, "saves_bytes": 2**30}
    report = rehearse(
        limited,
        training__batch_size=24,
        training__sequence_length=256,
        levers=[lever],
        training__framework="torch",
        estimate_bytes=GIB,
    )
    told = checks(report)
    assert (told["S01"]["status"], told["S02"]["status"], told["S03"]["status"]) == (
        "fail",
        "skip",
        "fail",
    ), told
    assert "ran out of memory at" in told["S01"]["message"]
    assert told["S03"]["fix"] == "largest saving: training.batch_size: 1 saves about 1 GiB"


PACE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from provision_probe.probe.observing.rehearsal import (measure_throughput)
from provision_probe.probe.proofs.declared_training import (RehearsalPlan)
from provision_probe.probe.proofs.model_shape import (choose_shape)
began = time.perf_counter()
shape = choose_shape(500_000, None, None)
plan = RehearsalPlan(shape, "full", "fp32", "adamw_torch", False, 2, 32, "cpu", 8)
told = measure_throughput(plan)
print(json.dumps([told, time.perf_counter() - began]))
"""


@pytest.mark.long
@pytest.mark.hf
def test_the_pace_of_a_model_is_in_tokens_a_second(hf_python: str, probe: Path) -> None:
    done = subprocess.run(
        [hf_python, "-c", PACE, str(probe)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    told, took = json.loads(done.stdout)
    assert (told["pace.precision"], told["pace.finite"]) == ("fp32", True), done.stderr[-2000:]
    assert told["pace.parameters"] == pytest.approx(500_000, rel=0.05)
    # The median step cannot be slower than if the whole time had gone into the steps after the
    # first quarter's.
    assert told["pace.tokens_per_s"] > 4 * 2 * 32 / took


MADE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from provision_probe.probe.proofs.declared_training import (
    RehearsalPlan, build_decoder, build_llama)
from provision_probe.probe.proofs.model_shape import (choose_shape)
# 70 billion numbers fit on no machine of these tests: a model made on the CPU first would fail.
shape = choose_shape(70_000_000_000, 8192, 80)
plan = RehearsalPlan(shape, "lora", "bf16", "adamw_torch", False, 1, 32, "meta")
print(json.dumps([
    sorted({f"{weight.device} {weight.dtype}" for weight in make(plan).parameters()})
    for make in (build_decoder, build_llama)]))
"""


@pytest.mark.long
@pytest.mark.hf
def test_a_model_is_made_where_it_is_trained(hf_python: str, probe: Path) -> None:
    done = subprocess.run(
        [hf_python, "-c", MADE, str(probe)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [["meta torch.float32"], ["meta torch.bfloat16"]]
