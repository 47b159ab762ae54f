"""The rooms that measure cards, on the CPU: bytes, operations and patterns are right, and what is
planted wrong is found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.checks.numerics import BF16_ERROR
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import JUDGES
from provision.agent.probe.judging.judgement import JudgeInput
from provision.agent.probe.model import Judgement, Status
from provision.agent.probe.observing.multi_gpu import ProcessGroupRun, rank_program, readings_of
from provision.agent.probe.observing.speed import link_gb_s
from tests.agent.probe.test_driver import library, newer  # noqa: F401
from tests.agent.probe.test_hf import Verify, checks, inventory, value, verify  # noqa: F401
from tests.support import require, running

pytestmark = pytest.mark.hf

SCRIPT = Path(__file__).with_name("measuring.py")
OFFLINE = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
HANGS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from provision_probe.probe.proofs.allreduce import (run_rank)
if os.environ["RANK"] == "1":
    print("NCCL WARN rank 1 never joins", flush=True)
    time.sleep(300)
run_rank("gloo", Path(sys.argv[2]), [], os.environ)
"""
WAITS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from provision_probe.probe.proofs.allreduce import (STEPS, run_rank)
if os.environ["RANK"] == "1":
    from torch import distributed
    distributed.init_process_group("gloo")
    distributed.barrier()
    Path(sys.argv[2], "1.step").write_text(STEPS[1])
    time.sleep(300)
run_rank("gloo", Path(sys.argv[2]), [], os.environ)
"""
TOGETHER = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from provision_probe.probe.observing.multi_gpu import (rank_program, run_with_torchrun)
folder, patience, script = Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
program = [*script, sys.argv[1], str(folder)]
program = program if script else rank_program("gloo", folder, [1 << 20])
run = run_with_torchrun(2, program, folder, os.environ, patience)
print("\\n" + json.dumps([run.code, run.rank_reports, run.tail, run.steps]))
"""
BURN = """
import sys
sys.path.insert(0, sys.argv[1])
from provision_probe.probe.observing.device import (run_burn_in)
told = run_burn_in("fp32", "cpu", 32, 0.1)
print(*(told["burn." + name] for name in ("reasons", "temperature_c", "power_w")))
"""
RUN = {
    "method": "full",
    "model": None,
    "batch_size": None,
    "sequence_length": None,
    "torch_compile": True,
    "strategy": "none",
    "launcher": "auto",
}
COMPILED = {f"training__{key}": given for key, given in RUN.items()}


@pytest.fixture(scope="module")
def facts(hf_python: str, probe: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    argv = [hf_python, str(SCRIPT), str(probe), str(tmp_path_factory.mktemp("scratch"))]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, **OFFLINE}, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.long
def test_memory_is_held_in_whole_blocks_until_there_is_no_more(facts: dict[str, Any]) -> None:
    assert facts["held"] == [5, 5 * 4096]
    assert facts["refused"] == 0


@pytest.mark.long
def test_a_planted_byte_a_moved_word_and_two_addresses_of_one_place_are_found(
    facts: dict[str, Any],
) -> None:
    assert (facts["sound"], facts["planted"], facts["displaced"]) == (0, 1, 1)
    # Two blocks at one address agree on every pattern: only the addresses tell.
    assert facts["aliased"] == 512


@pytest.mark.long
def test_what_is_timed_is_random_and_never_zeros(facts: dict[str, Any]) -> None:
    assert all(share < 0.02 for pair in facts["zeros"].values() for share in pair), facts["zeros"]
    assert facts["random_bytes"] == 256


def test_bytes_and_operations_are_counted_right(facts: dict[str, Any]) -> None:
    assert facts["rounds"] == [10, 13]
    assert facts["flop"] == 2 * 8192 * 8192 * 8192
    assert facts["tflops"] == pytest.approx(1.0)
    assert 0.1 < facts["copied"] < 2000
    assert all(0.05 < speed < 2000 for speed in (*facts["moved"], *facts["pageable"]))
    assert all(0 < speed < 10 for speed in facts["products"].values())
    assert facts["product_right"] < 1e-4
    assert facts["burnt"]["burn.first_tflops"] > 0
    assert facts["burnt"]["burn.last_tflops"] > 0
    assert facts["burnt"]["burn.other_results"] == 0
    assert facts["differs"] == [False, True, True]


@pytest.mark.long
def test_reasons_heat_and_power_are_gathered_while_it_multiplies(
    hf_python: str,
    probe: Path,
    newer: Path,  # noqa: F811
) -> None:
    environ = {
        **os.environ,
        **OFFLINE,
        "LD_LIBRARY_PATH": str(newer),
        "FAKE_NVML": "reasons=76;count=2;temperature=83;power_mw=71500",
    }
    done = subprocess.run(
        [hf_python, "-c", BURN, str(probe)],
        capture_output=True,
        text=True,
        env=environ,
        timeout=600,
    )
    assert done.stdout.split() == ["76", "83", "71.5"], done.stderr[-2000:]
    lost = subprocess.run(
        [hf_python, "-c", BURN, str(probe)],
        capture_output=True,
        text=True,
        env={**environ, "FAKE_NVML": "handle=15"},
        timeout=600,
    )
    assert lost.stdout.split() == ["None"] * 3, lost.stderr[-2000:]


@pytest.mark.long
def test_what_the_probe_times_can_be_held_against_a_bare_loop(hf_python: str) -> None:
    argv = [
        hf_python,
        "-m",
        "benchmarks.throughput",
        "--device",
        "cpu",
        "--size",
        "128",
        "--format",
        "fp32",
    ]
    done = subprocess.run(
        argv,
        cwd=SCRIPT.parents[3],
        capture_output=True,
        text=True,
        env={**os.environ, **OFFLINE},
        timeout=600,
    )
    (line,) = done.stdout.splitlines()
    # Whether the bound holds is a matter of a quiet machine; that both sides measure the same work
    # is not.
    assert done.returncode == (0 if line.endswith("holds yes") else 1), done.stderr
    assert 0.2 < float(line.split("ratio ")[1].split()[0]) < 5, line


def test_timing_tf32_leaves_the_flags_as_they_were(facts: dict[str, Any]) -> None:
    assert facts["flags_after"] == {}


def test_formats_follow_the_compute_capability(facts: dict[str, Any]) -> None:
    assert facts["capabilities"] == {
        "T4": ["fp16"],
        "A100": ["fp16", "bf16", "tf32"],
        "L4": ["fp16", "bf16", "tf32", "fp8"],
    }
    assert facts["cudnn"] == ["9.20.0", "8.9.7", None]


def test_errors_lie_in_their_bands_and_one_wrong_element_leaves_them(facts: dict[str, Any]) -> None:
    assert (
        facts["attention"]["fp32"]["math"][0]
        < 1e-6
        < facts["attention"]["bf16"]["math"][0]
        < 4.5e-3
    )
    assert facts["convolution"][0] < 5e-6
    assert 1e-3 < facts["fp8"][0] < 5e-3
    assert facts["steps"] < 3.9e-6
    norm, worst = facts["one_element"]
    assert norm < 5e-3
    assert worst > 0.9


def test_one_wrong_bit_in_one_element_of_a_product_is_found(facts: dict[str, Any]) -> None:
    error, outside = facts["one_bit"]
    assert error < BF16_ERROR.value, "the norm does not see it"
    assert outside == 1


def test_sums_in_16_bits_are_switched_off_and_left_as_they_were(facts: dict[str, Any]) -> None:
    before, meanwhile, after, after_an_error = facts["long_sums"]
    assert (before[0], before[2]) == (False, True)
    assert (meanwhile[0], meanwhile[2]) == (False, False)
    assert before == after == after_an_error


@pytest.mark.long
def test_a_card_that_may_add_up_in_16_bits_is_not_taken_for_a_wrong_one(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=1;splits=0", "N01", gpu={"type": "H200", "count": 1})
    assert found["N01"]["status"] == "pass", found["N01"]
    assert found["readings"]["numerics.bf16_outside"] == 0


def test_of_a_large_product_the_rows_that_are_looked_at_tell_the_same(
    facts: dict[str, Any],
) -> None:
    whole, sampled = facts["large"]
    assert whole == [pytest.approx(sampled[0], rel=0.2), 0]
    assert sampled[1] == 0
    assert 0 < sampled[0] < 2e-6


def test_cards_at_work_at_once_answer_in_their_order_and_the_last_one_is_known(
    facts: dict[str, Any],
) -> None:
    assert facts["at_once"] == [[0, 1, 2], "cuda:0, cuda:1, cuda:2", ["cuda:1", ""], [0]]


def test_of_several_cards_the_worst_stands_for_all_and_each_is_kept(facts: dict[str, Any]) -> None:
    usual, strange = facts["worst_card"]
    assert usual == {"a": 0.5, "cards.names": ["a", "b", "c"], "cards.a": [1.0, 0.5, 3.0]}
    assert strange["a"] != strange["a"]


def test_what_is_not_finite_is_counted(facts: dict[str, Any]) -> None:
    assert (facts["unfinite"], facts["nan"]) == ([0, 0], 2)


def test_a_nan_is_the_worst_of_all(facts: dict[str, Any]) -> None:
    assert facts["worst"] == [[3.0, 2.0], [True, False]]


def test_one_seed_gives_one_sequence(facts: dict[str, Any]) -> None:
    first, again, other = facts["drawn"]
    assert first == again != other
    assert facts["settled"] == ["a", None, None]


def test_one_process_joins_itself_twice(facts: dict[str, Any]) -> None:
    assert facts["alone"] == [0, 0]
    assert facts["bus"] == pytest.approx(1.073741824 / 0.01 * 2 * 7 / 8)


def test_a_compiler_that_is_not_there_is_not_found(facts: dict[str, Any]) -> None:
    assert facts["tools"] == [[None, False], ["python", False]]


def test_the_link_is_read_from_linux(tmp_path: Path) -> None:
    folder = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "max_link_speed").write_text("32.0 GT/s PCIe\n")
    (folder / "max_link_width").write_text("16\n")
    assert link_gb_s(tmp_path, "0000:3b:00.0") == pytest.approx(63.0, rel=0.01)
    (folder / "max_link_width").write_text("255\n")
    assert link_gb_s(tmp_path, "0000:3b:00.0") is None
    assert link_gb_s(tmp_path, "0000:af:00.0") is None
    assert link_gb_s(tmp_path, "") is None


def run_together(
    hf_python: str,
    probe: Path,
    folder: Path,
    patience: float,
    *script: str,
    before: tuple[str, ...] = (),
) -> ProcessGroupRun:
    argv = [*before, hf_python, "-c", TOGETHER, str(probe), str(folder), str(patience), *script]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, **OFFLINE}, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    code, told, tail, steps = json.loads(done.stdout.splitlines()[-1])
    return ProcessGroupRun(code, tuple(told), tail, tuple(steps))


def judged_together(run: ProcessGroupRun, document: Callable[..., dict[str, Any]]) -> Judgement:
    expected = parse_expectations(
        document(
            packages=[{"name": "torch", "version": "2.13.0"}], gpu={"type": "H200", "count": 2}
        )
    )
    return JUDGES["C02"](JudgeInput(expected, readings_of("sums", run)))


@pytest.mark.long
def test_two_processes_add_up_through_torchrun(hf_python: str, probe: Path, tmp_path: Path) -> None:
    run = run_together(hf_python, probe, tmp_path, 100)
    assert run.code == 0, run.tail
    assert [one["wrong"] for one in run.rank_reports] == [0, 0]
    assert run.steps == ("added up", "added up")
    assert all(one["bus_gb_s"][0] > 0.001 for one in run.rank_reports)


@pytest.mark.long
def test_a_rank_that_never_joins_is_told_and_ended(
    hf_python: str, probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    began = time.monotonic()
    run = run_together(hf_python, probe, tmp_path, 25, str(script))
    assert (run.code, run.rank_reports, run.steps) == (None, (), ("reached its card", None))
    assert "NCCL WARN rank 1 never joins" in run.tail
    assert time.monotonic() - began < 80
    assert not running(str(script))
    told = judged_together(run, document)
    assert told.status is Status.FAIL
    assert (
        "an all-reduce across 2 cards hangs: 0 of them finished; cuda:1 never reached its "
        "card. Their processes printed: " in told.message
    )
    assert told.cause == "a card does not respond, or its process does not start"
    assert "restart the machine" in (told.fix or "")


@pytest.mark.long
def test_a_link_on_which_all_hang_is_told_with_what_to_try(
    hf_python: str, probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    run = run_together(hf_python, probe, tmp_path, 22, str(script))
    assert (run.code, run.rank_reports, run.steps) == (
        None,
        (),
        ("joined the others", "joined the others"),
    )
    told = judged_together(run, document)
    assert told.status is Status.FAIL
    assert "an all-reduce across 2 cards hangs: 0 of them finished." in told.message
    assert "peer-to-peer copies" in (told.cause or "")
    assert "NCCL_P2P_DISABLE=1" in (told.fix or "")


@pytest.mark.long
def test_processes_join_where_the_name_of_the_machine_cannot_be_resolved(
    hf_python: str, probe: Path, tmp_path: Path
) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "another name is given in a namespace, which needs root and unshare",
    )
    nameless = ("unshare", "--uts", "sh", "-ec", 'hostname no-such-name.invalid\nexec "$@"', "sh")
    run = run_together(hf_python, probe, tmp_path, 60, before=nameless)
    assert run.code == 0, run.tail
    assert [one["wrong"] for one in run.rank_reports] == [0, 0]


def test_from_a_folder_a_rank_is_started_as_a_module() -> None:
    assert rank_program("gloo", Path("/f"), [8]) == [
        "-m",
        "provision.agent.probe",
        "rank",
        "gloo",
        "/f",
        "8",
    ]


@pytest.mark.long
def test_a_flag_that_a_variable_sets_is_told(verify: Verify) -> None:  # noqa: F811
    _, report = verify("T06", environ={"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"})
    found = checks(report)["T06"]
    assert found["status"] == "warn"
    assert "cuda.matmul.fp32_precision = tf32" in found["message"]


def test_the_deep_checks_of_numbers_and_loaders_hold(verify: Verify) -> None:  # noqa: F811
    _, report = verify("N04", "N09", "L03", "L04", tier="deep", training__dataloader_workers=2)
    assert {checks(report)[name]["status"] for name in ("T07", "N04", "N09", "L03", "L04")} == {
        "pass"
    }, checks(report)


@pytest.mark.long
def test_declared_cards_that_are_not_there_are_unknown_and_break_nothing(verify: Verify) -> None:  # noqa: F811
    code, report = verify(
        "T04",
        "T05",
        "N05",
        "M02",
        "B01",
        "B02",
        "F01",
        "C01",
        "C02",
        gpu={"type": "L4", "count": 2},
    )
    found = {name: one["status"] for name, one in checks(report).items()}
    assert code == 1
    assert found["T02"] == "fail"
    assert {name for name, status in found.items() if status == "unknown"} == {
        "T05",
        "M01",
        "M02",
        "B01",
        "B02",
        "F01",
        "C01",
        "C02",
    }
    assert [stage["name"] for stage in report["stages"] if stage["exit"] == 0] == [
        "torch",
        "device",
        "collectives",
    ]


@pytest.mark.long(minutes=True)
def test_a_declared_compile_is_run(verify: Verify) -> None:  # noqa: F811
    require("cc", shutil.which("g++") is not None, "torch.compile needs g++")
    _, report = verify("K01", "K02", **COMPILED)
    found = checks(report)
    assert (found["K01"]["status"], found["K02"]["status"]) == ("pass", "pass"), found
    assert value(report, "compile.error") < 1e-4
    assert [stage["name"] for stage in report["stages"]] == ["compile"]


@pytest.mark.long
def test_a_machine_without_a_compiler_fails_before_the_job_does(
    verify: Verify,  # noqa: F811
    tmp_path: Path,
) -> None:
    code, report = verify("K01", "K02", environ={"PATH": str(tmp_path)}, **COMPILED)
    found = checks(report)
    assert code == 1
    assert "needs a compiler" in found["K01"]["message"]
    assert "g++" in found["K02"]["fix"], found["K02"]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("check", "size", "batch", "status"),
    [
        ("L04", "64m", 256, "fail"),
        ("L04", "64m", None, "warn"),
        ("L04", "64m", 4, "pass"),
        ("L01", "1m", None, "fail"),
        ("L02", "1m", None, "fail"),
    ],
)
def test_a_batch_larger_than_shared_memory_fails(
    hf_python: str,
    probe: Path,
    document: Callable[..., dict[str, Any]],
    tmp_path: Path,
    check: str,
    size: str,
    batch: int | None,
    status: str,
) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a small /dev/shm is mounted in a namespace, which needs root and unshare",
    )
    declared = {
        **COMPILED,
        "training__torch_compile": False,
        "training__batch_size": batch,
        "training__sequence_length": batch and 4096,
    }
    promised = document(
        packages=[{"name": "torch", "version": "2.13.0"}],
        **declared,
        training__dataloader_workers=2,
    )
    (tmp_path / "expectations.json").write_text(json.dumps(promised))
    words = [
        hf_python,
        str(probe),
        "verify",
        "--expectations",
        str(tmp_path / "expectations.json"),
        "--out",
        str(tmp_path / "report.json"),
        "--only",
        check,
    ]
    script = f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **OFFLINE},
        timeout=600,
    )
    assert (tmp_path / "report.json").exists(), done.stderr
    found = checks(json.loads((tmp_path / "report.json").read_text()))[check]
    # A part of the checks alone verifies nothing, which is exit 3.
    assert (done.returncode, found["status"]) == (1 if status == "fail" else 3, status), found
    if status != "pass":
        assert "No space left on device" in found["message"]
        assert "--shm-size" in found["fix"]


FAKE_CARDS = Path(__file__).with_name("fake_cards")
TWO_CARDS: dict[str, Any] = {
    "gpu": {"type": "H200", "count": 2},
    "card": {
        "memory_bytes": 10**9,
        "bandwidth_gb_s": None,
        "tflops": {},
        "source": "none: the CPU stands for them",
    },
}
SECOND = "cuda:1 (PCI 0000:1c:00.0)"


def told_of_cards(
    verify: Verify,  # noqa: F811
    cards: str,
    *only: str,
    **changes: Any,
) -> dict[str, dict[str, Any]]:
    _, report = verify(
        *only,
        environ={"PYTHONPATH": str(FAKE_CARDS), "FAKE_CARDS": cards},
        **{**TWO_CARDS, **changes},
    )
    return {**checks(report), "readings": {one["key"]: one["value"] for one in report["readings"]}}


@pytest.mark.long(minutes=True)
def test_two_sound_cards_are_both_looked_at(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=2", "N01", "N06", "M02")
    assert {found[name]["status"] for name in ("T02", "N01", "N06", "M01", "M02")} == {"pass"}, (
        found
    )
    assert (
        found["M02"]["message"]
        == "1 GiB of the card's memory was tested without errors; the same on all 2 cards"
    )
    assert found["readings"]["cards.names"] == ["cuda:0 (PCI 0000:1b:00.0)", SECOND]
    assert found["readings"]["cards.memory.wrong_words"] == [0, 0]
    assert found["readings"]["memory.wrong_words"] == 0


@pytest.mark.long
def test_torch_tells_which_of_two_kinds_of_cards_is_shown(verify: Verify, newer: Path) -> None:  # noqa: F811
    driver = {
        "LD_LIBRARY_PATH": str(newer),
        "FAKE_NVML": "count=2;total_mib@0=4096;mig=-3",
        "FAKE_NVML_NAME": "NVIDIA T400 4GB|NVIDIA H200",
    }
    cards = {"PYTHONPATH": str(FAKE_CARDS), "FAKE_CARDS": "count=1", "CUDA_VISIBLE_DEVICES": "0"}
    declared = {"gpu": {"type": "H200", "count": 1}, "requires__vram_bytes": 10**9}
    _, report = verify("D03", "D04", "M01", "T03", environ={**driver, **cards}, **declared)
    found = checks(report)
    assert (found["D03"]["status"], found["D04"]["status"]) == ("pass", "pass"), found
    assert found["D03"]["message"].startswith("NVIDIA H200, compute capability 9.0")
    assert found["D04"]["observed"] == 1_300_000_000


@pytest.mark.long
def test_one_card_is_told_as_ever(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=1;wrong=0", "N06", "M02", gpu={"type": "H200", "count": 1})
    assert found["M02"]["message"] == "4 words of the card's memory changed after being written"
    assert not [key for key in found["readings"] if key.startswith("cards.")]


@pytest.mark.long(minutes=True)
def test_one_wrong_card_of_two_fails_and_is_named(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=2;wrong=1", "N01", "M02")
    assert (found["N01"]["status"], found["M02"]["status"]) == ("fail", "fail"), found
    assert found["N01"]["message"].startswith(
        f"on {SECOND}, 1 of 2 cards: fp32 matrix products are wrong"
    )
    assert (
        found["M02"]["message"]
        == f"on {SECOND}, 1 of 2 cards: 4 words of the card's memory changed after being written"
    )
    assert found["readings"]["cards.memory.wrong_words"] == [0, 4]
    assert found["readings"]["memory.wrong_words"] == 4
    outside = found["readings"]["cards.numerics.fp32_outside"]
    assert outside == [0, 1]


@pytest.mark.long
def test_one_slow_card_of_two_is_named(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=2;slow=1", "B01", "F01")
    for name in ("B01", "F01"):
        assert found[name]["status"] == "warn", found
        assert found[name]["message"].startswith(f"on {SECOND}, 1 of 2 cards: "), found[name][
            "message"
        ]
    first, second = found["readings"]["cards.speed.product_tflops"]
    assert second == found["readings"]["speed.product_tflops"] < first / 3


@pytest.mark.long(minutes=True)
def test_a_card_that_raises_or_hangs_is_named(verify: Verify) -> None:  # noqa: F811
    raised = told_of_cards(verify, "count=2;raises=1", "N01")["N01"]
    assert raised["status"] == "fail"
    assert f"RuntimeError on {SECOND}: CUDA error: unspecified launch failure" in raised["message"]
    hung = told_of_cards(verify, "count=2;hangs=1", "N01", timeout_s=60)["N01"]
    assert hung["status"] == "fail"
    assert hung["message"].endswith(f" s, on {SECOND}"), hung["message"]
    assert (hung["cause"], hung["fix"]) != (None, None)


@pytest.mark.long
def test_a_card_that_is_counted_and_may_not_be_used_is_named(verify: Verify) -> None:  # noqa: F811
    found = told_of_cards(verify, "count=2;busy=1", "T02")
    assert found["T02"]["status"] == "fail"
    said = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    assert (
        found["T02"]["message"] == f"torch sees 2 devices, but cannot compute on {SECOND}: {said}"
    )
    assert "another program uses the GPU" in found["T02"]["cause"]
    assert found["readings"]["gpu.errors"] == {SECOND: said}
