"""View model of a report, for the terminal and the page: safe text in order, nothing judged."""

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
"""Causes by check: a report has them only for checks that did not pass."""

PROOF_NAMES = {
    "hf-trainer": "a Hugging Face Trainer run",
    "torch": "a plain PyTorch training run, without transformers.Trainer",
    "imports": "imports alone, without training",
}
_NO_EXCEPTION = "no exception"
"""The probe's value for an import or a run that worked: not declared, so it is not shown."""
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
    """A measured number and its bound; `name` distinguishes several of one check."""

    name: str
    measured: float
    bound: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check; texts that do not apply are empty."""

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
        """The observed value, unless nothing is expected and the message contains it."""
        return "" if not self.expected and self.observed in self.message else self.observed


_PASSING_RESULTS = ("verified", "simulated")
"""Verdicts for which every required check passed."""


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """The checks of one group, in the report's order."""

    name: str
    lines: tuple[CheckLine, ...]

    @property
    def counts(self) -> dict[Status, int]:
        """The number of checks by status."""
        return {status: sum(line.status is status for line in self.lines) for status in Status}


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage; times are in seconds, memory in MiB, `tail` is the end of its output."""

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
        """Failures, the first cause leading, then required checks that are unknown."""
        failed = sorted(self.of(Status.FAIL), key=lambda line: line.id != self.first_cause)
        return (*failed, *(line for line in self.of(Status.UNKNOWN) if line.required))

    @property
    def proven(self) -> tuple[str, ...]:
        """The titles of the training checks that passed, if every required check did."""
        if self.result not in _PASSING_RESULTS:
            return ()
        return tuple(line.title for line in self.of(Status.PASS) if line.group == TRAINING_GROUP)

    @property
    def proof(self) -> str:
        """The run that proves the verdict, in words."""
        if self.result not in _PASSING_RESULTS:
            return f"none; what has to pass is {self.run}" if self.run else "none"
        if not self.proven:
            return "no training ran in this verification"
        if self.result == "verified":
            return f"{self.run} on this machine"
        return f"{self.run} on a device that is simulated"

    @property
    def remarks(self) -> tuple[CheckLine, ...]:
        """Warnings and unknown checks that the verdict does not depend on."""
        unknown = [line for line in self.of(Status.UNKNOWN) if not line.required]
        return (*self.of(Status.WARN), *unknown)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of all stages, which run one after another."""
        return sum(stage.wall_s for stage in self.stages)

    def of(self, status: Status) -> tuple[CheckLine, ...]:
        """Return the checks that ended in `status`."""
        return tuple(line for line in self.lines if line.status is status)

    @property
    def tally(self) -> str:
        """The counts in words, for example "2 of 61 checks failed, 1 unknown"."""
        count = CheckGroup("", self.lines).counts
        decisive, label = count[Status.PASS], "passed"
        if count[Status.FAIL]:
            decisive, label = count[Status.FAIL], "failed"
        parts = [f"{decisive} of {pluralize(len(self.lines), 'check')} {label}"]
        if unknown := count[Status.UNKNOWN]:
            parts.append(f"{unknown} unknown")
        if warned := count[Status.WARN]:
            parts.append(pluralize(warned, "warning"))
        if skipped := count[Status.SKIP]:
            parts.append(f"{skipped} skipped")
        return ", ".join(parts)


def build_report_view(report: Mapping[str, Any]) -> ReportView:
    """Return what views show of a `provision.report/1` document.

    Values that are missing or of another type are shown as empty, never raised.
    """
    subject, spec, lock, verdict, digests, tool, packages = (
        _mapping(report.get(key))
        for key in ("subject", "spec", "lock", "verdict", "digests", "tool", "packages")
    )
    result = _line(verdict, "result")
    if result not in HEADLINES:
        result = "error"
    proof = _line(subject, "proof")
    readings = {_line(row, "key"): row.get("value") for row in _mappings(report.get("readings"))}
    document = json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False, default=str)
    return ReportView(
        result=result,
        headline=HEADLINES[result],
        sentence=_line(verdict, "sentence"),
        run=PROOF_NAMES.get(proof, proof),
        name=_line(spec, "name"),
        target=_line(subject, "target"),
        kind=_line(subject, "kind"),
        tier=_line(report, "tier"),
        created=_line(subject, "created_utc"),
        tool=f"{_line(tool, 'name')} {_line(tool, 'version')}".strip(),
        simulated=tuple(map(format_json_value, _list(subject.get("simulated")))),
        spec_digest=text_or_empty(spec.get("digest")),
        lock_digest=text_or_empty(lock.get("digest")),
        environment_digest=text_or_empty(lock.get("environment_digest")),
        identity=text_or_empty(digests.get("identity")),
        report_digest=text_or_empty(digests.get("report")),
        first_cause=_line(verdict, "first_cause"),
        locked=int(_number(packages.get("locked"))),
        matching=int(_number(packages.get("matching"))),
        differences=tuple(
            (_line(row, "name"), _line(row, "expected"), _line(row, "observed"))
            for row in _mappings(packages.get("differences"))
        ),
        direct=tuple(
            (key.removeprefix("package."), format_json_value(value))
            for key, value in readings.items()
            if key.startswith("package.")
        ),
        lines=tuple(_check(check, list(readings)) for check in _mappings(report.get("checks"))),
        stages=tuple(_stage(stage) for stage in _mappings(report.get("stages"))),
        raw=escape_control(redact(document)),
    )


def _line(block: Mapping[str, Any], key: str) -> str:
    return format_json_value(block.get(key))


def _check(check: Mapping[str, Any], reading_keys: list[str]) -> CheckLine:
    threshold = _mapping(check.get("threshold"))
    unit, bound = _line(threshold, "unit"), threshold.get("value")
    sizes = unit == "bytes" or _are_sizes(check, reading_keys)
    expected, observed = (
        "" if check.get(side) == _NO_EXCEPTION else format_json_value(check.get(side), sizes)
        for side in ("expected", "observed")
    )
    return CheckLine(
        id=_line(check, "id"),
        group=_line(check, "group") or "other",
        title=_line(check, "title"),
        status=_status(check.get("status")),
        required=check.get("required") is True,
        expected=expected,
        observed=observed,
        message=_line(check, "message"),
        cause=_line(check, "cause"),
        fix=_line(check, "fix"),
        seconds=_number(check.get("seconds")),
        bound=format_amount(_number(bound), unit) if _is_number(bound) else "",
        source=_line(threshold, "source"),
        measures=tuple(_measures(check, threshold, unit)),
    )


def _are_sizes(check: Mapping[str, Any], reading_keys: list[str]) -> bool:
    """Return whether a check's numbers are bytes: all readings that can cause its failure are."""
    declared = _list(check.get("causes")) or _CAUSES.get(_line(check, "id"), ())
    causes = [format_json_value(cause) for cause in declared]
    prefixes = tuple(cause[:-1] for cause in causes if cause.endswith(".*"))
    related = [key for key in reading_keys if key in causes or key.startswith(prefixes)]
    return bool(related) and all(key.endswith("bytes") for key in related)


def _measures(
    check: Mapping[str, Any], threshold: Mapping[str, Any], unit: str
) -> Iterator[Measurement]:
    """Yield the numbers that were compared with the threshold, or with a share of a declared one.

    If both sides hold numbers by the same keys, there is one for each key.
    """
    bound, source = threshold.get("value"), _line(threshold, "source")
    expected, observed = check.get("expected"), check.get("observed")
    if not _is_number(bound) or _status(check.get("status")) is Status.SKIP:
        return
    if isinstance(observed, Mapping) and isinstance(expected, Mapping):
        for key, measured in observed.items():
            limit = expected.get(key)
            if _is_number(measured) and _is_number(limit):
                cited = source if limit == bound else ""
                name = format_json_value(key)
                yield Measurement(name, _number(measured), _number(limit), unit, cited)
    elif _is_number(observed) and not unit.startswith(_SHARE):
        yield Measurement("", _number(observed), _number(bound), unit, source)
    elif _is_number(observed) and _is_number(expected):
        limit = _number(bound) * _number(expected)
        yield Measurement("", _number(observed), limit, unit.removeprefix(_SHARE), source)


def _stage(stage: Mapping[str, Any]) -> StageLine:
    if stage.get("timed_out") is True:
        ended = "timed out"
    elif stage.get("signal"):
        ended = f"died with {_line(stage, 'signal')}"
    elif stage.get("exit"):
        ended = f"exit {_line(stage, 'exit')}"
    else:
        ended = "finished"
    return StageLine(
        name=_line(stage, "name"),
        wall_s=_number(stage.get("wall_s")),
        cpu_s=_number(stage.get("cpu_s")),
        maxrss_mb=_number(stage.get("maxrss_mb")),
        ended=ended,
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
    return (item for item in _list(value) if isinstance(item, Mapping))
