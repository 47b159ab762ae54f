"""Re-judging of a report: its verdict, checks and digests must follow from its readings.

A report that arrives from a device is judged again with the probe's own functions. Values that
the probe does not publish, or publishes redacted, cannot be judged again: a report that is made
up whole and consistently is believed (docs/explanation/parity.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provision.agent.core.redact import REDACTED
from provision.agent.core.versions import UnreadableVersion, is_same_version
from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.expectations import Expectations, parse_expectations
from provision.agent.probe.judging import judge
from provision.agent.probe.model import (
    Judgement,
    ObservationLog,
    ReadingClass,
    SelectedCheck,
    Status,
    Verdict,
)
from provision.agent.probe.readings import class_of_reading
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import JudgedCheck, reported_causes, verdict_of
from provision.agent.probe.report_json import canonical_digest
from provision.sanitize import escape_line

_PLACEHOLDERS = (REDACTED, "<email>", "<user>", "<host>", "~")
"""Placeholders of the probe for secrets and names: such a value cannot be judged again."""
_JUDGED_STATUSES = (Status.PASS, Status.SKIP)
"""Statuses that only a judge gives.

A check whose observer died or raised fails, warns if nothing requires it, or is unknown, and no
reading shows why.
"""
_MAX_SHOWN = 80
_MAX_NAMED = 5


class _RedactedReading(Exception):
    """A judge needs a reading that reports do not publish, or publish redacted."""


class _PublishedReadings(Mapping[str, Any]):
    """A report's readings as input of the judges, in place of all that was observed."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        if key not in self._values and class_of_reading(key) is None:
            raise _RedactedReading
        value = self._values[key]
        if _is_redacted(repr(value)):
            raise _RedactedReading
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def find_contradictions(
    document: Mapping[str, Any], promised: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the contradictions in a report and with its expectations, as sentences.

    Args:
        document: A document that `read_untrusted_report` accepted, from this version's probe.
        promised: The expectations that the report answers (`provision.expectations/1`).
    """
    expected = replace(
        parse_expectations({**promised, "nonce": document["subject"]["nonce"]}),
        simulated=tuple(document["subject"]["simulated"]),
    )
    selected = select_checks(expected)
    if contradictions := tuple(_check_rows(document["checks"], selected)):
        return contradictions
    values = {row["key"]: row["value"] for row in document["readings"]}
    return (
        *_readings(document),
        *_verdict(document, expected, selected),
        *_expectations(document, expected, values),
        *_judgements(document["checks"], expected, selected, values),
    )


def _check_rows(
    rows: Sequence[Mapping[str, Any]], selected: Sequence[SelectedCheck]
) -> Iterator[str]:
    """Compare the rows with the checks that the expectations select, in the catalogue's order."""
    ids = [row["id"] for row in rows]
    missing = [check.id for check in selected if check.id not in ids]
    if missing:
        names = ", ".join(missing[:_MAX_NAMED])
        if len(missing) > _MAX_NAMED:
            names += f" and {len(missing) - _MAX_NAMED} more"
        verb, pronoun = ("is", "it") if len(missing) == 1 else ("are", "them")
        yield f"{names} {verb} missing, although this verification requires {pronoun}"
    elif ids != [check.id for check in selected]:
        yield (
            "its checks differ from the checks of this verification: some are added, repeated "
            "or in a different order"
        )
    else:
        for row, check in zip(rows, selected, strict=True):
            published = {
                "group": check.check.group,
                "title": check.title,
                "required": check.required,
                "causes": reported_causes(check.check, Status(row["status"])),
            }
            changed = [key for key, value in published.items() if row[key] != value]
            if changed:
                yield f"fields of {check.id} were changed: {', '.join(changed)}"


def _readings(document: Mapping[str, Any]) -> Iterator[str]:
    rows = document["readings"]
    keys = [row["key"] for row in rows]
    if keys != sorted(set(keys)):
        yield "its readings are repeated, or are not in the order in which the probe writes them"
    for row in rows:
        expected = class_of_reading(row["key"])
        if expected is None or expected.value != row["class"]:
            yield (
                f"the reading {_shorten(row['key'])} has class {_shorten(row['class'])}, but "
                "the probe writes "
                f"{f'class {expected.value}' if expected else 'no such reading'}"
            )
    identity = canonical_digest(
        {row["key"]: row["value"] for row in rows if row["class"] == ReadingClass.IDENTITY.value}
    )
    if identity != document["digests"]["identity"]:
        yield (
            f"its identity digest is {_shorten(document['digests']['identity'])}, but its "
            f"readings give {identity}"
        )


def _verdict(
    document: Mapping[str, Any], expected: Expectations, selected: Sequence[SelectedCheck]
) -> Iterator[str]:
    judged = [
        JudgedCheck(check, Judgement(Status(row["status"]), row["message"]), row["seconds"])
        for check, row in zip(selected, document["checks"], strict=True)
    ]
    reported, derived = document["verdict"], verdict_of(expected, judged, False, Redactor())
    if reported["result"] != derived["result"]:
        simulated = ""
        if derived["result"] == Verdict.SIMULATED.value:
            simulated = f" (simulated: {_shorten(', '.join(expected.simulated))})"
        yield (
            f"its verdict is {reported['result']}, but its checks give "
            f"{derived['result']}{simulated}"
        )
        return
    if reported["counts"] != derived["counts"]:
        yield "its counts do not match its checks"
    if reported["first_cause"] != derived["first_cause"]:
        yield (
            f"its first cause is {_shorten(str(reported['first_cause']))}, but its checks give "
            f"{derived['first_cause']}"
        )
    # The probe redacts the sentence whole and each message alone: the results may differ.
    elif reported["sentence"] != derived["sentence"] and not _is_redacted(derived["sentence"]):
        yield (
            f"its sentence is {_shorten(reported['sentence'])!r}, but its checks give "
            f"{_shorten(derived['sentence'])!r}"
        )


def _expectations(
    document: Mapping[str, Any], expected: Expectations, values: Mapping[str, Any]
) -> Iterator[str]:
    """Compare what the judges observed and the report publishes in part: Python and packages."""
    for name, reported, promised in (
        ("proof", document["subject"]["proof"], expected.proof.value),
        ("tier", document["tier"], expected.tier.value),
    ):
        if reported != promised:
            yield f"its {name} is {_shorten(reported)}, expected {promised}"
    packages = document["packages"]
    if packages["locked"] != len(expected.packages):
        yield (
            f"it checked {packages['locked']} locked packages, expected {len(expected.packages)}"
        )
    passed = {row["id"] for row in document["checks"] if row["status"] == Status.PASS.value}
    minor = ".".join(expected.python_version.split(".")[:2])
    if "P01" in passed and (
        values.get("python.minor") != minor or values.get("python.prefix_matches") is not True
    ):
        yield (
            "P01 passes, but the readings show Python "
            f"{_shorten(str(values.get('python.minor')))} instead of {minor}, or a different "
            "environment"
        )
    matches = not packages["differences"] and packages.get("matching") == len(expected.packages)
    if "P02" in passed and not (matches and _has_locked_versions(values, expected)):
        yield "P02 passes, but the report lists packages that differ from the lock"
    if "P07" in passed and values.get("packages.altered") != []:
        yield "P07 passes, but the report lists modified files"


def _has_locked_versions(values: Mapping[str, Any], expected: Expectations) -> bool:
    for name in expected.direct:
        version, locked = values.get(f"package.{name}"), expected.packages.get(name)
        if locked is None or f"package.{name}" not in values:
            continue
        try:
            if not isinstance(version, str) or not is_same_version(locked, version):
                return False
        except UnreadableVersion:
            return False
    return True


def _judgements(
    rows: Sequence[Mapping[str, Any]],
    expected: Expectations,
    selected: Sequence[SelectedCheck],
    values: Mapping[str, Any],
) -> Iterator[str]:
    """Judge the published readings again and compare the statuses."""
    readings = _PublishedReadings(values)
    log = ObservationLog({check.id for check in selected})
    for check, row in zip(selected, rows, strict=True):
        status = Status(row["status"])
        if status not in _JUDGED_STATUSES and not (check.required and status is Status.WARN):
            continue
        try:
            derived = judge(check, expected, readings, log).status
        except _RedactedReading:
            continue
        except Exception as error:  # noqa: BLE001
            # A forged value can make a judge raise anything.
            problem = "its readings cannot be judged"
            if isinstance(error, KeyError) and error.args:
                problem = f"the reading {_shorten(str(error.args[0]))} is missing"
            yield f"{check.id} is {status.value}, but {problem}"
            continue
        if derived is not status:
            yield f"{check.id} is {status.value}, but its readings give {derived.value}"


def _is_redacted(text: str) -> bool:
    return any(placeholder in text for placeholder in _PLACEHOLDERS)


def _shorten(text: str) -> str:
    line = escape_line(text)
    return line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "…"
