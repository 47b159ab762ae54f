"""A torch whose CPU stands for several NVIDIA cards, some of them bad, as fake_nvml.c stands for
their driver: for tests of what the probe makes of it.

Python reads this file at its start where its folder is on PYTHONPATH. FAKE_CARDS says how many
cards there are and what is wrong with which, as
"count=2;wrong=1": `wrong` (memory and products have one wrong bit or number), `slow` (copies and
products take longer), `raises` and `hangs` (at the first
product), `busy` (at the first thing that is made on it), `splits` (where torch's flags allow it,
products in 16 bits are two halves that are added up in 16
bits, as cuBLAS does it). Each is a card's number. Sizes that a CPU would need minutes for are
not computed: the product of F01 is a pause.
"""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import Any

TOLD = dict(part.split("=") for part in os.environ.get("FAKE_CARDS", "").split(";") if part)
FREE, TOTAL = 1_250_000_000, 1_300_000_000
LARGE = 8192
here = threading.local()


def install() -> None:
    import torch
    from torch.overrides import TorchFunctionMode

    ill = {trouble: int(card) for trouble, card in TOLD.items()}
    mm, generator = torch.mm, torch.Generator

    def short_sums(kind: Any) -> bool:
        name = {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(kind)
        return name is not None and bool(
            getattr(torch.backends.cuda.matmul, f"allow_{name}_reduced_precision_reduction")
        )

    class Card(TorchFunctionMode):
        """While it is entered, "cuda" is the CPU, with this card's trouble."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

        def __enter__(self) -> Any:
            here.card = self.index
            return super().__enter__()

        def has(self, trouble: str) -> bool:
            return ill.get(trouble) == self.index

        def __torch_function__(
            self,
            function: Any,
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            given = {key: value for key, value in (kwargs or {}).items() if key != "pin_memory"}
            given = {
                key: "cpu" if key == "device" and value == "cuda" else value
                for key, value in given.items()
            }
            if (kwargs or {}).get("device") == "cuda" and self.has("busy"):
                raise RuntimeError(
                    "CUDA error: CUDA-capable device(s) is/are busy or unavailable\nSearch "
                    "for it in the manual"
                )
            args = tuple("cpu" if isinstance(one, str) and one == "cuda" else one for one in args)
            if function is mm:
                return self.multiplied(*args, **given)
            if (
                getattr(function, "__name__", "") in ("matmul", "__matmul__")
                and len(args[0]) == LARGE
            ):
                self.pause()
                return args[0]
            result = function(*args, **given)
            if function is torch.Tensor.fill_ and self.has("wrong") and result.dtype is torch.int64:
                result[5] ^= 1
            if function is torch.Tensor.copy_ and self.has("slow"):
                time.sleep(0.5)
            return result

        def multiplied(self, left: Any, right: Any, out: Any) -> Any:
            if self.has("raises"):
                raise RuntimeError("CUDA error: unspecified launch failure")
            if self.has("hangs"):
                time.sleep(1000)
            if len(left) == LARGE:
                self.pause()
                return out
            # In fp16 a CPU takes minutes.
            depth = (
                left.shape[1] // 2
                if self.has("splits") and short_sums(left.dtype)
                else left.shape[1]
            )
            parts = [
                mm(left[:, at : at + depth].float(), right[at : at + depth].float()).to(left.dtype)
                for at in range(0, left.shape[1], depth)
            ]
            out.copy_(sum(parts[1:], parts[0]))
            if self.has("wrong"):
                out[0, 9] += 8
            return out

        def pause(self) -> None:
            time.sleep(0.05 if self.has("slow") else 0.01)

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            self.at = 0.0

        def record(self) -> None:
            self.at = time.perf_counter()

        def elapsed_time(self, other: Event) -> float:
            return (other.at - self.at) * 1000

    about = [
        SimpleNamespace(
            name="NVIDIA H200", pci_domain_id=0, pci_bus_id=0x1B + index, pci_device_id=0
        )
        for index in range(ill["count"])
    ]
    cards: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: ill["count"],
        "device": Card,
        "get_device_properties": lambda index: about[index],
        "get_device_capability": lambda *_: (9, 0),
        "mem_get_info": lambda: (FREE, TOTAL),
        "empty_cache": lambda: None,
        "synchronize": lambda: None,
        "Event": Event,
    }
    for name, value in cards.items():
        setattr(torch.cuda, name, value)
    torch.Generator = lambda device="cpu": generator("cpu")  # type: ignore[assignment, misc]


if TOLD:
    install()
