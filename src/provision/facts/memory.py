"""Estimates the GPU memory of a training and the changes that would save memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, assert_never

from provision.facts.fact_tables import FactTables

Method = Literal["full", "lora", "qlora", "inference"]
Strategy = Literal["none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"]
_FIELDS = {"gradient_checkpointing": "checkpointing"}
_HALF_PRECISIONS = ("fp16", "bf16", "fp8")
_OFFLOADED_STATE_PREFIXES = ("paged_", "adafactor")
"""Prefixes of optimizers whose state does not have to be on the GPU.

Paged state may be in RAM (bitsandbytes documentation, Optimizers). Adafactor without a first moment
stores only a row and a column of the second one (arXiv 1804.04235, section 3), which is negligible.
"""

JAX_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
PREALLOCATION_VARIABLES = {
    "tensorflow": ("TF_FORCE_GPU_ALLOW_GROWTH", "true", ()),
    "jax": (
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "false",
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION", JAX_ALLOCATOR),
    ),
}
"""The variable that makes a framework allocate GPU memory on demand, its value, and other variables
with the same effect (TensorFlow guide, Use a GPU; JAX, GPU memory allocation).
"""
ON_DEMAND_VALUES = {"tensorflow": {"true"}, "jax": {"false", "False", "0", "platform"}}
"""Values with which memory is allocated on demand; others are ignored
(tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc; jaxlib/xla_client.py; for jax also of the
allocator).
"""


class Workload(NamedTuple):
    """A training or inference job; None is an unknown value.

    `parameters` in units; `batch_size` is per device; `devices` are those of one job; `trainable`
    is the number of adapter parameters of LoRA; `vocabulary` is the number of tokens with logits.
    """

    parameters: int
    method: Method = "full"
    precision: str = "fp32"
    optimizer: str = "adamw_torch"
    checkpointing: bool = False
    strategy: Strategy = "none"
    devices: int = 1
    batch_size: int | None = None
    sequence_length: int | None = None
    hidden_size: int | None = None
    layers: int | None = None
    trainable: int | None = None
    vocabulary: int | None = None


class MemoryEstimate(NamedTuple):
    """Bytes on each GPU by purpose.

    `unknown` names what was not counted: the total is then a lower bound. `assumed` names the
    assumptions.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    overhead: int
    unknown: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def total(self) -> int:
        """The sum of all parts, in bytes on each GPU."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.overhead


class MemorySaving(NamedTuple):
    """A change of `training` (field to value), the bytes saved on each GPU, and the new total."""

    change: Mapping[str, str | int | bool]
    saved_bytes: int
    total: int


def estimate_memory(work: Workload, facts: FactTables) -> MemoryEstimate:
    """Return the memory of a workload on each GPU.

    Bytes per parameter, from Hugging Face transformers documentation, Model training anatomy:
    weights 4 in fp32 and 6 in mixed precision, gradients 4, optimizer state by name; together 18
    for AdamW in mixed precision, as in accelerate's estimator (1.15.0). Frozen weights of LoRA and
    inference take the bytes of the precision; 4-bit weights 0.5 and 0.5 bits of constants for
    blocks of 64 (QLoRA, arXiv 2305.14314, section 3).

    Sharding divides optimizer state and gradients (ZeRO-2), and weights too (ZeRO-3, FSDP), by the
    number of devices (ZeRO, arXiv 1910.02054). Inference on several devices divides its weights
    among all of them.

    Only the weights are counted for an unknown optimizer, in the precision of the training: LOMO
    and the layerwise forms of GaLore do not store gradients either (arXiv 2306.09782; 2403.03507).
    """
    unknown: list[str] = []
    assumed: list[str] = []
    trained = _trained(work, unknown, assumed)
    state = facts.optimizers.get(work.optimizer)
    paged = work.optimizer.startswith("paged_")
    if trained and state is None:
        unknown.append(f"gradients and state of optimizer {work.optimizer}")
    elif trained and paged:
        unknown.append(f"the state of optimizer {work.optimizer}, which may be in RAM")
    if work.method == "inference" and work.strategy == "none" and work.devices > 1:
        assumed.append(
            f"the model is distributed over {work.devices} GPUs (device_map or tensor parallelism)"
        )
    weight_shards, state_shards = _shards(work)
    gradient_bytes = 4 if state else 0
    state_bytes = state.bytes if state and not paged else 0
    return MemoryEstimate(
        weights=round(_weights(work, trained, has_copy=state is not None) / weight_shards),
        gradients=round(gradient_bytes * trained / state_shards),
        optimizer=round(trained * state_bytes / state_shards),
        activations=_activations(work, unknown, assumed),
        overhead=round(sum(row.bytes for row in facts.overhead.values())),
        unknown=tuple(unknown),
        assumed=tuple(assumed),
    )


def minimum_memory(work: Workload, facts: FactTables) -> int:
    """Return the minimum bytes on each GPU for weights, gradients and optimizer state.

    Everything trained is in 16 bits: transformers 5 loads weights in the format of the checkpoint,
    and torch optimizers store state in the format of the weights. LoRA uses 8-bit weights,
    inference 4-bit ones. State that does not have to be on the GPU is not counted, an unknown
    optimizer may store neither state nor gradients, and a model without a strategy may be divided
    among all devices.
    """
    trained = _trained(work, [], [])
    state = facts.optimizers.get(work.optimizer)
    weight_bytes = {"full": 2.0, "lora": 1.0, "qlora": 0.5, "inference": 0.5}[work.method]
    weight_shards, state_shards = _shards(work)
    if work.strategy == "none":
        weight_shards = state_shards = work.devices
    trained_bytes = 0.0
    if state is not None:
        is_offloaded = work.optimizer.startswith(_OFFLOADED_STATE_PREFIXES)
        trained_bytes = 2 + (0 if is_offloaded else state.bytes / 2)
    return round(
        work.parameters * weight_bytes / weight_shards + trained * trained_bytes / state_shards
    )


def find_savings(
    work: Workload, facts: FactTables, *, half: str = "bf16"
) -> tuple[MemorySaving, ...]:
    """Return the single changes that save memory, the largest saving first.

    `half` is the 16-bit format that the card supports.
    """
    changes: list[dict[str, str | int | bool]] = [{"precision": half}]
    if work.method != "inference":
        changes += [{"gradient_checkpointing": True}, {"optimizer": "adamw_bnb_8bit"}]
        if work.method == "full":
            changes.append({"method": "lora"})
        changes.append({"method": "qlora"})
        if work.devices > 1:
            changes.append({"strategy": "fsdp"})
    if work.batch_size is not None and work.batch_size > 1:
        changes.append({"batch_size": 1})
    now = estimate_memory(work, facts).total
    totals = ((change, estimate_memory(_changed(work, change), facts).total) for change in changes)
    savings = (MemorySaving(change, now - total, total) for change, total in totals if total < now)
    return tuple(sorted(savings, key=lambda saving: -saving.saved_bytes))


def combine_savings(
    work: Workload, limit: float, facts: FactTables, *, half: str = "bf16"
) -> tuple[MemorySaving, ...]:
    """Return changes that together fit a workload into `limit` bytes; () if none do.

    Each change is the one that saves most after the changes before it.
    """
    savings: list[MemorySaving] = []
    while estimate_memory(work, facts).total > limit:
        best = next(iter(find_savings(work, facts, half=half)), None)
        if best is None:
            return ()
        savings.append(best)
        work = _changed(work, best.change)
    return tuple(savings)


def _changed(work: Workload, change: Mapping[str, str | int | bool]) -> Workload:
    values: dict[str, Any] = {_FIELDS.get(name, name): value for name, value in change.items()}
    return work._replace(**values)


def checkpoint_bytes(work: Workload, facts: FactTables) -> int | None:
    """Return the bytes of one Trainer checkpoint; None if the optimizer is unknown.

    It contains the trained weights in fp32 and the optimizer's state. Source: transformers Trainer
    saves model, optimizer, scheduler and random state; the last two are negligible.
    """
    state = facts.optimizers.get(work.optimizer)
    if state is None:
        return None
    return round(_trained(work, [], []) * (4 + state.bytes))


def _trained(work: Workload, unknown: list[str], assumed: list[str]) -> int:
    """Return the number of trained parameters.

    LoRA's default is rank 8 on two square matrices a layer (peft LoraConfig: r=8; query and value).
    """
    match work.method:
        case "full":
            return work.parameters
        case "inference":
            return 0
        case "lora" | "qlora":
            if work.trainable is not None:
                return work.trainable
            if work.hidden_size is None or work.layers is None:
                unknown.append("the adapter's parameters")
                return 0
            assumed.append("an adapter of rank 8 on the query and value matrices of each layer")
            return 2 * 2 * 8 * work.hidden_size * work.layers
        case _:
            assert_never(work.method)


def _weights(work: Workload, trained: int, *, has_copy: bool) -> float:
    """Return the bytes of weights; `has_copy`: mixed precision has them in 32 and in 16 bits."""
    half = work.precision in _HALF_PRECISIONS
    match work.method:
        case "full":
            if not half:
                return work.parameters * 4
            return work.parameters * (6 if has_copy else 2)
        case "lora" | "inference":
            return work.parameters * (2 if half else 4) + 4 * trained
        case "qlora":
            return work.parameters * (0.5 + 0.5 / 8) + 4 * trained
        case _:
            assert_never(work.method)


def _shards(work: Workload) -> tuple[int, int]:
    """Return the number of devices that share the weights, and that share the training state."""
    match work.strategy:
        case "none" if work.method == "inference":
            return work.devices, 1
        case "none" | "ddp":
            return 1, 1
        case "deepspeed-zero2":
            return 1, work.devices
        case "deepspeed-zero3" | "fsdp":
            return work.devices, work.devices
        case _:
            assert_never(work.strategy)


def _activations(work: Workload, unknown: list[str], assumed: list[str]) -> int:
    """Return the bytes of activations.

    A transformer layer stores 34 s b h bytes in 16 bits without its attention scores, and 2 s b h
    with checkpointing, plus one complete layer at a time (Korthikanti et al., arXiv 2205.05198,
    table 2); twice that in 32 bits. Inference stores keys and values: 2 s b h values a layer at
    most.
    """
    if (
        work.batch_size is None
        or work.sequence_length is None
        or work.hidden_size is None
        or work.layers is None
    ):
        unknown.append(
            "activations (batch_size, sequence_length, hidden_size or layers is not set)"
        )
        return 0
    tokens = work.batch_size * work.sequence_length
    width = 1 if work.precision in _HALF_PRECISIONS else 2
    unit = tokens * work.hidden_size * width
    if work.method == "inference":
        return round(2 * 2 * unit * work.layers / _shards(work)[0])
    assumed.append("attention that does not store scores (sdpa or flash attention)")
    logits = 0
    if work.vocabulary is None:
        unknown.append("the logits (the size of the vocabulary is unknown)")
    else:
        logits = tokens * work.vocabulary * (4 + 2 * width)
    if work.checkpointing:
        return 2 * unit * work.layers + 34 * unit + logits
    return 34 * unit * work.layers + logits
