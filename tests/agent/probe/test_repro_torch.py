"""Programs for checks of torch, of the training and of cards: real on a CPU, beside a stand-in for
the card where they ask for one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.verification import Report
from provision.verification.repro import build_repro_program
from tests.agent.probe.test_repro import runs
from tests.agent.probe.test_repro_programs import failed


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


CHECKS: list[tuple[str, Report, tuple[str, str]]] = [
    ("C01", failed("C01", 0, 7), ("numbers + rank\n", "numbers + rank + 1\n")),
    ("C02", failed("C02", 0, 7, gpu__count=2), ("numbers + rank\n", "numbers + rank + 1\n")),
    (
        "C03",
        failed("C03", 1e-6, 1.0, gpu__count=2),
        ("'least_gb_s': 8", "'least_gb_s': 1e9 + 8"),
    ),
    (
        "R05",
        failed("R05", "a", "b"),
        (
            "    argv = ",
            "    __import__('os').remove(f'{folder}/checkpoint-20/optimizer.pt')\n    argv = ",
        ),
    ),
]


@pytest.mark.long
@pytest.mark.hf
@pytest.mark.parametrize(("check", "report", "fault"), CHECKS, ids=[row[0] for row in CHECKS])
def test_a_program_of_torch(
    hf_python: str,
    tmp_path: Path,
    check: str,
    report: Report,
    fault: tuple[str, str],
) -> None:
    program = build_repro_program(report, check, {})
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
            "all_reduce(total)", "all_reduce(total) if rank else time.sleep(1000)"
        ).replace("TIMEOUT_S = 100", "TIMEOUT_S = 15"),
        tmp_path,
    )

    assert (code, "[None, " in said) == (1, True), said


OF_CARDS = ("M01", "M02", "C01")


@pytest.mark.long(after=1)
@pytest.mark.hf
@pytest.mark.parametrize("check", OF_CARDS)
def test_without_a_card_a_program_for_cards_says_so(
    hf_python: str, tmp_path: Path, check: str
) -> None:
    code, said = runs(hf_python, build_repro_program(failed(check, 1.0), check, {}), tmp_path)

    assert (code, "Traceback" in said) == (2, False)
    assert said.startswith(("torch 2", "torch sees 0 GPUs"))


ON_A_CPU = """
import torch
torch.cuda.is_available = lambda: True
torch.cuda.mem_get_info = lambda: (2 ** 26, 2 ** 30)
"""


def on_a_cpu(program: str) -> str:
    """The program with the processor in the card's place: what it does and how it ends is real, the
    card is not.
    """
    return ON_A_CPU + program.replace('"cuda"', '"cpu"')


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

    assert with_torch(hf_python, program, tmp_path) == 0
    assert with_torch(hf_python, program, tmp_path, fault) == 1
