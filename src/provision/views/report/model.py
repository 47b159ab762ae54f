"""View model of a report, for the terminal and the page: safe text in order, nothing judged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provision.agent.probe.model import Status, Threshold
from provision.spelling import join_words, pluralize
from provision.verification.fit_model import COMMAND_CHECK
from provision.verification.report import Report, ReportedCheck, rows_of, to_number
from provision.views.formatting import format_json_value, map_strings, to_safe_text

_SIZE_CHECKS = frozenset({"H05", "H06", "H07", "D04", "D08", "M01", "M02", "S02", "S03"})
"""Checks that compare bytes."""
PROOF_NAMES = {
    "hf-trainer": "a Hugging Face Trainer run",
    "torch": "a plain PyTorch training run, without transformers.Trainer",
    "jax": "a plain jax training run",
    "keras": "a small Keras training run",
    "imports": "imports only",
}
_NO_EXCEPTION = "no exception"
"""The probe's value for an import or a run that worked: not declared, so it is not shown."""
_SHARE = "of the declared "
TRAINING_GROUP = "training"
"""The group of the checks that watch a training run."""
_NUMERICS_GROUP = "numerics"
HEADLINES = {
    "verified": "VERIFIED",
    "simulated": "SIMULATED",
    "failed": "NOT AS DECLARED",
    "unverified": "UNVERIFIED",
    "error": "ERROR",
}
_STATUS_WORDS = {
    Status.FAIL: "failed",
    Status.PASS: "passed",
    Status.UNKNOWN: "unknown",
    Status.WARN: "with warnings",
    Status.SKIP: "not applicable",
}
_PASSING_RESULTS = ("verified", "simulated")
"""Verdicts for which every required check passed."""
_EXACT_PARTS = ("spec", "lock", "digests", "stages")
"""Parts in which digests are not shortened."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured number and its threshold; `name` distinguishes several of one check."""

    name: str
    measured: float
    bound: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """The checks of one group, in the report's order."""

    name: str
    checks: tuple[ReportedCheck, ...]

    @property
    def applies(self) -> bool:
        """True if a check of the group applies to what is declared."""
        return any(check.status is not Status.SKIP for check in self.checks)


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
        self.checks = tuple(map(_with_text, self.report.checks))
        self.stages = tuple(_stage(row) for row in rows_of(self.report.document, "stages"))

    @property
    def headline(self) -> str:
        """The verdict in capitals."""
        return HEADLINES[self.report.verdict]

    @property
    def groups(self) -> tuple[CheckGroup, ...]:
        """The groups in order of their first check."""
        return tuple(
            CheckGroup(name, tuple(check for check in self.checks if check.group == name))
            for name in dict.fromkeys(check.group for check in self.checks)
        )

    @property
    def inapplicable(self) -> tuple[CheckGroup, ...]:
        """The checks of the groups that do not apply, by reason, with a sentence as their name."""
        by_reason: dict[str, list[ReportedCheck]] = {}
        for group in self.groups:
            for check in () if group.applies else group.checks:
                by_reason.setdefault(check.message, []).append(check)
        groups = []
        for reason, checks in by_reason.items():
            names = ", ".join(dict.fromkeys(check.group for check in checks))
            count = pluralize(len(checks), f"{names} check")
            groups.append(CheckGroup(f"{count} not applicable: {reason}", tuple(checks)))
        return tuple(groups)

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
        proof = self.report.subject.proof
        run = PROOF_NAMES.get(proof, proof)
        if self.report.verdict not in _PASSING_RESULTS:
            if self._training_passed:
                ids = list(dict.fromkeys(check.id for check in self.problems))
                more = [f"{len(ids) - 3} more"] if len(ids) > 3 else []
                others = join_words([*ids[:3], *more])
                return f"none: the training passed, but {others} did not"
            return f"none (required: {run})" if run else "none"
        if earlier := self.report.subject.training_proof:
            return f"imports, with the training proof from {earlier}"
        if not self.proven:
            if any(check.id == COMMAND_CHECK for check in self.of(Status.PASS)):
                return "`verify.command` passed (no training check was run)"
            return "none (imports only; no training was run)"
        if self.report.verdict == "verified":
            return f"{run} on this machine"
        return f"{run} on a simulated device"

    @property
    def _training_passed(self) -> bool:
        """True if training checks passed, and the problems are in other groups."""
        if not self.problems or any(check.group == TRAINING_GROUP for check in self.problems):
            return False
        return any(check.group == TRAINING_GROUP for check in self.of(Status.PASS))

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
        """The counts in words, as in "44 checks passed, 22 not applicable (no GPU declared)"."""
        text, skipped = describe_counts(self.checks, "check"), self.of(Status.SKIP)
        for reason, count in Counter(check.message for check in skipped).most_common(1):
            if count == len(skipped):
                return f"{text} ({reason})"
            if 2 * count > len(skipped):
                return f"{text} (mostly: {reason})"
        return text


def describe_counts(checks: Iterable[ReportedCheck], noun: str = "") -> str:
    """Return the number of checks by status; `noun` follows the first number."""
    parts: list[str] = []
    counts = Counter(check.status for check in checks)
    for status, word in _STATUS_WORDS.items():
        if number := counts[status]:
            lead = pluralize(number, noun) if noun and not parts else str(number)
            parts.append(f"{lead} {word}")
    return ", ".join(parts)


def _with_text(check: ReportedCheck) -> ReportedCheck:
    sizes = check.base_id in _SIZE_CHECKS
    if check.threshold is not None and check.threshold.unit == "bytes":
        sizes = True
    expected, observed = (
        "" if value == _NO_EXCEPTION else format_json_value(value, sizes)
        for value in (check.expected, check.observed)
    )
    return replace(check, group=check.group or "other", expected=expected, observed=observed)


def describe_check(check: ReportedCheck) -> str:
    """Return a check's title with its message, or with the observed value if it has none."""
    if check.message.startswith(check.title):
        return check.message
    return ": ".join(filter(None, (check.title, check.message or check.observed)))


def found_text(check: ReportedCheck) -> str:
    """Return the observed value, unless nothing is expected and the message contains it."""
    return "" if not check.expected and check.observed in check.message else str(check.observed)


def check_fields(check: ReportedCheck) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of what a view shows of a check that did not pass."""
    for label, text in (
        ("expected", check.expected),
        ("found", found_text(check)),
        ("why", check.cause or check.message),
        ("fix", check.fix),
    ):
        if text:
            yield label, text


def list_measurements(check: ReportedCheck) -> Iterator[Measurement]:
    """Yield the numbers that were compared with the threshold, or with a share of a declared one.

    If both sides have numbers by the same keys, there is one for each key. Errors of numerics are
    compared with the expected value if there is no threshold, losses by their ratio. An expected
    whole number is a count, such as of steps: the threshold and its unit are not about it.
    """
    expected, observed, threshold = check.expected, check.observed, check.threshold
    if threshold is None and check.group == _NUMERICS_GROUP and isinstance(expected, float | dict):
        threshold = Threshold(to_number(expected) or 0.0, "relative error", "")
    if threshold is None or check.status is Status.SKIP:
        return
    bound, unit, source = threshold.value, threshold.unit, threshold.source
    declared, number = to_number(expected), to_number(observed)
    if isinstance(observed, dict) and isinstance(expected, dict):
        for key, value in observed.items():
            measured, limit = to_number(value), to_number(expected.get(key))
            is_count = isinstance(expected.get(key), int)
            if measured is not None and limit is not None and not is_count:
                yield Measurement(key, measured, limit, unit, source if limit == bound else "")
    elif isinstance(observed, dict):
        first, last = to_number(observed.get("first")), to_number(observed.get("last"))
        if first and last is not None:
            yield Measurement("", last / first, bound, unit, source)
    elif number is not None and not unit.startswith(_SHARE):
        yield Measurement("", number, bound, unit, source)
    elif number is not None and declared is not None:
        yield Measurement("", number, bound * declared, unit.removeprefix(_SHARE), source)


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
        ended = f"ended by {signal}"
    elif row.get("exit"):
        ended = f"exit {code}"
    return StageLine(name, wall_s, cpu_s, maxrss_mb, ended, tail if isinstance(tail, str) else "")
