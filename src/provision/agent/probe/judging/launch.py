"""Judges the declared strategy: wrapping, agreement of its processes, and their result."""

from __future__ import annotations

from dataclasses import replace

from ..checks.training import DISTRIBUTED_ERROR, DISTRIBUTED_ERROR_ROUNDED, LOSS_RATIO
from ..model import Judgement, Threshold
from ..proofs.launch import Launch, reason_not_testable
from ..proofs.recipe import LEARNING_RATES, optimizer_family
from .judgement import JudgeInput, fails, format_list, has_fallen, is_number, passes, skipped

_WRAPPERS = {
    "ddp": ("DistributedDataParallel",),
    "fsdp": ("FSDPModule", "FullyShardedDataParallel"),
}
_ENGINE = ("DeepSpeedEngine",)
DISTRIBUTED_MODE = "distributed"
"""The parallel mode of TrainingArguments in one of several processes that train one model."""
ALONE_ON_CPU = (
    "without a GPU, Trainer and Accelerator ignore torchrun unless ACCELERATE_USE_CPU is true",
    "remove ACCELERATE_USE_CPU from `env`: the default for `gpu: none` with this strategy is true",
)


def _strategy(given: JudgeInput) -> Judgement:
    launch = Launch.of(given.expected)
    if why := reason_not_testable(launch):
        return skipped(why)
    observed = {
        name: given.get(f"launch.{name}")
        for name in ("ranks", "backend", "wrapper", "parallel_mode", "weights_error")
    }
    wrong = _wrong(given, launch)
    required = f"{_wanted(launch)[0]} in {launch.processes} processes"
    if not wrong:
        return replace(
            passes(
                f"{launch.strategy} with {launch.effective_launcher}: {launch.processes} processes "
                f"trained one model over {observed['backend']}",
                required,
                observed,
            ),
            threshold=_bound(given, launch),
        )
    cause, fix = _reason(launch)
    is_connected = given.get("launch.parallel_mode") in (None, DISTRIBUTED_MODE)
    if not is_connected and not launch.gpus and launch.effective_launcher != "python":
        cause, fix = ALONE_ON_CPU
    return fails(
        f"{launch.strategy} with {launch.effective_launcher}: {format_list(wrong)}",
        required,
        observed,
        cause,
        fix,
        _bound(given, launch),
    )


def _reason(launch: Launch) -> tuple[str, str]:
    if launch.effective_launcher == "python":
        return (
            "`launcher: python` starts only one process",
            "set `launcher: torchrun` or `launcher: accelerate`, or remove `launcher`",
        )
    return (
        (
            "the launcher or the arguments do not enable the strategy, or the processes cannot "
            "reach each other"
        ),
        (
            "start the training with the command that `provision export --format launch` "
            "prints; lock torch, transformers and accelerate together"
        ),
    )


def _bound(given: JudgeInput, launch: Launch) -> Threshold:
    rounds = launch.precision != "fp32" or {"8bit", "4bit"} & set(
        given.expected.training.optimizer.split("_")
    )
    return DISTRIBUTED_ERROR_ROUNDED if rounds else DISTRIBUTED_ERROR


def _wanted(launch: Launch) -> tuple[str, ...]:
    return _ENGINE if launch.zero_stage else _WRAPPERS[launch.strategy]


def _wrong(given: JudgeInput, launch: Launch) -> list[str]:
    seen = given.seen
    wrong = []
    if not set(_wanted(launch)) & set(seen["launch.wrapper"].split(", ")):
        wrong.append(
            f"the model is wrapped in {seen['launch.wrapper'] or 'nothing'}, not in "
            f"{_wanted(launch)[0]}"
        )
    if seen["launch.ranks"] != launch.processes or seen["_launch.world"] != [launch.processes]:
        groups = " or ".join(str(size) for size in seen["_launch.world"])
        count = seen["launch.ranks"]
        wrong.append(
            f"{count} {'process' if count == 1 else 'processes'} ran (group size {groups}) instead "
            f"of {launch.processes} in a single group"
        )
    mode = seen.get("launch.parallel_mode", DISTRIBUTED_MODE)
    if mode != DISTRIBUTED_MODE:
        wrong.append(f"each process of a program trains alone (parallel mode: {mode})")
    backend = "nccl" if launch.gpus else "gloo"
    if backend not in seen["launch.backend"]:
        wrong.append(f"they communicate over {seen['launch.backend'] or 'nothing'}, not {backend}")
    if launch.gpus and len(set(seen["launch.devices"])) != launch.processes:
        wrong.append(f"processes share devices: {', '.join(seen['launch.devices'])}")
    return wrong + _wrong_result(given, launch)


def _wrong_result(given: JudgeInput, launch: Launch) -> list[str]:
    first, last = given["launch.loss"]
    known = optimizer_family(given.expected.training.optimizer) in LEARNING_RATES
    wrong = (
        [f"the loss does not fall: it went from {first} to {last}"]
        if known and not has_fallen(first, last, LOSS_RATIO.value)
        else []
    )
    if launch.strategy != "ddp":
        return wrong
    error = given.get("launch.weights_error")
    if not given["launch.weights_agree"]:
        wrong.append("the processes end with different weights")
    if not is_number(error) or error > _bound(given, launch).value:
        wrong.append(
            "their weights differ from those of a single process with the same batches by "
            f"{format(error, '.2g') if is_number(error) else error or 'an unknown amount'}"
        )
    return wrong


JUDGES = {"R13": _strategy}
