"""The short programs of templates/repro and the values that each takes from a failed check.

Only faults that people report to the projects behind them have a short program: the driver, the
card's memory, its products, several cards, imports, the compiler and the Trainer. The packed
probe shows every other check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from provision.agent.probe.checks.device import FREE_SHARE
from provision.agent.probe.checks.multi_gpu import BUS_WARNS
from provision.agent.probe.checks.numerics import BF16_ERROR, FP16_ERROR, FP32_ERROR, TF32_ERROR
from provision.agent.probe.model import Status
from provision.agent.probe.observing.memory_test import PATTERNS
from provision.agent.probe.observing.torch_compile import CPU_COMPILERS, CUDA_COMPILERS
from provision.agent.probe.proofs.recipe import LEARNING_RATES, optimizer_family
from provision.agent.probe.proofs.trainer import CHECKPOINT_FILES, NOT_EXERCISED
from provision.verification.report import ReportedCheck

_GIB = 2**30
_DEFAULT_OPTIMIZER = "adamw_torch"
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class NoShortProgram(Exception):
    """The report lacks the values of a short program, or the program would not show the failure."""


class FailedCheck(NamedTuple):
    """A check that failed, the readings and the proof of its report, and the expectations or {}."""

    check: ReportedCheck
    readings: Mapping[str, Any]
    proof: str
    expectations: Mapping[str, Any]

    @property
    def raised(self) -> bool:
        """True if the check failed because its subject raised or died, not by a value."""
        return self.check.expected in ("no exception", "completes")

    @property
    def device(self) -> str:
        """The device that torch computed on: "cuda" or "cpu"."""
        available = "cuda" if self.readings.get("gpu.available") else "cpu"
        return str(self.readings.get("numerics.device") or available)

    @property
    def gpu_index(self) -> int:
        """The first card that the message names, as torch counts them; 0 if it names none."""
        match = re.search(r"\bon cuda:(\d{1,4})\b", self.check.message)
        return int(match[1]) if match else 0

    def expectation(self, part: str, name: str) -> Any:
        """Return a value of a part of the expectations, or None."""
        block = self.expectations.get(part)
        return block.get(name) if isinstance(block, Mapping) else None

    def expected_number(self, default: float) -> float:
        """Return the number that was expected, or `default` if the check expected no value.

        Raises:
            NoShortProgram: the expected value is not a number.
        """
        number = default if self.raised or self.check.expected is None else self.check.expected
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise NoShortProgram("the report does not contain the expected value")
        return number


CaseBuilder = Callable[[FailedCheck], dict[str, Any]]
"""Builds the values of a program.

Raises:
    NoShortProgram: the report lacks a value.
    KeyError, TypeError, ValueError, AttributeError, IndexError: the report is malformed.
"""


def _driver(failed: FailedCheck) -> dict[str, Any]:
    if failed.check.base_id == "D02":
        return {"driver": failed.check.expected, "count": None}
    return {"driver": None, "count": int(str(failed.check.expected).partition(" x ")[0])}


def _allocated_memory(failed: FailedCheck) -> dict[str, Any]:
    size, free = int(failed.expected_number(_GIB)), 0
    if failed.check.status is Status.WARN:
        size, free = 0, int(FREE_SHARE.value * size)
    return {"card": failed.gpu_index, "bytes": size, "free": free, "words": []}


def _written_memory(failed: FailedCheck) -> dict[str, Any]:
    size = int(failed.readings.get("memory.held_bytes") or _GIB)
    return {"card": failed.gpu_index, "bytes": size, "free": 0, "words": list(PATTERNS)}


def _products(failed: FailedCheck) -> dict[str, Any]:
    on_card, sizes = failed.device == "cuda", [[512, 1024]]
    tf32 = (
        isinstance(failed.check.expected, dict)
        and failed.check.expected.get("fp32") == TF32_ERROR.value
    )
    bounds = {"fp32": (TF32_ERROR if tf32 else FP32_ERROR).value}
    if failed.check.base_id != "N02":
        bounds["bf16"] = BF16_ERROR.value
        if on_card:
            bounds["fp16"] = FP16_ERROR.value
    if on_card and failed.check.base_id == "N01":
        sizes.append([4096, 4096])
    return {"device": failed.device, "card": failed.gpu_index, "bounds": bounds, "sizes": sizes}


def _several_cards(failed: FailedCheck) -> dict[str, Any]:
    count = failed.expectation("gpu", "count") or failed.readings.get("gpu.count")
    if failed.check.base_id == "C01":
        count = 1
    if not isinstance(count, int):
        raise NoShortProgram("the report does not contain the number of GPUs")
    case = {"backend": "nccl", "processes": count, "bytes": 0, "least_gb_s": 0.0}
    if failed.check.base_id == "C03":
        case |= {"bytes": _GIB, "least_gb_s": BUS_WARNS.value * failed.expected_number(0)}
    return case


def _import(failed: FailedCheck) -> dict[str, Any]:
    if not failed.raised and failed.check.cause and "imported" in failed.check.message:
        raise NoShortProgram("the import works, but the file or version differs from the metadata")
    return {"packages": [failed.check.id.partition(":")[2]]}


def _compilers(failed: FailedCheck) -> dict[str, Any]:
    if failed.expectation("gpu", "type") or failed.readings.get("gpu.name"):
        return {"variables": ["CC", "CXX"], "compilers": list(CUDA_COMPILERS)}
    return {"variables": ["CXX"], "compilers": list(CPU_COMPILERS)}


def _training(failed: FailedCheck) -> dict[str, Any]:
    if failed.proof != "hf-trainer":
        raise NoShortProgram(
            f"the short program trains with Trainer, but the required proof is {failed.proof}"
        )
    precision = failed.expectation("training", "precision") or "fp32"
    case: dict[str, Any] = {
        "precision": precision,
        "dtype": None,
        "arguments": _options(failed),
        "files": [],
        "twice": failed.check.base_id == "R04",
    }
    match failed.check.base_id:
        case "R01" if failed.check.status is Status.WARN:
            raise NoShortProgram("like the verification, the short program sets use_cpu on a CPU")
        case "R01" if not failed.raised:
            case["arguments"] = _declared_arguments(failed)
        case "R03":
            if failed.check.expected not in _PRECISIONS:
                raise NoShortProgram(f"{failed.check.expected} can be tested only on a GPU")
            case |= {
                "precision": _PRECISIONS[failed.check.expected],
                "dtype": failed.check.expected,
            }
        case "R06":
            case["files"] = _checkpoint_files(failed)
    return case


def _options(failed: FailedCheck) -> dict[str, Any]:
    """Return the declared options of the training, without its precision."""
    if failed.expectation("training", "gradient_checkpointing"):
        raise NoShortProgram(
            "gradient checkpointing is declared, but its argument differs between versions of "
            "transformers"
        )
    optimizer = str(failed.expectation("training", "optimizer") or _DEFAULT_OPTIMIZER)
    options: dict[str, Any] = {}
    if optimizer != _DEFAULT_OPTIMIZER:
        rate = LEARNING_RATES[optimizer_family(optimizer)]
        options |= {"optim": optimizer, "learning_rate": rate}
    if workers := failed.expectation("training", "dataloader_workers"):
        options["dataloader_num_workers"] = workers
    return options


def _declared_arguments(failed: FailedCheck) -> dict[str, Any]:
    arguments = failed.expectation("training", "arguments")
    if not arguments:
        raise NoShortProgram("the report contains the names of the arguments, but not their values")
    return {str(name): value for name, value in arguments.items() if name not in NOT_EXERCISED}


def _checkpoint_files(failed: FailedCheck) -> list[str]:
    problems = failed.check.observed or []
    if not failed.raised and not all(str(text).endswith(" is missing") for text in problems):
        raise NoShortProgram("a file of the checkpoint exists but cannot be read")
    return list(CHECKPOINT_FILES)


def _resuming(failed: FailedCheck) -> dict[str, Any]:
    case = _training(failed)
    return {"precision": case["precision"], "arguments": case["arguments"]}


SHORT_PROGRAMS: Mapping[str, tuple[str, CaseBuilder]] = {
    check_id: (program, build_case)
    for program, build_case, check_ids in (
        ("driver", _driver, ("D01", "D02")),
        ("card_memory", _allocated_memory, ("M01",)),
        ("card_memory", _written_memory, ("M02",)),
        ("products", _products, ("N01", "N02", "N06")),
        ("multi_gpu", _several_cards, ("C01", "C02", "C03")),
        ("imports", _import, ("P06",)),
        ("compiler", _compilers, ("K01",)),
        ("trainer", _training, ("R01", "R02", "R03", "R04", "R06")),
        ("resume", _resuming, ("R05",)),
    )
    for check_id in check_ids
}
"""A program of templates/repro and the builder of its values, by check id."""
