"""Looks at the NVIDIA driver and its cards without torch: NVML first, nvidia-smi where its library is not there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from . import Bench, Observer
from .nvml import NO_LIBRARY, Nvml, NvmlError

_SURVEY = "nvml"


def _opens(bench: Bench) -> dict[str, Any]:
    found = _survey(bench)
    names = [str(card["name"]) for card in found["cards"] if card["name"]]
    return {
        "driver.error": found["error"],
        "driver.by": found["by"],
        "driver.version": found["driver"],
        "driver.major": found["driver"].split(".")[0] if found["driver"] else None,
        "driver.cuda": found["cuda"],
        "nvml.count": len(found["cards"]) if found["by"] == "nvml" else None,
        "nvml.names": sorted(names),
    }


def _version(bench: Bench) -> dict[str, Any]:
    return {"driver.version": _survey(bench)["driver"]}


def _memory_errors(bench: Bench) -> dict[str, Any]:
    return {f"nvml.{key}": _each(bench, key) for key in ("ecc", "uncorrected", "remap_pending", "remap_failed")}


def _clocks(bench: Bench) -> dict[str, Any]:
    return {"nvml.reasons": _each(bench, "reasons")}


def _settings(bench: Bench) -> dict[str, Any]:
    return {f"nvml.{key}": _each(bench, key) for key in ("mig", "compute_mode", "power_limit_mw", "power_default_mw")}


def _others(bench: Bench) -> dict[str, Any]:
    return {f"nvml.{key}": _each(bench, key) for key in ("used_bytes", "total_bytes")}


def _each(bench: Bench, key: str) -> list[Any]:
    return [card[key] for card in _survey(bench)["cards"]]


def _survey(bench: Bench) -> dict[str, Any]:
    """Ask once, however many checks want to know."""
    if _SURVEY not in bench.memo:
        bench.memo[_SURVEY] = _asked()
    found: dict[str, Any] = bench.memo[_SURVEY]
    return found


def _asked() -> dict[str, Any]:
    empty: dict[str, Any] = {"by": "nvml", "error": None, "driver": None, "cuda": None, "cards": []}
    try:
        with Nvml() as library:
            driver, cuda = library.driver(), library.cuda()
            return {**empty, "driver": driver, "cuda": cuda, **_or_error(library.cards)}
    except NvmlError as error:
        program = shutil.which("nvidia-smi")
        version = _by_program(program) if error.code == NO_LIBRARY and program else None
        return {**empty, "by": "nvidia-smi", "driver": version} if version else {**empty, "error": error.code}


def _or_error(cards: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    try:
        return {"cards": cards()}
    except NvmlError as error:
        return {"error": error.code}


def _by_program(program: str) -> str | None:
    asked = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.split("\n")[0].strip() or None if answer.returncode == 0 else None


OBSERVERS: dict[str, Observer] = {
    "D01": _opens,
    "D02": _version,
    "D05": _memory_errors,
    "D06": _clocks,
    "D08": _others,
    "D09": _settings,
}
