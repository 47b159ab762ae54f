"""Judges the NVIDIA driver and the state of its cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.versions import UnreadableVersion, specifier_allows
from ..byte_sizes import format_bytes
from ..checks.driver import CARD_USED, DRIVER_FLOOR, NO_SLOWDOWN, slowdown_faults
from ..model import Judgement, Threshold
from .judgement import (
    END_OTHER_PROGRAM,
    RESTART_OR_REPLACE,
    JudgeInput,
    fails,
    format_list,
    passes,
    skipped,
    unknown,
    warns,
)

_ERRORS: dict[int, tuple[str, str, str]] = {
    -1: (
        "no NVIDIA driver: its library cannot be found",
        "no GPU is attached, or its driver is not installed",
        "use a machine or runtime with a GPU",
    ),
    4: (
        "this user does not have permission to use the driver",
        "the device files belong to other users",
        "run as a user who can open /dev/nvidia*",
    ),
    6: ("the driver finds no GPU", "no GPU is attached", "use a machine or runtime with a GPU"),
    9: (
        "the NVIDIA driver is not loaded",
        "no GPU is attached, a CPU runtime was selected, or the kernel was upgraded",
        "use a machine with a GPU, or reinstall the driver",
    ),
    15: (
        "a GPU is lost: the driver can no longer reach it",
        "the card or its link failed",
        RESTART_OR_REPLACE,
    ),
    18: (
        "the driver's library and kernel module have different versions",
        "the driver was upgraded while in use",
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
                f"the NVIDIA driver returned error {code}",
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
            f"CUDA_VISIBLE_DEVICES exposes {observed} of the {count} GPUs that the driver "
            f"sees, but the spec declares {required}"
        )
        return fails(
            text,
            required,
            names,
            "CUDA_VISIBLE_DEVICES lists a different number of GPUs than the spec declares",
            "list the declared number of GPUs in CUDA_VISIBLE_DEVICES, or unset it",
        )
    if observed != max(given.expected.gpu_count, 1):
        return fails(
            f"the driver sees {observed} {'GPU' if observed == 1 else 'GPUs'}, "
            f"but the spec declares {required}",
            required,
            names,
            "the machine has a different number of GPUs than the spec declares",
            "change the machine type or `gpu.count`",
        )
    text = f"for CUDA up to {cuda}" if cuda else "reported by nvidia-smi"
    hidden = (
        f"; CUDA_VISIBLE_DEVICES exposes {observed} of {count} GPUs" if count > observed else ""
    )
    return passes(f"driver {version}, {text}: {names}{hidden}", required, names)


def _version(given: JudgeInput) -> Judgement:
    observed, needs = given["driver.version"], given.expected.driver_specifiers
    if not needs:
        return skipped("no driver version is declared, and no CUDA build is locked", observed)
    needed = ", ".join(dict.fromkeys(needs))
    if observed is None:
        return unknown("neither NVML nor nvidia-smi reported a driver version", needed)
    try:
        unfit = next(
            (specifier for specifier in needs if not specifier_allows(specifier, observed)), None
        )
    except UnreadableVersion as error:
        return unknown(f"driver versions could not be compared: {error}", needed)
    if unfit is None:
        return passes(f"driver {observed} satisfies {needed}", needed, observed)
    fix = "use an image with a newer driver, or a torch build for an older CUDA"
    if unfit == given.expected.requires.driver:
        return fails(
            f"driver {observed} does not satisfy {unfit}",
            unfit,
            observed,
            "the image comes with a different driver than expected",
            fix,
        )
    flavour = given.expected.flavour
    message = f"driver {observed} does not satisfy {unfit}, which torch for {flavour} requires"
    if given.get("gpu.available"):
        return warns(
            f"{message}, but torch can use the GPU anyway",
            unfit,
            observed,
            "a compatibility package (cuda-compat) takes the place of a newer driver",
            fix,
        )
    return fails(
        message,
        unfit,
        observed,
        "the image has an older driver than this CUDA version requires",
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
            "the card's memory is failing",
            "delete and recreate this machine to get a different card",
        )
    for key, part, repaired in (
        ("remap_pending", "row", "replaced"),
        ("retired_pending", "page", "retired"),
    ):
        if any(seen[key]):
            return fails(
                f"a faulty {part} of the card's memory will be {repaired} at the next restart",
                False,
                True,
                f"the driver has found a faulty {part} since the last restart",
                "restart the machine",
            )
    return None


def _memory_errors(given: JudgeInput) -> Judgement:
    seen = {key: given.get(f"nvml.{key}", []) for key in ("ecc", "uncorrected", *_ROWS, *_PAGES)}
    if all(value is None for values in seen.values() for value in values):
        return skipped("these cards do not report memory errors")
    if damaged := _damaged_memory(seen):
        return damaged
    if False in seen["ecc"] and not _DELIVERED_WITHOUT.search(str(given.get("gpu.name"))):
        return warns(
            "error correction (ECC) for the card's memory is off",
            True,
            False,
            "ECC was turned off to free memory or gain speed; without it, errors are neither "
            "corrected nor counted, and no check can detect them",
            "ask the machine's administrator to turn ECC on, or use another machine",
        )
    uncounted = sum(
        on is True and count is None
        for on, count in zip(seen["ecc"], seen["uncorrected"], strict=False)
    )
    if uncounted:
        # D05 is required: were this unknown, no machine with a virtual GPU could ever be verified.
        return warns(
            "error correction (ECC) is on, but the driver does not report the number of errors "
            f"for {uncounted} of {len(seen['ecc'])} cards",
            0,
            seen["uncorrected"],
            "the driver is old, or the card is a virtual GPU (vGPU) and only the host can read its "
            "error counts",
            "ask the host's administrator to run `nvidia-smi -q -d ECC`; the M02 check (quick "
            "tier) tests the memory itself",
        )
    return passes(f"no uncorrected memory errors{_of_repairs(seen)}", 0, 0)


def _of_repairs(seen: Mapping[str, Sequence[Any]]) -> str:
    text = ""
    for keys, repair in ((_ROWS, "no rows to remap"), (_PAGES, "no pages to retire")):
        if any(value is not None for key in keys for value in seen[key]):
            text += f", {repair}"
    return text or "; the driver does not report faulty rows and pages"


def _clocks(given: JudgeInput) -> Judgement:
    busy = {
        key.rpartition(".")[2]: names
        for key, names in given.seen.items()
        if key.startswith("nvml.slowed_during.")
    }
    masks = given["nvml.reasons"]
    if all(mask is None for mask in masks) and not busy:
        return skipped("these cards do not report why their clocks are low")
    idle = slowdown_faults(masks)
    observed = sorted({*idle, *(name for names in busy.values() for name in names)})
    if observed:
        stages = ", ".join(sorted(stage for stage, names in busy.items() if names))
        when = "" if idle else f" under load ({stages})"
        return fails(
            f"the card is throttling{when}: {', '.join(observed)}",
            "no throttling",
            observed,
            "the card is too hot, or its power supply is too weak",
            "if the slowdown persists, use another machine",
            NO_SLOWDOWN,
        )
    return passes(
        f"the card is not throttling{', idle or under load' if busy else ''}",
        "no throttling",
        "no throttling",
    )


def _others(given: JudgeInput) -> Judgement:
    pairs = [
        (used, total)
        for used, total in zip(given["nvml.used_bytes"], given["nvml.total_bytes"], strict=True)
        if used is not None and total
    ]
    if not pairs:
        return skipped("these cards do not report how much of their memory is used")
    used, total = max(pairs, key=lambda pair: pair[0] / pair[1])
    bound = Threshold(CARD_USED.value * total, "bytes", CARD_USED.source)
    if used > bound.value:
        pids = sorted({pid for processes in given.get("nvml.holders", []) for pid in processes})
        return fails(
            f"{format_bytes(used)} of {format_bytes(total)} of GPU memory is in use",
            0,
            used,
            "another program or notebook is using "
            f"it{': process ' + format_list([str(pid) for pid in pids]) if pids else ''}",
            END_OTHER_PROGRAM,
            bound,
        )
    return passes(
        f"{format_bytes(total - used)} of {format_bytes(total)} of GPU memory is free",
        0,
        used,
        bound,
    )


def _settings(given: JudgeInput) -> Judgement:
    if all(
        value is None
        for key in ("mig", "compute_mode", "power_limit_mw")
        for value in given[f"nvml.{key}"]
    ):
        return skipped("these cards do not report their settings")
    modes = given["nvml.compute_mode"]
    wrong = [
        text
        for text, is_so in (
            ("the card is split into partitions (MIG)", any(given["nvml.mig"])),
            ("only one program at a time can use the card (compute mode)", _EXCLUSIVE in modes),
            ("no program can use the card (compute mode)", _PROHIBITED in modes),
        )
        if is_so
    ]
    wrong += [
        f"power is limited to {limit // 1000} W (the default is {default // 1000} W)"
        for limit, default in _lowered(given, "power_limit_mw", "power_default_mw")
    ]
    wrong += [
        f"its PCIe link uses only {now} of {most} lanes"
        for now, most in _lowered(given, "lanes", "lanes_most")
    ]
    # Idle links fall to a lower generation by themselves, so only what the slot allows counts.
    wrong += [
        f"the slot is PCIe {most}, but the card is PCIe {own}"
        for most, own in _lowered(given, "pcie_most", "pcie_of_card")
    ]
    if wrong:
        return fails(
            "; ".join(wrong),
            "default settings",
            wrong,
            "the card was configured for a different purpose, or is in a slower slot",
            "ask the machine's administrator, or use another machine",
        )
    return passes(
        "default settings: no MIG partitions, shared compute mode, full power limit, full "
        "PCIe link",
        "default settings",
        "default settings",
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
