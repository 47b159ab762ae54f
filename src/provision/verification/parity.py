"""What is proven equal across targets: each statement that the lock makes of all of them, held
against what their reports observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from provision.agent.core.versions import UnreadableVersion, specifier_allows
from provision.agent.probe.model import Proof, ReadingClass, Status
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.model import ReportComparison
from provision.verification.diff.summary import describe_difference, summarize_comparison
from provision.verification.report import Report

_COVERED = ("package.", "packages.", "torch.", "python.", "train.", "driver.")


class ReportStanding(StrEnum):
    """What the last report of a target is worth."""

    VERIFIED = "verified"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    SIMULATED = "simulated"
    STALE = "stale"
    DAMAGED = "damaged"
    MISSING = "no report"


class StatementResult(StrEnum):
    """What is known of a statement: `apart` where the lock itself declares a difference, and that
    is what was observed.
    """

    EQUAL = "equal"
    DIFFERS_AS_DECLARED = "apart"
    DIFFERS = "differs"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class DeclaredEnvironment:
    """What the lock promises of one target: Python, every package's version, the torch build, the
    oldest driver that it runs on.

    `builds` are conda's builds of those packages that conda brings there in the place of the
    package index.
    """

    python: str
    versions: Mapping[str, str]
    flavour: str | None
    driver: str | None
    builds: Mapping[str, str] = field(default_factory=dict)

    @property
    def cuda(self) -> str | None:
        """The CUDA of the torch build ("12.8" of cu128), None without one."""
        digits = (self.flavour or "").removeprefix("cu")
        return f"{digits[:-1]}.{digits[-1]}" if digits.isdigit() else None


@dataclass(frozen=True, slots=True)
class ParityTarget:
    """A target: what is declared of it (None: the lock holds nothing), its last report where that
    counts, why it does not, and how to prove it.
    """

    target: str
    kind: str
    standing: ReportStanding
    declared: DeclaredEnvironment | None = None
    report: Report | None = None
    why: str = ""
    prove: str = ""
    carried: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that the lock declares, what each target with a report showed, and why it is not
    proven or differs.
    """

    subject: str
    result: StatementResult
    declared: str
    observed: Mapping[str, str]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Parity:
    """All statements about all targets; `undeclared` are differences of identity that no lock
    speaks of.
    """

    targets: tuple[ParityTarget, ...]
    statements: tuple[Statement, ...]
    undeclared: tuple[str, ...] = ()

    @property
    def result(self) -> StatementResult:
        """`differs` with one proven difference, else `unproven` while something is, else `equal`."""  # noqa: E501
        found = {one.result for one in self.statements}
        return next(
            (one for one in (StatementResult.DIFFERS, StatementResult.UNPROVEN) if one in found),
            StatementResult.EQUAL,
        )

    @property
    def exit_code(self) -> int:
        """0 proven, 1 a proven difference, 3 not yet proven."""
        return {StatementResult.DIFFERS: 1, StatementResult.UNPROVEN: 3}.get(self.result, 0)


def evaluate_parity(sides: Sequence[ParityTarget]) -> Parity:
    """Return what the reports of these targets prove of what is declared equal."""
    seen = [_TargetReadings(side) for side in sides]
    pairs = _pairs(seen)
    statements = tuple(
        one
        for make in (_python, _packages, _builds, _torch, _cuda, _driver)
        if (one := make(seen)) is not None
    )
    training = _training(seen, pairs)
    return Parity(
        tuple(sides),
        (*statements, _checks(seen, pairs), *([training] if training else [])),
        tuple(_undeclared(pairs)),
    )


class _TargetReadings:
    """A target with its readings and checks by name; without a report that counts, both are empty."""  # noqa: E501

    def __init__(self, side: ParityTarget) -> None:
        self.side, self.name, self.declared = side, side.target, side.declared
        document = (
            side.report.document if side.report is not None else {"readings": [], "checks": []}
        )
        self.readings = {
            one["key"]: one.get("value")
            for one in document["readings"]
            if isinstance(one, Mapping) and isinstance(one.get("key"), str)
        }
        self.checks = {
            one["id"]: one
            for one in document["checks"]
            if isinstance(one, Mapping) and isinstance(one.get("id"), str)
        }

    @property
    def counts(self) -> bool:
        return self.side.report is not None

    @property
    def asked_to_train(self) -> bool:
        subject = self.side.report.document["subject"] if self.side.report is not None else {}
        return subject.get("proof") in (Proof.HF_TRAINER.value, Proof.TORCH.value)

    def status(self, check: str) -> str:
        return str(self.checks.get(check, {}).get("status", ""))

    def message(self, check: str) -> str:
        return str(self.checks.get(check, {}).get("message") or "")


StatementCheck = Callable[[_TargetReadings], "tuple[bool | None, str]"]
"""Whether one target is as declared (None: that is not known), and what was seen there."""


def _make_statement(
    subject: str,
    seen: Sequence[_TargetReadings],
    declared: Sequence[str],
    says: StatementCheck,
    checks: str = "",
) -> Statement:
    """Return a statement: proven when every target is as declared, and `apart` when what is
    declared of them is not the same.
    """
    told = {one.name: says(one) for one in seen if one.counts}
    wrong = [name for name, (holds, _) in told.items() if holds is False]
    open_ = [one.name for one in seen if told.get(one.name, (None, ""))[0] is None]
    same = len(dict.fromkeys(declared)) == 1
    found = (
        StatementResult.DIFFERS
        if wrong
        else StatementResult.UNPROVEN
        if open_
        else StatementResult.EQUAL
        if same
        else StatementResult.DIFFERS_AS_DECLARED
    )
    why = "; ".join(
        f"{one.name}: {one.message(checks) or told[one.name][1]}"
        for one in seen
        if one.name in wrong
    )
    why = why or (f"not seen on {', '.join(open_)}" if open_ else "")
    words = (
        declared[0]
        if same
        else ", ".join(f"{text} on {one.name}" for one, text in zip(seen, declared, strict=True))
    )
    return Statement(
        subject, found, words, {name: observed for name, (_, observed) in told.items()}, why
    )


def _python(seen: Sequence[_TargetReadings]) -> Statement:
    declared = [one.declared.python if one.declared else "?" for one in seen]
    return _make_statement(
        "Python",
        seen,
        declared,
        lambda one: (_is_passing(one.status("P01")), str(one.readings.get("python.version", "?"))),
        "P01",
    )


def _packages(seen: Sequence[_TargetReadings]) -> Statement:
    known = [one.declared.versions for one in seen if one.declared is not None]
    names = {name for versions in known for name in versions}
    moving = sorted(
        name
        for name in names
        if len({versions[name] for versions in known if name in versions}) > 1
    )
    partly = sorted(name for name in names if not all(name in versions for versions in known))
    words = f"{len(names) - len(moving) - len(partly)} in one version"
    words += f", {', '.join(moving)} in a build for each" if moving else ""
    words += f", {len(partly)} not on all" if partly else ""

    def says(one: _TargetReadings) -> tuple[bool | None, str]:
        found = one.side.report.document.get("packages") if one.side.report is not None else None
        block = found if isinstance(found, Mapping) else {}
        return _is_passing(
            one.status("P02")
        ), f"{block.get('matching')} of {block.get('locked')} as locked"

    return _make_statement("packages", seen, [words] * len(seen), says, "P02")


def _builds(seen: Sequence[_TargetReadings]) -> Statement | None:
    """Tell which packages have one version everywhere and are another build where conda brings
    them; None where conda brings none of them.
    """
    names = sorted({name for one in seen if one.declared for name in one.declared.builds})
    if not names:
        return None

    def says(one: _TargetReadings) -> tuple[bool | None, str]:
        return _is_passing(one.status("P02")), ", ".join(
            f"{name} {one.readings.get(f'package.{name}', '?')}" for name in names
        )

    return _make_statement(
        "package builds", seen, [_source(one.declared, names) for one in seen], says, "P02"
    )


def _source(declared: DeclaredEnvironment | None, names: Sequence[str]) -> str:
    if declared is None:
        return "?"
    held = [name for name in names if name in declared.versions]
    by_conda = [
        f"{name} {declared.builds[name]} of conda" for name in held if name in declared.builds
    ]
    indexed = [f"{name} of the package index" for name in held if name not in declared.builds]
    return " and ".join((*by_conda, *indexed)) or "none of them"


def _torch(seen: Sequence[_TargetReadings]) -> Statement | None:
    declared = [one.declared.versions.get("torch", "none") if one.declared else "?" for one in seen]
    if not set(declared) - {"none", "?"}:
        return None
    return _make_statement(
        "torch build",
        seen,
        declared,
        lambda one: (_is_passing(one.status("T01")), str(one.readings.get("torch.version", "?"))),
        "T01",
    )


def _cuda(seen: Sequence[_TargetReadings]) -> Statement | None:
    wanted = {one.name: one.declared.cuda if one.declared else None for one in seen}
    if not any(one.declared and one.declared.flavour for one in seen):
        return None

    def says(one: _TargetReadings) -> tuple[bool | None, str]:
        if "torch.cuda" not in one.readings:
            return None, "?"
        there = one.readings["torch.cuda"]
        return there == wanted[one.name], str(there or "none")

    return _make_statement(
        "CUDA of torch", seen, [wanted[one.name] or "none" for one in seen], says
    )


def _driver(seen: Sequence[_TargetReadings]) -> Statement | None:
    floors = {one.name: one.declared.driver if one.declared else None for one in seen}
    if not any(floors.values()):
        return None

    def says(one: _TargetReadings) -> tuple[bool | None, str]:
        there, floor = one.readings.get("driver.version"), floors[one.name]
        if floor is None:
            return True, str(there or "none needed")
        try:
            return (None if there is None else specifier_allows(f">={floor}", str(there))), str(
                there or "?"
            )
        except UnreadableVersion:
            return None, str(there)

    return _make_statement(
        "driver",
        seen,
        [f"at least {floors[one.name]}" if floors[one.name] else "none needed" for one in seen],
        says,
    )


def _checks(seen: Sequence[_TargetReadings], pairs: Sequence[ReportComparison]) -> Statement:
    results = {"verified": True, "simulated": True, "failed": False}

    def says(one: _TargetReadings) -> tuple[bool | None, str]:
        verdict = one.side.report.document["verdict"] if one.side.report is not None else {}
        told = verdict.get("counts")
        counts = told if isinstance(told, Mapping) else {}
        return results.get(
            str(verdict.get("result"))
        ), f"{counts.get('pass')} pass, {counts.get('fail')} fail, {counts.get('unknown')} unknown"

    made = _make_statement("checks", seen, ["every required check passes"] * len(seen), says)
    if made.result is StatementResult.EQUAL:
        return made
    broken = [
        summarize_comparison(pair)
        for pair in pairs
        if any(turn.breaks for turn in pair.check_changes)
    ]
    alone = [
        f"{one.name}: {one.side.report.sentence}"
        for one in seen
        if one.side.report is not None and says(one)[0] is not True
    ]
    return Statement(
        made.subject,
        made.result,
        made.declared,
        made.observed,
        "; ".join(broken or alone) or made.why,
    )


def _training(
    seen: Sequence[_TargetReadings], pairs: Sequence[ReportComparison]
) -> Statement | None:
    """Tell whether equal runs gave equal weights: hashes are compared where all that they depend on
    is equal, else what sets them apart is named.
    """
    trained = [one for one in seen if one.readings.get("train.weights_sha")]
    if not trained and not any(one.asked_to_train for one in seen):
        return None
    observed = {
        one.name: f"{str(one.readings['train.weights_sha'])[:12]}, loss "
        f"{one.readings.get('train.loss_last')}"
        for one in trained
    }
    reasons, found = [], StatementResult.EQUAL
    for pair in pairs:
        own = next((one for one in pair.differences if one.key == "train.weights_sha"), None)
        parent = next(
            (one for one in pair.differences if "train.weights_sha" in one.followers), None
        )
        if own is not None:
            reasons.append(
                f"{pair.a.name} and {pair.b.name} trained to other weights, and nothing "
                "that was recorded explains it"
            )
        elif parent is not None:
            reasons.append(
                f"hashes of {pair.a.name} and {pair.b.name} cannot be equal: "
                f"{describe_difference(parent)}"
            )
        found = (
            StatementResult.DIFFERS
            if own is not None
            else StatementResult.DIFFERS_AS_DECLARED
            if parent is not None and found is StatementResult.EQUAL
            else found
        )
    lacking = [one.name for one in seen if one not in trained]
    if found is not StatementResult.DIFFERS and lacking:
        found, reasons = (
            StatementResult.UNPROVEN,
            [f"no training run was seen on {', '.join(lacking)}"],
        )
    return Statement(
        "training result",
        found,
        "the same tiny run ends in the same weights",
        observed,
        "; ".join(reasons),
    )


def _pairs(seen: Sequence[_TargetReadings]) -> tuple[ReportComparison, ...]:
    """Compare the first target with a report, one that is verified before others, with each of the
    others.
    """
    reports = [(one.name, one.side.report) for one in seen if one.side.report is not None]
    reports.sort(key=lambda pair: pair[1].verdict != "verified")
    return tuple(
        compare_reports(reports[0][1], report, (reports[0][0], name))
        for name, report in reports[1:]
    )


def _undeclared(pairs: Sequence[ReportComparison]) -> Iterator[str]:
    for pair in pairs:
        found = [
            one
            for one in pair.differences
            if one.kind is ReadingClass.IDENTITY and not one.key.startswith(_COVERED)
        ]
        yield from (f"{pair.a.name} and {pair.b.name}: {describe_difference(one)}" for one in found)


def _is_passing(status: str) -> bool | None:
    return {Status.PASS.value: True, Status.WARN.value: True, Status.FAIL.value: False}.get(status)
