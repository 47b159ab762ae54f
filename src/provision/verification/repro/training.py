"""Programs for checks of the small training run. What depends on the spec's own options is left to
the packed probe.
"""

from __future__ import annotations

from typing import Any

from provision.agent.probe.checks.training import ADAPTER_LOSS_RATIO
from provision.agent.probe.proofs.recipe import LEARNING_RATES, optimizer_family
from provision.agent.probe.proofs.trainer import CHECKPOINT_FILES, NOT_EXERCISED
from provision.verification.repro.failed_check import FailedCheck, NoShortProgram, Programs

_USUAL = "adamw_torch"


def _training(failed: FailedCheck) -> dict[str, Any]:
    proof = str(failed.document["subject"].get("proof"))
    if proof != "hf-trainer":
        raise NoShortProgram(f"the program trains by Trainer, and the proof asked for is {proof}")
    declared = {"R03": "fp32"}.get(
        failed.check_id, failed.expectation("training", "precision") or "fp32"
    )
    case: dict[str, Any] = {
        "precision": declared,
        "dtype": None,
        "arguments": _options(failed),
        "files": [],
        "twice": failed.check_id == "R04",
    }
    if failed.check_id == "R01" and failed.check.get("status") == "warn":
        raise NoShortProgram("the short program gives use_cpu on a CPU, as the verification does")
    if failed.check_id == "R01" and not failed.raised:
        return {**case, "arguments": _arguments(failed)}
    if failed.check_id == "R03":
        return {**case, **_precision(failed)}
    if failed.check_id == "R06":
        return {**case, "files": _files(failed)}
    return case


def _options(failed: FailedCheck) -> dict[str, Any]:
    """What the declared training asks of the run beside its precision; {} where that is not at
    hand.
    """
    optimizer, workers = (
        str(failed.expectation("training", "optimizer") or _USUAL),
        failed.expectation("training", "dataloader_workers") or 0,
    )
    if failed.expectation("training", "gradient_checkpointing"):
        raise NoShortProgram(
            "gradient checkpointing is declared, which has another name in each version of "
            "transformers"
        )
    rate = (
        {}
        if optimizer == _USUAL
        else {"optim": optimizer, "learning_rate": LEARNING_RATES[optimizer_family(optimizer)]}
    )
    return {**rate, **({"dataloader_num_workers": workers} if workers else {})}


def _arguments(failed: FailedCheck) -> dict[str, Any]:
    given = failed.expectation("training", "arguments") or {}
    if not given:
        raise NoShortProgram("the report holds the names of the arguments and not their values")
    return {str(name): value for name, value in given.items() if name not in NOT_EXERCISED}


def _precision(failed: FailedCheck) -> dict[str, Any]:
    named = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    if failed.expected not in named:
        raise NoShortProgram(f"{failed.expected} shows on a card only")
    return {"precision": named[failed.expected], "dtype": failed.expected}


def _files(failed: FailedCheck) -> list[str]:
    if not failed.raised and not all(str(one).endswith(" is missing") for one in failed.observed):
        raise NoShortProgram("a file of the checkpoint is there and cannot be read back")
    return list(CHECKPOINT_FILES)


def _resuming(failed: FailedCheck) -> dict[str, Any]:
    case = _training(failed)
    return {"precision": case["precision"], "arguments": case["arguments"]}


def _round_trip(failed: FailedCheck) -> dict[str, Any]:
    return {
        "texts": failed.raised or "texts" in failed.expected,
        "rows": failed.raised or "rows" in failed.expected,
    }


def _placement(failed: FailedCheck) -> dict[str, Any]:
    _training(failed)
    card = failed.expectation("gpu", "type")
    several = failed.expected not in ("cpu", "cuda", "mps")
    return {"device": ("mps" if card == "mps" else "cuda") if several else failed.expected}


def _adapter(failed: FailedCheck) -> dict[str, Any]:
    method = failed.expectation("training", "method")
    if method != "lora":
        raise NoShortProgram(
            "the report does not say how the adapter is declared"
            if method is None
            else f"the program is for lora, declared is {method}"
        )
    return {"precision": _training(failed)["precision"], "share": ADAPTER_LOSS_RATIO.value}


PROGRAMS: Programs = {
    "R01": (("trainer", _training),),
    "R02": (("trainer", _training),),
    "R03": (("trainer", _training),),
    "R04": (("trainer", _training),),
    "R05": (("resume", _resuming),),
    "R06": (("trainer", _training),),
    "R10": (("round_trip", _round_trip),),
    "R11": (("placement", _placement),),
    "R12": (("adapter", _adapter),),
}
