"""Judges the cards: type, memory, and health by the driver, its log and NVIDIA's diagnosis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...core.gpu_names import is_declared_gpu
from ...core.versions import specifier_allows
from ..byte_sizes import format_bytes
from ..checks.driver import FATAL_XIDS, MEMORY_BAND, VRAM_SHARE
from ..model import Judgement, Status, Threshold
from ..observing.cards import PER_CARD_PREFIX
from .judgement import (
    RESTART_OR_REPLACE,
    JudgeInput,
    fails,
    format_list,
    passes,
    skipped,
    unknown,
    warns,
)

_PCI_IDS = {
    "10de:15f8": "P100",
    "10de:1db4": "V100",
    "10de:1eb8": "T4",
    "10de:27b8": "L4",
    "10de:20b0": "A100-40GB",
    "10de:20b2": "A100-80GB",
    "10de:2330": "H100-80GB",
    "10de:2335": "H200",
    "10de:2901": "B200",
}
"""Cards by PCI id, for a driver that calls a card by another name than the spec. Source:
NVIDIA/DCGM, nvvs/diag-skus.yaml.in.
"""
_ASK_TORCH = (
    "verify with tier quick, in which M01 measures through torch how much memory a program gets"
)
_NAME_IT = (
    "also set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPU by its UUID (`nvidia-smi -L`); with "
    "tier quick, torch identifies it"
)
_OTHER_GPU = "use a machine type with the declared GPU, or declare this GPU"
_GB_TO_GIB = 1e9 / 2**30
_ACTIONS = {
    1: ("the driver requests a reset of the card", "restart the machine"),
    2: ("the driver requests a restart of the machine", "restart the machine"),
    3: (
        "the driver requests that all traffic between the cards be stopped and the cards be reset",
        "end all programs on the cards, then restart the machine",
    ),
    4: (
        "the driver requests that all programs on the card be ended and the card be reset",
        "end all programs on the card, then restart the machine",
    ),
}
"""nvmlDeviceGpuRecoveryAction_t (nvml.h)."""
_XIDS = {
    48: "a double-bit ECC error",
    63: "a row is to be remapped",
    64: "a row could not be remapped",
    74: "NVLink",
    79: "the card fell off the bus",
}
"""The most frequent ones (NVIDIA, Xid errors)."""


def _model(given: JudgeInput) -> Judgement:
    observed, required = given["gpu.name"], given.expected.gpu_type or ""
    needed = given.expected.requires.compute_capability
    if required == "mps":
        return skipped("Apple GPU models are not distinguished")
    if observed is None:
        return unknown("no GPU reported its name", required)
    by_name = [is_declared_gpu(name, required) for name in observed.split(" + ")]
    by_pci = [is_declared_gpu(_PCI_IDS.get(pci, ""), required) for pci in given["nvml.pci"]]
    if given.get("nvml.told_apart") is False and not all(by_name):
        by_torch = given.get("_gpu.names")
        if not by_torch and any(by_name + by_pci):
            return _which(required, observed)
        names = by_torch or [observed]
        observed, by_pci = " + ".join(names), []
        by_name = [is_declared_gpu(name, required) for name in observed.split(" + ")]
    if not all(by_name) and not (by_pci and all(by_pci)):
        return fails(
            f"the GPU is {observed}, but {required} is declared",
            required,
            observed,
            "the machine or runtime has a different GPU",
            _OTHER_GPU,
        )
    capability = given["gpu.compute_capability"]
    if needed is not None and capability is None:
        return unknown("the driver reported no compute capability", needed)
    if needed is not None and not specifier_allows(needed, capability):
        return fails(
            f"compute capability {capability} does not satisfy {needed}",
            needed,
            capability,
            "this GPU is older than the spec requires",
            "use a newer GPU",
        )
    return passes(f"{observed}, compute capability {capability or 'unknown'}", required, observed)


def _which(expected: Any, names: str) -> Judgement:
    """Return the judgement if a variable shows one of several kinds of cards, unseen by torch."""
    return unknown(
        "CUDA_VISIBLE_DEVICES hides some of these GPUs, and the driver cannot "
        f"identify them: {names}",
        expected,
        _NAME_IT,
    )


def _video_memory(given: JudgeInput) -> Judgement:
    if given.expected.gpu_type == "mps":
        return skipped("Apple GPUs use the machine's memory")
    observed, needed, card = (
        given["gpu.vram_bytes"],
        given.expected.requires.vram_bytes,
        given.expected.card,
    )
    if needed is None and card is None:
        return skipped("no GPU memory declared, and the card is not in the facts", observed)
    split, by_torch = any(given.get("nvml.mig", [])), _by_torch(given)
    if by_torch is None and split:
        return unknown(
            "the card is split into partitions (MIG), and the driver reports only the memory of "
            "the whole card",
            needed,
            _ASK_TORCH,
        )
    # Only torch reports a part of a card that the driver does not report.
    if by_torch is not None and (
        split
        or observed is None
        or given.get("nvml.told_apart") is False
        or by_torch < VRAM_SHARE * observed
    ):
        observed = by_torch
    if observed is None:
        message = "no GPU reported its memory"
        return skipped(message) if needed is None else unknown(message, needed, _ASK_TORCH)
    judged = _enough(given, observed, needed)
    if split and judged.status is Status.FAIL:
        return _of_a_part(judged, observed, needed)
    if (
        judged.status is not Status.PASS
        and by_torch is None
        and given.get("nvml.told_apart") is False
    ):
        return _which(needed, str(given.get("gpu.name")))
    return judged


def _of_a_part(judged: Judgement, size: int, needed: int | None) -> Judgement:
    """Judge a part of a card by the spec's minimum: it may be smaller than the whole card."""
    if needed is not None and size >= needed * VRAM_SHARE:
        return passes(
            f"{format_bytes(size)} of GPU memory in a MIG partition, {format_bytes(needed)} "
            "required",
            needed,
            size,
        )
    return replace(
        judged,
        cause="a MIG partition of a card",
        fix=(
            "use a larger partition or a whole card, or lower `requires.vram` to the memory of "
            "the partition"
        ),
    )


def _by_torch(given: JudgeInput) -> int | None:
    """Return the memory of the smallest card that torch sees: that of a part if it is split."""
    sizes = given.get(f"{PER_CARD_PREFIX}memory.total_bytes", [given.get("memory.total_bytes")])
    return min((size for size in sizes if size is not None), default=None)


def _enough(given: JudgeInput, size: int, needed: int | None) -> Judgement:
    card, name = given.expected.card, given.expected.gpu_type
    required = Threshold((needed or 0) * VRAM_SHARE, "bytes", "nine tenths of requires.vram")
    if size < required.value:
        return fails(
            f"the GPU has only {format_bytes(size)} of memory, but {format_bytes(needed or 0)} is "
            "required",
            needed,
            size,
            "the GPU is a smaller model or a MIG partition",
            "use a GPU with more memory, or lower `requires.vram`",
            required,
        )
    if card is None:
        return passes(
            f"{format_bytes(size)} of GPU memory, {format_bytes(needed or 0)} required",
            needed,
            size,
            required,
        )
    least, most = memory_range(card.memory_bytes)
    bound = Threshold(least, "bytes", MEMORY_BAND.source)
    if least <= size <= most:
        return passes(
            f"{format_bytes(size)} of GPU memory, as expected for {name}",
            card.memory_bytes,
            size,
            bound,
        )
    part = "a part of a card (MIG, vGPU)"
    return fails(
        f"the GPU has {format_bytes(size)} of memory, but {name} has {format_bytes(least)} to "
        f"{format_bytes(most)}",
        card.memory_bytes,
        size,
        f"it is a different card, or {part if size < least else 'a variant with more memory'}",
        _OTHER_GPU,
        bound,
    )


def memory_range(listed_bytes: int) -> tuple[float, float]:
    """Return the least and the most bytes that a card with so many in its table may report."""
    return listed_bytes * _GB_TO_GIB * (1 - MEMORY_BAND.value), listed_bytes * (
        1 + MEMORY_BAND.value
    )


def _recovery(given: JudgeInput) -> Judgement:
    actions, fabric = (
        given["nvml.recovery"],
        [state for state in given["nvml.fabric"] if state is not None],
    )
    required = max((action for action in actions if action is not None), default=None)
    if required:
        message, fix = _ACTIONS.get(
            required, (f"the driver requests recovery action {required}", "restart the machine")
        )
        return fails(
            message,
            0,
            required,
            "the card or its driver could not recover from an error",
            f"{fix}; if the failure persists, use another machine",
        )
    unready = sorted({state for state in fabric if state != "completed"})
    if unready:
        return warns(
            f"the card's NVLink fabric registration is not complete: {', '.join(unready)}",
            "completed",
            unready,
            "the Fabric Manager has not initialized the NVLink switches, so CUDA may not start "
            "(error 802)",
            "start nvidia-fabricmanager, or restart the machine",
        )
    if required is None and not fabric:
        return skipped("neither recovery actions nor an NVLink fabric are reported for this card")
    if required is None:
        return passes(
            "the NVLink fabric is ready; the driver does not report recovery actions",
            "completed",
            "completed",
        )
    return passes(
        "no recovery action is needed" + (", and the NVLink fabric is ready" if fabric else ""),
        0,
        required,
    )


def _kernel_log(given: JudgeInput) -> Judgement:
    observed = given["nvml.xids"]
    if observed is None:
        return unknown(
            "the kernel log cannot be read (it needs root, and is not available in containers)"
        )
    fatal = [number for number in observed if number in FATAL_XIDS]
    if fatal:
        message = [
            f"Xid {number}{' (' + _XIDS[number] + ')' if number in _XIDS else ''}"
            for number in fatal
        ]
        return fails(
            f"the driver logged {format_list(message)}",
            [],
            fatal,
            "the card, its memory or its link has failed since the machine was started",
            RESTART_OR_REPLACE,
        )
    others = f"; other Xids: {format_list([str(xid) for xid in observed])}" if observed else ""
    return passes(
        f"no GPU faults since the machine was started{others}",
        "no GPU faults",
        observed or "none",
    )


def _diagnosis(given: JudgeInput) -> Judgement:
    level, failed = given["dcgm.level"], given["dcgm.failed"]
    if level is None:
        return skipped("dcgmi is not installed")
    if error := given["dcgm.error"]:
        return unknown(f"dcgmi diag -r {level} returned no result: {error}")
    if failed:
        return fails(
            f"dcgmi diag -r {level}: {format_list(failed, 3)}",
            [],
            failed,
            "NVIDIA's diagnostics found a fault",
            "follow the advice in the message from dcgmi; if the fault persists, use another "
            "machine",
        )
    return passes(
        f"dcgmi diag -r {level}: {given['dcgm.passed']} tests passed",
        "0 failed tests",
        "0 failed tests",
    )


JUDGES = {
    "D03": _model,
    "D04": _video_memory,
    "D07": _recovery,
    "D10": _diagnosis,
    "D11": _kernel_log,
}
