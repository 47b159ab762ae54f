"""Waiting for the report of a run on a device: what it tells on its way, and the one report that is accepted in the end."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provision.effects import AwaitReport, CloudReader, Tell
from provision.errors import WorldError
from provision.safe import redact, safe, safe_line

NAMESPACE = "provision"
LIMIT = 8 * 2**20
_SMALL = 64 * 2**10
_LOG = 4 * 2**20
_LAST_LINES = 12
_ENDED = ("STOPPED", "STOPPING", "SUSPENDED", "DELETED", "ORPHANED")
_PHASES = {
    "start": "boot: the instance runs its program",
    "driver": "driver: waiting for the NVIDIA driver",
    "system": "packages: installing system packages",
    "python": "packages: preparing Python",
    "packages": "packages",
    "kernel": "kernel: registering with Jupyter",
    "verify": "verification: the probe runs on the device",
    "report": "verification: the report is on its way",
}


class NoReport(WorldError):
    """No report that can be accepted came: the environment there is unverified."""

    exit_code = 3


class DeviceFailed(NoReport):
    """The device said that it could not make the environment."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Clock:
    """How waiting is done: seconds between two questions, the clock, and how to sleep.

    20 seconds keep to three questions a minute; all who ask an instance for guest attributes have ten (Compute Engine documentation, Guest attributes).
    """

    every_s: float = 20.0
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def await_report(effect: AwaitReport, cloud: CloudReader, tell: Tell, clock: Clock) -> bytes:
    """Return the report of one run as soon as it is there: it carries our nonce, and its bytes have the sha256 that the device told.

    Where guest attributes cannot be read, the status object in the bucket tells the same. Raises NoReport with the end of the device's log.
    """
    end, told, quiet = clock.now() + effect.timeout_s, "", False
    while True:
        attributes = cloud.guest_attributes(effect.name, NAMESPACE)
        if attributes is None and not quiet:
            quiet = True
            tell("guest attributes of the instance cannot be read: its status comes through the bucket")
        result = _ours((attributes or {}).get("result", ""), effect.nonce)
        status = _ours((attributes or {}).get("status", ""), effect.nonce) or _ours(_object(cloud, f"{effect.bucket_uri}status.json"), effect.nonce)
        if status and (words := _phase(status)) != told:
            told = words
            tell(words)
        if result is not None or (status or {}).get("s") == "done":
            report = cloud.object(f"{effect.bucket_uri}report.json", LIMIT)
            if report is not None:
                return _accepted(report, effect, result)
        if (status or {}).get("s") == "error":
            raise _failed(effect, cloud, status or {})
        if attributes == {} and (why := (cloud.guest_attributes(effect.name, "sandbox") or {}).get("unbooted")) is not None:
            raise NoReport("the startup program was not run: no machine can be isolated here", why=safe(why), hint="the rest of the sandbox works as it is")
        if (state := str((cloud.instance(effect.name) or {"state": "DELETED"}).get("state", ""))) in _ENDED:
            raise _without(effect, cloud, f"the instance is {state}, and it sent no report", "run `provision apply` again: it goes on where it was")
        if clock.now() >= end:
            raise _without(
                effect, cloud, f"nothing came within {effect.timeout_s // 60} minutes; last: {told or 'nothing was told'}", "wait on with `provision attach`"
            )
        clock.sleep(min(clock.every_s, max(0.0, end - clock.now())))


def _accepted(report: bytes, effect: AwaitReport, result: Mapping[str, Any] | None) -> bytes:
    if result is not None and result.get("sha256") != hashlib.sha256(report).hexdigest():
        hint = "someone else can write to the bucket, or the run was repeated: run `provision verify` again"
        raise NoReport("the report in the bucket is not the one that the device told of", why="its sha256 differs", hint=hint)
    try:
        nonce = json.loads(report)["subject"]["nonce"]
    except (ValueError, KeyError, TypeError, RecursionError):
        nonce = None
    if nonce != effect.nonce:
        raise NoReport("the report in the bucket answers another run", why="its nonce is not the one that was sent", hint="run `provision verify` again")
    return report


def _ours(text: str | bytes, nonce: str) -> dict[str, Any] | None:
    """Return what a device told, where it is of our run; anything else is nobody's."""
    try:
        told = json.loads(text) if text and len(text) <= _SMALL else None
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and told.get("n") == nonce else None


def _object(cloud: CloudReader, uri: str) -> bytes:
    return cloud.object(uri, _SMALL) or b""


def _phase(status: Mapping[str, Any]) -> str:
    phase = str(status.get("p", ""))
    if phase == "packages" and isinstance(status.get("of"), int) and status["of"]:
        return f"packages: {int(status.get('i') or 0)} of {status['of']}"
    return _PHASES.get(phase, safe_line(phase)[:80])


def _failed(effect: AwaitReport, cloud: CloudReader, status: Mapping[str, Any]) -> DeviceFailed:
    reason = safe_line(redact(str(status.get("e") or f"exit code {status.get('exit')}, line {status.get('line')}")))[:600]
    found = _without(effect, cloud, f"in phase {safe_line(str(status.get('p', '')))[:40]}: {reason}", "correct the cause, then run `provision apply` again")
    return DeviceFailed(found.what, why=found.why, hint=found.hint)


def _without(effect: AwaitReport, cloud: CloudReader, why: str, hint: str) -> NoReport:
    """Return the error with the end of the device's log, made harmless."""
    log = cloud.object(f"{effect.bucket_uri}log.txt", _LOG)
    lines = safe(redact(log.decode("utf-8", "replace"))).splitlines()[-_LAST_LINES:] if log else []
    text = "\n".join([why, *(f"log: {line[:300]}" for line in lines)])
    return NoReport(
        f"{effect.name.rpartition('/')[2]} was not verified", why=text, hint=f"{hint}\nthe whole log: gcloud storage cat {effect.bucket_uri}log.txt"
    )
