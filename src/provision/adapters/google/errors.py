"""What an error of Google Cloud means: how far it reaches, what it is in plain words, and the way
out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from provision.adapters.google.error_patterns import ERROR_PATTERNS, ErrorPattern
from provision.adapters.google.service_errors import ServiceError
from provision.errors import ExternalError
from provision.sanitize import escape_control, redact


class FailureScope(Enum):
    """How far a failure reaches: what is left to try."""

    RETRY = "retry"  # the same call again, later
    ZONE = "zone"  # another zone
    REGION = "region"  # a zone of another region
    GLOBAL = "global"  # nothing in this project
    FATAL = "fatal"  # nothing, until a person changes something


@dataclass(frozen=True, slots=True)
class CloudFailure:
    """One failure: `kind` names its row of the table, `why` is the service's own text made
    harmless, `hint` the way out.

    `repeats` is how often the whole call may be made again (None: as often as patience lasts);
    `zones_available` is where the service says that there is
    capacity.
    """

    scope: FailureScope
    kind: str
    what: str
    why: str
    hint: str
    zones_available: tuple[str, ...] = ()
    max_retries: int | None = 0
    retry_after_s: float | None = None


class CloudError(ExternalError):
    """A call that Google Cloud refused or could not do: `failure` says what it means."""

    def __init__(self, failure: CloudFailure) -> None:
        super().__init__(failure.what, why=failure.why, hint=failure.hint)
        self.failure = failure


def classify_error(fault: ServiceError, project: str = "PROJECT") -> CloudFailure:
    """Return what a fault means; `project` stands in the commands of its hint.

    Judged by code, reason and text together, never by one alone: a quota arrives as
    PERMISSION_DENIED, and Workbench keeps only the message of what
    Compute Engine told it.
    """
    for case in ERROR_PATTERNS:
        if (words := _match_pattern(case, fault)) is not None:
            return _failure_from_pattern(case, fault, words, project)
    raise AssertionError("the last case holds for every fault")


def _match_pattern(case: ErrorPattern, fault: ServiceError) -> Mapping[str, str] | None:
    """The words that the message gives to the case's text; None where the case does not hold."""
    if (case.codes and fault.code not in case.codes) or (
        case.operation is not None and case.operation != fault.operation
    ):
        return None
    for pattern in case.patterns:
        if found := re.search(pattern, fault.message):
            return {key: value for key, value in found.groupdict().items() if value}
    if fault.reason in case.reasons:
        return {}
    return None if case.patterns or case.reasons else {}


def _failure_from_pattern(
    case: ErrorPattern, fault: ServiceError, words: Mapping[str, str], project: str
) -> CloudFailure:
    said = {**fault.metadata, **words}
    zones = tuple(
        zone
        for zone in re.split(r"[,\s]+", fault.metadata.get("zonesAvailable", ""))
        if re.fullmatch(r"[a-z]+-[a-z]+[0-9]+-[a-z]", zone)
    )
    known = {
        "project": project,
        "status": fault.status,
        **{key: _plain_value(said[key]) for key in said},
        "zones": ", ".join(zones),
    }
    width = case.scope(known) if callable(case.scope) else case.scope
    what = case.what(known) if callable(case.what) else case.what
    hint = case.hint(known) if callable(case.hint) else case.hint
    return CloudFailure(
        scope=FailureScope(width),
        kind=case.kind,
        what=_fill_template(what, known),
        why=f"{'the connection' if case.kind == 'unreachable' else 'Google Cloud'} says: "
        f"{redact(escape_control(fault.message))} ({_code_text(fault)})",
        hint=_fill_template(hint, known),
        zones_available=zones,
        max_retries=case.max_retries,
        retry_after_s=fault.retry_after_s,
    )


def _code_text(fault: ServiceError) -> str:
    number = f"HTTP {fault.http}" if fault.http else f"code {fault.code}"
    return ", ".join(
        word for word in (f"{fault.status}, {number}", _plain_value(fault.reason)) if word
    )


def _plain_value(text: str) -> str:
    """A word of the service that may stand in a command: what is not one is left out."""
    return text if re.fullmatch(r"[A-Za-z0-9_./:@ -]{0,300}", text) else ""


def _fill_template(template: str, known: Mapping[str, str]) -> str:
    """The template with what is known; what is not known is written in capitals, as in ZONE."""
    return re.sub(
        r"\{(\w+)\}",
        lambda match: known.get(match[1]) or match[1].upper().replace("_", "-"),
        template,
    )
