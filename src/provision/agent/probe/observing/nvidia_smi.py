"""Driver and cards as nvidia-smi reports them, for machines whose NVML cannot be called."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...core.nvidia_smi import find_nvidia_smi, parse_rows, query_arguments
from ...core.process import NOT_STARTED, TIMED_OUT, run_process
from ..model import Readings

_MIB = 2**20
_TIMEOUT_S = 15
_NO_ANSWER = 255
"""Stands for the exit code of a program that did not start or end."""
_FIELDS = ("driver_version", "name", "memory.total", "memory.used")
_MORE: tuple[tuple[str, ...], ...] = (
    ("pci.device_id", "compute_cap", "clocks_event_reasons.active"),
    ("pci.device_id", "compute_cap", "clocks_throttle_reasons.active"),
    ("retired_pages.pending",),
    ("uuid", "pci.bus_id", "persistence_mode", "pcie.link.width.current", "pcie.link.width.max"),
    (
        "ecc.mode.current",
        "ecc.errors.uncorrected.volatile.total",
        "mig.mode.current",
        "compute_mode",
        "power.limit",
        "power.default_limit",
    ),
)
"""Separate queries: one name that this nvidia-smi does not know makes it refuse the whole query."""
_MODES = {"Default": 0, "Prohibited": 2, "Exclusive_Process": 3}
_UNREPORTED: Readings = dict.fromkeys(
    ("remap_pending", "remap_failed", "recovery", "fabric", "pcie_most", "pcie_of_card")
)
"""Readings of NVML that nvidia-smi is not queried for."""


def query_nvidia_smi() -> Readings | None:
    """Return `driver` and `cards`, or the exit code as `error`; None without nvidia-smi."""
    program = find_nvidia_smi(os.environ)
    if program is None:
        return None
    code, rows = _query(program, _FIELDS)
    if code or not rows:
        # It ends with NVML's own code where the driver does not answer (its manual, RETURN VALUE).
        return {"error": code or 6, "driver": None, "cards": []}
    for fields in _MORE:
        _, more = _query(program, fields)
        if len(more) == len(rows):
            rows = [
                {**row, **fields_of_card} for row, fields_of_card in zip(rows, more, strict=True)
            ]
    return {
        "error": None,
        "driver": rows[0]["driver_version"],
        "cards": [_card(row) for row in rows],
    }


def _query(program: str, fields: Sequence[str]) -> tuple[int, list[dict[str, str]]]:
    answer = run_process([program, *query_arguments(fields)], _TIMEOUT_S, os.environ)
    rows = [] if answer.code else parse_rows(answer.stdout, fields)
    code = _NO_ANSWER if answer.code in (NOT_STARTED, TIMED_OUT) else answer.code
    return code, rows


def _card(row: dict[str, str]) -> Readings:
    pci, capability = row.get("pci.device_id", ""), row.get("compute_cap", "")
    uuid, pages = row.get("uuid", ""), row.get("retired_pages.pending", "").lower()
    reasons = (
        row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or ""
    )
    return {
        **_UNREPORTED,
        "name": row["name"] or None,
        "pci": f"{pci[6:]}:{pci[2:6]}".lower() if len(pci) == 10 else None,
        "uuid": uuid if uuid.startswith("GPU-") else None,
        "address": row.get("pci.bus_id", "").lower() or None,
        "capability": capability if capability[:1].isdigit() else None,
        "total_bytes": _number(row["memory.total"], _MIB),
        "used_bytes": _number(row["memory.used"], _MIB),
        "holders": [],
        "ecc": _switch(row.get("ecc.mode.current")),
        "uncorrected": _number(row.get("ecc.errors.uncorrected.volatile.total")),
        "retired_pending": {"yes": True, "no": False}.get(pages),
        "reasons": int(reasons, 16) if reasons.startswith("0x") else None,
        "mig": _switch(row.get("mig.mode.current")),
        "compute_mode": _MODES.get(row.get("compute_mode", "")),
        "persistence": _switch(row.get("persistence_mode")),
        "lanes": _number(row.get("pcie.link.width.current")),
        "lanes_most": _number(row.get("pcie.link.width.max")),
        "power_limit_mw": _number(row.get("power.limit"), 1000),
        "power_default_mw": _number(row.get("power.default_limit"), 1000),
    }


def _number(text: str | None, unit: int = 1) -> int | None:
    """A number in the given unit; None for "[N/A]", "[Not Supported]" and their like."""
    try:
        return round(float(text or "") * unit)
    except ValueError:
        return None


def _switch(text: str | None) -> bool | None:
    return {"Enabled": True, "Disabled": False}.get(text or "")
