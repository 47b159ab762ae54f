"""How much GPU memory a training takes, from its method, optimizer, precision and shape, and which
change would save most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, assert_never

from provision.facts.schema_packages import MemoryOverhead, OptimizerState

Method = Literal["full", "lora", "qlora", "inference"]
Strategy = Literal["none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"]
_FIELDS = {"gradient_checkpointing": "checkpointing"}
_HALF_PRECISIONS = ("fp16", "bf16", "fp8")
_OFFLOADED_STATE_PREFIXES = ("paged_", "adafactor")
"""How optimizers begin whose state need not be on the GPU: paged state may lie in RAM (bitsandbytes
documentation, Optimizers), and Adafactor without a first
moment keeps the second one as a row and a column of it (arXiv 1804.04235, section 3), which is
next to nothing.
"""


class Workload(NamedTuple):
    """What is trained. `parameters` in units; `hidden_size`, `layers`, `batch_size` (a device) and
    `sequence_length` None where unknown; `devices` of one job.

    `trainable` is the number of adapter parameters of LoRA, when known; `vocabulary` the number
    of tokens that logits are computed for.
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
    """Bytes on each GPU by what takes them. `unknown` names what was not counted: the total is then
    a lower bound. `assumed` names what was assumed.
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
        """Bytes on each GPU, all together."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.overhead

    @property
    def largest(self) -> str:
        """The part that takes most."""
        return max(
            ("weights", "gradients", "optimizer", "activations", "overhead"),
            key=lambda part: int(getattr(self, part)),
        )


class MemorySaving(NamedTuple):
    """A change of `training` (field to value) that saves memory: bytes saved on each GPU, and the
    total that remains.
    """

    change: Mapping[str, str | int | bool]
    saved_bytes: int
    total: int


def estimate_memory(
    work: Workload, optimizers: Mapping[str, OptimizerState], overhead: Mapping[str, MemoryOverhead]
) -> MemoryEstimate:
    """Return the memory that a workload takes on each GPU, in bytes.

    Bytes a parameter, from Hugging Face transformers documentation, Model training anatomy:
    weights 4 in fp32 and 6 in mixed precision, gradients 4, optimizer
    state by name; together 18 for AdamW in mixed precision, which is also what accelerate's
    estimator (1.15.0) reckons. Frozen weights of LoRA and inference
    take the bytes of the precision; 4-bit weights 0.5 and 0.5 bits of constants for blocks of 64
    (QLoRA, arXiv 2305.14314, section 3). Sharding divides
    optimizer state and gradients (ZeRO-2), and weights too (ZeRO-3, FSDP), by the number of
    devices (ZeRO, arXiv 1910.02054). Inference on several devices
    spreads its weights over all of them. Of an unknown optimizer nothing is counted but weights
    in the precision: LOMO and the layerwise forms of GaLore keep
    no gradients either (arXiv 2306.09782; 2403.03507).
    """
    unknown: list[str] = []
    assumed: list[str] = []
    trained = _trained(work, unknown, assumed)
    state = optimizers.get(work.optimizer)
    paged = work.optimizer.startswith("paged_")
    if trained and state is None:
        unknown.append(f"gradients and state of optimizer {work.optimizer}")
    elif trained and paged:
        unknown.append(f"the state of optimizer {work.optimizer}, which may lie in RAM")
    if work.method == "inference" and work.strategy == "none" and work.devices > 1:
        assumed.append(
            f"the model is spread over {work.devices} GPUs (device_map or tensor parallelism)"
        )
    parts, states = _shards(work)
    return MemoryEstimate(
        weights=round(_weights(work, trained, copied=state is not None) / parts),
        gradients=round((4 if state else 0) * trained / states),
        optimizer=round(trained * (state.bytes if state and not paged else 0) / states),
        activations=_activations(work, unknown, assumed),
        overhead=round(sum(row.bytes for row in overhead.values())),
        unknown=tuple(unknown),
        assumed=tuple(assumed),
    )


def minimum_memory(work: Workload, optimizers: Mapping[str, OptimizerState]) -> int:
    """Return the bytes on each GPU that weights, gradients and optimizer state cannot do without,
    however the program is written.

    Everything trained in 16 bits: transformers 5 loads weights in the format of the checkpoint,
    and torch optimizers keep state in the format of the weights.
    LoRA over 8-bit weights, inference over 4-bit ones. State that need not be on the GPU is left
    out, an unknown optimizer may keep neither state nor
    gradients, and a model that is trained without a strategy may be spread over all devices.
    """
    trained = _trained(work, [], [])
    state = optimizers.get(work.optimizer)
    each = {"full": 2.0, "lora": 1.0, "qlora": 0.5, "inference": 0.5}[work.method]
    parts, states = (work.devices, work.devices) if work.strategy == "none" else _shards(work)
    held = (
        0.0
        if state is None
        else 2 + (0 if work.optimizer.startswith(_OFFLOADED_STATE_PREFIXES) else state.bytes / 2)
    )
    return round(work.parameters * each / parts + trained * held / states)


def find_savings(
    work: Workload,
    optimizers: Mapping[str, OptimizerState],
    overhead: Mapping[str, MemoryOverhead],
    *,
    half: str = "bf16",
) -> tuple[MemorySaving, ...]:
    """Return the single changes that save memory, the one that saves most first; `half` is the
    16-bit format the card computes in.
    """
    now = estimate_memory(work, optimizers, overhead).total
    changes: list[tuple[dict[str, str | int | bool], Workload]] = [
        ({"precision": half}, work._replace(precision=half))
    ]
    if work.method != "inference":
        changes.append(({"gradient_checkpointing": True}, work._replace(checkpointing=True)))
        changes.append(({"optimizer": "adamw_bnb_8bit"}, work._replace(optimizer="adamw_bnb_8bit")))
        if work.method == "full":
            changes.append(({"method": "lora"}, work._replace(method="lora")))
        changes.append(({"method": "qlora"}, work._replace(method="qlora")))
        if work.devices > 1:
            changes.append(({"strategy": "fsdp"}, work._replace(strategy="fsdp")))
    if work.batch_size is not None and work.batch_size > 1:
        changes.append(({"batch_size": 1}, work._replace(batch_size=1)))
    totals = [
        (change, estimate_memory(changed, optimizers, overhead).total)
        for change, changed in changes
    ]
    found = [MemorySaving(change, now - total, total) for change, total in totals if total < now]
    return tuple(sorted(found, key=lambda lever: -lever.saved_bytes))


def combine_savings(
    work: Workload,
    room: float,
    optimizers: Mapping[str, OptimizerState],
    overhead: Mapping[str, MemoryOverhead],
    *,
    half: str = "bf16",
) -> tuple[MemorySaving, ...]:
    """Return changes that fit a workload into `room` bytes when they are made together, each time
    the one that saves most; () when none do.
    """
    made: list[MemorySaving] = []
    while estimate_memory(work, optimizers, overhead).total > room:
        best = next(iter(find_savings(work, optimizers, overhead, half=half)), None)
        if best is None:
            return ()
        made.append(best)
        work = work._replace(**{_FIELDS.get(key, key): value for key, value in best.change.items()})  # type: ignore[arg-type]
    return tuple(made)


def checkpoint_bytes(work: Workload, optimizers: Mapping[str, OptimizerState]) -> int | None:
    """Return the bytes of one Trainer checkpoint: the trained weights in fp32 and the optimizer's
    state; None when that state is unknown.

    Source: transformers Trainer saves model, optimizer, scheduler and random state; the last two
    are negligible.
    """
    state = optimizers.get(work.optimizer)
    if state is None:
        return None
    trained = _trained(work, [], [])
    return round(trained * (4 + state.bytes))


def _trained(work: Workload, unknown: list[str], assumed: list[str]) -> int:
    """Return the number of trained parameters; LoRA's default is rank 8 on two square matrices a
    layer (peft LoraConfig: r=8; query and value).
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
            assumed.append("an adapter of rank 8 on query and value of each layer")
            return 2 * 2 * 8 * work.hidden_size * work.layers
        case _:
            assert_never(work.method)


def _weights(work: Workload, trained: int, *, copied: bool) -> float:
    """Return the bytes of weights; `copied` where mixed precision keeps them in 32 bits and in 16."""  # noqa: E501
    half = work.precision in _HALF_PRECISIONS
    match work.method:
        case "full":
            return work.parameters * (4 if not half else 6 if copied else 2)
        case "lora" | "inference":
            return work.parameters * (2 if half else 4) + 4 * trained
        case "qlora":
            return work.parameters * (0.5 + 0.5 / 8) + 4 * trained
        case _:
            assert_never(work.method)


def _shards(work: Workload) -> tuple[int, int]:
    """Return over how many devices weights are spread, and over how many gradients and optimizer
    state.
    """
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

    A transformer layer keeps 34 s b h bytes in 16 bits without its attention scores, and 2 s b h
    when it is recomputed, with one layer whole at a time
    (Korthikanti et al., arXiv 2205.05198, table 2); twice that in 32 bits. Inference keeps keys
    and values: 2 s b h values a layer at most.
    """
    if (
        work.batch_size is None
        or work.sequence_length is None
        or work.hidden_size is None
        or work.layers is None
    ):
        unknown.append(
            "activations: batch_size, sequence_length, hidden_size or layers is not given"
        )
        return 0
    tokens = work.batch_size * work.sequence_length
    width = 1 if work.precision in _HALF_PRECISIONS else 2
    unit = tokens * work.hidden_size * width
    if work.method == "inference":
        return round(2 * 2 * unit * work.layers / _shards(work)[0])
    assumed.append("attention that keeps no scores (sdpa or flash attention)")
    if work.vocabulary is None:
        unknown.append("the logits: the size of the vocabulary is not given")
    logits = 0 if work.vocabulary is None else tokens * work.vocabulary * (4 + 2 * width)
    layers = 2 * unit * work.layers + 34 * unit if work.checkpointing else 34 * unit * work.layers
    return layers + logits
