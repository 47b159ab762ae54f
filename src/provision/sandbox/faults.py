"""Scripted faults: NAME or NAME:ARGUMENT."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from provision.errors import UsageError
from provision.sandbox.api_errors import ApiError
from provision.sandbox.scripted_errors import InvalidErrorFile, ScriptedError, read_error_file
from provision.spelling import nearest_words


class FaultKind(NamedTuple):
    """A fault and its argument.

    `argument` is "" (none), the word for a location, "N" (a count; 1 by default), or "FILE".
    """

    meaning: str
    argument: str = ""


FAULT_KINDS: Final = {
    "stockout": FaultKind(
        "creating or starting in this zone fails, or jobs in this region: no resources are "
        "available",
        "ZONE",
    ),
    "quota": FaultKind("creating in this region fails: its GPU quota is exceeded", "REGION"),
    "no-training-quota": FaultKind(
        "the readable quotas of custom jobs in this region are 0", "REGION"
    ),
    "no-image": FaultKind("the registry does not have the image of a custom job (404)"),
    "quota-global": FaultKind("creating fails anywhere: GPUS_ALL_REGIONS is exceeded"),
    "exists": FaultKind(
        "the name of a new instance belongs to someone else's instance (409 ALREADY_EXISTS)"
    ),
    "busy": FaultKind(
        "the next N changes are refused with 409 (unable to queue the operation)", "N"
    ),
    "rate": FaultKind("the next N requests are refused with 429 and Retry-After: 1", "N"),
    "error-500": FaultKind("the next N requests fail with an internal error (500)", "N"),
    "unavailable": FaultKind("the next N requests fail with 503", "N"),
    "token-expiry": FaultKind(
        "the Nth request is refused once with 401, as for an expired token", "N"
    ),
    "hang": FaultKind("operations never end"),
    "lost-operation": FaultKind("operations no longer exist when their status is requested (404)"),
    "stuck-provisioning": FaultKind("a new instance stays PROVISIONING"),
    "hidden": FaultKind("the first N requests for a new instance return 404", "N"),
    "create-internal": FaultKind("creating ends with code 13: an internal error has occurred"),
    "create-aborted": FaultKind(
        "creating ends with code 10: Failed to perform tenant project creation"
    ),
    "act-as": FaultKind(
        "creating an instance or an execution job is refused: no permission to act as the service "
        "account (403)"
    ),
    "permission": FaultKind("every request is refused: a notebooks role is missing (403)"),
    "api-disabled": FaultKind("every request is refused: the Notebooks API is not enabled (403)"),
    "error": FaultKind(
        "an error from this JSON file, at the moment that the file specifies",
        "FILE",
    ),
    "external-ip": FaultKind(
        "creating with a public IP is refused by constraints/compute.vmExternalIpAccess (412)"
    ),
    "secure-boot": FaultKind(
        "creating without Secure Boot is refused by constraints/compute.requireShieldedVm (412)"
    ),
    "no-bucket": FaultKind(
        "a missing bucket is not found (by default, the first upload creates it)"
    ),
    "bucket-location": FaultKind(
        "every bucket is in this location, such as US-EAST1 or the multi-region EU", "LOCATION"
    ),
    "no-bucket-write": FaultKind(
        "the service account of an execution job or a custom job is not allowed to write to "
        "the bucket (403)"
    ),
    "no-wheel-write": FaultKind("adding a wheel to the bucket is refused (403)"),
    "no-logs": FaultKind("reading the output of a program in a custom job is refused (403)"),
    "pending-job": FaultKind("an execution job or a custom job stays PENDING"),
    "queued-job": FaultKind("a custom job stays QUEUED: other jobs use its quota"),
    "internal-job": FaultKind(
        "the next N custom jobs end with an internal error in the service", "N"
    ),
    "cancelled-by-other": FaultKind("a custom job is cancelled once it is RUNNING"),
    "worker-lost": FaultKind(
        "this replica of a custom job, such as workerpool1-0, is killed once all are RUNNING",
        "REPLICA",
    ),
    "worker-preempted": FaultKind(
        "the machine of this replica of a custom job, such as workerpool1-0, is reclaimed once its "
        "program has written TEXT (anything by default), or while it verifies itself: SIGTERM, "
        "then SIGKILL after 15 s, and a new machine unless retries are disabled",
        "REPLICA[:TEXT]",
    ),
    "replica-missing": FaultKind(
        "this replica of a custom job, such as workerpool1-0, never starts", "REPLICA"
    ),
    "silent-host": FaultKind(
        "the host of this replica of a custom job disappears from the network once all are "
        "RUNNING, and nothing ends",
        "REPLICA",
    ),
    "slow-link": FaultKind(
        "the link of this replica of a custom job carries 100 Mbit/s (needs network namespaces)",
        "REPLICA",
    ),
    "dead-kernel": FaultKind(
        "the kernel of an execution job is killed while its notebook is running"
    ),
    "lost-answer": FaultKind(
        "the next N runtime templates, execution jobs or custom jobs are created, but the "
        "response is lost (503)",
        "N",
    ),
    "no-guest-attributes": FaultKind(
        "reading guest attributes is refused, as by "
        "constraints/compute.disableGuestAttributesAccess (403)"
    ),
    "silent-device": FaultKind("the device boots but does not report anything"),
    "script-failure": FaultKind("the startup script fails on the device"),
    "wrong-gpu": FaultKind("the device has a different GPU than requested"),
    "forged-report": FaultKind("the device sends a report with a wrong nonce"),
}


_REPLICA = re.compile(r"workerpool[0-3]-[0-9]+")


class Faults:
    """The faults of a sandbox with their remaining counts."""

    def __init__(self, scripts: Iterable[str] = ()) -> None:
        """Read the scripts; raises UsageError for an unknown fault or a missing argument."""
        self._lock = threading.RLock()
        self._locations: dict[str, set[str]] = {}
        self._left: dict[str, int] = {}
        self._scripted: list[ScriptedError] = []
        for script in scripts:
            self._read(script)

    def has(self, name: str, location: str = "") -> bool:
        """Return whether a fault is set; with `location`, for that zone or region."""
        return name in self._locations and (not location or location in self._locations[name])

    def locations(self, name: str) -> frozenset[str]:
        """Return the zones or regions of a fault."""
        return frozenset(self._locations.get(name, ()))

    def find_missing_replica(self, replicas: Iterable[str]) -> str:
        """Return the first fault that names a replica which a job does not have; "" if none."""
        names = frozenset(replicas)
        for fault, locations in self._locations.items():
            if not FAULT_KINDS[fault].argument.startswith("REPLICA"):
                continue
            for location in sorted(locations):
                if location.partition(":")[0] not in names:
                    return f"{fault}:{location}"
        return ""

    def consume(self, name: str) -> bool:
        """Return whether a counted fault happens now, and count it."""
        with self._lock:
            if not self._left.get(name):
                return False
            self._left[name] -= 1
            return True

    def is_nth_request(self, name: str) -> bool:
        """Count a request and return whether it is the Nth: true once."""
        with self._lock:
            return self.consume(name) and not self._left[name]

    def consume_scripted_error(self, at: str, zone: str = "") -> ApiError | None:
        """Return the error for a moment (one of MOMENTS) in a zone and count it, or None."""
        with self._lock:
            for number, error in enumerate(self._scripted):
                if error.at != at or error.zone not in ("", zone) or error.times == 0:
                    continue
                if error.times is not None:
                    self._scripted[number] = error._replace(times=error.times - 1)
                return error.to_api_error()
        return None

    def _read(self, script: str) -> None:
        name, colon, argument = script.partition(":")
        if (kind := FAULT_KINDS.get(name)) is None:
            near = nearest_words(name, FAULT_KINDS, most=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"the faults are: {', '.join(FAULT_KINDS)}"
            )
            raise UsageError(f"--fault {script}: unknown fault", hint=hint)
        if kind.argument == "N":
            if colon and not (argument.isdecimal() and int(argument)):
                raise UsageError(
                    f"--fault {script}: {argument!r} is not a positive number",
                    hint=f"pass a positive number, for example: --fault {name}:2",
                )
            self._left[name] = int(argument or 1)
        elif kind.argument and not argument:
            raise UsageError(
                f"--fault {script}: this fault requires a {kind.argument.lower()}",
                hint=f"use the form --fault {name}:{kind.argument}",
            )
        elif argument and not kind.argument:
            raise UsageError(
                f"--fault {script}: this fault takes no argument", hint=f"use --fault {name}"
            )
        elif kind.argument.startswith("REPLICA"):
            if not _REPLICA.fullmatch(argument.partition(":")[0]):
                raise UsageError(
                    f"--fault {script}: {argument.partition(':')[0]!r} is not the name of a "
                    "replica",
                    hint="pass workerpool0-0 (the primary machine), or workerpool1-0 and so on",
                )
        elif kind.argument == "FILE":
            self._scripted.append(_read_scripted_error(script, argument))
        self._locations.setdefault(name, set()).add(argument)


def _read_scripted_error(script: str, path: str) -> ScriptedError:
    try:
        return read_error_file(Path(path))
    except OSError as error:
        raise UsageError(
            f"--fault {script}: the file cannot be read: {error.strerror}",
            hint="pass the path of a JSON file",
        ) from None
    except InvalidErrorFile as error:
        hint = (
            'example: {"at": "operation", "code": 7, "message": "Quota \'CPUS\' '
            'exceeded.  Limit: 1.0 in region us-central1."}'
        )
        raise UsageError(
            f"--fault {script}: the file does not describe an error to return",
            why=str(error),
            hint=hint,
        ) from None
