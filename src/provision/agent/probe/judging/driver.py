"""Judges the NVIDIA driver and the state of its cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.versions import UnreadableVersion, specifier_allows
from ..checks.driver import CARD_USED, DRIVER_FLOOR, NO_SLOWDOWN, slowdown_faults
from ..model import Judgement
from .judgement import (
    JudgeInput,
    fails,
    format_bytes,
    format_list,
    passes,
    skipped,
    unknown,
    warns,
)

_ERRORS: dict[int, tuple[str, str, str]] = {
    -1: (
        "there is no NVIDIA driver: its library cannot be found",
        "no GPU is attached, or its driver is not installed",
        "choose a machine or runtime with a GPU",
    ),
    4: (
        "the driver may not be used by this user",
        "the device files belong to others",
        "run as a user who may open /dev/nvidia*",
    ),
    6: ("the driver finds no GPU", "no GPU is attached", "choose a machine or runtime with a GPU"),
    9: (
        "the NVIDIA driver is not loaded",
        "no GPU is attached, a CPU runtime was chosen, or the kernel was upgraded",
        "choose a machine with a GPU, or install the driver anew",
    ),
    15: (
        "a GPU is lost: the driver no longer reaches it",
        "the card failed, or its link did",
        "restart the machine; if it is lost again, take another one",
    ),
    18: (
        "the driver's library and its kernel module are of different versions",
        "the driver was upgraded while it was in use",
        "restart the machine",
    ),
}
_ERRORS[12] = _ERRORS[-1]
"""By NVML's return code (nvml.h, nvmlReturn_t): message, cause, fix."""
_EXCLUSIVE, _PROHIBITED = 3, 2


def _opens(given: JudgeInput) -> Judgement:
    if given.expected.gpu_type == "mps":
        return skipped("Apple GPUs have no NVIDIA driver")
    code = given["driver.error"]
    required = f"{max(given.expected.gpu_count, 1)} x {given.expected.gpu_type}"
    if code is not None:
        message, cause, fix = _ERRORS.get(
            code,
            (
                f"the NVIDIA driver answers with error {code}",
                "see nvmlReturn_t in nvml.h",
                "restart the machine",
            ),
        )
        return fails(message, required, None, cause, fix)
    observed, names = given["nvml.count"], ", ".join(given["nvml.names"])
    count = given.get("nvml.count_all", observed)
    version, cuda = given["driver.version"], given["driver.cuda"]
    if observed != max(given.expected.gpu_count, 1) and count > observed:
        text = (
            f"CUDA_VISIBLE_DEVICES shows {observed} of the {count} GPUs that the driver sees, "
            f"{required} declared"
        )
        return fails(
            text,
            required,
            names,
            "the variable names another number of GPUs than the spec declares",
            "name as many GPUs there, or unset it",
        )
    if observed != max(given.expected.gpu_count, 1):
        return fails(
            f"the driver sees {observed} {'GPU' if observed == 1 else 'GPUs'}, {required} declared",
            required,
            names,
            "the machine has another number of GPUs than the spec declares",
            "change the machine type or gpu.count",
        )
    text = f"for CUDA up to {cuda}" if cuda else "told by nvidia-smi"
    hidden = f"; CUDA_VISIBLE_DEVICES shows {observed} of {count} GPUs" if count > observed else ""
    return passes(f"driver {version}, {text}: {names}{hidden}", required, names)


def _version(given: JudgeInput) -> Judgement:
    observed, needs = given["driver.version"], given.expected.driver_specifiers
    if not needs:
        return skipped("no driver version declared, and no CUDA is locked", observed)
    needed = ", ".join(dict.fromkeys(needs))
    if observed is None:
        return unknown("neither NVML nor nvidia-smi told a driver version", needed)
    try:
        unfit = next(
            (specifier for specifier in needs if not specifier_allows(specifier, observed)), None
        )
    except UnreadableVersion as error:
        return unknown(f"driver versions could not be compared: {error}", needed)
    if unfit is None:
        return passes(f"driver {observed} fits {needed}", needed, observed)
    fix = "choose an image with a newer driver, or a torch build for an older CUDA"
    if unfit == given.expected.requires.driver:
        return fails(
            f"driver {observed} does not fit {unfit}",
            unfit,
            observed,
            "the image brings another driver",
            fix,
        )
    flavour = given.expected.flavour
    message = f"driver {observed} does not fit {unfit}, which torch built for {flavour} needs"
    if given.get("gpu.available"):
        return warns(
            f"{message}, and torch computes all the same",
            unfit,
            observed,
            "a compatibility package (cuda-compat) stands in for a newer driver",
            fix,
        )
    return fails(
        message,
        unfit,
        observed,
        "the image brings an older driver than CUDA of that version runs on",
        fix,
        DRIVER_FLOOR,
    )


_ROWS, _PAGES = ("remap_pending", "remap_failed"), ("retired_pending",)
"""Faulty memory is replaced by rows from Ampere on, by pages before (nvml.h)."""
_DELIVERED_WITHOUT = re.compile(r"RTX|Quadro|GeForce|TITAN")
"""Names of cards for workstations and games, whose ECC is off as they are delivered
(support.chaos.com, "ECC State for Nvidia GPUs").
"""


def _damaged_memory(seen: Mapping[str, list[Any]]) -> Judgement | None:
    """Return why the memory of a card cannot be used as it is."""
    errors = max((count or 0 for count in seen["uncorrected"]), default=0)
    fault = f"{errors} uncorrected errors since boot" if errors else ""
    if any(seen["remap_failed"]):
        fault = "rows could not be remapped"
    if fault:
        return fails(
            f"the card's memory is faulty: {fault}",
            0,
            seen["uncorrected"],
            "the memory of the card wears out",
            "take another machine: delete this one and make it anew",
        )
    for key, part, repaired in (
        ("remap_pending", "row", "replaced"),
        ("retired_pending", "page", "retired"),
    ):
        if any(seen[key]):
            return fails(
                f"a faulty {part} of the card's memory waits to be {repaired}",
                False,
                True,
                f"it is {repaired} at the next start",
                "restart the machine",
            )
    return None


def _memory_errors(given: JudgeInput) -> Judgement:
    seen = {key: given.get(f"nvml.{key}", []) for key in ("ecc", "uncorrected", *_ROWS, *_PAGES)}
    if all(value is None for values in seen.values() for value in values):
        return skipped("these cards tell nothing of errors in their memory")
    if damaged := _damaged_memory(seen):
        return damaged
    if False in seen["ecc"] and not _DELIVERED_WITHOUT.search(str(given.get("gpu.name"))):
        return warns(
            "error correction (ECC) of the card's memory is off",
            True,
            False,
            "someone has switched it off to gain memory or speed; errors are then neither "
            "corrected nor counted, and no check sees them",
            "ask who runs the machine to switch it on, or take another one",
        )
    uncounted = sum(
        on is True and count is None
        for on, count in zip(seen["ecc"], seen["uncorrected"], strict=False)
    )
    if uncounted:
        # D05 is required: were this unknown, no machine with a virtual GPU could ever be verified.
        return warns(
            f"error correction (ECC) is on, and of {uncounted} of {len(seen['ecc'])} cards the "
            "driver does not tell how many errors there were",
            0,
            seen["uncorrected"],
            "a virtual GPU (vGPU), whose host alone may ask, or an old driver",
            "ask who runs the host for nvidia-smi -q -d ECC; M02 of the tier quick tests "
            "the memory itself",
        )
    return passes(f"no uncorrected errors{_of_repairs(seen)}", 0, 0)


def _of_repairs(seen: Mapping[str, Sequence[Any]]) -> str:
    text = ""
    for keys, repair in ((_ROWS, "no rows to be remapped"), (_PAGES, "no pages to be retired")):
        if any(value is not None for key in keys for value in seen[key]):
            text += f", {repair}"
    return text or "; of faulty rows and pages the driver tells nothing"


def _clocks(given: JudgeInput) -> Judgement:
    busy = {
        key.rpartition(".")[2]: names
        for key, names in given.seen.items()
        if key.startswith("nvml.slowed_during.")
    }
    masks = given["nvml.reasons"]
    if all(mask is None for mask in masks) and not busy:
        return skipped("these cards do not tell why their clocks are low")
    idle = slowdown_faults(masks)
    observed = sorted({*idle, *(name for names in busy.values() for name in names)})
    if observed:
        stages = ", ".join(sorted(stage for stage, names in busy.items() if names))
        when = "" if idle else f" while it works ({stages})"
        return fails(
            f"the card slows itself down{when}: {', '.join(observed)}",
            "none",
            observed,
            "the card is too hot, or its power supply gives too little",
            "take another machine when it stays so",
            NO_SLOWDOWN,
        )
    return passes(
        f"the card does not slow itself down{', idle or at work' if busy else ''}", "none", "none"
    )


def _others(given: JudgeInput) -> Judgement:
    pairs = [
        (used, total)
        for used, total in zip(given["nvml.used_bytes"], given["nvml.total_bytes"], strict=True)
        if used is not None and total
    ]
    if not pairs:
        return skipped("these cards do not tell how much of their memory is used")
    used, total = max(pairs, key=lambda pair: pair[0] / pair[1])
    if used > CARD_USED.value * total:
        pids = sorted({pid for processes in given.get("nvml.holders", []) for pid in processes})
        return fails(
            f"{format_bytes(used)} of {format_bytes(total)} of the card's memory are used",
            0,
            used,
            "another program or notebook holds "
            f"it{': process ' + format_list([str(pid) for pid in pids]) if pids else ''}",
            "end the other kernel or program: nvidia-smi names it",
            CARD_USED,
        )
    return passes(
        f"{format_bytes(total - used)} of {format_bytes(total)} of the card's memory are free",
        0,
        used,
    )


def _settings(given: JudgeInput) -> Judgement:
    if all(
        value is None
        for key in ("mig", "compute_mode", "power_limit_mw")
        for value in given[f"nvml.{key}"]
    ):
        return skipped("these cards do not tell how they are set up")
    modes = given["nvml.compute_mode"]
    wrong = [
        text
        for text, is_so in (
            ("the card is split into partitions (MIG)", any(given["nvml.mig"])),
            ("only one program at a time may compute", _EXCLUSIVE in modes),
            ("no program may compute", _PROHIBITED in modes),
        )
        if is_so
    ]
    wrong += [
        f"power is limited to {limit // 1000} W of {default // 1000} W"
        for limit, default in _lowered(given, "power_limit_mw", "power_default_mw")
    ]
    wrong += [
        f"its PCIe link has {now} of {most} lanes"
        for now, most in _lowered(given, "lanes", "lanes_most")
    ]
    # Idle links fall to a lower generation by themselves, so only what the slot allows counts.
    wrong += [
        f"its slot is of PCIe {most}, the card of PCIe {own}"
        for most, own in _lowered(given, "pcie_most", "pcie_of_card")
    ]
    if wrong:
        return fails(
            "; ".join(wrong),
            "as delivered",
            wrong,
            "someone has set the card up for another purpose, or put it into a lesser slot",
            "ask who runs the machine, or take another one",
        )
    return passes(
        "no partitions, any program may compute, full power and link",
        "as delivered",
        "as delivered",
    )


def _lowered(given: JudgeInput, key: str, full: str) -> list[tuple[int, int]]:
    """Return values of cards that are below their full value."""
    pairs = zip(given.get(f"nvml.{key}", []), given.get(f"nvml.{full}", []), strict=False)
    return [(value, most) for value, most in pairs if value and most and value < most]


JUDGES = {
    "D01": _opens,
    "D02": _version,
    "D05": _memory_errors,
    "D06": _clocks,
    "D08": _others,
    "D09": _settings,
}
