"""Programs for checks of torch, of the training and of cards: real on a CPU, beside a stand-in for
the card where they ask for one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.verification import Report
from provision.verification.repro import build_repro_program
from tests.agent.probe.machines import SMI, make_program, told
from tests.agent.probe.test_repro import runs
from tests.agent.probe.test_repro_programs import failed
from tests.support import require


def with_torch(
    python: str, program: str, folder: Path, *changes: tuple[str, str], **variables: str
) -> int:
    """Run a program with these changes to its text, each of which has to be there. Returns how it
    ended; a traceback is no answer.
    """
    for before, after in changes:
        assert before in program
        program = program.replace(before, after)
    code, said = runs(python, program, folder, **variables)
    assert "Traceback" not in said, said
    return code


CHECKS: list[tuple[str, Report, dict[str, Any], tuple[str, str]]] = [
    ("T04", failed("T04", {"triton": "3.5.0"}, {}), {}, ("import triton", "triton = sys")),
    (
        "T07",
        failed("T07", "flash, efficient or cudnn", ["math"]),
        {"training": {"precision": "bf16"}},
        ('"flash": SDPBackend.FLASH_ATTENTION, ', ""),
    ),
    ("N03", failed("N03", 5e-6, [1.0, 1.0]), {}, ("'bound': 5e-06", "'bound': 1e-09")),
    ("N04", failed("N04", [1.0, 1.0], [9.0, 9.0]), {}, ("'times': 3", "'times': 0.5")),
    ("N07", failed("N07", 0, 3), {}, ('torch.tanh(one, out=found["tanh"])', "")),
    (
        "N08",
        failed("N08", None, {}),
        {},
        ("drawn(device, 20), drawn(device, 20)", "drawn(device, 20), drawn(device, 22)"),
    ),
    ("N09", failed("N09", 3.9e-6, 1.0), {}, ("'bound': 3.9e-06", "'bound': 1e-09")),
    ("L04", failed("L04", "a batch of 128 MiB", "a damaged batch"), {}, ("index + 1", "index + 2")),
    ("C01", failed("C01", 0, 7), {}, ("own + rank, torch", "own + rank + 1, torch")),
    ("C02", failed("C02", 0, 7, gpu__count=2), {}, ("own + rank, torch", "own + rank + 1, torch")),
    (
        "C03",
        failed("C03", 1e-6, 1.0, gpu__count=2),
        {},
        ("'least_gb_s': 8", "'least_gb_s': 1e9 + 8"),
    ),
    (
        "R05",
        failed("R05", "a", "b"),
        {},
        (
            "    done = ",
            "    __import__('os').remove(f'{folder}/checkpoint-20/optimizer.pt')\n    done = ",
        ),
    ),
    (
        "R10",
        failed("R10", {"texts": True, "rows": True}, {}),
        {},
        ("made.pre_tokenizer = Whitespace()", ""),
    ),
    ("R11", failed("R11", "cpu", {}), {}, ("'device': 'cpu'", "'device': 'cuda'")),
    (
        "R12",
        failed("R12", "< 0.95", {}),
        {"training": {"method": "lora"}},
        ('"learning_rate": 2e-2', '"learning_rate": 0.0'),
    ),
]


@pytest.mark.long
@pytest.mark.hf
@pytest.mark.parametrize(
    ("check", "report", "promised", "fault"), CHECKS, ids=[row[0] for row in CHECKS]
)
def test_a_program_of_torch(
    hf_python: str,
    tmp_path: Path,
    check: str,
    report: Report,
    promised: dict[str, Any],
    fault: tuple[str, str],
) -> None:
    program = build_repro_program(report, check, promised)
    if (
        check == "R12"
        and subprocess.run([hf_python, "-c", "import peft"], capture_output=True).returncode
    ):
        pytest.skip("peft is not in this environment")
    if check == "T04":
        program = program.replace(
            "import triton", "triton = __import__('types').SimpleNamespace(__version__='3.5.0')"
        )
        fault = ("__version__='3.5.0'", "__version__='3.1.0'")
    # The processes talk over gloo, which needs no card.
    program = program.replace("'backend': 'nccl'", "'backend': 'gloo'").replace(
        "'bytes': 1073741824", "'bytes': 1048576"
    )

    assert with_torch(hf_python, program, tmp_path) == 0
    assert with_torch(hf_python, program, tmp_path, fault) == 1


@pytest.mark.long
@pytest.mark.hf
def test_processes_that_hang_are_not_waited_for(hf_python: str, tmp_path: Path) -> None:
    program = build_repro_program(failed("C02", 2, 0, gpu__count=2), "C02", {}).replace(
        "'backend': 'nccl'", "'backend': 'gloo'"
    )
    code, said = runs(
        hf_python,
        program.replace(
            "all_reduce(mine)", "all_reduce(mine) if rank else time.sleep(1000)"
        ).replace("+ 100", "+ 15"),
        tmp_path,
    )

    assert (code, "[None, " in said) == (1, True), said


@pytest.mark.long
@pytest.mark.hf
def test_a_flag_that_something_sets(hf_python: str, tmp_path: Path) -> None:
    program = build_repro_program(failed("T06", {}, {"cudnn.benchmark": True}), "T06", {})

    assert with_torch(hf_python, program, tmp_path) == 0
    assert (
        with_torch(
            hf_python,
            program,
            tmp_path,
            ("wrong = 0\n", "wrong = 0\ntorch.backends.cudnn.benchmark = True\n"),
        )
        == 1
    )


@pytest.mark.long
@pytest.mark.hf
def test_a_function_that_cannot_be_compiled(hf_python: str, tmp_path: Path) -> None:
    program = build_repro_program(failed("K02", 1e-4, 1.0), "K02", {})
    code, said = runs(hf_python, program, tmp_path, PATH="/nowhere")

    assert (code, "compiler" in said) == (1, True)
    require(
        "cc",
        any(Path(folder, "g++").exists() for folder in os.environ["PATH"].split(os.pathsep)),
        "there is no C++ compiler here",
    )
    assert (
        with_torch(
            hf_python,
            program,
            tmp_path,
            PATH=os.environ["PATH"],
            TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0",
        )
        == 0
    )


OF_CARDS = ("D03", "T03", "M01", "M02", "B01", "B02", "F01", "F02", "F03", "N05", "C01")


@pytest.mark.long(after=1)
@pytest.mark.hf
@pytest.mark.parametrize("check", OF_CARDS)
def test_without_a_card_a_program_for_cards_says_so(
    hf_python: str, tmp_path: Path, check: str
) -> None:
    code, said = runs(
        hf_python,
        build_repro_program(
            failed(check, {"D03": "L4", "F02": {"bf16": 1.0}}.get(check, 1.0)), check, {}
        ),
        tmp_path,
    )

    assert (code, "Traceback" in said) == (2, False)
    assert said.startswith(("torch 2", "torch sees 0 cards"))


ON_A_CPU = """
import time, torch
class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = time.perf_counter()
    def elapsed_time(self, other): return (other.at - self.at) * 1000
torch.cuda.is_available = lambda: True
torch.cuda.mem_get_info = lambda: (2 ** 26, 2 ** 30)
torch.cuda.synchronize = lambda: None
torch.cuda.get_device_name = lambda: "a processor"
torch.cuda.Event = Event
"""


def on_a_cpu(program: str) -> str:
    """The program with the processor in the card's place: what it does and how it ends is real, the
    card is not.
    """
    smaller = {
        '"cuda"': '"cpu"',
        "8192": "128",
        ", pin_memory=True": "",
        "'seconds': 20": "'seconds': 0",
        "'seconds': 60": "'seconds': 0",
    }
    for before, after in smaller.items():
        program = program.replace(before, after)
    return ON_A_CPU + program


CARDS: list[tuple[str, Report, tuple[str, str]]] = [
    ("M01", failed("M01", 2**24, 2**20), ("* BLOCK <= CASE", "* BLOCK < CASE")),
    (
        "M01",
        failed("M01", 2**20, 2**30, status="warn"),
        ("(2 ** 26, 2 ** 30)", "(2 ** 10, 2 ** 30)"),
    ),
    (
        "M02",
        failed("M02", 0, 3, memory__held_bytes=2**24),
        ("block.fill_(word)", "block.fill_(word)[7] = 1"),
    ),
    ("M02", failed("M02", 0, 3, memory__held_bytes=2**24), ("out=block)\n", "out=block)[7] = 1\n")),
    ("B01", failed("B01", 1e-3, 1e-4), ("0.001", "1e9")),
    ("B02", failed("B02", 1e-3, 1e-4), ("0.001", "1e9")),
    ("F01", failed("F01", 1e-7, 1e-8, speed__format="bf16"), ("1e-07", "1e9")),
    ("F02", failed("F02", {"tf32": 1e-7}, {"tf32": 1e-8}), ("5e-08", "1e9")),
    (
        "F03",
        failed("F03", 1.0, 0.5, speed__format="bf16"),
        ("speeds.append(", "speeds.append(0.1 ** len(speeds) * "),
    ),
]


@pytest.mark.long
@pytest.mark.hf
@pytest.mark.parametrize(
    ("check", "report", "fault"),
    CARDS,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(CARDS)],
)
def test_a_program_of_the_card(
    hf_python: str, tmp_path: Path, check: str, report: Report, fault: tuple[str, str]
) -> None:
    program = on_a_cpu(build_repro_program(report, check, {}))
    smi = {
        "PATH": f"{make_program(tmp_path)}:/usr/bin:/bin",
        "FAKE_SMI": told({**SMI, "clocks_event_reasons.active": "0x0000000000000001"}),
    }
    # Four rounds on a busy machine differ by more than a card may.
    program = program.replace("'share': 0.9", "'share': 0.02")

    assert with_torch(hf_python, program, tmp_path, **smi) == 0
    assert with_torch(hf_python, program, tmp_path, fault, **smi) == 1


@pytest.mark.long
@pytest.mark.hf
def test_a_card_that_slows_itself_down_at_work(hf_python: str, tmp_path: Path) -> None:
    program = on_a_cpu(
        build_repro_program(
            failed(
                "D06",
                "none",
                [],
                "the card slows itself down while it works (device): hardware slowdown",
            ),
            "D06",
            {},
        )
    )
    path = f"{make_program(tmp_path)}:/usr/bin:/bin"

    for mask, ends_with in (("0x0000000000000048", 1), ("0x0000000000000001", 0)):
        assert (
            with_torch(
                hf_python,
                program,
                tmp_path,
                PATH=path,
                FAKE_SMI=told({**SMI, "clocks_event_reasons.active": mask}),
            )
            == ends_with
        )
