"""Judges the declared strategy: that it wraps the model, that its processes agree, and that they reach what one process reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..checks.training import LEARNS, SPREADS, SPREADS_ROUNDED
from ..proofs.launching import Launch, unshown
from ..proofs.recipe import LEARNING_RATES, family
from ..values import Judgement, Threshold
from .cases import Case, bad, fell, listed, ok, skipped

_WRAPPERS = {"ddp": ("DistributedDataParallel",), "fsdp": ("FSDPModule", "FullyShardedDataParallel")}
_ENGINE = ("DeepSpeedEngine",)


def _strategy(case: Case) -> Judgement:
    launch = Launch.of(case.expected)
    if why := unshown(launch):
        return skipped(why)
    observed = {name: case.seen.get(f"launch.{name}") for name in ("ranks", "backend", "wrapper", "weights_error")}
    wrong = _wrong(case, launch)
    wanted = f"{_wanted(launch)[0]} in {launch.processes} processes"
    if not wrong:
        message = f"{launch.strategy} by {launch.by}: {launch.processes} processes over {observed['backend']} train one model"
        return replace(ok(message, wanted, observed), threshold=_bound(case, launch))
    cause, fix = _reason(launch)
    return bad(f"{launch.strategy} by {launch.by}: {listed(wrong)}", wanted, observed, cause, fix, _bound(case, launch))


def _reason(launch: Launch) -> tuple[str, str]:
    if launch.by == "python":
        return "launcher: python starts one process", "write launcher: torchrun or launcher: accelerate, or leave the launcher out"
    return (
        "the launcher or the arguments do not turn the strategy on, or the processes do not reach each other",
        "start it as `provision export --format launch` says; lock torch, transformers and accelerate together",
    )


def _bound(case: Case, launch: Launch) -> Threshold:
    rounds = launch.precision != "fp32" or {"8bit", "4bit"} & set(case.expected.training.optimizer.split("_"))
    return SPREADS_ROUNDED if rounds else SPREADS


def _wanted(launch: Launch) -> tuple[str, ...]:
    return _ENGINE if launch.zero_stage else _WRAPPERS[launch.strategy]


def _wrong(case: Case, launch: Launch) -> list[str]:
    seen = case.seen
    wrong = []
    if not set(_wanted(launch)) & set(seen["launch.wrapper"].split(", ")):
        wrong.append(f"the model is wrapped in {seen['launch.wrapper'] or 'nothing'}, not in {_wanted(launch)[0]}")
    if seen["launch.ranks"] != launch.processes or seen["_launch.world"] != [launch.processes]:
        groups = " or ".join(str(size) for size in seen["_launch.world"])
        wrong.append(f"processes that ran: {seen['launch.ranks']}, each in a group of {groups}, where {launch.processes} belong together")
    backend = "nccl" if launch.gpus else "gloo"
    if backend not in seen["launch.backend"]:
        wrong.append(f"they talk over {seen['launch.backend'] or 'nothing'}, not {backend}")
    if launch.gpus and len(set(seen["launch.devices"])) != launch.processes:
        wrong.append(f"they share devices: {', '.join(seen['launch.devices'])}")
    return wrong + _wrong_result(case, launch)


def _wrong_result(case: Case, launch: Launch) -> list[str]:
    first, last = case.seen["launch.loss"]
    known = family(case.expected.training.optimizer) in LEARNING_RATES
    wrong = [f"the loss does not fall: {first} to {last}"] if known and not fell(first, last, LEARNS.value) else []
    if launch.strategy != "ddp":
        return wrong
    error = case.seen.get("launch.weights_error")
    if not case.seen["launch.weights_agree"]:
        wrong.append("the processes end with different weights")
    if not isinstance(error, (int, float)) or error > _bound(case, launch).value:
        wrong.append(f"their weights are {error if error is None else format(error, '.2g')} away from those of one process with the same batches")
    return wrong


JUDGES: dict[str, Callable[[Case], Judgement]] = {"R13": _strategy}
