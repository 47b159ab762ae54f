"""Computes known results on the device, and measures their error against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..context import ObserverContext
from ..model import Readings
from ..proofs.recipe import weights_hash
from .cards import CPU, ComputeDevice, measure_each_card, readings_of_worst, torch_cards
from .tensors import (
    SEED,
    device_of,
    dtype_of,
    normal_tensor,
    relative_errors,
    seeded_generator,
    worst_errors,
)

ProductShape = tuple[int, int, int]
"""Rows, depth and columns of a product."""
_SHAPE: ProductShape = (512, 1024, 512)
_LARGE: ProductShape = (4096, 4096, 4096)
_EVERY = 64
"""Of a large product each 64th row is compared, so that its truth takes the CPU a moment; tiles of
64 rows or more are all looked at.
"""
_TOLERANCES = {"fp32": (1.3e-6, 1e-5), "fp16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5)}
"""Relative and absolute tolerance of torch.testing.assert_close for each type; the absolute one is
scaled by the square root of the depth.
"""
_SHORT_SUMS = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")


def _products(context: ObserverContext) -> Readings:
    with full_precision_sums():
        return _errors_of_products(context)


@contextmanager
def full_precision_sums() -> Iterator[None]:
    """Let 16-bit products be summed in 32 bits: cuBLAS may split a product along its depth.

    torch allows it by default (its notes on numerical accuracy). Sound cards would then miss
    torch's tolerances for single elements by thousands.
    """
    import torch

    flags = torch.backends.cuda.matmul
    names = [name for name in _SHORT_SUMS if hasattr(flags, name)]
    # Newer torch sets whether products are split at all with the same flag, and reports it under
    # another name.
    before = {
        name: (getattr(flags, name), getattr(flags, f"{name}_split_k"))
        if hasattr(flags, f"{name}_split_k")
        else getattr(flags, name)
        for name in names
    }
    try:
        for name in names:
            setattr(flags, name, False)
        yield
    finally:
        for name, was in before.items():
            setattr(flags, name, was)


def _errors_of_products(context: ObserverContext) -> Readings:
    import torch

    cards = torch_cards(context)
    # On a CPU a product in fp16 takes 10 s where one in bf16 takes 0.2 s, and nobody trains in it
    # there.
    kinds = {
        "fp32": torch.float32,
        "bf16": torch.bfloat16,
        **({"fp16": torch.float16} if cards else {}),
    }
    sizes = {"": (_SHAPE, 1), **({"_large": (_LARGE, _EVERY)} if cards else {})}
    measured: list[Readings] = [{} for _ in cards or [CPU]]
    for name, kind in kinds.items():
        for size, (shape, every) in sizes.items():
            for readings, (error, outside) in zip(
                measured,
                product_errors(name, kind, cards or [CPU], shape, every, context.report_progress),
                strict=True,
            ):
                readings.update(
                    {
                        f"numerics.{name}{size}_error": error,
                        f"numerics.{name}{size}_outside": outside,
                    }
                )
    return {
        "numerics.device": "cuda" if cards else "cpu",
        **readings_of_worst(cards, measured, lambda readings: -float(sum(readings.values()))),
    }


def product_errors(
    name: str,
    kind: Any,
    cards: Sequence[ComputeDevice],
    shape: ProductShape,
    every: int,
    report: Callable[[str], None],
) -> list[tuple[float, int]]:
    """Return each card's relative error of a product, and its elements outside torch's tolerances.

    Standard normal numbers, seeded on the CPU so that every device multiplies the same ones. Of
    the result each row whose number `every` divides is compared.
    """
    left, right = _operands(kind, shape)
    truth = left[::every].double() @ right.double()
    relative, absolute = _TOLERANCES[name]
    allowed = absolute * math.sqrt(shape[1]) + relative * truth.abs()

    def compared(card: ComputeDevice) -> tuple[float, int]:
        difference = (multiply(left, right, card.device)[::every].double().cpu() - truth).abs()
        return float(difference.norm() / truth.norm()), int((~(difference <= allowed)).sum())

    return measure_each_card(cards, compared, report)


def multiply(left: Any, right: Any, device: str) -> Any:
    """Return the product of two matrices on a device."""
    import torch

    # A result that is never written must not pass as zeros or as earlier content of the memory.
    result = torch.full((len(left), right.shape[1]), float("nan"), dtype=left.dtype, device=device)
    torch.mm(left.to(device), right.to(device), out=result)
    return result


def _operands(kind: Any, shape: ProductShape = _SHAPE) -> tuple[Any, Any]:
    generator = seeded_generator()
    left, right = normal_tensor(shape[:2], generator), normal_tensor(shape[1:], generator)
    return left.to(kind), right.to(kind)


def _signature(context: ObserverContext) -> Readings:
    import torch

    # The arithmetic is chosen by torch and by variables, for all cards alike: one is enough.
    ((error, _),) = product_errors(
        "fp32",
        torch.float32,
        (torch_cards(context) or [CPU])[:1],
        _SHAPE,
        1,
        context.report_progress,
    )
    return {"numerics.fp32_signature": error}


def _convolutions(context: ObserverContext) -> Readings:
    import torch

    device = device_of(context)
    readings = {"numerics.device": device, "numerics.conv_error": convolution_error(device)}
    if device == "cuda":
        torch.backends.cudnn.enabled = False
        try:
            readings["numerics.conv_plain_error"] = convolution_error(device)
        finally:
            torch.backends.cudnn.enabled = True
    return readings


def convolution_error(device: str) -> list[float]:
    """Return the worst errors of fp32 convolutions in one and two dimensions, with gradients."""
    from torch.nn.functional import conv1d, conv2d

    return worst_errors(
        [
            *_convolved(conv1d, (2, 16, 128), (32, 16, 5), device),
            *_convolved(conv2d, (2, 16, 16, 16), (32, 16, 3, 3), device),
        ]
    )


def _convolved(
    convolve: Callable[..., Any], inputs: tuple[int, ...], weights: tuple[int, ...], device: str
) -> Iterator[tuple[float, float]]:
    import torch

    generator = seeded_generator()
    operands = [normal_tensor(inputs, generator), normal_tensor(weights, generator)]
    sides = []
    for kind, device_name in ((torch.float64, "cpu"), (torch.float32, device)):
        leaves = [operand.to(device_name, kind).requires_grad_() for operand in operands]
        result = convolve(*leaves, padding=1)
        upstream = normal_tensor(result.shape, seeded_generator(SEED + 1)).to(device_name, kind)
        result.backward(upstream)
        sides.append([result, *(leaf.grad for leaf in leaves)])
    for truth, computed in zip(*sides, strict=True):
        yield relative_errors(computed, truth)


def _short_products(context: ObserverContext) -> Readings:
    if "fp8" not in (context.memo.get("formats") or []):
        return {"numerics.fp8_error": None}
    try:
        return {"numerics.fp8_error": fp8_error(device_of(context))}
    except (RuntimeError, TypeError, AttributeError) as error:
        # The function changes from one torch to the next: that it refuses matters to those only who
        # declare fp8.
        return {
            "numerics.fp8_error": None,
            "numerics.fp8_refused": f"{type(error).__name__}: {str(error)[:200]}",
        }


def fp8_error(device: str) -> list[float]:
    """Return the errors of a product in fp8 (e4m3, bf16 out) against float64.

    Shapes (256, 512) and (512, 256): cards of compute capability 9.0 take the left by rows, the
    right by columns, and sizes that 16 divides.
    """
    import torch

    generator = seeded_generator()
    left, right = normal_tensor((256, 512), generator), normal_tensor((256, 512), generator)
    left, right = (matrix.to(torch.float8_e4m3fn).to(device) for matrix in (left, right))
    result = scaled_product(left, right.t(), torch.tensor(1.0, device=device))
    return list(relative_errors(result, left.cpu().double() @ right.cpu().double().t()))


def scaled_product(left: Any, right: Any, scale: Any) -> Any:
    """Multiply two fp8 matrices into bf16, both scaled; by the public function if torch has it."""
    import torch

    functional = torch.nn.functional
    if hasattr(functional, "scaled_mm"):
        whole = functional.ScalingType.TensorWise
        return functional.scaled_mm(
            left, right, scale, whole, scale, whole, output_dtype=torch.bfloat16
        )
    return torch._scaled_mm(left, right, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)


def _twice(context: ObserverContext) -> Readings:
    cards = torch_cards(context)
    on_cpu = is_repeatable(CPU.device)
    if not cards:
        return {"numerics.repeats": on_cpu}
    measured = measure_each_card(
        cards,
        lambda card: {"numerics.repeats": on_cpu and is_repeatable(card.device)},
        context.report_progress,
    )
    return readings_of_worst(cards, measured, lambda readings: float(readings["numerics.repeats"]))


def is_repeatable(device: str) -> bool:
    """Return whether a product in fp32 and one in bf16 give the same bits twice."""
    import torch

    pairs = [
        [operand.to(device) for operand in _operands(kind)]
        for kind in (torch.float32, torch.bfloat16)
    ]
    return all(torch.equal(left @ right, left @ right) for left, right in pairs)


def _finite(context: ObserverContext) -> Readings:
    device = device_of(context)
    kind = dtype_of(context.expected.training.precision, device)
    return {
        "numerics.unfinite": count_non_finite(
            [*compute_into_nan_memory(kind, device), *compute_gradients(kind, device)]
        )
    }


def count_non_finite(tensors: list[Any]) -> int:
    """Return how many elements are infinite or NaN."""
    return sum(int((~tensor.isfinite()).sum()) for tensor in tensors)


def compute_into_nan_memory(kind: Any, device: str) -> list[Any]:
    """Return results of usual operations, written into memory that was full of NaN."""
    import torch

    def empty() -> Any:
        return torch.full((64, 256), math.nan, dtype=kind, device=device)

    operand = normal_tensor((64, 256), seeded_generator()).to(kind).to(device)
    outs = [empty() for _ in range(4)]
    torch.add(operand, operand, out=outs[0])
    torch.tanh(operand, out=outs[1])
    torch.mul(operand, operand, out=outs[2])
    torch.softmax(operand, -1, out=outs[3])
    return outs


def compute_gradients(kind: Any, device: str) -> list[Any]:
    """Return loss and gradients of a small network: norm, activation, cross entropy."""
    import torch

    torch.manual_seed(SEED)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.LayerNorm(128), torch.nn.GELU(), torch.nn.Linear(128, 32)
    ).to(device, kind)
    loss = torch.nn.functional.cross_entropy(
        network(normal_tensor((32, 64), seeded_generator()).to(device, kind)),
        torch.arange(32, device=device),
    )
    loss.backward()
    return [loss.detach(), *(weight.grad for weight in network.parameters())]


def _random(context: ObserverContext) -> Readings:
    devices = sorted({"cpu", device_of(context)})
    first, again, other = (
        {device: random_digest(device, seed) for device in devices}
        for seed in (SEED, SEED, SEED + 1)
    )
    return {
        f"rng.{device}_sha": repeatable_digest(first[device], again[device], other[device])
        for device in devices
    }


def repeatable_digest(first: str, again: str, other: str) -> str | None:
    """Return the digest of a seed's numbers; None if they do not repeat, or ignore the seed."""
    return first if first == again != other else None


def random_digest(device: str, seed: int) -> str:
    """Return a digest of 4096 seeded integers, which no instruction set rounds differently."""
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    return weights_hash(
        {"drawn": torch.randint(2**31, (4096,), generator=generator, device=device)}
    )[:16]


def steps_error(device: str) -> float:
    """Return the worst relative error of fp32 softmax, layer norm and three AdamW steps."""
    import torch
    from torch.nn.functional import layer_norm, softmax

    start = normal_tensor((64, 512), seeded_generator())

    def stepped(values: Any) -> Any:
        weights = torch.nn.Parameter(values.clone())
        optimizer = torch.optim.AdamW([weights], lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            (weights**2).sum().backward()
            optimizer.step()
        return weights

    ways: tuple[Callable[[Any], Any], ...] = (
        lambda x: softmax(x, -1),
        lambda x: layer_norm(x, (512,)),
        stepped,
    )
    return worst_errors(
        [relative_errors(way(start.to(device)), way(start.double())) for way in ways]
    )[0]


OBSERVERS = {
    "N01": _products,
    "N02": _signature,
    "N03": _convolutions,
    "N05": _short_products,
    "N06": _twice,
    "N07": _finite,
    "N08": _random,
    "N09": lambda context: {"numerics.steps_error": steps_error(device_of(context))},
}
