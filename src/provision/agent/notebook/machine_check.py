"""Comparison of this machine with the document, and with the catalogue of runtimes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.gpu_names import is_declared_gpu
from .document import NotebookDocument, RequiredGpu
from .machine_info import GpuCard, NotebookMachine, is_card_in_use

_GIB = 1024**3
_MIB = 1024**2
_RAM_SHARE = 0.95
"""The same as the probe's H05: the kernel keeps some memory (Linux, filesystems/proc)."""


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
class CatalogueDrift:
    """One thing that the catalogue lists otherwise than it is."""

    what: str
    listed: str
    found: str

    @property
    def summary(self) -> str:
        """As one line for a person."""
        return f"{self.what} is {self.found}, the catalogue lists {self.listed}"


def find_mismatches(document: NotebookDocument, machine: NotebookMachine) -> list[Mismatch]:
    """Return what is not as the document asks, worst first."""
    found = [
        *_python(document, machine),
        *_gpu(document, machine),
        *_driver(document, machine),
        *_sizes(document, machine),
    ]
    return sorted(found, key=lambda one: (not one.always_blocks, not one.blocks))


def find_catalogue_drift(
    document: NotebookDocument, machine: NotebookMachine, torch: str | None
) -> list[CatalogueDrift]:
    """Return the differences from the catalogue; `torch` is the image's version, None if absent."""
    runtime = document.runtime
    if runtime is None:
        return []
    flavour = runtime.flavour if torch and "+" in torch else None
    listed = f"{runtime.torch}+{flavour}" if runtime.torch and flavour else runtime.torch
    # Catalogues list the image of a GPU; that of a CPU brings another build of the same torch.
    same_build = (
        document.gpu is None
        and torch
        and runtime.torch
        and torch.partition("+")[0] == runtime.torch
    )
    pairs = [
        ("Python", runtime.python, machine.python),
        ("torch", None if same_build else listed, torch),
        ("the NVIDIA driver", runtime.driver, machine.driver),
        ("the system", runtime.os, machine.os),
    ]
    return [
        CatalogueDrift(what, as_listed, here)
        for what, as_listed, here in pairs
        if as_listed and here and as_listed != here
    ]


def _python(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    here = ".".join(machine.python.split(".")[:2])
    if document.shared and here != document.python:
        runtime = document.runtime
        choose = (
            f"choose the runtime version {runtime.version} (Runtime > Change runtime type), "
            if runtime and runtime.version != "latest"
            else ""
        )
        hint = (
            f"{choose or 'choose a runtime with that Python, '}or set isolation: venv in the "
            "spec, which makes an environment with its own Python"
        )
        yield Mismatch(
            f"this is Python {machine.python}, the packages are locked for {document.python}",
            hint,
            always_blocks=True,
        )


def _gpu(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    wanted, cards = document.gpu, machine.cards
    change = "Runtime > Change runtime type"
    if wanted is None:
        if cards:
            yield Mismatch(
                f"there is a GPU ({cards[0].name}) that the spec does not ask for",
                f"{change}: a CPU runtime costs less",
                blocks=False,
            )
        return
    if not cards:
        yield Mismatch(
            f"there is no GPU, the spec asks for {_called(wanted)}: {machine.no_cards_reason}",
            f"{change}, choose {wanted.type}",
        )
        return
    fitting = [card for card in cards if _fits(card, wanted)]
    if not fitting:
        yield Mismatch(
            f"the GPU is {cards[0].name}, the spec asks for {_called(wanted)}",
            f"{change}, choose {wanted.type}, or change gpu: in the spec",
        )
    elif len(fitting) < wanted.count:
        yield Mismatch(
            f"there are {len(fitting)} of {wanted.count} GPUs of type {wanted.type}",
            f"{change}, or change gpu: in the spec",
        )
    yield from _memory_of_cards(document, machine)


def _called(gpu: RequiredGpu) -> str:
    return f"{gpu.type} ({gpu.device})" if gpu.device and gpu.device != gpu.type else gpu.type


def _fits(card: GpuCard, wanted: RequiredGpu) -> bool:
    if wanted.device is not None:
        return card.name == wanted.device
    return is_declared_gpu(card.name, wanted.type)


def _memory_of_cards(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    card, needed = machine.cards[0], document.required_size("vram_bytes")
    if (
        needed is not None
        and card.memory_mib is not None
        and card.memory_mib * _MIB < needed * _RAM_SHARE
    ):
        yield Mismatch(
            f"the GPU has {card.memory_mib} MiB, the spec asks for {needed // _MIB} MiB",
            "choose a larger card",
        )
    for held in (card for card in machine.cards if is_card_in_use(card)):
        who = (
            f": {'; '.join(machine.gpu_processes)}"
            if machine.gpu_processes
            else ", by a process of another notebook or of an earlier kernel"
        )
        hint = "end other sessions (Runtime > Manage sessions), or restart the kernel that holds it"
        yield Mismatch(
            f"{held.used_mib} MiB of the GPU's memory are already in use{who}", hint, blocks=False
        )


def _driver(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    if (
        document.driver_min
        and machine.driver
        and document.gpu is not None
        and _key(machine.driver) < _key(document.driver_min)
    ):
        hint = (
            "choose a newer runtime version, or lock a CUDA build that this driver runs (cuda: "
            "in the spec)"
        )
        yield Mismatch(
            f"the NVIDIA driver is {machine.driver}, the locked packages need "
            f"{document.driver_min} or newer",
            hint,
        )


def _sizes(document: NotebookDocument, machine: NotebookMachine) -> Iterator[Mismatch]:
    ram, disk = document.required_size("ram_bytes"), document.required_size("disk_bytes")
    if ram is not None and machine.ram_bytes is not None and machine.ram_bytes < ram * _RAM_SHARE:
        hint = "choose a high-RAM runtime, or lower requires.ram in the spec"
        yield Mismatch(
            f"the machine has {machine.ram_bytes / _GIB:.1f} GiB of memory, the spec asks "
            f"for {ram / _GIB:.1f} GiB",
            hint,
        )
    if disk is not None and machine.disk_bytes is not None and machine.disk_bytes < disk:
        hint = "free some, choose another runtime, or lower requires.disk in the spec"
        yield Mismatch(
            f"{machine.disk_bytes / _GIB:.1f} GiB of disk are free, the spec asks for "
            f"{disk / _GIB:.1f} GiB",
            hint,
        )


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
