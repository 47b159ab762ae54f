"""Whether a report follows from itself: its verdict from its checks, its checks from its readings,
and both from what was promised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provision.agent.core.redact import REDACTED
from provision.agent.core.versions import UnreadableVersion, is_same_version
from provision.agent.probe.canonical_json import canonical_digest
from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.expectations import Expectations, parse_expectations
from provision.agent.probe.judging import ObservationLog, judge
from provision.agent.probe.model import Judgement, ReadingClass, SelectedCheck, Status, Verdict
from provision.agent.probe.readings import class_of_reading
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import JudgedCheck, reported_causes, verdict_of
from provision.sanitize import escape_line

_STAND_INS = (REDACTED, "<email>", "<user>", "<host>", "~")
"""What the probe writes in place of secrets and names: a value with one of these in it can no
longer be judged.
"""
_STATUSES_OF_JUDGES = (Status.PASS, Status.SKIP)
"""What only a judge says; a check whose observer died or raised fails, warns where nothing requires
it, or is unknown, and no reading tells why.
"""
_SHOWN = 80


def find_contradictions(
    document: Mapping[str, Any], promised: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return, in words, where a report does not follow from itself or from what was promised
    (`provision.expectations/1`); () for a true one.

    `document` has been read by `read_foreign`, and was written by the probe of this very
    version: it is judged again with the probe's own functions.
    """
    expected = replace(
        parse_expectations({**promised, "nonce": document["subject"]["nonce"]}),
        simulated=tuple(document["subject"]["simulated"]),
    )
    wrong = tuple(_checks(document, expected))
    return wrong or (
        *_readings(document),
        *_verdict(document, expected),
        *_against_expectations(document, expected),
        *_judged_again(document, expected),
    )


def _checks(document: Mapping[str, Any], expected: Expectations) -> Iterator[str]:
    """The checks must be those that such a verification asks, in their order, and required where
    they are.
    """
    wanted, found = select_checks(expected), document["checks"]
    ids = [row["id"] for row in found]
    if missing := [one.id for one in wanted if one.id not in ids]:
        (
            yield f"{_named(missing)} {'is' if len(missing) == 1 else 'are'} missing, which this "
            "verification asks"
        )
        return
    if ids != [one.id for one in wanted]:
        (
            yield "it holds other checks than this verification asks, or holds them twice or in "
            "another order"
        )
        return
    for one, row in zip(wanted, found, strict=True):
        if row["required"] is not one.required:
            (
                yield f"{one.id} is {'required' if one.required else 'not required'}, and the "
                "report "
                "says otherwise"
            )
        if (row["group"], row["title"], row["causes"]) != (
            one.check.group,
            one.title,
            reported_causes(one.check, Status(row["status"])),
        ):
            yield f"what {one.id} says of itself was changed"


def _readings(document: Mapping[str, Any]) -> Iterator[str]:
    rows = document["readings"]
    keys = [row["key"] for row in rows]
    if keys != sorted(set(keys)):
        yield "its readings stand twice, or in another order than the probe writes them"
    for row in rows:
        if (kind := class_of_reading(row["key"])) is None or kind.value != row["class"]:
            (
                yield f"the reading {_short(row['key'])} is of class {_short(row['class'])}, and a "
                f"probe writes {kind.value if kind else 'none of that name'}"
            )
    identity = canonical_digest(
        {row["key"]: row["value"] for row in rows if row["class"] == ReadingClass.IDENTITY.value}
    )
    if identity != document["digests"]["identity"]:
        (
            yield f"its identity digest is {_short(document['digests']['identity'])}, and its "
            f"readings have {identity}"
        )


def _verdict(document: Mapping[str, Any], expected: Expectations) -> Iterator[str]:
    told = document["verdict"]
    follows = verdict_of(expected, _judged(document, expected), False, Redactor())
    if told["result"] != follows["result"]:
        simulated = (
            f", and not real is {_short(', '.join(expected.simulated))}"
            if follows["result"] == Verdict.SIMULATED.value
            else ""
        )
        (
            yield f"its verdict is {told['result']}, and from its own checks follows "
            f"{follows['result']}{simulated}"
        )
        return
    if told["counts"] != follows["counts"]:
        yield "the counts of its checks are not those of its checks"
    if told["first_cause"] != follows["first_cause"]:
        (
            yield f"its first cause is {_short(str(told['first_cause']))}, and from its checks "
            f"follows {follows['first_cause']}"
        )
    elif not _is_same_sentence(told["sentence"], follows["sentence"]):
        (
            yield f"its sentence is {_short(told['sentence'])!r}, and from its checks follows "
            f"{_short(follows['sentence'])!r}"
        )


def _is_same_sentence(told: str, follows: str) -> bool:
    """Tell whether two sentences are the same: what was left out of a check's message may have been
    left out of the sentence in another way.
    """
    first, *rest = re.split("|".join(map(re.escape, _STAND_INS)), follows)
    if not rest or not told.startswith(first):
        return told == follows
    place = len(first)
    for part in rest[:-1]:
        found = told.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return told[place:].endswith(rest[-1])


def _against_expectations(document: Mapping[str, Any], expected: Expectations) -> Iterator[str]:
    """What the judges saw and the report does not publish whole: Python and packages."""
    proof, tier = document["subject"]["proof"], document["tier"]
    if proof != expected.proof.value:
        (
            yield f"its proof is {_short(proof)}, and what was promised is proven by "
            f"{expected.proof.value}"
        )
    if tier != expected.tier.value:
        yield f"its tier is {_short(tier)}, and {expected.tier.value} was asked for"
    seen, passed = (
        _seen(document),
        {row["id"] for row in document["checks"] if row["status"] == Status.PASS.value},
    )
    minor = ".".join(expected.python_version.split(".")[:2])
    if "P01" in passed and (
        seen.get("python.minor") != minor or seen.get("python.prefix_matches") is not True
    ):
        (
            yield "P01 passes, and its readings tell Python "
            f"{_short(str(seen.get('python.minor')))} "
            f"where {minor} was promised, or another environment"
        )
    packages = document["packages"]
    if packages["locked"] != len(expected.packages):
        (
            yield f"it looked at {packages['locked']} locked packages, and "
            f"{len(expected.packages)} "
            "were promised"
        )
    shown = {name: seen[f"package.{name}"] for name in expected.direct if f"package.{name}" in seen}
    if "P02" in passed and (
        packages["differences"]
        or packages.get("matching") != len(expected.packages)
        or not _are_locked(shown, expected)
    ):
        yield "P02 passes, and the report tells of packages that differ from the lock"
    if "P07" in passed and seen.get("packages.altered") != []:
        yield "P07 passes, and the report tells of altered files"


def _are_locked(shown: Mapping[str, Any], expected: Expectations) -> bool:
    try:
        return all(
            isinstance(version, str) and is_same_version(expected.packages[name], version)
            for name, version in shown.items()
            if name in expected.packages
        )
    except UnreadableVersion:
        return False


def _judged_again(document: Mapping[str, Any], expected: Expectations) -> Iterator[str]:
    """What a check says against what its judge says of the readings, wherever these are published
    whole.
    """
    seen, wanted = _PublishedReadings(_seen(document)), select_checks(expected)
    account = ObservationLog(frozenset(one.id for one in wanted))
    for one, row in zip(wanted, document["checks"], strict=True):
        if Status(row["status"]) not in _STATUSES_OF_JUDGES and not (
            one.required and row["status"] == Status.WARN.value
        ):
            continue
        try:
            again = judge(one, expected, seen, account).status
        except _RedactedReading:
            continue
        except Exception as error:  # noqa: BLE001
            told = (
                f"there is no reading {error.args[0]}"
                if isinstance(error, KeyError) and error.args
                else "its readings cannot be judged"
            )
            yield f"{one.id} says {row['status']}, and {_short(told)}"
            continue
        if again.value != row["status"]:
            yield f"{one.id} says {row['status']}, and from its readings follows {again.value}"


class _RedactedReading(Exception):
    """A judge asked for what reports do not tell."""


class _PublishedReadings(Mapping[str, Any]):
    """The readings of a report in the place of all that observers noted."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told

    def __getitem__(self, key: str) -> Any:
        if key not in self._told and class_of_reading(key) is None:
            raise _RedactedReading
        value = self._told[key]
        if any(stand_in in repr(value) for stand_in in _STAND_INS):
            raise _RedactedReading
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)


def _seen(document: Mapping[str, Any]) -> dict[str, Any]:
    return {row["key"]: row["value"] for row in document["readings"]}


def _judged(document: Mapping[str, Any], expected: Expectations) -> list[JudgedCheck]:
    return [
        _to_judged(one, row)
        for one, row in zip(select_checks(expected), document["checks"], strict=True)
    ]


def _to_judged(one: SelectedCheck, row: Mapping[str, Any]) -> JudgedCheck:
    return JudgedCheck(one, Judgement(Status(row["status"]), row["message"]), row["seconds"])


def _named(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _short(text: str) -> str:
    line = escape_line(text)
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
