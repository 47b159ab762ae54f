"""A report as the terminal and the page both tell it: harmless text in order, nothing added and
nothing judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import Status
from provision.sanitize import escape_control, redact
from provision.views.formatting import format_amount, format_json_value, pluralize, text_or_empty

_CAUSES = {check.id: check.causes for check in CHECKS}
"""A report names the causes of what did not hold; of the rest they stand here."""

PROOF_NAMES = {
    "hf-trainer": "a Hugging Face Trainer run",
    "torch": "a plain PyTorch training run, without transformers.Trainer",
    "imports": "imports alone, without training",
}
_NO_EXCEPTION = "no exception"
"""What the probe writes where an import or a run worked: nobody declares it, and beside an error it
says nothing.
"""
_SHARE = "of the declared "
TRAINING_GROUP = "training"
"""The group of the checks that watch a training run."""
HEADLINES = {
    "verified": "VERIFIED",
    "simulated": "SIMULATED",
    "failed": "NOT AS DECLARED",
    "unverified": "UNVERIFIED",
    "error": "ERROR",
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number that was measured, and the bound it was held against; `name` tells several of one
    check apart; `source` may be empty.
    """

    name: str
    measured: float
    bound: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check as it is told. `expected` and `observed` are empty where the check compares
    nothing, `bound` and its `source` where it has none.
    """

    id: str
    group: str
    title: str
    status: Status
    required: bool
    expected: str
    observed: str
    message: str
    cause: str
    fix: str
    seconds: float
    bound: str
    source: str
    measures: tuple[Measurement, ...]

    @property
    def found(self) -> str:
        """What was observed, but where nothing stands against it and the message says it already."""  # noqa: E501
        return "" if not self.expected and self.observed in self.message else self.observed


_PASSING_RESULTS = ("verified", "simulated")
"""Verdicts with which every required check has passed."""


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """The checks of one group, in the report's order."""

    name: str
    lines: tuple[CheckLine, ...]

    @property
    def counts(self) -> dict[Status, int]:
        """How many checks ended in each status."""
        return {status: sum(line.status is status for line in self.lines) for status in Status}


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage: seconds of wall clock and CPU, peak memory in MiB, how it ended, the end of its
    output.
    """

    name: str
    wall_s: float
    cpu_s: float
    maxrss_mb: float
    ended: str
    tail: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """Everything a view of a report shows; every string is safe and free of secrets."""

    result: str
    headline: str
    sentence: str
    run: str
    name: str
    target: str
    kind: str
    tier: str
    created: str
    tool: str
    simulated: tuple[str, ...]
    spec_digest: str
    lock_digest: str
    environment_digest: str
    identity: str
    report_digest: str
    first_cause: str
    locked: int
    matching: int
    differences: tuple[tuple[str, str, str], ...]
    direct: tuple[tuple[str, str], ...]
    lines: tuple[CheckLine, ...]
    stages: tuple[StageLine, ...]
    raw: str

    @property
    def groups(self) -> tuple[CheckGroup, ...]:
        """The groups in order of their first check."""
        return tuple(
            CheckGroup(name, tuple(line for line in self.lines if line.group == name))
            for name in dict.fromkeys(line.group for line in self.lines)
        )

    @property
    def problems(self) -> tuple[CheckLine, ...]:
        """What keeps the verdict from being "verified": failures, the first cause leading, then
        required checks that could not be observed.
        """
        failed = sorted(self.of(Status.FAIL), key=lambda line: line.id != self.first_cause)
        return (*failed, *(line for line in self.of(Status.UNKNOWN) if line.required))

    @property
    def proven(self) -> tuple[str, ...]:
        """The titles of the training checks that passed, where all that is required did; else
        nothing is proven.
        """
        return (
            tuple(line.title for line in self.of(Status.PASS) if line.group == TRAINING_GROUP)
            if self.result in _PASSING_RESULTS
            else ()
        )

    @property
    def proof(self) -> str:
        """The run that stands behind the verdict, in words."""
        if self.result not in _PASSING_RESULTS:
            return f"none; what has to pass is {self.run}" if self.run else "none"
        where = "on this machine" if self.result == "verified" else "on a device that is simulated"
        return f"{self.run} {where}" if self.proven else "no training ran in this verification"

    @property
    def remarks(self) -> tuple[CheckLine, ...]:
        """What a person should know though the verdict does not hang on it."""
        return (
            *self.of(Status.WARN),
            *(line for line in self.of(Status.UNKNOWN) if not line.required),
        )

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of all stages, which run one after another."""
        return sum(stage.wall_s for stage in self.stages)

    def of(self, status: Status) -> tuple[CheckLine, ...]:
        """Return the checks that ended in `status`."""
        return tuple(line for line in self.lines if line.status is status)

    @property
    def tally(self) -> str:
        """The counts in words: "2 of 61 checks failed, 1 unknown" or "58 checks passed, 2 warnings,
        1 skipped".
        """
        count = {status: len(self.of(status)) for status in Status}
        asked = len(self.lines)
        failed, passed = (
            f"{count[Status.FAIL]} of {pluralize(asked, 'check')} failed",
            f"{count[Status.PASS]} of {pluralize(asked, 'check')} passed",
        )
        rest = (
            (count[Status.UNKNOWN], "unknown"),
            (count[Status.WARN], pluralize(count[Status.WARN], "warning", bare=True)),
            (count[Status.SKIP], "skipped"),
        )
        return ", ".join(
            [failed if count[Status.FAIL] else passed, *(f"{n} {word}" for n, word in rest if n)]
        )


def build_report_view(report: Mapping[str, Any]) -> ReportView:
    """Return what views show of a `provision.report/1` document. What is missing or of another type
    is shown as empty, never raised.
    """
    subject, spec, lock, verdict = (
        _mapping(report.get(key)) for key in ("subject", "spec", "lock", "verdict")
    )
    digests, tool, packages = (_mapping(report.get(key)) for key in ("digests", "tool", "packages"))
    result = format_json_value(verdict.get("result"))
    result = result if result in HEADLINES else "error"
    readings = {
        format_json_value(reading.get("key")): reading.get("value")
        for reading in _mappings(report.get("readings"))
    }
    return ReportView(
        result=result,
        headline=HEADLINES[result],
        sentence=format_json_value(verdict.get("sentence")),
        run=PROOF_NAMES.get(
            format_json_value(subject.get("proof")), format_json_value(subject.get("proof"))
        ),
        name=format_json_value(spec.get("name")),
        target=format_json_value(subject.get("target")),
        kind=format_json_value(subject.get("kind")),
        tier=format_json_value(report.get("tier")),
        created=format_json_value(subject.get("created_utc")),
        tool=f"{format_json_value(tool.get('name'))} {format_json_value(tool.get('version'))}".strip(),  # noqa: E501
        simulated=tuple(format_json_value(one) for one in _list(subject.get("simulated"))),
        spec_digest=text_or_empty(spec.get("digest")),
        lock_digest=text_or_empty(lock.get("digest")),
        environment_digest=text_or_empty(lock.get("environment_digest")),
        identity=text_or_empty(digests.get("identity")),
        report_digest=text_or_empty(digests.get("report")),
        first_cause=format_json_value(verdict.get("first_cause")),
        locked=int(_number(packages.get("locked"))),
        matching=int(_number(packages.get("matching"))),
        differences=tuple(
            (
                format_json_value(d.get("name")),
                format_json_value(d.get("expected")),
                format_json_value(d.get("observed")),
            )
            for d in _mappings(packages.get("differences"))
        ),
        direct=tuple(
            (key.removeprefix("package."), format_json_value(value))
            for key, value in readings.items()
            if key.startswith("package.")
        ),
        lines=tuple(_line(check, list(readings)) for check in _mappings(report.get("checks"))),
        stages=tuple(_stage(stage) for stage in _mappings(report.get("stages"))),
        raw=escape_control(
            redact(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False, default=str))
        ),
    )


def _line(check: Mapping[str, Any], keys: list[str]) -> CheckLine:
    threshold = _mapping(check.get("threshold"))
    unit = format_json_value(threshold.get("unit"))
    sizes = unit == "bytes" or _are_sizes(check, keys)
    return CheckLine(
        id=format_json_value(check.get("id")),
        group=format_json_value(check.get("group")) or "other",
        title=format_json_value(check.get("title")),
        status=_status(check.get("status")),
        required=check.get("required") is True,
        expected=format_json_value(
            None if check.get("expected") == _NO_EXCEPTION else check.get("expected"), sizes
        ),
        observed=format_json_value(
            None if check.get("observed") == _NO_EXCEPTION else check.get("observed"), sizes
        ),
        message=format_json_value(check.get("message")),
        cause=format_json_value(check.get("cause")),
        fix=format_json_value(check.get("fix")),
        seconds=_number(check.get("seconds")),
        bound=format_amount(_number(threshold.get("value")), unit)
        if _is_number(threshold.get("value"))
        else "",
        source=format_json_value(threshold.get("source")),
        measures=tuple(_measures(check, threshold, unit)),
    )


def _are_sizes(check: Mapping[str, Any], keys: list[str]) -> bool:
    """Whether the numbers of a check are bytes: every reading that can cause its failure carries
    that unit in its key.
    """
    causes = [
        format_json_value(cause)
        for cause in _list(check.get("causes"))
        or _CAUSES.get(format_json_value(check.get("id")), ())
    ]
    read = [
        key
        for cause in causes
        for key in keys
        if key == cause or (cause.endswith(".*") and key.startswith(cause[:-1]))
    ]
    return bool(read) and all(key.endswith("bytes") for key in read)


def _measures(
    check: Mapping[str, Any], threshold: Mapping[str, Any], unit: str
) -> Iterator[Measurement]:
    """One for a number held against the threshold, or against a share of what is declared; one a
    key where both sides hold numbers by the same key.
    """
    bound, expected, observed, source = (
        threshold.get("value"),
        check.get("expected"),
        check.get("observed"),
        format_json_value(threshold.get("source")),
    )
    if not _is_number(bound) or _status(check.get("status")) is Status.SKIP:
        return
    if isinstance(observed, Mapping) and isinstance(expected, Mapping):
        both = (
            key for key in observed if _is_number(observed[key]) and _is_number(expected.get(key))
        )
        yield from (
            Measurement(
                format_json_value(key),
                _number(observed[key]),
                _number(expected[key]),
                unit,
                source * (expected[key] == bound),
            )
            for key in both
        )
    elif _is_number(observed) and not unit.startswith(_SHARE):
        yield Measurement("", _number(observed), _number(bound), unit, source)
    elif _is_number(observed) and _is_number(expected):
        yield Measurement(
            "",
            _number(observed),
            _number(bound) * _number(expected),
            unit.removeprefix(_SHARE),
            source,
        )


def _stage(stage: Mapping[str, Any]) -> StageLine:
    ended = (
        "timed out"
        if stage.get("timed_out") is True
        else f"died with {format_json_value(stage.get('signal'))}"
        if stage.get("signal")
        else ""
    )
    code = stage.get("exit")
    return StageLine(
        name=format_json_value(stage.get("name")),
        wall_s=_number(stage.get("wall_s")),
        cpu_s=_number(stage.get("cpu_s")),
        maxrss_mb=_number(stage.get("maxrss_mb")),
        ended=ended or (f"exit {format_json_value(code)}" if code else "finished"),
        tail=text_or_empty(stage.get("tail")),
    )


def _status(value: object) -> Status:
    return next((status for status in Status if status.value == value), Status.UNKNOWN)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _number(value: object) -> float:
    return float(value) if _is_number(value) and isinstance(value, (int, float)) else 0.0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    return (one for one in _list(value) if isinstance(one, Mapping))
