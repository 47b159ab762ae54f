"""What this machine is, as far as it can be told without torch: Python, cards and driver by
nvidia-smi, system, memory, disk.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .process import NOT_STARTED, TIMED_OUT, run_process

_SMI_PLACES = ("/opt/bin/nvidia-smi", "/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
_ASKED = ("name", "driver_version", "memory.total", "memory.used")
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as nvidia-smi names it; memory in MiB, None where it does not tell."""

    name: str
    driver: str
    memory_mib: int | None
    used_mib: int | None


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """`no_cards` says why there are none. `holders` are the programs that hold GPU memory. Sizes in
    bytes; `disk_bytes` is what is free.
    """

    python: str
    os: str
    cards: tuple[Card, ...]
    no_cards_reason: str
    gpu_processes: tuple[str, ...]
    ram_bytes: int | None
    disk_bytes: int | None

    @property
    def driver(self) -> str | None:
        """The version of the NVIDIA driver."""
        return self.cards[0].driver if self.cards else None


def inspect_machine(folder: Path, environ: Mapping[str, str]) -> MachineInfo:
    """Look at the machine; `folder` is where disk space counts."""
    smi = shutil.which("nvidia-smi", path=environ.get("PATH")) or next(
        (path for path in _SMI_PLACES if os.access(path, os.X_OK)), None
    )
    cards, why = _cards(smi, environ) if smi else ((), "there is no nvidia-smi")
    holders = (
        _holders(smi, environ)
        if smi and any((card.used_mib or 0) > _MUCH_MIB for card in cards)
        else ()
    )
    return MachineInfo(
        platform.python_version(), _system(), cards, why, holders, _memory(), _disk(folder)
    )


_MUCH_MIB = 600
"""Own choice: a card without work holds 0 to 500 MiB for its driver; a CUDA context with a model
holds more.
"""


def is_card_in_use(card: Card) -> bool:
    """Tell whether something already works on a card."""
    return (card.used_mib or 0) > _MUCH_MIB


def _cards(smi: str, environ: Mapping[str, str]) -> tuple[tuple[Card, ...], str]:
    answer = run_process(
        [smi, f"--query-gpu={','.join(_ASKED)}", "--format=csv,noheader,nounits"],
        _TIMEOUT_S,
        environ,
    )
    if answer.code == TIMED_OUT:
        return (), f"nvidia-smi did not answer within {_TIMEOUT_S:.0f} s"
    if answer.code == NOT_STARTED:
        return (), answer.stderr
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
    found = tuple(
        Card(row[0], row[1], _number(row[2]), _number(row[3]))
        for row in rows
        if len(row) == len(_ASKED)
    )
    if answer.code or not found:
        return (), (
            answer.stdout.strip() or answer.stderr.strip() or f"nvidia-smi ended with {answer.code}"
        ).splitlines()[0][:200]
    return found, ""


def _holders(smi: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    answer = run_process(
        [smi, "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits"],
        _TIMEOUT_S,
        environ,
    )
    rows = (
        [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
        if answer.code == 0
        else []
    )
    return tuple(
        f"{_named(row[0], row[1])} holds {row[2]} MiB"
        for row in rows
        if len(row) == 3 and row[0].isdecimal()
    )


def _named(pid: str, name: str) -> str:
    return f"this kernel (process {pid})" if pid == str(os.getpid()) else f"process {pid} ({name})"


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _system() -> str:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.system()
    told = {
        key: value.strip().strip('"') for key, _, value in (line.partition("=") for line in lines)
    }
    return f"{told.get('NAME', 'Linux')} {told.get('VERSION_ID', '')}".strip()


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
