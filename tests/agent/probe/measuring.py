"""Runs inside an environment with torch, on its CPU: what the measuring rooms of the probe make of
devices that are whole and of ones that are not.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def facts(scratch: Path) -> dict[str, Any]:
    import torch
    from provision_probe.probe.observing import (
        capabilities,
        cards,
        device,
        memory_test,
        numerics,
        speed,
        tensors,
        torch_compile,
    )
    from provision_probe.probe.proofs import allreduce

    torch.set_num_threads(1)
    places = [cards.ComputeDevice("cpu", index, name) for index, name in enumerate("abc")]
    blocks = memory_test.allocate_blocks("cpu", 5 * 4096 + 100, 4096)
    memory_test.fill_blocks(blocks, memory_test.PATTERNS[1])
    blocks[3].view(torch.uint8)[17] ^= 1
    planted = memory_test.count_differing_words(blocks, memory_test.PATTERNS[1])
    memory_test.write_addresses(blocks)
    blocks[2][5] = blocks[2][6]
    displaced = memory_test.count_misplaced_words(blocks)
    copied: list[int] = []
    formats = {
        name: speed.random_operands(name, "cpu", 64) for name in ("fp32", "tf32", "bf16", "fp8")
    }
    burnt = device.run_burn_in("fp32", "cpu", 32, 0.2)
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return {
        "held": [len(blocks), int(sum(block.numel() * block.element_size() for block in blocks))],
        "refused": len(memory_test.allocate_blocks("cpu", 1 << 62, 1 << 61)),
        "sound": memory_test.count_wrong_words(blocks),
        "planted": planted,
        "displaced": displaced,
        "aliased": memory_test.count_wrong_words([blocks[0], blocks[1], blocks[0]]),
        "zeros": {
            name: [float((one.float() == 0).float().mean()) for one in pair]
            for name, pair in formats.items()
        },
        "random_bytes": len(set(speed.random_bytes(100_000, "cpu").tolist())),
        "rounds": [len(speed.measure_times(lambda: copied.append(1), "cpu", 3, 10)), len(copied)],
        "copied": speed.copied_gb_s("cpu", 1 << 20),
        "moved": speed.moved_gb_s("cpu", 1 << 20),
        "pageable": speed.moved_gb_s("cpu", 1 << 20, False),
        "flop": speed.flop_count(8192),
        "tflops": speed.tflops_of(1000, [3.0, 0.002, 0.001]),
        "products": {
            name: speed.multiplied_tflops(name, "cpu", 64)
            for name in ("fp32", "tf32", "bf16", "fp8")
        },
        "product_right": float(
            (speed.make_product("fp32", "cpu", 64)() - formats["fp32"][0] @ formats["fp32"][1])
            .abs()
            .max()
        ),
        "flags_after": dict(capabilities.changed_flags()),
        "burnt": burnt,
        "at_once": _at_once(cards),
        "worst_card": [
            cards.readings_of_worst(
                places, [{"a": 1.0}, {"a": number}, {"a": 3.0}], lambda one: one["a"]
            )
            for number in (0.5, float("nan"))
        ],
        "differs": [
            device.differs(torch.tensor([0.0, 1.0]), torch.tensor(other))
            for other in ([0.0, 1.0], [0.0, 1.0 + 2**-23], [0.0, float("nan")])
        ],
        "capabilities": {
            "T4": capabilities.native_formats((7, 5), False),
            "A100": capabilities.native_formats((8, 0), True),
            "L4": capabilities.native_formats((8, 9), True),
        },
        "cudnn": [
            capabilities.format_cudnn_version(92000),
            capabilities.format_cudnn_version(8907),
            capabilities.format_cudnn_version(None),
        ],
        "attention": {
            name: capabilities.attention_errors(kind, "cpu") for name, kind in kinds.items()
        },
        "convolution": numerics.convolution_error("cpu"),
        "large": [
            numerics.product_errors(
                "fp32", torch.float32, [cards.CPU], (256, 512, 256), every, str
            )[0]
            for every in (1, 64)
        ],
        "one_element": _with_one_wrong(numerics, capabilities),
        "one_bit": numerics.product_errors(
            "bf16",
            torch.bfloat16,
            [cards.ComputeDevice("cpu", current=_one_wrong_bit)],
            (512, 1024, 512),
            1,
            str,
        )[0],
        "long_sums": _flags_of_sums(numerics),
        "fp8": numerics.fp8_error("cpu"),
        "unfinite": [
            numerics.count_non_finite(
                [
                    *numerics.compute_into_nan_memory(kind, "cpu"),
                    *numerics.compute_gradients(kind, "cpu"),
                ]
            )
            for kind in kinds.values()
        ],
        "nan": numerics.count_non_finite([torch.tensor([1.0, float("nan"), float("inf")])]),
        "worst": [
            tensors.worst_errors([(1.0, 2.0), (3.0, 1.0)]),
            [one != one for one in tensors.worst_errors([(1.0, 2.0), (float("nan"), 1.0)])],
        ],
        "steps": numerics.steps_error("cpu"),
        "drawn": [
            numerics.random_digest("cpu", 20),
            numerics.random_digest("cpu", 20),
            numerics.random_digest("cpu", 21),
        ],
        "settled": [
            numerics.repeatable_digest("a", "a", "b"),
            numerics.repeatable_digest("a", "c", "b"),
            numerics.repeatable_digest("a", "a", "a"),
        ],
        "tools": [
            torch_compile.find_compiler(("g++",), "/nowhere", "/nowhere"),
            torch_compile.find_compiler(("g++", sys.executable), "/nowhere", "/nowhere"),
        ],
        "alone": [allreduce.run_alone("gloo", scratch), allreduce.run_alone("gloo", scratch)],
        "bus": allreduce.bus_gb_s(1 << 30, 0.01, 8),
    }


def _at_once(cards: Any) -> list[Any]:
    told: list[str] = []

    def measure(card: Any) -> int:
        time.sleep(0.5 if card.index == 1 else 0)
        return int(card.index)

    places = [cards.ComputeDevice("cpu", index, cards.card_label(index, "")) for index in range(3)]
    return [
        cards.measure_all_cards(places, measure, told.append),
        told[0],
        told[-2:],
        cards.measure_all_cards(places[:1], measure, told.append),
    ]


def _with_one_wrong(numerics: Any, capabilities: Any) -> list[float]:
    import torch

    truth = torch.randn(256, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wrong = truth.float()
    wrong[7, 9] += 1
    return list(numerics.relative_errors(wrong, truth))  # noqa: F821, RUF100


def _one_wrong_bit() -> Any:
    """A card whose products in bf16 have one wrong bit in one element."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Card(TorchFunctionMode):
        def __torch_function__(
            self,
            function: Any,
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            if function is torch.mm:
                result.view(torch.int16)[7, 9] ^= 1 << 5
            return result

    return Card()


def _flags_of_sums(numerics: Any) -> list[Any]:
    """The flags before, during and after N01's products, and after an error, of a torch in which a
    program has set them in its own way.
    """
    import torch

    matmul = torch.backends.cuda.matmul
    names = [
        f"allow_{kind}_reduced_precision_reduction{more}"
        for kind in ("fp16", "bf16")
        for more in ("", "_split_k")
    ]

    def now() -> list[Any]:
        return [getattr(matmul, name, None) for name in names]

    matmul.allow_fp16_reduced_precision_reduction = (
        (False, False) if hasattr(matmul, names[1]) else False
    )
    told = [now()]
    with numerics.full_precision_sums():
        told.append(now())
    told.append(now())
    try:
        with numerics.full_precision_sums():
            raise RuntimeError("a card that is lost")
    except RuntimeError:
        told.append(now())
    matmul.allow_fp16_reduced_precision_reduction = True
    return told


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    print("\n" + json.dumps(facts(Path(sys.argv[2]))))
