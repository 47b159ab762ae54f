"""Cases of judging as data, and those of torch, numbers, cards, collectives and torch.compile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from provision.agent.probe.observing.loaders import EXPECTED_SUM

GIB = 1024**3


@dataclass(frozen=True)
class Row:
    """What a judge is given, and what it has to say."""

    id: str
    status: str
    seen: dict[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)
    says: str = ""


CPU: dict[str, Any] = {"packages": [{"name": "torch", "version": "2.13.0+cpu"}]}
CARD = {
    "memory_bytes": 24 * GIB,
    "bandwidth_gb_s": 300,
    "tflops": {"fp16": 121, "bf16": 121, "tf32": 60, "fp8": 242},
    "source": "the vendor's sheet",
}
L4: dict[str, Any] = {**CPU, "gpu": {"type": "L4", "count": 1}, "card": CARD}
UNKNOWN = {**L4, "card": None}
H200_CARD = {
    **CARD,
    "bandwidth_gb_s": 4800,
    "tflops": {"bf16": 989, "fp16": 989, "tf32": 494.5, "fp8": 1979},
}
H200: dict[str, Any] = {**CPU, "gpu": {"type": "H200", "count": 1}, "card": H200_CARD}
EIGHT = {**H200, "gpu": {"type": "H200", "count": 8}, "tier": "deep"}
MPS = {**CPU, "gpu": {"type": "mps", "count": 1}}
LOCKED = {
    **L4,
    "packages": [
        {"name": "torch", "version": "2.13.0"},
        {"name": "nvidia-cudnn-cu13", "version": "9.20.0.48"},
        {"name": "triton", "version": "3.6.0"},
    ],
}
COMPILED = {**CPU, "training__method": "full", "training__model": None, "training__batch_size": None, "training__sequence_length": None,
            "training__torch_compile": True, "training__strategy": "none", "training__launcher": "auto"}  # fmt: skip
WORKERS = {**CPU, "training__dataloader_workers": 2}
TEXTS = {
    **COMPILED,
    "training__dataloader_workers": 2,
    "training__batch_size": 4,
    "training__sequence_length": 512,
}
DEEP = {**CPU, "tier": "deep"}
BURN = {**H200, "tier": "burn"}
MEMORY = {
    "memory.total_bytes": 24 * GIB,
    "memory.free_bytes": 23.5 * GIB,
    "memory.wanted_bytes": 21 * GIB,
    "memory.held_bytes": 21 * GIB,
    "memory.wrong_words": 0,
}
NO_MEMORY = {"memory.total_bytes": None}
MATH = {"math": [1.6e-3, 1e-2]}
CUDA = {
    "numerics.device": "cuda",
    "numerics.conv_error": [3e-4, 1e-3],
    "numerics.conv_plain_error": [3e-7, 3e-6],
}
PRODUCTS = {"numerics.fp32_error": 3e-7, "numerics.fp32_outside": 0, "numerics.bf16_error": 1.7e-3, "numerics.bf16_outside": 0,
            "numerics.fp16_error": 2.1e-4, "numerics.fp16_outside": 0, "numerics.device": "cuda",
            "numerics.fp32_large_error": 3e-7, "numerics.fp32_large_outside": 0, "numerics.bf16_large_error": 1.7e-3, "numerics.bf16_large_outside": 0,
            "numerics.fp16_large_error": 2.1e-4, "numerics.fp16_large_outside": 0}  # fmt: skip
ADDED = ["added up"] * 8
SUMS = {"several.sums_wrong": 0, "several.sums_ranks": 8, "several.sums_exit": 0, "several.sums_wrong_ranks": [],
        "several.sums_steps": ADDED, "_several.sums_tail": "NCCL WARN no peer"}  # fmt: skip
NAMELESS = "socket.gaierror: [Errno -2] Name or service not known"
HUNG = {
    **SUMS,
    "several.sums_exit": None,
    "several.sums_ranks": 0,
    "several.sums_steps": ["reached its card"] * 8,
}
BUS = {"several.bandwidth_wrong": 0, "several.bandwidth_ranks": 8, "several.bandwidth_exit": 0, "several.bandwidth_steps": ADDED, "several.bus_gb_s": 425.0,
       "gpu.name": "NVIDIA H200"}  # fmt: skip
BUS_HUNG = {
    **BUS,
    "several.bus_gb_s": None,
    "several.bandwidth_exit": None,
    "several.bandwidth_ranks": 0,
}
BURNT = {
    "burn.other_results": 0,
    "burn.first_tflops": 788.0,
    "burn.last_tflops": 780.0,
    "burn.reasons": 0x4,
    "burn.temperature_c": 71,
    "burn.power_w": 698.4,
}


def product(speed: Any, name: str = "NVIDIA H200", form: str = "bf16") -> dict[str, Any]:
    return {"speed.format": form, "speed.product_tflops": speed, "gpu.name": name}


def moved(there: Any, back: Any, link: float | None = 63.0) -> dict[str, Any]:
    return {"speed.to_card_gb_s": there, "speed.from_card_gb_s": back, "link.gb_s": link}


EIGHT_NAMES = [f"cuda:{index} (PCI 0000:{0x1A + 0x11 * index:02x}:00.0)" for index in range(8)]
SIXTH = "cuda:5 (PCI 0000:6f:00.0)"


def eight(usual: dict[str, Any], **sixth: dict[str, Any]) -> dict[str, Any]:
    """What eight cards give that are alike but for some; `c5=` is what the card of that number
    gives otherwise. The worst stands under the keys themselves.
    """
    cards = [{**usual, **sixth.get(f"c{index}", {})} for index in range(8)]
    worst = next(({**usual, **other} for other in sixth.values()), usual)
    return {
        **worst,
        "cards.names": EIGHT_NAMES,
        **{f"cards.{key}": [card[key] for card in cards] for key in usual},
    }


FULL = {
    "memory.total_bytes": 141 * GIB,
    "memory.free_bytes": 140 * GIB,
    "memory.wanted_bytes": 126 * GIB,
    "memory.held_bytes": 126 * GIB,
}
ERRORS = {key: value for key, value in PRODUCTS.items() if key != "numerics.device"}
MOVED = moved(52.0, 50.0)
FP8 = {"speed.others_tflops": {"fp8": 1450.0}}


def copied(usual: float, **sixth: Any) -> dict[str, Any]:
    return eight(
        {"speed.copy_gb_s": usual},
        **{card: {"speed.copy_gb_s": speed} for card, speed in sixth.items()},
    )


def multiplied(usual: float, **sixth: float) -> dict[str, Any]:
    return {
        **product(usual),
        **eight(
            {"speed.product_tflops": usual},
            **{card: {"speed.product_tflops": speed} for card, speed in sixth.items()},
        ),
    }


SIX_GB = {
    "memory.total_bytes": 5.67 * GIB,
    "memory.free_bytes": 5.5 * GIB,
    "memory.held_bytes": 4 * GIB,
    "memory.wrong_words": 0,
}
OF_SEVERAL_CARDS = [
    Row("M02", "skip", SIX_GB, EIGHT, ("only 4 GiB of 5.67 GiB was tested, less than 75% (5.5 GiB was free; the test uses "
        "whole GiB")),
    Row("N01", "pass", {"numerics.device": "cuda", **eight(ERRORS)}, EIGHT, "agree with float64; the same on all 8 cards"),
    Row("N01", "fail", {"numerics.device": "cuda", **eight(ERRORS, c5={"numerics.fp32_outside": 3})}, EIGHT, f"on {SIXTH}, 1 of 8 cards: fp32 matrix products are"),
    Row("N01", "fail", {"numerics.device": "cuda", **eight(ERRORS, c5={"numerics.bf16_large_error": "nan"})}, EIGHT, f"on {SIXTH}, 1 of 8 cards: bf16"),
    Row("N06", "pass", eight({"numerics.repeats": True}), EIGHT, "the same on all 8 cards"),
    Row("N06", "fail", eight({"numerics.repeats": True}, c5={"numerics.repeats": False}), EIGHT, f"on {SIXTH}, 1 of 8 cards: two computations of the same matrix product"),
    Row("M01", "pass", eight(FULL), EIGHT, "the same on all 8 cards"),
    Row("M01", "fail", eight(FULL, c5={"memory.held_bytes": 100 * GIB}), EIGHT, f"on {SIXTH}, 1 of 8 cards: only 100 GiB of 126 GiB"),
    Row("M01", "warn", eight(FULL, c5={"memory.free_bytes": 100 * GIB}), EIGHT, f"on {SIXTH}, 1 of 8 cards: only 100 GiB of 141 GiB is free"),
    Row("M02", "pass", eight({**FULL, "memory.wrong_words": 0}), EIGHT, "the same on all 8 cards"),
    Row("M02", "fail", eight({**FULL, "memory.wrong_words": 0}, c5={"memory.wrong_words": 7}), EIGHT, f"on {SIXTH}, 1 of 8 cards: 7 words"),
    Row("M02", "skip", eight({**FULL, "memory.wrong_words": 0}, c5={"memory.held_bytes": GIB}), EIGHT, f"on {SIXTH}, 1 of 8 cards: only 1 GiB of 141 GiB"),
    Row("M02", "fail", eight({**FULL, "memory.wrong_words": 0}, c5={"memory.held_bytes": GIB}, c6={"memory.wrong_words": 1}), EIGHT, "on cuda:6"),
    Row("B01", "pass", copied(4300.0, c5=4250.0), EIGHT, f"4250 GB/s, 89% of 4800 GB/s; lowest of 8 cards: {SIXTH}"),
    Row("B01", "fail", copied(4300.0, c5=2600.0), EIGHT, f"on {SIXTH}, 1 of 8 cards: copies on the card: 2600 GB/s, 54%"),
    Row("B01", "fail", copied(4300.0, c5="inf"), EIGHT, f"on {SIXTH}, 1 of 8 cards: copies on the card: inf"),
    Row("B01", "warn", copied(4500.0, c5=4000.0), EIGHT, f"on {SIXTH}, 1 of 8 cards: 4000 GB/s; the fastest card reaches 4500 GB/s"),
    Row("B01", "warn", copied(300.0, c5=200.0), {**EIGHT, "card": None}, "the fastest card reaches 300 GB/s"),
    Row("B02", "pass", eight(MOVED, c5={"link.gb_s": None}), EIGHT, "lowest of 8 cards"),
    Row("B02", "fail", eight(MOVED, c5=moved(52.0, 20.0)), EIGHT, f"on {SIXTH}, 1 of 8 cards: pinned copies from the card: 20 GB/s"),
    Row("F01", "pass", multiplied(788.0), EIGHT, "80% of 989 TFLOP/s; the same on all 8 cards"),
    Row("F01", "fail", multiplied(788.0, c5=450.0), EIGHT, f"on {SIXTH}, 1 of 8 cards: bf16 products: 450 TFLOP/s"),
    Row("F01", "fail", multiplied(788.0, c5=450.0, c7=1.0), EIGHT, f"on {SIXTH} and cuda:7 (PCI 0000:91:00.0), 2 of 8 cards"),
    Row("F01", "fail", multiplied(1.0), EIGHT, "and 5 more, 8 of 8 cards"),
    Row("F01", "warn", multiplied(788.0, c5=700.0), EIGHT, f"on {SIXTH}, 1 of 8 cards: 700 TFLOP/s; the fastest card reaches 788 TFLOP/s"),
    Row("F02", "warn", eight(FP8, c5={"speed.others_tflops": {"fp8": 900.0}}), EIGHT, f"on {SIXTH}, 1 of 8 cards: TFLOP/s: fp8 900"),
    Row("F03", "fail", eight(BURNT, c5={"burn.last_tflops": 700.0}), {**EIGHT, "tier": "burn"}, f"on {SIXTH}, 1 of 8 cards: the speed changed from 788 to 700"),
    Row("F03", "fail", eight(BURNT, c5={"burn.reasons": 0x4C}), {**EIGHT, "tier": "burn"}, f"on {SIXTH}, 1 of 8 cards"),
    Row("F03", "pass", eight(BURNT), {**EIGHT, "tier": "burn"}, "the same on all 8 cards"),
]  # fmt: skip
OF_DEVICES = [
    *OF_SEVERAL_CARDS,
    Row("T04", "pass", {"torch.libraries": {"cudnn": "9.20.0", "triton": "3.6.0", "nccl": "2.29.7"}}, LOCKED, "cudnn 9.20.0, triton 3.6.0"),
    Row("T04", "fail", {"torch.libraries": {"cudnn": "9.1.0", "triton": "3.6.0"}}, LOCKED, "cudnn 9.1.0, locked 9.20.0.48"),
    Row("T04", "fail", {"torch.libraries": {"cudnn": "9.20.0"}}, LOCKED, "triton is not found"),
    Row("T04", "skip", {"torch.libraries": {}}, L4),
    Row("T05", "pass", {"gpu.formats": ["fp16", "bf16", "tf32", "fp8"]}, {**L4, "training__precision": "bf16"}),
    Row("T05", "pass", {"gpu.formats": ["fp16"]}, L4),
    Row("T05", "fail", {"gpu.formats": ["fp16"]}, {**L4, "training__precision": "bf16"}, "the card does not support bf16, only fp32, fp16"),
    Row("T05", "fail", {"gpu.formats": ["fp16", "bf16", "tf32"]}, {**L4, "training__precision": "fp8"}, "does not support fp8"),
    Row("T05", "unknown", {"gpu.formats": None}, L4),
    Row("T05", "skip", {"gpu.formats": None}, MPS),
    Row("T06", "pass", {"torch.flags": {}}, CPU),
    Row("T06", "pass", {"torch.flags": {"cuda.matmul.fp32_precision": "tf32"}}, {**L4, "training__precision": "tf32"}),
    Row("T06", "warn", {"torch.flags": {"cuda.matmul.fp32_precision": "tf32"}}, L4, "starts with cuda.matmul.fp32_precision = tf32"),
    Row("T06", "warn", {"torch.flags": {"cudnn.benchmark": True}}, {**L4, "training__precision": "tf32"}, "cudnn.benchmark = True"),
    Row("T07", "pass", {"attention.errors": {**MATH, "flash": [1.9e-3, 1e-2]}}, CPU, "usable attention backends: flash, math"),
    Row("T07", "fail", {"attention.errors": {}}, CPU, "math backend"),
    Row("T07", "warn", {"attention.errors": MATH}, L4, "no fast attention"),
    Row("N04", "pass", {"attention.errors": {**MATH, "flash": [1.9e-3, 1e-2]}}, CPU),
    Row("N04", "fail", {"attention.errors": {**MATH, "flash": [6e-3, 1e-2]}}, CPU, "the flash backend returns wrong results"),
    Row("N04", "fail", {"attention.errors": {**MATH, "flash": [1.9e-3, 0.2]}}, CPU, "the flash backend returns wrong results"),
    Row("N04", "fail", {"attention.errors": {**MATH, "cudnn": ["nan", "nan"]}}, CPU, "the cudnn backend returns wrong results"),
    Row("N04", "fail", {"attention.errors": {"math": ["nan", "nan"]}}, CPU, "the math backend returns wrong results"),
    Row("N04", "unknown", {"attention.errors": {}}, CPU),
    Row("N01", "pass", PRODUCTS, L4, "fp32, bf16, fp16 matrix products"),
    Row("N01", "fail", {**PRODUCTS, "numerics.fp16_error": 6e-4}, L4, "fp16 matrix products are wrong"),
    Row("N01", "fail", {**PRODUCTS, "numerics.fp16_outside": 1}, L4, "tolerances: 1"),
    Row("N01", "fail", {**PRODUCTS, "numerics.bf16_large_error": 5e-3}, L4, "bf16 matrix products of size 4096 x 4096 are wrong"),
    Row("N01", "fail", {**PRODUCTS, "numerics.fp32_large_outside": 1}, L4, "fp32 matrix products of size 4096 x 4096 are wrong"),
    Row("N01", "fail", {**PRODUCTS, "numerics.fp16_large_error": "nan"}, L4, "fp16 matrix products of size 4096 x 4096"),
    Row("N02", "fail", {"numerics.fp32_signature": 2.9e-4}, CPU, "typical of tf32"),
    Row("N02", "fail", {"numerics.fp32_signature": 2.9e-3}, CPU, "typical of bf16"),
    Row("N03", "pass", {"numerics.device": "cpu", "numerics.conv_error": [4e-7, 3e-6]}, CPU),
    Row("N03", "fail", {"numerics.device": "cpu", "numerics.conv_error": [3e-4, 3e-6]}, CPU, "convolutions give wrong results"),
    Row("N03", "fail", {"numerics.device": "cpu", "numerics.conv_error": [4e-7, 1.0]}, CPU, "largest element error 1.0"),
    Row("N03", "pass", CUDA, L4),
    Row("N03", "fail", {**CUDA, "numerics.conv_error": [6e-4, 1e-3]}, L4, "(limit 0.0005)"),
    Row("N03", "fail", {**CUDA, "numerics.conv_plain_error": [3e-4, 1e-3]}, L4, "without cuDNN"),
    Row("N03", "pass", {**CUDA, "numerics.conv_plain_error": [3e-4, 1e-3]}, {**L4, "training__precision": "tf32"}),
    Row("N05", "pass", {"numerics.fp8_error": [1.65e-3, 9e-3]}, L4),
    Row("N05", "warn", {"numerics.fp8_error": [1.65e-3, 0.1]}, L4, "largest element error 0.1"),
    Row("N05", "fail", {"numerics.fp8_error": [6e-3, 9e-3]}, {**L4, "training__precision": "fp8"}, "fp8 matrix products are wrong"),
    Row("N05", "warn", {"numerics.fp8_error": None, "numerics.fp8_refused": "TypeError: scaled_mm"}, L4, "TypeError: scaled_mm"),
    Row("N05", "fail", {"numerics.fp8_error": None, "numerics.fp8_refused": "no"}, {**L4, "training__precision": "fp8"}, "no fp8 matrix product"),
    Row("N05", "skip", {"numerics.fp8_error": None}, L4),
    Row("N07", "pass", {"numerics.unfinite": 0}, CPU),
    Row("N07", "fail", {"numerics.unfinite": 3}, CPU, "3 values"),
    Row("N08", "pass", {"rng.cpu_sha": "96ab", "rng.cuda_sha": "11ff"}, CPU),
    Row("N08", "fail", {"rng.cpu_sha": "96ab", "rng.cuda_sha": None}, CPU, "the same seed"),
    Row("N09", "pass", {"numerics.steps_error": 7e-8}, DEEP),
    Row("N09", "fail", {"numerics.steps_error": 4e-6}, DEEP, "wrong: relative error 4e-06"),
    Row("N09", "fail", {"numerics.steps_error": "nan"}, DEEP),
    Row("M01", "pass", MEMORY, L4, "21 GiB of 24 GiB can be allocated"),
    Row("M01", "fail", {**MEMORY, "memory.held_bytes": 20 * GIB}, L4, "only 20 GiB of 21 GiB"),
    Row("M01", "warn", {**MEMORY, "memory.free_bytes": 20 * GIB}, L4, "20 GiB of 24 GiB is free"),
    Row("M01", "unknown", NO_MEMORY, L4),
    Row("M01", "skip", NO_MEMORY, MPS),
    Row("M02", "pass", MEMORY, L4),
    Row("M02", "fail", {**MEMORY, "memory.wrong_words": 1}, L4, "1 word of the card's memory changed after"),
    Row("M02", "fail", {**MEMORY, "memory.wrong_words": 1, "memory.held_bytes": GIB}, L4, "1 word of the card's memory changed after"),
    Row("M02", "skip", {**MEMORY, "memory.held_bytes": 17 * GIB}, L4, "only 17 GiB of 24 GiB"),
    Row("M02", "skip", {**MEMORY, "memory.held_bytes": 0, "memory.wrong_words": None}, L4),
    Row("M02", "unknown", NO_MEMORY, L4),
    Row("B01", "pass", {"speed.copy_gb_s": 4300.0}, H200, "90% of 4800 GB/s"),
    Row("B01", "warn", {"speed.copy_gb_s": 3500.0}, H200, "73% of 4800 GB/s"),
    Row("B01", "fail", {"speed.copy_gb_s": 2600.0}, H200, "54% of 4800 GB/s"),
    Row("B01", "pass", {"speed.copy_gb_s": 2.6}, UNKNOWN, "no reference to compare with"),
    Row("B01", "fail", {"speed.copy_gb_s": "inf"}, H200, "is not a valid speed"),
    Row("B01", "unknown", {"speed.copy_gb_s": None}, H200),
    Row("B02", "pass", moved(52.0, 50.0), H200, "from the card: 50 GB/s, 79% of 63 GB/s"),
    Row("B02", "warn", moved(40.0, 50.0), H200, "to the card: 40 GB/s"),
    Row("B02", "fail", moved(52.0, 20.0), H200, "from the card: 20 GB/s"),
    Row("B02", "pass", moved(12.0, 13.0, None), H200, "no reference"),
    Row("B02", "unknown", moved(None, None, None), H200),
    Row("F01", "pass", product(788.0), H200, "bf16 products: 788 TFLOP/s, 80% of 989 TFLOP/s"),
    Row("F01", "warn", product(600.0), H200, "61% of 989 TFLOP/s"),
    Row("F01", "fail", product(450.0), H200, "46% of 989 TFLOP/s"),
    Row("F01", "warn", product(40.0, "NVIDIA L4"), L4, "33% of 121 TFLOP/s"),
    Row("F01", "pass", product(100.0, "NVIDIA L4"), L4),
    Row("F01", "warn", product(300.0, "NVIDIA H100 PCIe"), H200),
    Row("F01", "pass", product(1.0), UNKNOWN, "no reference"),
    Row("F01", "unknown", product(None), H200),
    Row("F02", "pass", {"speed.others_tflops": {"fp16": 780.0, "fp8": 1450.0}}, {**H200, "tier": "deep"}, "fp16 780, fp8 1450"),
    Row("F02", "warn", {"speed.others_tflops": {"fp16": 780.0, "fp8": 900.0}}, {**H200, "tier": "deep"}, "less than half of the peak: fp8"),
    Row("F02", "warn", {"speed.others_tflops": {"fp16": 780.0, "fp8": "inf"}}, {**H200, "tier": "deep"}, "no valid speed was measured for fp8 matrix products"),
    Row("F02", "skip", {"speed.others_tflops": {}}, {**H200, "tier": "deep"}),
    Row("F02", "unknown", {"speed.others_tflops": None}, {**H200, "tier": "deep"}),
    Row("F03", "pass", BURNT, BURN, "780 at the end; maximum 71 °C and 698 W"),
    Row("F03", "pass", {**BURNT, "burn.temperature_c": None, "burn.power_w": None}, BURN, "780 at the end"),
    Row("F03", "fail", {**BURNT, "burn.last_tflops": 700.0}, BURN, "from 788 to 700 TFLOP/s in one minute; maximum 71 °C"),
    Row("F03", "fail", {**BURNT, "burn.reasons": 0x4C}, BURN, "(NVML: hardware slowdown, hardware thermal slowdown)"),
    Row("F03", "pass", {**BURNT, "burn.reasons": None}, BURN),
    Row("F03", "fail", {**BURNT, "burn.other_results": 2}, BURN, "the same matrix product gave a different result 2 times in one minute; maximum 71 °C"),
    Row("F03", "unknown", {"burn.first_tflops": None, "burn.last_tflops": None, "burn.reasons": None}, BURN),
    Row("C01", "pass", {"several.alone_wrong": 0}, H200),
    Row("C01", "fail", {"several.alone_wrong": 9}, H200, "9 all-reduce results"),
    Row("C01", "unknown", {"several.alone_wrong": None}, H200),
    Row("C01", "skip", {"several.alone_wrong": None}, MPS),
    Row("C02", "pass", SUMS, EIGHT),
    Row("C02", "fail", {**SUMS, "several.sums_wrong": 5, "several.sums_wrong_ranks": [5]}, EIGHT, "5 all-reduce results across 8 cards are wrong (affected: cuda:5)"),
    Row("C02", "fail", {**SUMS, "several.sums_wrong": 40, "several.sums_wrong_ranks": list(range(8))}, EIGHT, "40 all-reduce results across 8 cards are wrong (affected: all cards)"),
    Row("C02", "fail", HUNG, EIGHT, "an all-reduce across 8 cards hangs: 0 of them finished. Their processes printed: NCCL WARN no peer"),
    Row("C02", "fail", {**HUNG, "several.sums_steps": [*ADDED[:5], None, *ADDED[:2]]}, EIGHT, "finished; cuda:5 never reached its card."),
    Row("C02", "fail", {**HUNG, "several.sums_steps": [ADDED[0], *HUNG["several.sums_steps"][1:]]}, EIGHT, "cuda:1, cuda:2, cuda:3 and 4 more never joined"),
    Row("C02", "fail", {**HUNG, "several.sums_steps": [None] * 8}, EIGHT, "0 of them finished; none of them reached its card."),
    Row("C02", "fail", {**SUMS, "several.sums_exit": 1, "several.sums_ranks": 7}, EIGHT, "7 of 8 cards finished (exit code 1)."),
    Row("C02", "fail", {**SUMS, "several.sums_exit": 1, "several.sums_ranks": 0, "several.sums_steps": [None] * 8, "_several.sums_tail": NAMELESS}, EIGHT,
        "0 of 8 cards finished (exit code 1); none of them reached its card. Their processes printed: socket.gaierror"),
    Row("C02", "unknown", {"several.sums_wrong": None}, EIGHT),
    Row("C03", "pass", BUS, EIGHT, "431 GB/s is typical"),
    Row("C03", "warn", {**BUS, "several.bus_gb_s": 340.0}, EIGHT, "only 340 GB/s of bus bandwidth (431 GB/s is typical)"),
    Row("C03", "pass", {**BUS, "several.bus_gb_s": 340.0, "gpu.name": "NVIDIA B200"}, EIGHT, "no reference"),
    Row("C03", "pass", {**BUS, "several.bus_gb_s": 40.0, "gpu.name": "NVIDIA H100 PCIe"}, EIGHT, "no reference"),
    Row("C03", "warn", BUS_HUNG, EIGHT, "an all-reduce across 8 cards hangs: 0 of them finished."),
    Row("C03", "warn", {**BUS, "several.bus_gb_s": None, "several.bandwidth_exit": 1, "several.bandwidth_ranks": 7}, EIGHT, "7 of 8 cards finished"),
    Row("C03", "unknown", {"several.bus_gb_s": None, "several.bandwidth_wrong": None}, EIGHT),
    Row("K01", "pass", {"compile.compiler": "g++", "compile.headers": True}, COMPILED),
    Row("K01", "fail", {"compile.compiler": None, "compile.headers": True}, COMPILED, "needs a compiler, which this machine does not have"),
    Row("K01", "fail", {"compile.compiler": "g++", "compile.headers": False}, COMPILED, "needs Python.h"),
    Row("K01", "warn", {"compile.compiler": None, "compile.headers": False}, DEEP),
    Row("K02", "pass", {"compile.error": 1e-7}, COMPILED),
    Row("K02", "fail", {"compile.error": 2e-4}, COMPILED, "has a relative error of 0.0002"),
    Row("K02", "fail", {"compile.error": "nan"}, COMPILED),
    Row("L03", "pass", {"loaders.forkserver_sum": EXPECTED_SUM}, DEEP),
    Row("L03", "fail", {"loaders.forkserver_sum": 0}, {**DEEP, **WORKERS}),
    Row("L03", "skip", {"loaders.forkserver_sum": None}, DEEP),
    Row("L04", "pass", {"loaders.large_right": True}, WORKERS, "a batch of 128 MiB"),
    Row("L04", "warn", {"loaders.large_right": False, "_loaders.large_error": "No space left"}, WORKERS, "128 MiB did not arrive from a worker"),
    Row("L04", "pass", {"loaders.large_right": True}, TEXTS, "0.1875 MiB (2 workers prefetching batches of 4 x 512 tokens) was received"),
    Row("L04", "fail", {"loaders.large_right": False, "_loaders.large_error": "No space left"}, TEXTS, "tokens) did not arrive from a worker: No space left"),
    Row("L04", "fail", {"loaders.large_right": False, "_loaders.large_error": ""}, WORKERS, "it is corrupted"),
    Row("L04", "skip", {"loaders.large_right": None}, WORKERS),
]  # fmt: skip

CODE: dict[str, Any] = {"code": {"digest": "sha256:aa"}}
TREE: dict[str, Any] = {"code.digest": "sha256:aa", "code.changed": [], "code.files": 3}
COMMAND: dict[str, Any] = {
    "command": {"argv": ["python", "train.py"], "exit": 0, "files": ["m"], "stdout": "loss"}
}
ENDED: dict[str, Any] = {
    "command.error": None,
    "command.exit": 0,
    "command.signal": None,
    "command.missing": [],
    "command.matches": True,
    "command.wall_s": 1.5,
    "command.tail": "loss 1\n",
}
OF_JOBS = [
    Row("V01", "pass", TREE, CODE, "all files (3) match the declared code"),
    Row(
        "V01",
        "fail",
        {**TREE, "code.digest": "sha256:ab", "code.changed": ["a.py"]},
        CODE,
        "these files differ from the declared code: a.py",
    ),
    Row("V01", "fail", {**TREE, "code.digest": "sha256:ab"}, CODE, "belong to different code"),
    Row("V02", "pass", ENDED, COMMAND, "the command ended with exit code 0 after 1.5 s"),
    Row(
        "V02",
        "fail",
        {**ENDED, "command.exit": 3, "command.tail": "x\nKeyError: 'a'\n"},
        COMMAND,
        "ended with exit code 3; expected exit code 0; the last line: KeyError",
    ),
    Row(
        "V02",
        "fail",
        {
            **ENDED,
            "command.exit": 1,
            "command.tail": "KeyError: 'a'\n 50%|##   | 1/2 [00:01<00:01, 1.00s/it]\n0it [00:00, ?it/s]\n",
        },
        COMMAND,
        "expected exit code 0; the last line: KeyError: 'a'",
    ),
    Row(
        "V02",
        "fail",
        {**ENDED, "command.exit": None, "command.signal": "SIGSEGV"},
        COMMAND,
        "was ended by SIGSEGV",
    ),
    Row("V02", "fail", {**ENDED, "command.missing": ["m"]}, COMMAND, "did not write m"),
    Row("V02", "fail", {**ENDED, "command.matches": False}, COMMAND, "does not match loss"),
    Row(
        "V02", "fail", {**ENDED, "command.error": "no python"}, COMMAND, "the command did not start"
    ),
]
