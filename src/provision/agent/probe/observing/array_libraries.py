"""Device, products, memory and speed of jax and TensorFlow, each behind the same functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from ..context import ObserverContext
from ..model import Readings
from .speed import median, tflops_of

_SMALL, _LARGE, _WARM, _ROUNDS, _IN_A_ROW = 512, 8192, 2, 5, 10
_GIB = 1024**3
_TWO = 2.0
_LONGEST = 300
_SHARE = 0.8
"""Of the memory that is allocated: the library and other tests need some too."""


class ArrayLibrary(Protocol):
    """What the observer of a library of arrays has."""

    def device(self) -> Readings:
        """Return version, platform, cards, and why there is none."""
        ...

    def product(self, left: Any, right: Any, kind: str) -> Any:
        """Return a product as numpy: "default", "highest" (fp32) or "bf16"."""
        ...

    def filled(self, gibibytes: int) -> list[Any]:
        """Return arrays of 1 GiB on the card, as many as fit and at most so many."""
        ...

    def memory_limit(self) -> int | None:
        """Return the bytes that the library may take of the card; None if it does not say."""
        ...

    def memory_growth(self) -> list[bool | None] | None:
        """Return whether each card's memory is taken as needed; None if it is no such setting."""
        ...

    def multiplication(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two bf16 matrices some times, and waits for the end."""
        ...


def library_of(context: ObserverContext) -> ArrayLibrary:
    """Return the library of arrays that the declared framework computes with."""
    return TensorFlowArrays() if context.expected.backend == "tensorflow" else JaxArrays()


class JaxArrays:
    """Observes jax."""

    def device(self) -> Readings:
        """Return version, platform, cards, and why there is none."""
        import jax

        devices = jax.devices()
        return {
            "framework.version": str(jax.__version__),
            "framework.cuda": str(devices[0].client.platform_version).split("\n", 1)[0],
            "framework.platform": str(devices[0].platform),
            "framework.devices": [str(device.device_kind) for device in devices],
            "framework.errors": _errors(
                (f"{device.device_kind} {index}", lambda card=device: _jax_sum(card))
                for index, device in enumerate(devices)
            ),
            "framework.why": None if devices[0].platform == "gpu" else _why(_jax_cards),
        }

    def product(self, left: Any, right: Any, kind: str) -> Any:
        """Return a product as numpy: "default", "highest" (fp32) or "bf16"."""
        import jax
        import jax.numpy as jnp
        import numpy

        if kind == "bf16":
            left, right = (jnp.asarray(each).astype(jnp.bfloat16) for each in (left, right))
        precision = "highest" if kind == "highest" else None
        with jax.default_matmul_precision(precision) if precision else _nothing():
            return numpy.asarray(jnp.matmul(left, right).astype(jnp.float32))

    def filled(self, gibibytes: int) -> list[Any]:
        """Return arrays of 1 GiB on the card, as many as fit and at most so many."""
        import jax.numpy as jnp

        return _fill(gibibytes, lambda: jnp.full((_GIB,), 7, dtype=jnp.uint8).block_until_ready())

    def memory_limit(self) -> int | None:
        """Return the bytes that the library may take of the card; None if it does not say."""
        import jax

        stats = jax.devices()[0].memory_stats() or {}
        return stats.get("bytes_limit")

    def memory_growth(self) -> list[bool | None] | None:
        """Return None: jax has variables for this, and no setting."""
        return None

    def multiplication(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two bf16 matrices some times, and waits for the end."""
        import jax
        import jax.numpy as jnp

        left, right = (
            jax.random.normal(key, (size, size), dtype=jnp.bfloat16)
            for key in jax.random.split(jax.random.key(20))
        )
        multiply = jax.jit(jnp.matmul)

        def multiply_and_wait() -> None:
            products = [multiply(left, right) for _ in range(_IN_A_ROW)]
            products[-1].block_until_ready()

        return multiply_and_wait


class TensorFlowArrays:
    """Observes TensorFlow."""

    def device(self) -> Readings:
        """Return version, platform, cards, and why there is none."""
        import tensorflow

        cards = tensorflow.config.list_physical_devices("GPU")
        details = tensorflow.config.experimental.get_device_details
        names = [str(details(card).get("device_name", card.name)) for card in cards]
        built = tensorflow.sysconfig.get_build_info()
        why = None
        if not cards:
            why = (
                "TensorFlow did not find its CUDA libraries or a driver"
                if built.get("is_cuda_build")
                else "this TensorFlow is a CPU build"
            )
        places = [f"GPU:{index}" for index in range(len(cards))] or ["CPU:0"]
        return {
            "framework.version": str(tensorflow.__version__),
            "framework.cuda": str(built.get("cuda_version") or "") or None,
            "framework.platform": "gpu" if cards else "cpu",
            "framework.devices": names or ["cpu"],
            "framework.errors": _errors(
                (place, lambda card=place: _tensorflow_sum(card)) for place in places
            ),
            "framework.why": why,
        }

    def product(self, left: Any, right: Any, kind: str) -> Any:
        """Return a product as numpy: "default", "highest" (fp32) or "bf16"."""
        import tensorflow

        if kind == "bf16":
            left, right = (tensorflow.cast(each, tensorflow.bfloat16) for each in (left, right))
        execution = tensorflow.config.experimental
        before = execution.tensor_float_32_execution_enabled()
        execution.enable_tensor_float_32_execution(before and kind != "highest")
        try:
            return tensorflow.cast(tensorflow.matmul(left, right), tensorflow.float32).numpy()
        finally:
            execution.enable_tensor_float_32_execution(before)

    def filled(self, gibibytes: int) -> list[Any]:
        """Return arrays of 1 GiB on the card, as many as fit and at most so many."""
        import tensorflow

        return _fill(
            gibibytes, lambda: tensorflow.fill([_GIB], tensorflow.constant(7, tensorflow.uint8))
        )

    def memory_limit(self) -> int | None:
        """Return None: TensorFlow does not say how much memory it may take."""
        return None

    def memory_growth(self) -> list[bool | None] | None:
        """Return tf.config's memory growth of each card; None (of a card) if it is not set."""
        import tensorflow

        cards = tensorflow.config.list_physical_devices("GPU")
        return [tensorflow.config.experimental.get_memory_growth(card) for card in cards]

    def multiplication(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two bf16 matrices some times, and waits for the end."""
        import tensorflow

        generator = tensorflow.random.Generator.from_seed(20)
        left, right = (
            tensorflow.cast(generator.normal((size, size)), tensorflow.bfloat16) for _ in range(2)
        )
        multiply = tensorflow.function(tensorflow.matmul)

        def multiply_and_wait() -> None:
            products = [multiply(left, right) for _ in range(_IN_A_ROW)]
            products[-1][0, 0].numpy()  # one element waits for the whole product

        return multiply_and_wait


def product_errors(library: ArrayLibrary) -> dict[str, float]:
    """Return the relative Frobenius error of a product by kind, against float64.

    Of bf16, the inputs are rounded before: only the product is judged.
    """
    import numpy

    draw = numpy.random.default_rng(20)
    left, right = (draw.standard_normal((_SMALL, _SMALL), dtype="float32") for _ in range(2))
    errors = {}
    for kind in ("default", "highest", "bf16"):
        if kind == "bf16":
            left, right = _round_to_bf16(left), _round_to_bf16(right)
        right_answer = left.astype("float64") @ right.astype("float64")
        answer = library.product(left, right, kind)
        apart = numpy.linalg.norm(answer - right_answer)
        errors[kind] = float(apart / numpy.linalg.norm(right_answer))
    return errors


def held_bytes(library: ArrayLibrary, limit: int) -> Readings:
    """Return the bytes that were wanted of a limit, and those that could be written."""
    wanted = int(limit * _SHARE) // _GIB
    return {
        "framework.wanted_bytes": wanted * _GIB,
        "framework.held_bytes": len(library.filled(wanted)) * _GIB,
    }


def _fill(gibibytes: int, make: Callable[[], Any]) -> list[Any]:
    held: list[Any] = []
    try:
        while len(held) < gibibytes:
            held.append(make())
    except Exception:  # noqa: BLE001
        return held
    return held


def multiplied_tflops(library: ArrayLibrary, size: int = _LARGE) -> float:
    """Return TFLOP/s of a square product in bf16; the median of 5 rounds after 2 warm-ups."""
    multiply, seconds = library.multiplication(size), []
    for number in range(_WARM + _ROUNDS):
        began = time.perf_counter()
        multiply()
        if number >= _WARM:
            seconds.append((time.perf_counter() - began) / _IN_A_ROW)
    return tflops_of(size, [median(seconds)])


def _round_to_bf16(values: Any) -> Any:
    import numpy

    kind = import_module("ml_dtypes").bfloat16  # of both libraries' requirements
    return numpy.asarray(values.astype(kind), dtype="float32")


def _errors(sums: Any) -> dict[str, str]:
    """Return error texts of devices that cannot add two numbers."""
    errors = {}
    for name, add in sums:
        try:
            result = add()
            problem = "" if result == _TWO else f"1 + 1 is {result:g}"
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {_first_line(error)}"
        if problem:
            errors[name] = problem
    return errors


def _jax_sum(device: Any) -> float:
    import jax

    return float(jax.device_put(1.0, device) + 1)


def _tensorflow_sum(place: str) -> float:
    import tensorflow

    with tensorflow.device(place):
        return float(tensorflow.constant(1.0) + 1)


def _jax_cards() -> None:
    import jax

    jax.devices("cuda")


def _why(attempt: Callable[[], None]) -> str | None:
    try:
        attempt()
    except RuntimeError as error:
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:_LONGEST]


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()
