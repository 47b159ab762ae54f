"""Runs the diagnosis of NVIDIA's data center tool (DCGM), if it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from ..context import ObserverContext
from ..model import Readings, Tier

_PATIENCE_S = 280
_WRONG = ("fail", "warn", "error")
_MOST_NAMED, _LONGEST = 10, 300


def _diagnosis(context: ObserverContext) -> Readings:
    program = shutil.which("dcgmi", path=context.environ.get("PATH"))
    none: Readings = {
        "dcgm.level": None,
        "dcgm.failed": [],
        "dcgm.passed": None,
        "dcgm.error": None,
    }
    if program is None:
        return none
    level = 2 if context.expected.tier in (Tier.DEEP, Tier.BURN) else 1
    none["dcgm.level"] = level
    try:
        answer = subprocess.run(
            [program, "diag", "-r", str(level), "-j"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {**none, "dcgm.error": type(error).__name__}
    return {**none, **_parse_output(answer.stdout, answer.stderr)}


def _parse_output(output: str, errors: str) -> Readings:
    """Return the results in DCGM's answer, layouts 3 and 4: every `status`, by its test."""
    try:
        document = json.loads(output[output.index("{") :])
    except (ValueError, RecursionError):
        text = (errors or output).strip().splitlines()
        return {"dcgm.error": (text[0] if text else "no output")[:_LONGEST]}
    results = list(_results(document, ""))
    if not results:
        return {"dcgm.error": "no test results in its output"}
    wrong = {
        f"{name}: {status}{' (' + why + ')' if why else ''}"[:_LONGEST]
        for name, status, why in results
        if status.lower().startswith(_WRONG)
    }
    return {
        "dcgm.failed": sorted(wrong)[:_MOST_NAMED],
        "dcgm.passed": len({name for name, status, _ in results if status.lower() == "pass"}),
    }


def _results(part: Any, test: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(part, list):
        for value in part:
            yield from _results(value, test)
    elif isinstance(part, dict):
        test = str(part.get("name") or test)
        if isinstance(part.get("status"), str) and test:
            yield test, part["status"], _reason(part.get("warnings") or part.get("info"))
        for key, value in part.items():
            # The summary repeats the results of the test, without the reason.
            if key != "test_summary":
                yield from _results(value, test)


def _reason(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(filter(None, (_reason(item) for item in value)))
    if isinstance(value, dict):
        return str(value.get("warning") or "")
    return str(value) if value else ""


OBSERVERS = {"D10": _diagnosis}
