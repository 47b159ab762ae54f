"""Rehearses the declared training with random weights, and measures its memory.

Then the pace of a card: tokens a second of a model whose size is always the same.
"""

from __future__ import annotations

import os
import time

from ..context import ObserverContext
from ..expectations import Expectations
from ..model import Proof, Readings
from ..proofs.declared_training import (
    STEPS,
    RehearsalPlan,
    RehearsalResult,
    reason_not_rehearsable,
    rehearse_with_loop,
    rehearse_with_trainer,
)
from ..proofs.model_shape import choose_shape
from ..proofs.recipe import prepare_environment, scratch_folder
from .memory_usage import ProcessMemoryPeak, TorchMemoryPeak, available_bytes, limit_process_memory
from .speed import median
from .tensors import device_of

_SHARE_OF_FREE = 0.8
"""Of free RAM, what a rehearsal on CPU may be expected to take."""
_MOST_S = 240.0
"""Longest expected rehearsal on a CPU, below its stage's limit."""
_UTILISATION = 0.3
"""Of the speed of a product of matrices, what a training step reaches on CPU at least: 0.38 was
measured with 20 million parameters and LoRA, 0.5 with 60.
"""
_SIDE, _TRIES = 1024, 8
_SHARDING = frozenset({"fsdp", "deepspeed-zero2", "deepspeed-zero3"})
"""Strategies that spread over the cards what a card alone has to keep; the estimate of the facts
divides by the cards for the same ones.
"""
_PACED, _PACED_BATCH, _PACED_STEPS = (100_000_000, None, None), (8, 512), 20
"""A model of 100 million parameters, batches of 8 x 512 tokens, 20 steps: large enough to keep a
card busy, and small enough for 16 GB.
"""


def make_rehearsal_plan(expected: Expectations) -> RehearsalPlan | str:
    """Return the plan of a rehearsal, or why there is none."""
    training = expected.training
    model = training.model
    if model is None or model.parameters is None:
        return "`training.model` does not declare the number of parameters"
    if training.batch_size is None or training.sequence_length is None:
        return "`training.batch_size` and `training.sequence_length` are not both declared"
    if training.precision == "fp8":
        return "fp8 training is not rehearsed"
    return reason_not_rehearsable(
        training.method, expected.proof is Proof.HF_TRAINER
    ) or RehearsalPlan(
        shape=choose_shape(model.parameters, model.hidden_size, model.layers),
        method=training.method,
        precision=training.precision,
        optimizer=training.optimizer,
        gradient_checkpointing=training.gradient_checkpointing,
        batch_size=training.batch_size,
        sequence_length=training.sequence_length,
        device=expected.device,
    )


def reason_sharded(expected: Expectations) -> str:
    """Return why one card cannot rehearse a sharded strategy; "" if it can."""
    training, cards = expected.training, expected.gpu_count
    if training.model is None or training.strategy not in _SHARDING or cards < 2:
        return ""
    estimate = f" ({expected.estimate_bytes / 2**30:.4g} GiB)" if expected.estimate_bytes else ""
    return (
        f"{training.strategy} shards the model over {cards} GPUs, but a rehearsal uses only one. "
        "R13 tests the strategy, "
        f"`provision lint` estimates the memory per GPU{estimate}, and `provision run` "
        "measures it"
    )


def minimum_bytes(plan: RehearsalPlan, estimate: int | None) -> int:
    """Return the least bytes of a rehearsal: the estimate, or weights, gradients and optimizer."""
    weights = plan.shape.parameters * (16 if plan.method == "full" else 4)
    return (estimate if estimate is not None else weights) + logits_bytes(plan)


def logits_bytes(plan: RehearsalPlan) -> int:
    """Return the bytes of logits (and their gradient) in 32 bits, which no estimate includes."""
    return plan.tokens * plan.shape.vocabulary * (4 if plan.method == "inference" else 8)


def reason_too_large(plan: RehearsalPlan, estimate: int | None, available: int | None) -> str:
    """Return why a plan is not tried on a CPU with `available` bytes of RAM; "" if it is."""
    needed = minimum_bytes(plan, estimate)
    if available is not None and needed > _SHARE_OF_FREE * available:
        return (
            f"it needs about {needed / 2**30:.1f} GiB, but only {available / 2**30:.1f} GiB of RAM "
            "is free"
        )
    return ""


def reason_too_long(plan: RehearsalPlan, rate: float) -> str:
    """Why a plan is not tried on a CPU that makes `rate` operations a second; "" when it is."""
    # A training step takes 6 operations a parameter and token, 2 of them forward (arXiv 2001.08361,
    # section 2.1).
    seconds = STEPS * 6 * plan.shape.parameters * plan.tokens / (rate * _UTILISATION)
    return (
        f"it would take about {seconds / 60:.1f} minutes on this CPU, and the limit is "
        f"{_MOST_S / 60:.0f}"
        if seconds > _MOST_S
        else ""
    )


def _two_steps(context: ObserverContext) -> Readings:
    if why := reason_sharded(context.expected):
        return {"rehearsal.why": why, "rehearsal.sharded": True}
    plan = make_rehearsal_plan(context.expected)
    if isinstance(plan, str):
        return {"rehearsal.why": plan}
    reported = {
        "rehearsal.why": None,
        "rehearsal.model": str(plan.shape),
        "rehearsal.device": plan.device,
        "rehearsal.logits_bytes": logits_bytes(plan),
    }
    prepare_environment(os.environ, context.expected, context.scratch)
    available = available_bytes(context.root)
    if plan.device == "cpu":
        if why := reason_too_large(plan, context.expected.estimate_bytes, available):
            return {**reported, "rehearsal.why": why, "rehearsal.short_of": "memory"}
        if why := reason_too_long(plan, _rate()):
            return {**reported, "rehearsal.why": why, "rehearsal.short_of": "time"}
    _import(context)
    if plan.device == "cpu" and available is not None:
        limit_process_memory(available)
    peak = TorchMemoryPeak() if plan.device == "cuda" else ProcessMemoryPeak()
    error, result = _tried(context, plan)
    return {
        **reported,
        "rehearsal.out_of_memory": error,
        "rehearsal.parameters": result.parameters if result else None,
        "rehearsal.trained": result.trained if result else None,
        "rehearsal.steps": len(result.losses) if result else 0,
        "rehearsal.finite": result.finite if result else None,
        "rehearsal.step_s": result.steps_s[-1] if result and result.steps_s else None,
        "rehearsal.peak_bytes": peak.bytes(),
        "rehearsal.memory_bytes": _card_bytes() if plan.device == "cuda" else available,
    }


def _tried(
    context: ObserverContext, plan: RehearsalPlan
) -> tuple[str | None, RehearsalResult | None]:
    try:
        if context.expected.proof is Proof.HF_TRAINER:
            return None, rehearse_with_trainer(plan, scratch_folder(context.scratch, "rehearsal"))
        return None, rehearse_with_loop(plan)
    except MemoryError:
        return "MemoryError", None
    # torch.cuda.OutOfMemoryError is one, and so is the error of the CPU's allocator.
    except RuntimeError as error:
        if not is_out_of_memory(str(error)):
            raise
        return str(error).split("\n")[0][:200], None


def is_out_of_memory(text: str) -> bool:
    """Return whether an error of torch means that memory ran out, on a card or on the CPU."""
    return "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text


def _import(context: ObserverContext) -> None:
    """Import all that a run needs, so that what it takes is not counted as the run's."""
    import torch  # noqa: F401

    if context.expected.proof is Proof.HF_TRAINER:
        from transformers import LlamaForCausalLM, Trainer  # noqa: F401


def _rate() -> float:
    """Return this CPU's operations a second in matrix products, the best of a few."""
    import torch

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Two threads of one core gain nothing, and are far slower next to another program.
    torch.set_num_threads(max(1, cpus // 2))
    matrix = torch.randn(_SIDE, _SIDE)
    took = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        matrix @ matrix
        took.append(time.perf_counter() - began)
    return float(2 * _SIDE**3 / min(took))


def _card_bytes() -> int:
    import torch

    return int(torch.cuda.mem_get_info()[1])


def _pace(context: ObserverContext) -> Readings:
    if device_of(context) != "cuda":
        return {"pace.tokens_per_s": None}
    precision = {"fp8": "bf16", "bf16": "bf16", "fp16": "fp16"}.get(
        context.expected.training.precision, "fp32"
    )
    return measure_throughput(
        RehearsalPlan(
            choose_shape(*_PACED),
            "full",
            precision,
            "adamw_torch",
            False,
            *_PACED_BATCH,
            "cuda",
            _PACED_STEPS,
        )
    )


def measure_throughput(plan: RehearsalPlan) -> Readings:
    """Return tokens a second of a plain loop, by the median after the first quarter."""
    done = rehearse_with_loop(plan)
    settled = done.steps_s[plan.steps // 4 :]
    return {
        "pace.tokens_per_s": plan.tokens / median(list(settled)),
        "pace.precision": plan.precision,
        "pace.parameters": done.parameters,
        "pace.finite": done.finite,
    }


OBSERVERS = {
    "S01": _two_steps,
    # Both are judged from the readings of S01.
    "S02": lambda _: {},
    "S03": lambda _: {},
    "R09": _pace,
}
