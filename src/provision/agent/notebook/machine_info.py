"""Observation of this machine without torch: Python, GPUs, driver, system, memory, disk."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.nvidia_smi import find_nvidia_smi, parse_rows, query_arguments
from ..core.process import NOT_STARTED, TIMED_OUT, run_process

_CARD_FIELDS = ("name", "driver_version", "memory.total", "memory.used")
_PROCESS_FIELDS = ("pid", "process_name", "used_memory")
_TIMEOUT_S = 20.0
_IDLE_MIB = 600
"""Our choice: an idle GPU uses up to 500 MiB for its driver; a CUDA context with a model more."""


@dataclass(frozen=True, slots=True)
class GpuCard:
    """A GPU by the name in nvidia-smi; memory in MiB, None if it is not reported."""

    name: str
    driver: str
    memory_mib: int | None
    used_mib: int | None

    @property
    def is_in_use(self) -> bool:
        """Return whether a program already uses the GPU."""
        return (self.used_mib or 0) > _IDLE_MIB


@dataclass(frozen=True, slots=True)
class NotebookMachine:
    """Python, system, cards and sizes (in bytes) of a machine.

    Attributes:
        no_cards_reason: why there are no GPUs.
        gpu_processes: the processes with GPU memory, as text.
        disk_bytes: free disk space.
    """

    python: str
    os: str
    cards: tuple[GpuCard, ...]
    no_cards_reason: str
    gpu_processes: tuple[str, ...]
    ram_bytes: int | None
    disk_bytes: int | None

    @property
    def driver(self) -> str | None:
        """The version of the NVIDIA driver."""
        return self.cards[0].driver if self.cards else None


def inspect_machine(folder: Path, environ: Mapping[str, str]) -> NotebookMachine:
    """Return the values of this machine; free disk space is that of `folder`."""
    program = find_nvidia_smi(environ)
    cards: tuple[GpuCard, ...] = ()
    processes: tuple[str, ...] = ()
    reason = "nvidia-smi was not found"
    if program:
        cards, reason = _cards(program, environ)
        if any(card.is_in_use for card in cards):
            processes = _gpu_processes(program, environ)
    return NotebookMachine(
        platform.python_version(), _system(), cards, reason, processes, _memory(), _disk(folder)
    )


def _cards(program: str, environ: Mapping[str, str]) -> tuple[tuple[GpuCard, ...], str]:
    """Return the cards, or why there are none."""
    answer = run_process([program, *query_arguments(_CARD_FIELDS)], _TIMEOUT_S, environ)
    if answer.code == TIMED_OUT:
        return (), f"nvidia-smi did not respond within {_TIMEOUT_S:.0f} s"
    if answer.code == NOT_STARTED:
        return (), answer.stderr
    rows = parse_rows(answer.stdout, _CARD_FIELDS)
    if answer.code or not rows:
        output = answer.stdout.strip() or answer.stderr.strip()
        return (), (output or f"nvidia-smi exited with code {answer.code}").splitlines()[0][:200]
    cards = (
        GpuCard(name, driver, _number(memory), _number(used))
        for name, driver, memory, used in (row.values() for row in rows)
    )
    return tuple(cards), ""


def _gpu_processes(program: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    query = query_arguments(_PROCESS_FIELDS, "compute-apps")
    answer = run_process([program, *query], _TIMEOUT_S, environ)
    rows = parse_rows(answer.stdout, _PROCESS_FIELDS) if answer.code == 0 else []
    processes = []
    for row in rows:
        if row["pid"].isdecimal():
            name = f"process {row['pid']} ({row['process_name']})"
            if int(row["pid"]) == os.getpid():
                name = f"this kernel (process {row['pid']})"
            processes.append(f"{name} uses {row['used_memory']} MiB")
    return tuple(processes)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _system() -> str:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.system()
    fields = dict(line.partition("=")[::2] for line in lines)
    names = (fields.get("NAME", "Linux"), fields.get("VERSION_ID", ""))
    return " ".join(name.strip().strip('"') for name in names).strip()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _disk(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
