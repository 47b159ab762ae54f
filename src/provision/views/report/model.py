"""View model of a report, for the terminal and the page: safe text in order, nothing judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import Status
from provision.verification.report import Report, ReportedCheck, rows_of, to_number
from provision.views.formatting import format_json_value, map_strings, pluralize, to_safe_text

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


_PASSING_RESULTS = ("verified", "simulated")
"""Verdicts for which every required check passed."""
_EXACT_PARTS = ("spec", "lock", "digests", "stages")
"""Parts in which digests are not shortened."""


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """The checks of one group, in the report's order."""

    name: str
    checks: tuple[ReportedCheck, ...]

    @property
    def counts(self) -> dict[Status, int]:
        """The number of checks by status."""
        return {status: sum(check.status is status for check in self.checks) for status in Status}


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage; times are in seconds, memory in MiB, `tail` is the end of its output."""

    name: str
    wall_s: float
    cpu_s: float
    maxrss_mb: float
    ended: str
    tail: str


class ReportView:
    """Everything that a view of a report shows; every string is safe and free of secrets.

    Attributes:
        raw: the whole report as JSON.
        report: the report with safe strings.
        checks: its checks, with the declared and the observed value as text.
        stages: its stages.
    """

    def __init__(self, report: Report, clean: Callable[[str], str] = format_json_value) -> None:
        """Take a report; values that are missing or malformed are shown as empty.

        Args:
            report: The report.
            clean: Makes a text safe.
        """
        document = json.dumps(
            report.document, indent=1, sort_keys=True, ensure_ascii=False, default=str
        )
        self.raw = to_safe_text(document)
        self.report = Report(
            {
                key: map_strings(part, to_safe_text if key in _EXACT_PARTS else clean)
                for key, part in report.document.items()
            }
        )
        self.checks = tuple(_with_text(check, self.report.values) for check in self.report.checks)
        self.stages = tuple(_stage(row) for row in rows_of(self.report.document, "stages"))

    @property
    def headline(self) -> str:
        """The verdict in capitals."""
        return HEADLINES[self.report.verdict]

    @property
    def run(self) -> str:
        """The training run that was required, in words."""
        proof = self.report.subject.proof
        return PROOF_NAMES.get(proof, proof)

    @property
    def groups(self) -> tuple[CheckGroup, ...]:
        """The groups in order of their first check."""
        return tuple(
            CheckGroup(name, tuple(check for check in self.checks if check.group == name))
            for name in dict.fromkeys(check.group for check in self.checks)
        )

    @property
    def problems(self) -> tuple[ReportedCheck, ...]:
        """Failures, the first cause leading, then required checks that are unknown."""
        first_cause = self.report.text("verdict", "first_cause")
        failed = sorted(self.of(Status.FAIL), key=lambda check: check.id != first_cause)
        return (*failed, *(check for check in self.of(Status.UNKNOWN) if check.required))

    @property
    def proven(self) -> tuple[str, ...]:
        """The titles of the training checks that passed, if every required check did."""
        if self.report.verdict not in _PASSING_RESULTS:
            return ()
        return tuple(check.title for check in self.of(Status.PASS) if check.group == TRAINING_GROUP)

    @property
    def proof(self) -> str:
        """The run that proves the verdict, in words."""
        if self.report.verdict not in _PASSING_RESULTS:
            return f"none; what has to pass is {self.run}" if self.run else "none"
        if not self.proven:
            return "no training ran in this verification"
        if self.report.verdict == "verified":
            return f"{self.run} on this machine"
        return f"{self.run} on a device that is simulated"

    @property
    def remarks(self) -> tuple[ReportedCheck, ...]:
        """Warnings and unknown checks that the verdict does not depend on."""
        unknown = [check for check in self.of(Status.UNKNOWN) if not check.required]
        return (*self.of(Status.WARN), *unknown)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of all stages, which run one after another."""
        return sum(stage.wall_s for stage in self.stages)

    def of(self, status: Status) -> tuple[ReportedCheck, ...]:
        """Return the checks that ended in `status`."""
        return tuple(check for check in self.checks if check.status is status)

    @property
    def tally(self) -> str:
        """The counts in words, for example "2 of 61 checks failed, 1 unknown"."""
        count = CheckGroup("", self.checks).counts
        decisive, label = count[Status.PASS], "passed"
        if count[Status.FAIL]:
            decisive, label = count[Status.FAIL], "failed"
        parts = [f"{decisive} of {pluralize(len(self.checks), 'check')} {label}"]
        if unknown := count[Status.UNKNOWN]:
            parts.append(f"{unknown} unknown")
        if warned := count[Status.WARN]:
            parts.append(pluralize(warned, "warning"))
        if skipped := count[Status.SKIP]:
            parts.append(f"{skipped} skipped")
        return ", ".join(parts)


def _with_text(check: ReportedCheck, readings: Mapping[str, Any]) -> ReportedCheck:
    sizes = _are_sizes(check, readings)
    expected, observed = (
        "" if value == _NO_EXCEPTION else format_json_value(value, sizes)
        for value in (check.expected, check.observed)
    )
    return replace(check, group=check.group or "other", expected=expected, observed=observed)


def found_text(check: ReportedCheck) -> str:
    """Return the observed value, unless nothing is expected and the message contains it."""
    return "" if not check.expected and check.observed in check.message else str(check.observed)


def check_fields(check: ReportedCheck) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of what a view shows of a check that did not pass."""
    for label, text in (
        ("declared", check.expected),
        ("found", found_text(check)),
        ("why", check.cause or check.message),
        ("fix", check.fix),
    ):
        if text:
            yield label, text


def _are_sizes(check: ReportedCheck, readings: Mapping[str, Any]) -> bool:
    """Return whether a check's numbers are bytes: all readings that can cause its failure are."""
    if check.threshold is not None and check.threshold.unit == "bytes":
        return True
    causes = check.causes or _CAUSES.get(check.id, ())
    prefixes = tuple(cause[:-1] for cause in causes if cause.endswith(".*"))
    related = [key for key in readings if key in causes or key.startswith(prefixes)]
    return bool(related) and all(key.endswith("bytes") for key in related)


def list_measurements(check: ReportedCheck) -> Iterator[Measurement]:
    """Yield the numbers that were compared with the threshold, or with a share of a declared one.

    If both sides hold numbers by the same keys, there is one for each key.
    """
    if check.threshold is None or check.status is Status.SKIP:
        return
    bound, unit, source = check.threshold.value, check.threshold.unit, check.threshold.source
    expected, observed = to_number(check.expected), to_number(check.observed)
    if isinstance(check.observed, Mapping) and isinstance(check.expected, Mapping):
        for key, value in check.observed.items():
            measured, limit = to_number(value), to_number(check.expected.get(key))
            if measured is not None and limit is not None:
                yield Measurement(key, measured, limit, unit, source if limit == bound else "")
    elif observed is not None and not unit.startswith(_SHARE):
        yield Measurement("", observed, bound, unit, source)
    elif observed is not None and expected is not None:
        yield Measurement("", observed, bound * expected, unit.removeprefix(_SHARE), source)


def _stage(row: Mapping[str, Any]) -> StageLine:
    wall_s, cpu_s, maxrss_mb = (
        to_number(row.get(key)) or 0.0 for key in ("wall_s", "cpu_s", "maxrss_mb")
    )
    name, signal, code = (format_json_value(row.get(key)) for key in ("name", "signal", "exit"))
    tail = row.get("tail")
    ended = "finished"
    if row.get("timed_out") is True:
        ended = "timed out"
    elif signal:
        ended = f"died with {signal}"
    elif row.get("exit"):
        ended = f"exit {code}"
    return StageLine(name, wall_s, cpu_s, maxrss_mb, ended, tail if isinstance(tail, str) else "")
