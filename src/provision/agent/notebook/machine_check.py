"""Comparison of this machine with the document, and with the facts about its runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.gpu_names import is_declared_gpu
from .document import NotebookDocument, RequiredGpu
from .machine_info import GpuCard, NotebookMachine

_GIB = 1024**3
_MIB = 1024**2
_RAM_SHARE = 0.95
"""As in the probe's H05: the kernel reserves some memory (Linux, filesystems/proc)."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference from the document.

    `blocks`: the cell stops; `always_blocks`: also if the user chose to continue anyway.
    """

    what: str
    hint: str = ""
    blocks: bool = True
    always_blocks: bool = False


@dataclass(frozen=True, slots=True)
class FactsDrift:
    """A value that differs from the facts about the runtime."""

    what: str
    listed: str
    found: str

    @property
    def summary(self) -> str:
        """The difference on one line."""
        return f"{self.what} is {self.found}, expected {self.listed}"


def find_mismatches(document: NotebookDocument, machine: NotebookMachine) -> list[Mismatch]:
    """Return the differences from the document, worst first."""
    mismatches = [
        *_python(document, machine),
        *_gpu(document, machine),
        *_driver(document, machine),
        *_sizes(document, machine),
    ]
    return sorted(
        mismatches, key=lambda mismatch: (not mismatch.always_blocks, not mismatch.blocks)
    )


def find_facts_drift(
    document: NotebookDocument, machine: NotebookMachine, torch: str | None
) -> list[FactsDrift]:
    """Return the differences from the facts; `torch` is the image's version, None if absent."""
    runtime = document.runtime
    if runtime is None:
        return []
    listed_torch, torch_version = runtime.torch, (torch or "").partition("+")[0]
    # The facts list the GPU image; the CPU image has another build of the same torch.
    if document.gpu is None and torch_version == listed_torch:
        listed_torch = None
    elif listed_torch and runtime.flavour and torch != torch_version:
        listed_torch = f"{listed_torch}+{runtime.flavour}"
    rows = [
        ("Python", runtime.python, machine.python),
        ("torch", listed_torch, torch),
        ("the NVIDIA driver", runtime.driver, machine.driver),
        ("the system", runtime.os, machine.os),
    ]
    return [
        FactsDrift(what, listed, found)
        for what, listed, found in rows
        if listed and found and listed != found
    ]


def _python(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    minor, runtime = ".".join(machine.python.split(".")[:2]), document.runtime
    if not document.shared or minor == document.python:
        return
    choice = f"choose a runtime with Python {document.python}"
    if runtime and runtime.version != "latest":
        choice = f"choose the runtime version {runtime.version} (Runtime > Change runtime type)"
    yield Mismatch(
        f"this is Python {machine.python}, but the packages are locked for {document.python}",
        f"{choice}, or set `isolation: venv` in the spec for an environment with its own Python",
        always_blocks=True,
    )


def _gpu(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    required, cards = document.gpu, machine.cards
    change = "Runtime > Change runtime type"
    if required is None:
        if cards:
            yield Mismatch(
                f"there is a GPU ({cards[0].name}) that the spec does not require",
                f"{change}: a CPU runtime costs less",
                blocks=False,
            )
        return
    name = required.type
    if required.device and required.device != required.type:
        name = f"{required.type} ({required.device})"
    if not cards:
        yield Mismatch(
            f"there is no GPU, but the spec requires {name}: {machine.no_cards_reason}",
            f"{change}, choose {required.type}",
        )
        return
    count = sum(_fits(card, required) for card in cards)
    if not count:
        yield Mismatch(
            f"the GPU is {cards[0].name}, but the spec requires {name}",
            f"{change}, choose {required.type}, or change `gpu` in the spec",
        )
    elif count < required.count:
        yield Mismatch(
            f"only {count} of {required.count} GPUs are of type {required.type}",
            f"{change}, or change `gpu` in the spec",
        )
    yield from _gpu_memory(document, machine)


def _fits(card: GpuCard, required: RequiredGpu) -> bool:
    if required.device is not None:
        return card.name == required.device
    return is_declared_gpu(card.name, required.type)


def _gpu_memory(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    memory, needed = machine.cards[0].memory_mib, document.required_size("vram_bytes")
    if needed is not None and memory is not None and memory * _MIB < needed * _RAM_SHARE:
        yield Mismatch(
            f"the GPU has {memory * _MIB / _GIB:.1f} GiB of memory, but the spec requires "
            f"{needed / _GIB:.1f} GiB",
            "choose a GPU with more memory, or lower `requires.vram` in the spec",
        )
    user = ", by another notebook or an earlier kernel"
    if machine.gpu_processes:
        user = f": {'; '.join(machine.gpu_processes)}"
    for card in machine.cards:
        if card.is_in_use:
            yield Mismatch(
                f"{(card.used_mib or 0) / 1024:.1f} GiB of GPU memory is already in use{user}",
                "end other sessions (Runtime > Manage sessions), or restart the kernel that "
                "uses it",
                blocks=False,
            )


def _driver(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    minimum, driver = document.driver_min, machine.driver
    if document.gpu and minimum and driver and _numbers(driver) < _numbers(minimum):
        yield Mismatch(
            f"the NVIDIA driver is {driver}, but the locked packages need {minimum} or newer",
            "choose a newer runtime version, or lock a CUDA build that this driver supports "
            "(`cuda` in the spec)",
        )


def _sizes(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    ram, disk = document.required_size("ram_bytes"), document.required_size("disk_bytes")
    if ram is not None and machine.ram_bytes is not None and machine.ram_bytes < ram * _RAM_SHARE:
        yield Mismatch(
            f"the machine has {machine.ram_bytes / _GIB:.1f} GiB of memory, but the spec requires "
            f"{ram / _GIB:.1f} GiB",
            "choose a high-RAM runtime, or lower `requires.ram` in the spec",
        )
    if disk is not None and machine.disk_bytes is not None and machine.disk_bytes < disk:
        yield Mismatch(
            f"{machine.disk_bytes / _GIB:.1f} GiB of disk is free, but the spec requires "
            f"{disk / _GIB:.1f} GiB",
            "free some disk space, choose a different runtime, or lower `requires.disk` in the "
            "spec",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
