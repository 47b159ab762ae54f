"""Memory, disk and shared memory against what places have, on both sides of each threshold."""

from __future__ import annotations

import pytest

from provision.diagnostics import Severity
from provision.facts import Facts
from provision.facts.memory import Workload, estimate_memory, minimum_memory
from provision.rules.examples import example_spec
from tests.rules.conftest import Ask

HEAD = 'gpu: {gpu}\npython: "3.12"\npackages: [torch]\ntraining: {{{training}}}\n'
COLAB = (
    'gpu: T4\npython: "3.12"\npackages: [torch]\n{top}targets: {{colab: {{kind: colab, '
    'runtime: "2026.07"{more}}}}}\n'
)


def spec(gpu: str, training: str) -> str:
    return HEAD.format(gpu=gpu, training=training)


@pytest.mark.parametrize(
    ("gpu", "training", "severity"),
    [
        (
            "L4",
            "model: {parameters: 3.1B}",
            Severity.ERROR,
        ),  # 8 bytes each: 24.8 GB, the card has 24.15
        (
            "L4",
            "model: {parameters: 3B}",
            Severity.WARNING,
        ),  # 24.0 GB would fit in 16 bits, not in 32
        ("L4", "model: {parameters: 1.2B}", None),  # 18 bytes each and the context
        ("L4", "method: lora, precision: bf16, model: {parameters: 25B}", Severity.ERROR),
        (
            "L4",
            "method: lora, precision: bf16, model: {parameters: 20B}",
            Severity.WARNING,
        ),  # could be loaded in 8 bits
        ("L4", "method: qlora, model: {parameters: 49B}", Severity.ERROR),
        ("L4", "method: inference, model: {parameters: 400B}", Severity.WARNING),
        ("L4", "optimizer: paged_adamw_32bit, model: {parameters: 3.1B}", Severity.WARNING),
        ("L4", "optimizer: an_optimizer_of_tomorrow, model: {parameters: 7B}", Severity.WARNING),
        ("L4", "strategy: deepspeed-zero3, model: {parameters: 70B}", Severity.WARNING),
        ("L4:8", "strategy: fsdp, model: {parameters: 70B}", Severity.ERROR),
        (
            "L4:8",
            "strategy: fsdp, arguments: {fsdp: full_shard}, model: {parameters: 70B}",
            Severity.WARNING,
        ),
        (
            "L4:8",
            "strategy: fsdp, arguments: {fsdp: full_shard offload}, model: {parameters: 70B}",
            None,
        ),  # in RAM, and how much is not known
        (
            "L4",
            (
                "strategy: deepspeed-zero3, arguments: {deepspeed: {zero_optimization: "
                "{offload_param: {device: cpu}}}}, model: {parameters: 70B}"
            ),
            None,
        ),
        (
            "A100-40GB",
            "optimizer: adafactor, precision: bf16, model: {parameters: 7B}",
            Severity.WARNING,
        ),  # 4 bytes each in bf16: 28 GB
        (
            "A100-40GB",
            "optimizer: adafactor, precision: bf16, model: {parameters: 11B}",
            Severity.ERROR,
        ),  # 44 GB
        (
            "A100-40GB",
            "optimizer: lomo, precision: bf16, model: {parameters: 13B}",
            None,
        ),  # no gradients are kept
        (
            "A100-40GB",
            "optimizer: galore_adamw_layerwise, precision: bf16, model: {parameters: 7B}",
            None,
        ),
        (
            "A100-40GB",
            "optimizer: paged_adamw_32bit, precision: bf16, model: {parameters: 4B}",
            None,
        ),  # 10 bytes each, the state may lie in RAM
        (
            "A100-80GB:4",
            "method: inference, precision: bf16, model: {parameters: 70B}",
            None,
        ),  # spread over the cards
        (
            "A100-80GB",
            "method: inference, precision: bf16, model: {parameters: 70B}",
            Severity.WARNING,
        ),
        ("L4:2", "method: inference, precision: bf16, model: {parameters: 13B}", None),
        ("L4:2", "method: inference, precision: bf16, model: {parameters: 30B}", Severity.WARNING),
        ("L4:2", "model: {parameters: 3.1B}", Severity.WARNING),  # may be spread over both
        ("L4:2", "strategy: ddp, model: {parameters: 3.1B}", Severity.ERROR),
        ("L4", "batch_size: 4", None),
        ("none", "model: {parameters: 70B}", None),
        ("mps", "model: {parameters: 70B}", None),
    ],
)
def test_an_error_only_where_it_cannot_fit(
    ask: Ask, gpu: str, training: str, severity: Severity | None
) -> None:
    found = ask(spec(gpu, training)).of("MEM001")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_the_largest_lever_and_a_card_are_named_with_numbers(ask: Ask) -> None:
    found = ask(spec("T4", "precision: fp16, model: {parameters: 1.1B}")).one("MEM001")
    assert (
        "training takes about 19.4 GiB on each GPU (weights 6.1 GiB, gradients 4.1 GiB, "
        "optimizer 8.2 GiB" in found.message
    )
    assert found.help.startswith(
        "set `optimizer: adamw_bnb_8bit`, which reduces the memory needed on each GPU from 19.4 "
        "GiB to 13.2 GiB; set `method: qlora`"
    )
    assert "hidden_size" in found.why


def test_inference_is_called_so_and_its_ways_out_are_named(ask: Ask) -> None:
    found = ask(
        spec("A100-80GB:2", "method: inference, precision: bf16, model: {parameters: 100B}")
    ).one("MEM001")
    assert found.message.startswith("inference takes about")
    assert "Assumed: the model is distributed over 2 GPUs" in found.why
    assert "quantized to 4 bits" in found.help
    assert "gpu: A100-80GB:4" in found.help


@pytest.mark.parametrize(
    "training",
    [
        "method: inference, precision: bf16, model: {parameters: 400B}",
        "method: qlora, model: {parameters: 400B}",
    ],
)
def test_no_way_out_begins_with_or(ask: Ask, training: str) -> None:
    assert not ask(spec("B200", training)).one("MEM001").help.startswith("or ")


@pytest.mark.parametrize("package", ["autoawq", "auto-gptq", "bitsandbytes", "gptqmodel"])
def test_what_may_be_quantized_is_a_note(ask: Ask, package: str) -> None:
    text = spec("L4", "method: inference, precision: bf16, model: {parameters: 30B}")
    assert ask(text).one("MEM001").severity is Severity.WARNING
    assert (
        ask(text.replace("[torch]", f"[torch, {package}]")).one("MEM001").severity is Severity.INFO
    )
    assert (
        ask(text.replace("[torch]", f"[torch, {package}]").replace("30B", "400B"))
        .one("MEM001")
        .severity
        is Severity.WARNING
    )


def test_sharding_is_named_where_there_are_several_cards(ask: Ask) -> None:
    assert (
        "`strategy: fsdp`, which reduces the memory needed on each GPU from 118.3 GiB to 15.6 GiB"
        in ask(spec("A100-80GB:8", "precision: bf16, model: {parameters: 7B}")).one("MEM001").help
    )


def test_a_lever_that_is_not_enough_is_said_to_be(ask: Ask) -> None:
    assert "still too much" in ask(spec("T4", "model: {parameters: 70B}")).one("MEM001").help


def test_several_levers_together_are_named_where_one_is_not_enough(ask: Ask) -> None:
    shape = (
        "batch_size: 8, sequence_length: 2048, model: {parameters: 7B, hidden_size: 4096, "
        "layers: 32}"
    )
    found = ask(spec("L4", f"precision: bf16, {shape}")).one("MEM001")
    assert found.help.startswith(
        "set `method: qlora`, which reduces the memory needed on each GPU from 186.3 GiB to 72.7 "
        "GiB, and `gradient_checkpointing: true`, which reduces it to 10.8 GiB"
    )
    fitting = ask(
        spec("L4", f"precision: bf16, method: qlora, gradient_checkpointing: true, {shape}")
    )
    assert "MEM001" not in fitting.ids


def test_vllm_alone_does_not_make_the_weights_quantized(ask: Ask) -> None:
    text = spec("A100-80GB", "method: inference, precision: bf16, model: {parameters: 70B}")
    text = text.replace("[torch]", '["vllm<0.20"]')
    assert ask(text).one("MEM001").severity is Severity.WARNING


def test_a_larger_card_is_one_of_the_place(ask: Ask) -> None:
    text = COLAB.format(top="training: {precision: fp16, model: {parameters: 1.1B}}\n", more="")
    assert ask(text).one("MEM001").help.endswith("or use `gpu: L4` with 24 GiB")


def test_what_cannot_be_done_without_is_less_than_the_estimate(facts: Facts) -> None:
    for method in ("full", "lora", "qlora", "inference"):
        for strategy in ("none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"):
            work = Workload(
                10**9, method=method, strategy=strategy, devices=2, hidden_size=2048, layers=24
            )  # type: ignore[arg-type]
            assert minimum_memory(work, facts) <= estimate_memory(work, facts).total
    assert minimum_memory(Workload(10**9), facts) == 8 * 10**9


@pytest.mark.parametrize(
    ("ram", "found"), [("12GiB", False), ("13.3GiB", False), ("13.4GiB", True)]
)
def test_ram_allows_what_the_verification_allows(ask: Ask, ram: str, found: bool) -> None:
    """The machine has 12.7 GiB; 95 % of what is required is enough."""
    assert ("MEM003" in ask(COLAB.format(top=f"requires: {{ram: {ram}}}\n", more="")).ids) is found


def test_a_shape_with_more_ram_is_offered(ask: Ask) -> None:
    judged = ask(COLAB.format(top="requires: {ram: 40GiB}\n", more=""))
    fix = judged.one("MEM003").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert "shape: high" in text
    assert "MEM003" not in ask(text).ids
    assert (
        ask(COLAB.format(top="requires: {ram: 60GiB}\n", more=", shape: high")).one("MEM003").fix
        is None
    )


def test_a_machine_type_with_more_ram_is_offered(ask: Ask) -> None:
    judged = ask(example_spec("gpu: L4\nrequires: {ram: 100GiB}\n"))
    finding = judged.one("MEM003")
    assert "set `machine_type: g2-standard-32`, which has 128 GiB" in finding.help
    assert finding.fix is not None
    (text,) = judged.source.apply_fixes([finding.fix]).values()
    assert "MEM003" not in ask(text).ids


def test_the_requirement_of_a_target_counts_there(ask: Ask) -> None:
    text = example_spec("gpu: L4\nrequires: {ram: 100GiB}\n", requires="{ram: 16GiB}")
    assert "MEM003" not in ask(text).ids
    assert ask(example_spec("gpu: L4\n", requires="{shm: 20GiB}")).one("MEM005").where.route == (
        "targets",
        "wb",
        "requires",
        "shm",
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("save_total_limit: 3", False),  # 4 x 12 GB for each billion, 2 billion: 96 + 4 = 100
        ("save_total_limit: 4", True),
        ("save_total_limit: 9, save_strategy: 'no'", False),
        ("save_total_limit: 9, save_only_model: true", False),
        ("save_total_limit: 9, max_steps: 1000, save_steps: 250", False),
        ("save_total_limit: many", False),
        ("max_steps: 1000, save_steps: 200", True),
        ("max_steps: 1000, save_steps: 0.2", False),
    ],
)
def test_checkpoints_are_counted(ask: Ask, arguments: str, found: bool) -> None:
    training = (
        f"training: {{framework: hf-trainer, precision: bf16, model: {{parameters: 2B}}, "
        f"arguments: {{{arguments}}}}}\n"
    )
    assert (
        "MEM007" in ask(example_spec(f"gpu: A100-80GB\n{training}", machine_type="auto")).ids
    ) is found


def test_the_way_out_of_checkpoints_is_one(ask: Ask) -> None:
    training = (
        "training: {framework: hf-trainer, precision: bf16, model: {parameters: 2B}, "
        "arguments: {save_total_limit: 9}}\n"
    )
    text = example_spec(f"gpu: A100-80GB\n{training}", machine_type="auto")
    assert "save_total_limit: 3`," in ask(text).one("MEM007").help
    assert "MEM007" not in ask(text.replace("limit: 9", "limit: 3")).ids


def test_adapters_have_small_checkpoints(ask: Ask) -> None:
    model = "model: {parameters: 8B, hidden_size: 4096, layers: 32}"
    training = (
        f"training: {{framework: hf-trainer, precision: bf16, method: qlora, {model}, "
        f"arguments: {{save_total_limit: 50}}}}\n"
    )
    assert "MEM007" not in ask(example_spec(f"gpu: L4\n{training}")).ids


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("strategy: ddp", True),  # 2 x 4.1 billion x 2 bytes, the machine has 15 GiB
        ("strategy: fsdp", True),
        ("strategy: fsdp, arguments: {fsdp_config: {cpu_ram_efficient_loading: true}}", False),
        ("strategy: deepspeed-zero3", False),
        ("strategy: none", False),
    ],
)
def test_each_process_loads_the_weights(ask: Ask, more: str, found: bool) -> None:
    training = f"training: {{precision: fp16, method: lora, {more}, model: {{parameters: 4.1B}}}}\n"
    assert (
        "MEM004" in ask(example_spec(f"gpu: T4:2\n{training}", machine_type="n1-standard-4")).ids
    ) is found


def test_machines_that_are_not_known_are_not_judged(ask: Ask) -> None:
    top = (
        "gpu: L4\nrequires: {ram: 900GiB, shm: 900GiB}\ntraining: {method: lora, model: "
        "{parameters: 9B}}\n"
    )
    assert not {"MEM003", "MEM004", "MEM005"} & set(
        ask(example_spec(top, machine_type="z9-standard-4")).ids
    )


def test_a_place_that_takes_part_is_one_that_was_written(ask: Ask) -> None:
    """What has its default stands nowhere: the name of the target is shown, and of a field at the
    top nothing.
    """
    top = "gpu: L4\nrequires: {ram: 900GiB, disk: 900GB}\n"
    bare, whole = (
        ask(example_spec(top, machine_type=None)),
        ask(example_spec(top, data_disk="{size: 100GB}")),
    )
    assert [bare.at(bare.one(identity).related[0]) for identity in ("MEM003", "MEM006")] == [
        "wb",
        "wb",
    ]  # type: ignore[arg-type]
    assert [whole.at(whole.one(identity).related[0]) for identity in ("MEM003", "MEM006")] == [
        "g2-standard-8",
        "{size: 100GB}",
    ]  # type: ignore[arg-type]
    assert ask(example_spec(idle_shutdown="30m")).one("GCP010").related == ()
    written = ask(example_spec("gpu: L4\nverify: {timeout: 9h}\n"))
    assert written.at(written.one("GCP010").related[0]) == "9h"  # type: ignore[arg-type]
