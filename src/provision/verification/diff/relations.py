"""Relations of two snapshots: abilities and capacities that only one side has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from provision.agent.probe.byte_sizes import format_bytes
from provision.diagnostics import Severity
from provision.facts import Facts
from provision.facts.versions import parse_version
from provision.verification.diff.build_problems import find_card
from provision.verification.diff.problems import Problem
from provision.verification.diff.snapshot import Snapshot
from provision.verification.report import to_number

_SMALLER = 0.75
"""Own choice: two machines of one size differ by less in what their kernel or ECC keep."""
_MAX_NAMED = 5


class _Capacity(NamedTuple):
    """A size of which less can be too little: its readings (the smallest counts) and checks."""

    what: str
    keys: tuple[str, ...]
    ids: tuple[str, ...]
    why: str
    fix: str


_CAPACITIES = (
    _Capacity(
        "GPU memory",
        ("gpu.vram_bytes",),
        ("D04", "MEM001", "MEM003", "MEM004", "MEM005"),
        "a run that just fits on the larger GPU ends with: CUDA out of memory",
        "use a GPU with as much memory, or a smaller batch and gradient checkpointing",
    ),
    _Capacity(
        "memory",
        ("host.ram_bytes", "host.cgroup_ram_bytes"),
        ("H05", "MEM002", "MEM007"),
        "the kernel or the container kills a process that needs more",
        "use a machine type with more memory, or raise the container's limit",
    ),
)


def find_lost_abilities(snapshot: Snapshot, other: Snapshot, facts: Facts) -> Iterator[Problem]:
    """Yield what the other side has and this one lacks."""
    yield from _lost_formats(snapshot, other, facts)
    yield from _lost_gpus(snapshot, other)
    for capacity in _CAPACITIES:
        yield from _lost_capacity(snapshot, other, capacity)


def find_changed_arguments(a: Snapshot, b: Snapshot, facts: Facts) -> Iterator[Problem]:
    """Yield the arguments of Trainer that only one of two releases of transformers takes."""
    versions = [parse_version(str(side.values.get("package.transformers"))) for side in (a, b)]
    if versions[0] is None or versions[1] is None or versions[0] == versions[1]:
        return
    older, newer = sorted(version for version in versions if version is not None)
    removed = [
        row
        for row in facts.arguments.values()
        if (last := parse_version(row.last)) is not None and older <= last < newer
    ]
    if removed:
        names = ", ".join(row.argument for row in removed[:_MAX_NAMED])
        more = f" and {len(removed) - _MAX_NAMED} more" if len(removed) > _MAX_NAMED else ""
        changes = [
            f"{row.replaced_by or row.instead} instead of {row.argument}"
            for row in removed[:_MAX_NAMED]
            if row.replaced_by or row.instead
        ]
        yield Problem(
            "TRN011",
            "",
            Severity.WARNING,
            f"TrainingArguments of transformers {newer} no longer has {names}{more}, which "
            f"{older} has",
            "a program that passes one of them ends with: got an unexpected keyword argument",
            f"use {'; '.join(changes)}" if changes else "use the same release on both sides",
            ("package.transformers",),
            ("TRN011", "PKG009"),
            removed[0].evidence.source,
        )


def _lost_formats(snapshot: Snapshot, other: Snapshot, facts: Facts) -> Iterator[Problem]:
    card, other_card = find_card(snapshot, facts), find_card(other, facts)
    if card is None or other_card is None or card.cc == other_card.cc:
        return
    capability = facts.capabilities.get(card.cc)
    other_capability = facts.capabilities.get(other_card.cc)
    if capability is None or other_capability is None:
        return
    lost = [
        name
        for name in other_capability.features
        if facts.has_feature(other_card, name) and not facts.has_feature(card, name)
    ]
    if lost:
        yield Problem(
            "T05",
            "",
            Severity.WARNING,
            f"{snapshot.values['gpu.name']} does not support {', '.join(lost)}; "
            f"{other.values['gpu.name']} does",
            "training in such a format fails, or is emulated and slow",
            "set fp16 for this GPU (fp16=True, bf16=False, tf32=False), or use a newer GPU",
            ("gpu.name", "gpu.compute_capability"),
            ("T05", "D03", "GPU002", "GPU003", "GPU004", "GPU008", "PKG017"),
            capability.evidence.source,
        )


def _lost_gpus(snapshot: Snapshot, other: Snapshot) -> Iterator[Problem]:
    count, others = (to_number(side.values.get("gpu.count")) for side in (snapshot, other))
    has_driver_problem = snapshot.values.get("driver.error") is not None
    if count is None or others is None or count >= others or has_driver_problem:
        return
    yield Problem(
        "D01",
        "count",
        Severity.WARNING if count else Severity.ERROR,
        f"{count:g} visible GPU{'' if count == 1 else 's'} instead of {others:g}",
        "a program written for more GPUs ends with: invalid device ordinal, or: no CUDA GPUs "
        "are available",
        "unset CUDA_VISIBLE_DEVICES if it hides GPUs; otherwise use a machine with as many GPUs",
        ("env.CUDA_VISIBLE_DEVICES", "gpu.count", "nvml.count"),
        ("D01", "T02", "C01"),
    )


def _lost_capacity(snapshot: Snapshot, other: Snapshot, capacity: _Capacity) -> Iterator[Problem]:
    sizes = []
    for side in (snapshot, other):
        numbers = [to_number(side.values.get(key)) for key in capacity.keys]
        sizes.append(min((number for number in numbers if number), default=None))
    size, other_size = sizes
    if size is None or other_size is None or size >= _SMALLER * other_size:
        return
    yield Problem(
        capacity.ids[0],
        "",
        Severity.WARNING,
        f"{format_bytes(size)} of {capacity.what} instead of {format_bytes(other_size)}",
        capacity.why,
        capacity.fix,
        capacity.keys,
        capacity.ids,
    )
