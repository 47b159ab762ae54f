"""Compares a stored verdict with what is promised of a target now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.targets import DRIVERS, TargetContext
from provision.verification import digest_of_expectations, expectations_of, probe_digest
from provision.verification.report import MAX_REPORT_BYTES


class Validity(Enum):
    """Relation of a stored verdict to the expectations and the probe of today."""

    CURRENT = "the same expectations, judged by this version's probe"
    EARLIER_PROBE = "the same expectations, judged by another version's probe"
    OTHER_EXPECTATIONS = "other expectations"


def assess_validity(context: TargetContext, stored: Mapping[str, Any], reader: Reader) -> Validity:
    """Return how a stored verdict relates to the expectations and the probe of today.

    The stored digest covers the expectations and the probe that judged them. So a verdict of an
    earlier probe is recognised by that probe's own digest, which is in the record, or in the
    report if the record was written before it had that field.
    """
    probe = probe_digest()
    if stored["expectations"] == expectations_digest(context, probe):
        return Validity.CURRENT
    earlier = str(stored.get("probe") or _probe_of_report(context, stored, reader))
    if stored["expectations"] == expectations_digest(context, earlier):
        return Validity.EARLIER_PROBE
    return Validity.OTHER_EXPECTATIONS


def expectations_digest(context: TargetContext, probe: str) -> str:
    """Return the digest over the expectations of a target and the probe that judges them."""
    kind = context.spec.targets[context.target].kind
    prefix = DRIVERS[kind].get_interpreter(context).prefix
    expectations = expectations_of(
        context.effective_spec, context.target, context.lock, context.environment, prefix
    )
    return digest_of_expectations(expectations, probe)


def _probe_of_report(context: TargetContext, stored: Mapping[str, Any], reader: Reader) -> str:
    """Return the digest of the probe that wrote the stored report; "" if it cannot be read."""
    try:
        content = reader.read(context.folder / str(stored["report"]), MAX_REPORT_BYTES)
        return str(json.loads(content)["tool"]["probe_sha256"])
    except (ExternalError, ValueError, KeyError, TypeError, RecursionError):
        return ""
