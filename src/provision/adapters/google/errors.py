"""Classifies errors of Google Cloud: scope, plain message and hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from provision.adapters.google.error_hints import ErrorPattern
from provision.adapters.google.error_patterns import ERROR_PATTERNS
from provision.adapters.google.service_errors import ServiceError
from provision.errors import ExternalError
from provision.sanitize import escape_control, redact

T = TypeVar("T")


class FailureScope(Enum):
    """The scope of a failure, and so what is left to try."""

    RETRY = "retry"  # the same call again, later
    ZONE = "zone"  # another zone
    REGION = "region"  # a zone of another region
    GLOBAL = "global"  # nothing in this project
    FATAL = "fatal"  # nothing, until a person changes something


@dataclass(frozen=True, slots=True)
class CloudFailure:
    """A classified error.

    `kind` names its pattern, `why` is the sanitized text of the service. `max_retries` is how often
    the whole call may be repeated (None: for as long as the policy allows); `zones_available` are
    zones with capacity according to the service.
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
    """A call that Google Cloud refused or could not perform."""

    def __init__(self, failure: CloudFailure) -> None:
        super().__init__(failure.what, why=failure.why, hint=failure.hint)
        self.failure = failure


def fatal_error(kind: str, what: str, why: str, hint: str) -> CloudError:
    """Return the error for a failure that stays until a person changes something."""
    return CloudError(CloudFailure(FailureScope.FATAL, kind, what, why, hint))


def none_if_missing(call: Callable[[], T]) -> T | None:
    """Return the result of a call, None if the service does not find the resource."""
    try:
        return call()
    except CloudError as error:
        if error.failure.kind == "not-found":
            return None
        raise


def classify_error(error: ServiceError, project: str = "PROJECT") -> CloudFailure:
    """Return the meaning of a service's error; `project` is for the commands of its hint.

    Code, reason and text are judged together, never one alone: a quota arrives as
    PERMISSION_DENIED, and Workbench keeps only the message of Compute Engine's error.
    """
    for pattern in ERROR_PATTERNS:
        if (groups := _match_pattern(pattern, error)) is not None:
            return _failure_from_pattern(pattern, error, groups, project)
    raise AssertionError("the error does not match any known pattern")


def _match_pattern(pattern: ErrorPattern, error: ServiceError) -> Mapping[str, str] | None:
    """Return the named groups of the matching text, {} for a match without, None for no match."""
    if pattern.codes and error.code not in pattern.codes:
        return None
    if pattern.operation is not None and pattern.operation != error.operation:
        return None
    for text in pattern.patterns:
        if match := re.search(text, error.message):
            return {key: value for key, value in match.groupdict().items() if value}
    if error.reason in pattern.reasons or not (pattern.patterns or pattern.reasons):
        return {}
    return None


def _failure_from_pattern(
    pattern: ErrorPattern, error: ServiceError, groups: Mapping[str, str], project: str
) -> CloudFailure:
    zones = tuple(
        zone
        for zone in re.split(r"[,\s]+", error.metadata.get("zonesAvailable", ""))
        if re.fullmatch(r"[a-z]+-[a-z]+[0-9]+-[a-z]", zone)
    )
    values = {key: _plain_value(value) for key, value in {**error.metadata, **groups}.items()}
    values = {"project": project, "status": error.status, **values, "zones": ", ".join(zones)}
    scope, what, hint = (
        template(values) if callable(template) else template
        for template in (pattern.scope, pattern.what, pattern.hint)
    )
    origin = "connection error" if pattern.kind == "unreachable" else "Google Cloud reported"
    return CloudFailure(
        scope=FailureScope(scope),
        kind=pattern.kind,
        what=_fill_template(what, values),
        why=f"{origin}: {redact(escape_control(error.message))} ({_code_text(error)})",
        hint=_fill_template(hint, values),
        zones_available=zones,
        max_retries=pattern.max_retries,
        retry_after_s=error.retry_after_s,
    )


def _code_text(error: ServiceError) -> str:
    number = f"HTTP {error.http}" if error.http else f"code {error.code}"
    return ", ".join(filter(None, (error.status, number, _plain_value(error.reason))))


def _plain_value(text: str) -> str:
    """Return a value of the service if it is safe in a command, else ""."""
    return text if re.fullmatch(r"[A-Za-z0-9_./:@ -]{0,300}", text) else ""


def _fill_template(template: str, replacements: Mapping[str, str]) -> str:
    """Return the template with the known values; unknown ones are written in capitals, as ZONE."""
    return re.sub(
        r"\{(\w+)\}",
        lambda match: replacements.get(match[1]) or match[1].upper().replace("_", "-"),
        template,
    )
