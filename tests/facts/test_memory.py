"""The memory estimate against numbers that others published, and the levers it names."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.facts import load_facts
from provision.facts.host_usage import checkpoint_disk_usage
from provision.facts.memory import Workload, checkpoint_bytes, estimate_memory, find_savings

FACTS = load_facts()
BILLION = 10**9
SHAPE = Workload(
    parameters=1_100_000_000,
    precision="bf16",
    batch_size=4,
    sequence_length=1024,
    hidden_size=2048,
    layers=22,
)


def model_states(work: Workload) -> float:
    """Bytes for each parameter of weights, gradients and optimizer state."""
    found = estimate_memory(work, FACTS)
    return (found.weights + found.gradients + found.optimizer) / work.parameters


@pytest.mark.parametrize(
    ("precision", "optimizer", "bytes_each"),
    [
        ("fp32", "adamw_torch", 16),
        ("bf16", "adamw_torch", 18),
        ("fp16", "adamw_torch", 18),
        ("bf16", "adamw_bnb_8bit", 12),
        ("bf16", "adafactor", 14),
        ("fp32", "sgd", 8),
    ],
)
def test_bytes_a_parameter_are_those_of_the_documentation(
    precision: str, optimizer: str, bytes_each: float
) -> None:
    assert (
        model_states(Workload(parameters=BILLION, precision=precision, optimizer=optimizer))
        == bytes_each
    )


@pytest.mark.long(after=1)
@pytest.mark.hf
@pytest.mark.parametrize(
    ("precision", "named"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")]
)
def test_model_states_are_those_of_accelerates_estimator(
    hf_python: str, precision: str, named: str
) -> None:
    program = (
        "import json; from accelerate.commands.estimate import estimate_training_usage as e; "
        f"print(json.dumps(e({4 * BILLION}, {named!r})))"
    )
    theirs = json.loads(
        subprocess.run(
            [hf_python, "-c", program], capture_output=True, text=True, check=True
        ).stdout
    )
    assert (
        model_states(Workload(parameters=BILLION, precision=precision))
        == (theirs["model"] + theirs["gradients"] + theirs["optimizer"]) / BILLION
    )


def test_4_bit_weights_take_9_bits_with_their_constants() -> None:
    found = estimate_memory(
        Workload(
            parameters=7 * BILLION, method="qlora", precision="bf16", hidden_size=4096, layers=32
        ),
        FACTS,
    )
    assert found.weights == pytest.approx(7 * BILLION * 4.5 / 8, rel=0.01)
    assert found.gradients == 4 * 2 * 2 * 8 * 4096 * 32


def test_adapters_train_little_and_freeze_the_rest() -> None:
    found = estimate_memory(SHAPE._replace(method="lora", trainable=1_000_000), FACTS)
    assert found.weights == 2 * SHAPE.parameters + 4_000_000
    assert (found.gradients, found.optimizer) == (4_000_000, 8_000_000)


def test_inference_has_neither_gradients_nor_optimizer() -> None:
    found = estimate_memory(SHAPE._replace(method="inference"), FACTS)
    assert (found.gradients, found.optimizer) == (0, 0)
    assert found.activations == 2 * 2 * 4 * 1024 * 2048 * 22  # keys and values, 2 bytes each
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("strategy", "weights", "gradients", "optimizer"),
    [
        ("ddp", 6, 4, 8),
        ("deepspeed-zero2", 6, 1, 2),
        ("deepspeed-zero3", 1.5, 1, 2),
        ("fsdp", 1.5, 1, 2),
    ],
)
def test_sharding_over_four_devices(
    strategy: str, weights: float, gradients: float, optimizer: float
) -> None:
    work = Workload(parameters=BILLION, precision="bf16", devices=4)
    found = estimate_memory(work._replace(strategy=strategy), FACTS)  # type: ignore[arg-type]
    assert (found.weights, found.gradients, found.optimizer) == (
        weights * BILLION,
        gradients * BILLION,
        optimizer * BILLION,
    )


def test_activations_are_34_bytes_for_each_token_layer_and_width() -> None:
    assert estimate_memory(SHAPE, FACTS).activations == 34 * 4 * 1024 * 2048 * 22
    assert (
        estimate_memory(SHAPE._replace(precision="fp32"), FACTS).activations
        == 2 * 34 * 4 * 1024 * 2048 * 22
    )
    assert (
        estimate_memory(SHAPE._replace(checkpointing=True), FACTS).activations
        == (2 * 22 + 34) * 4 * 1024 * 2048
    )
    logits = estimate_memory(SHAPE._replace(vocabulary=32_000), FACTS)
    assert logits.activations - estimate_memory(SHAPE, FACTS).activations == 4 * 1024 * 32_000 * 6
    assert logits.unknown == ()


def test_what_is_not_given_is_named_and_not_guessed() -> None:
    found = estimate_memory(Workload(parameters=BILLION, optimizer="no_such_optimizer"), FACTS)
    assert found.optimizer == 0
    assert found.activations == 0
    assert any("no_such_optimizer" in what for what in found.unknown)
    assert found.gradients == 0
    assert any("batch_size" in what for what in found.unknown)
    assert any(
        "adapter" in what
        for what in estimate_memory(Workload(parameters=BILLION, method="lora"), FACTS).unknown
    )


def test_the_total_is_the_sum_of_the_parts() -> None:
    found = estimate_memory(SHAPE, FACTS)
    assert (
        found.total
        == found.weights + found.gradients + found.optimizer + found.activations + found.overhead
    )
    assert found.optimizer > max(found.weights, found.gradients, found.activations)
    assert found.total > 24 * BILLION  # more than an L4 has
    large = estimate_memory(SHAPE._replace(batch_size=64), FACTS)
    assert large.activations > max(large.weights, large.gradients, large.optimizer)


def test_levers_save_what_they_say_and_stand_in_order() -> None:
    found = find_savings(SHAPE, FACTS)
    now = estimate_memory(SHAPE, FACTS).total
    assert [next(iter(lever.change)) for lever in found] == [
        "method",
        "method",
        "optimizer",
        "gradient_checkpointing",
        "batch_size",
    ]
    assert all(lever.saved_bytes > 0 and lever.total == now - lever.saved_bytes for lever in found)
    assert found[2].change == {"optimizer": "adamw_bnb_8bit"}
    assert found[2].saved_bytes == 6 * SHAPE.parameters
    wide = find_savings(SHAPE._replace(batch_size=64), FACTS)
    assert [lever.change for lever in wide[:2]] == [
        {"batch_size": 1},
        {"gradient_checkpointing": True},
    ]
    assert {"strategy": "fsdp"} in [
        lever.change for lever in find_savings(SHAPE._replace(devices=8), FACTS)
    ]
    assert {"precision": "fp16"} in [
        lever.change
        for lever in find_savings(
            SHAPE._replace(precision="fp32", method="inference"), FACTS, half="fp16"
        )
    ]


def test_nothing_is_offered_where_nothing_saves() -> None:
    small = Workload(
        parameters=BILLION,
        method="inference",
        precision="bf16",
        batch_size=1,
        sequence_length=1,
        hidden_size=1,
        layers=1,
    )
    assert find_savings(small, FACTS) == ()


@given(st.integers(1, 10**12), st.integers(1, 64), st.integers(1, 8), st.booleans())
def test_more_of_anything_never_takes_less(
    parameters: int, batch: int, devices: int, checkpointing: bool
) -> None:
    work = SHAPE._replace(
        parameters=parameters, batch_size=batch, devices=devices, checkpointing=checkpointing
    )
    total = estimate_memory(work, FACTS).total
    assert estimate_memory(work._replace(parameters=parameters + 1000), FACTS).total >= total
    assert estimate_memory(work._replace(batch_size=batch + 1), FACTS).total >= total
    assert estimate_memory(work._replace(strategy="fsdp"), FACTS).total <= total


def test_checkpoints() -> None:
    assert checkpoint_bytes(SHAPE, FACTS) == 12 * SHAPE.parameters
    assert checkpoint_bytes(SHAPE._replace(method="lora", trainable=1000), FACTS) == 12_000
    assert checkpoint_bytes(SHAPE._replace(optimizer="no_such_optimizer"), FACTS) is None


def test_the_disk_holds_the_download_and_one_checkpoint_more_than_the_limit() -> None:
    usage = checkpoint_disk_usage(SHAPE, {"save_total_limit": 2}, FACTS)
    assert usage is not None
    assert usage.downloaded == 2 * SHAPE.parameters
    assert (usage.kept, usage.each) == (3, 12 * SHAPE.parameters)
    assert usage.total == 2 * SHAPE.parameters + 3 * 12 * SHAPE.parameters
    assert usage.weights_only == 4 * SHAPE.parameters
    assert checkpoint_disk_usage(SHAPE, {"save_strategy": "no"}, FACTS) is None
