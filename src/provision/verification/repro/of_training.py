"""Programs for checks of the small training run. What depends on the spec's own options is left to the packed probe."""

from __future__ import annotations

from typing import Any

from provision.probe.checks.training import ADAPTS
from provision.probe.proofs.recipe import LEARNING_RATES, family
from provision.probe.proofs.trainer import CHECKPOINT_FILES, NOT_EXERCISED
from provision.verification.repro.failed import Failed, Lacking, Programs

_USUAL = "adamw_torch"


def _training(failed: Failed) -> dict[str, Any]:
    proof = str(failed.document["subject"].get("proof"))
    if proof != "hf-trainer":
        raise Lacking(f"the program trains by Trainer, and the proof asked for is {proof}")
    declared = {"R03": "fp32"}.get(failed.identity, failed.of("training", "precision") or "fp32")
    case: dict[str, Any] = {"precision": declared, "dtype": None, "arguments": _options(failed), "files": [], "twice": failed.identity == "R04"}
    if failed.identity == "R01" and failed.check.get("status") == "warn":
        raise Lacking("the short program gives use_cpu on a CPU, as the verification does")
    if failed.identity == "R01" and not failed.raised:
        return {**case, "arguments": _arguments(failed)}
    if failed.identity == "R03":
        return {**case, **_precision(failed)}
    if failed.identity == "R06":
        return {**case, "files": _files(failed)}
    return case


def _options(failed: Failed) -> dict[str, Any]:
    """What the declared training asks of the run beside its precision; {} where that is not at hand."""
    optimizer, workers = str(failed.of("training", "optimizer") or _USUAL), failed.of("training", "dataloader_workers") or 0
    if failed.of("training", "gradient_checkpointing"):
        raise Lacking("gradient checkpointing is declared, which has another name in each version of transformers")
    rate = {} if optimizer == _USUAL else {"optim": optimizer, "learning_rate": LEARNING_RATES[family(optimizer)]}
    return {**rate, **({"dataloader_num_workers": workers} if workers else {})}


def _arguments(failed: Failed) -> dict[str, Any]:
    given = failed.of("training", "arguments") or {}
    if not given:
        raise Lacking("the report holds the names of the arguments and not their values")
    return {str(name): value for name, value in given.items() if name not in NOT_EXERCISED}


def _precision(failed: Failed) -> dict[str, Any]:
    named = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    if failed.expected not in named:
        raise Lacking(f"{failed.expected} shows on a card only")
    return {"precision": named[failed.expected], "dtype": failed.expected}


def _files(failed: Failed) -> list[str]:
    if not failed.raised and not all(str(one).endswith(" is missing") for one in failed.observed):
        raise Lacking("a file of the checkpoint is there and cannot be read back")
    return list(CHECKPOINT_FILES)


def _resuming(failed: Failed) -> dict[str, Any]:
    case = _training(failed)
    return {"precision": case["precision"], "arguments": case["arguments"]}


def _round_trip(failed: Failed) -> dict[str, Any]:
    return {"texts": failed.raised or "texts" in failed.expected, "rows": failed.raised or "rows" in failed.expected}


def _placement(failed: Failed) -> dict[str, Any]:
    _training(failed)
    card = failed.of("gpu", "type")
    several = failed.expected not in ("cpu", "cuda", "mps")
    return {"device": ("mps" if card == "mps" else "cuda") if several else failed.expected}


def _adapter(failed: Failed) -> dict[str, Any]:
    method = failed.of("training", "method")
    if method != "lora":
        raise Lacking("the report does not say how the adapter is declared" if method is None else f"the program is for lora, declared is {method}")
    return {"precision": _training(failed)["precision"], "share": ADAPTS.value}


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
