"""Programs for checks of the driver, its cards, their memory and speed, and of several cards
together.
"""

from __future__ import annotations

from typing import Any

from provision.agent.probe.checks.device import BURN_STEADINESS, FREE_SHARE, PRODUCT_FAILS
from provision.agent.probe.checks.driver import CARD_USED, FATAL_XIDS, VRAM_SHARE
from provision.agent.probe.checks.multi_gpu import BUS_WARNS
from provision.agent.probe.judging.cards import memory_range
from provision.agent.probe.observing.memory_test import PATTERNS
from provision.agent.probe.observing.speed import FORMATS
from provision.verification.repro.failed_check import (
    CaseBuilder,
    FailedCheck,
    NoShortProgram,
    Programs,
)

_AT_WORK_S, _MINUTE_S = 20, 60
_GIB = 2**30


def _driver(failed: FailedCheck) -> dict[str, Any]:
    if failed.check_id == "D02":
        return {"driver": failed.expected, "count": None}
    return {"driver": None, "count": int(str(failed.expected).partition(" x ")[0])}


def _cards(failed: FailedCheck) -> dict[str, Any]:
    identity, wanted = failed.check_id, failed.expected
    if failed.expectation("gpu", "type") == "mps":
        raise NoShortProgram("the program is for NVIDIA's cards")
    case: dict[str, Any] = {
        "count": None,
        "name": None,
        "least_bytes": None,
        "most_bytes": None,
        "capability": None,
    }
    if identity == "T02":
        return {**case, "count": int(str(wanted).partition(" x ")[0])}
    if identity == "D03":
        if not str(wanted)[:1].isalpha():
            raise NoShortProgram(
                "the short program looks for a name, and a compute capability is asked for"
            )
        return {**case, "name": wanted}
    if identity == "T05":
        return {**case, "capability": list(FORMATS[wanted])}
    if identity != "D04":
        return case
    if failed.message.endswith(" declared"):
        return {**case, "least_bytes": int(wanted * VRAM_SHARE)}
    least, most = memory_range(wanted)
    return {**case, "least_bytes": int(least), "most_bytes": int(most)}


def _slowed_idle(failed: FailedCheck) -> dict[str, Any]:
    if "while it works" in failed.message:
        raise NoShortProgram("the card slows itself down at work only")
    return {"what": "slowed"}


def _slowed_at_work(failed: FailedCheck) -> dict[str, Any]:
    return {
        "card": failed.gpu_index,
        "format": failed.readings.get("speed.format") or "fp16",
        "seconds": _AT_WORK_S,
        "share": 0.0,
    }


def _steady(failed: FailedCheck) -> dict[str, Any]:
    if failed.readings.get("burn.other_results"):
        raise NoShortProgram("the short program compares speeds, and products came out otherwise")
    return {
        "card": failed.gpu_index,
        "format": failed.readings.get("speed.format") or "fp16",
        "seconds": _MINUTE_S,
        "share": BURN_STEADINESS.value,
    }


def _held(failed: FailedCheck) -> dict[str, Any]:
    wanted = int(failed.expected_number(_GIB))
    if failed.check.get("status") == "warn":
        return {
            "card": failed.gpu_index,
            "bytes": 0,
            "free": int(FREE_SHARE.value * wanted),
            "words": [],
        }
    return {"card": failed.gpu_index, "bytes": wanted, "free": 0, "words": []}


def _written(failed: FailedCheck) -> dict[str, Any]:
    return {
        "card": failed.gpu_index,
        "bytes": int(failed.readings.get("memory.held_bytes") or _GIB),
        "free": 0,
        "words": list(PATTERNS),
    }


def _speed(what: str) -> CaseBuilder:
    return lambda failed: {
        "card": failed.gpu_index,
        "least": {
            what or str(failed.readings.get("speed.format") or "fp16"): failed.expected_number(0)
        },
    }


def _formats(failed: FailedCheck) -> dict[str, Any]:
    if failed.raised:
        raise NoShortProgram("the report does not say in which format")
    return {
        "card": failed.gpu_index,
        "least": {str(name): PRODUCT_FAILS.value * peak for name, peak in failed.expected.items()},
    }


def _together(ranks: int | None, share: float = 0.0) -> CaseBuilder:
    def values(failed: FailedCheck) -> dict[str, Any]:
        count = ranks or failed.expectation("gpu", "count") or failed.readings.get("gpu.count")
        if not isinstance(count, int):
            raise NoShortProgram("the report does not say how many cards compute together")
        return {
            "backend": "nccl",
            "processes": count,
            "bytes": _GIB if share else 0,
            "least_gb_s": share * failed.expected_number(0) if share else 0.0,
        }

    return values


PROGRAMS: Programs = {
    "D01": (("driver", _driver),),
    "D02": (("driver", _driver),),
    "D03": (("gpu", _cards),),
    "D04": (("gpu", _cards),),
    "D05": (("cards", lambda _: {"what": "errors"}),),
    "D06": (("cards", _slowed_idle), ("burning", _slowed_at_work)),
    "D07": (("recovery", lambda _: {}),),
    "D08": (("cards", lambda _: {"what": "used", "most": CARD_USED.value}),),
    "D09": (("settings", lambda _: {}),),
    "D10": (("dcgm", lambda failed: {"level": int(failed.readings.get("dcgm.level") or 1)}),),
    "D11": (("xids", lambda _: {"fatal": sorted(FATAL_XIDS)}),),
    "T02": (("gpu", _cards),),
    "T03": (("gpu", _cards),),
    "T05": (("gpu", _cards),),
    "M01": (("card_memory", _held),),
    "M02": (("card_memory", _written),),
    "B01": (("speed", _speed("copies")),),
    "B02": (("speed", _speed("moves")),),
    "F01": (("speed", _speed("")),),
    "F02": (("speed", _formats),),
    "F03": (("burning", _steady),),
    "C01": (("several", _together(1)),),
    "C02": (("several", _together(None)),),
    "C03": (("several", _together(None, BUS_WARNS.value)),),
}
