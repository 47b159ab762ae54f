"""Proof of parity: each statement of the lock, compared with the reports of all targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from provision.agent.core.versions import UnreadableVersion, specifier_allows
from provision.agent.probe.model import Proof, ReadingClass, Status
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.model import ReportComparison
from provision.verification.diff.summary import (
    CODE_DIGEST,
    describe_difference,
    summarize_comparison,
)
from provision.verification.parity_model import (
    DeclaredEnvironment,
    Parity,
    ParityTarget,
    Statement,
    StatementResult,
)
from provision.verification.report import Report

_COVERED = ("code.", "package.", "packages.", "torch.", "python.", "train.", "driver.")
"""Prefixes of the readings that statements cover."""
_HOLDS = {Status.PASS: True, Status.WARN: True, Status.FAIL: False}
_VERDICT_HOLDS = {"verified": True, "simulated": True, "failed": False}
_NOT_LOCKED = DeclaredEnvironment("?", {"torch": "?"}, None, None)
_TRAINING_PROOFS = frozenset(proof.value for proof in Proof) - {Proof.IMPORTS.value}
_FRAMEWORK_PROOFS = (Proof.JAX.value, Proof.KERAS.value)
_SETTINGS = "framework.memory_env."
"""Variables that decide how much GPU memory a program takes in advance."""


def evaluate_parity(targets: Sequence[ParityTarget]) -> Parity:
    """Return the statements that the reports of these targets prove or refute."""
    evidence = [_Evidence(target) for target in targets]
    pairs = _compare_reports(targets)
    statements = [
        _code(evidence, pairs),
        _python(evidence),
        _packages(evidence),
        _package_builds(evidence),
        _torch(evidence),
        _cuda(evidence),
        _driver(evidence),
        _checks(evidence, pairs),
        _training(evidence, pairs),
    ]
    return Parity(
        tuple(targets),
        tuple(statement for statement in statements if statement is not None),
        tuple(_undeclared_differences(pairs)),
    )


class _Evidence:
    """A target's declared environment, and its report (an empty one if none counts)."""

    def __init__(self, target: ParityTarget) -> None:
        self.name = target.target
        self.is_locked = target.declared is not None
        self.declared = target.declared or _NOT_LOCKED
        self.is_observed = target.report is not None
        self.report = target.report or Report({})
        self.readings = self.report.values
        self.checks = {check.id: check for check in self.report.checks}

    def holds(self, check_id: str) -> bool | None:
        """Return whether a check passed; None if it is unknown."""
        return _HOLDS.get(self.checks[check_id].status) if check_id in self.checks else None

    def message(self, check_id: str) -> str:
        return self.checks[check_id].message if check_id in self.checks else ""

    def reading(self, key: str) -> str:
        return str(self.readings.get(key, "?"))


_Observe = Callable[[_Evidence], "tuple[bool | None, str]"]
"""Returns whether a target is as declared (None: not known), and what was observed there."""


def _state(
    subject: str,
    evidence: Sequence[_Evidence],
    declared: Sequence[str],
    observe: _Observe,
    check_id: str = "",
) -> Statement:
    """Return a statement: it is proven when every target is as declared."""
    holds: dict[str, bool | None] = dict.fromkeys(one.name for one in evidence)
    observed: dict[str, str] = {}
    for one in evidence:
        if one.is_observed:
            holds[one.name], observed[one.name] = observe(one)
    wrong = [
        f"{one.name}: {one.message(check_id) or observed[one.name]}"
        for one in evidence
        if holds[one.name] is False
    ]
    unseen = [name for name, result in holds.items() if result is None]
    same, why = len(set(declared)) == 1, ""
    if wrong:
        result, why = StatementResult.DIFFERS, "; ".join(wrong)
    elif unseen:
        result, why = StatementResult.UNPROVEN, f"not observed on {', '.join(unseen)}"
    elif same:
        result = StatementResult.EQUAL
    else:
        result = StatementResult.DIFFERS_AS_DECLARED
    text = declared[0]
    if not same:
        pairs = zip(declared, evidence, strict=True)
        text = ", ".join(f"{value} on {one.name}" for value, one in pairs)
    return Statement(subject, result, text, observed, why)


def _state_check(
    subject: str,
    evidence: Sequence[_Evidence],
    declared: Sequence[str],
    check_id: str,
    observed: Callable[[_Evidence], str],
) -> Statement:
    """Return a statement that is proven on each target on which a check passes."""
    return _state(
        subject, evidence, declared, lambda one: (one.holds(check_id), observed(one)), check_id
    )


def _code(evidence: Sequence[_Evidence], pairs: Sequence[ReportComparison]) -> Statement | None:
    digests = [one.readings[CODE_DIGEST] for one in evidence if CODE_DIGEST in one.readings]
    if not digests:
        return None

    def observe(one: _Evidence) -> tuple[bool | None, str]:
        digest = one.readings.get(CODE_DIGEST)
        return None if digest is None else digest == digests[0], str(digest or "?")[:19]

    statement = _state("code", evidence, ["the same files"] * len(evidence), observe)
    reasons = [
        f"{pair.a.name} and {pair.b.name}: {describe_difference(difference)}"
        for pair in pairs
        for difference in pair.differences
        if difference.key == CODE_DIGEST
    ]
    return replace(statement, why="; ".join(reasons) or statement.why)


def _python(evidence: Sequence[_Evidence]) -> Statement:
    declared = [one.declared.python for one in evidence]
    return _state_check(
        "Python", evidence, declared, "P01", lambda one: one.reading("python.version")
    )


def _packages(evidence: Sequence[_Evidence]) -> Statement:
    locked = [one.declared.versions for one in evidence if one.is_locked]
    by_name: dict[str, list[str]] = {}
    for versions in locked:
        for name, version in versions.items():
            by_name.setdefault(name, []).append(version)
    differing = sorted(name for name, values in by_name.items() if len(set(values)) > 1)
    partial = sum(len(values) < len(locked) for values in by_name.values())
    declared = f"{len(by_name) - len(differing) - partial} with the same version"
    if differing:
        declared += f", {', '.join(differing)} in a separate build per target"
    if partial:
        declared += f", {partial} not on all targets"

    def observed(one: _Evidence) -> str:
        counts = one.report.part("packages")
        return f"{counts.get('matching')} of {counts.get('locked')} as locked"

    return _state_check("packages", evidence, [declared] * len(evidence), "P02", observed)


def _package_builds(evidence: Sequence[_Evidence]) -> Statement | None:
    """State the packages that have another build if conda installs them; None without conda."""
    names = sorted({name for one in evidence for name in one.declared.builds})
    if not names:
        return None
    declared = [_describe_builds(one.declared, names) if one.is_locked else "?" for one in evidence]

    def observed(one: _Evidence) -> str:
        return ", ".join(f"{name} {one.reading(f'package.{name}')}" for name in names)

    return _state_check("package builds", evidence, declared, "P02", observed)


def _describe_builds(declared: DeclaredEnvironment, names: Sequence[str]) -> str:
    from_conda, from_index = [], []
    for name in names:
        if name in declared.builds and name in declared.versions:
            from_conda.append(f"{name} {declared.builds[name]} from conda")
        elif name in declared.versions:
            from_index.append(f"{name} from the package index")
    return " and ".join((*from_conda, *from_index)) or "none"


def _torch(evidence: Sequence[_Evidence]) -> Statement | None:
    declared = [one.declared.versions.get("torch", "none") for one in evidence]
    if set(declared) <= {"none", "?"}:
        return None
    return _state_check(
        "torch build", evidence, declared, "T01", lambda one: one.reading("torch.version")
    )


def _cuda(evidence: Sequence[_Evidence]) -> Statement | None:
    if not any(one.declared.flavour for one in evidence):
        return None

    def observe(one: _Evidence) -> tuple[bool | None, str]:
        if "torch.cuda" not in one.readings:
            return None, "?"
        cuda = one.readings["torch.cuda"]
        return cuda == one.declared.cuda, str(cuda or "none")

    return _state(
        "CUDA of torch", evidence, [one.declared.cuda or "none" for one in evidence], observe
    )


def _driver(evidence: Sequence[_Evidence]) -> Statement | None:
    oldest = [one.declared.driver for one in evidence]
    if not any(oldest):
        return None

    def observe(one: _Evidence) -> tuple[bool | None, str]:
        driver = one.readings.get("driver.version")
        if one.declared.driver is None:
            return True, str(driver or "none needed")
        if driver is None:
            return None, "?"
        try:
            return specifier_allows(f">={one.declared.driver}", str(driver)), str(driver)
        except UnreadableVersion:
            return None, str(driver)

    declared = [f"at least {version}" if version else "none needed" for version in oldest]
    return _state("driver", evidence, declared, observe)


def _checks(evidence: Sequence[_Evidence], pairs: Sequence[ReportComparison]) -> Statement:
    def observe(one: _Evidence) -> tuple[bool | None, str]:
        counts = one.report.counts
        text = ", ".join(f"{counts.get(status)} {status}" for status in ("pass", "fail", "unknown"))
        return _VERDICT_HOLDS.get(one.report.verdict), text

    declared = ["every required check passes"] * len(evidence)
    statement = _state("checks", evidence, declared, observe)
    if statement.result is StatementResult.EQUAL:
        return statement
    reasons = [
        summarize_comparison(pair)
        for pair in pairs
        if any(change.breaks for change in pair.check_changes)
    ] or [
        f"{one.name}: {one.report.sentence}"
        for one in evidence
        if one.is_observed and not _VERDICT_HOLDS.get(one.report.verdict)
    ]
    return replace(statement, why="; ".join(reasons) or statement.why)


def _training(evidence: Sequence[_Evidence], pairs: Sequence[ReportComparison]) -> Statement | None:
    """State whether equal runs gave equal weights; None if no run was seen or required.

    Hashes are compared if all that they depend on is equal; otherwise the difference is named.
    """
    proofs = {one.report.subject.proof for one in evidence}
    prefix = "train" if proofs.isdisjoint(_FRAMEWORK_PROOFS) else "framework"
    weights = f"{prefix}.weights_sha"
    trained = [one for one in evidence if one.readings.get(weights)]
    expected = not proofs.isdisjoint(_TRAINING_PROOFS)
    if not trained and not expected:
        return None
    results, reasons = {StatementResult.EQUAL}, []
    for pair in pairs:
        sides = f"{pair.a.name} and {pair.b.name}"
        for difference in pair.differences:
            if difference.key == weights:
                results.add(StatementResult.DIFFERS)
                reasons.append(
                    f"{sides} ended with different weights, and no recorded difference explains "
                    "this"
                )
            elif weights in difference.followers:
                results.add(StatementResult.DIFFERS_AS_DECLARED)
                cause = describe_difference(difference)
                reasons.append(f"the weights of {sides} cannot be equal: {cause}")
    untrained = [one.name for one in evidence if one not in trained]
    if StatementResult.DIFFERS in results:
        result = StatementResult.DIFFERS
    elif untrained:
        result = StatementResult.UNPROVEN
        reasons = [f"no training run was observed on {', '.join(untrained)}"]
        reasons += [
            f"{one.name} relies on the training proof from {proof}: run `provision verify`"
            for one in evidence
            if (proof := one.report.subject.training_proof)
        ]
    elif StatementResult.DIFFERS_AS_DECLARED in results:
        result = StatementResult.DIFFERS_AS_DECLARED
    else:
        result = StatementResult.EQUAL
    return Statement(
        "training result",
        result,
        "the same small training run gives the same weights",
        {
            one.name: f"{str(one.readings[weights])[:12]}, loss "
            f"{one.readings.get(f'{prefix}.loss_last')}"
            for one in trained
        },
        "; ".join(reasons),
    )


def _compare_reports(targets: Sequence[ParityTarget]) -> list[ReportComparison]:
    """Compare the first verified report, or else the first, with each of the others."""
    reports = [(one.target, one.report) for one in targets if one.report is not None]
    reports.sort(key=lambda pair: pair[1].verdict != "verified")
    return [
        compare_reports(reports[0][1], report, (reports[0][0], name))
        for name, report in reports[1:]
    ]


def _undeclared_differences(pairs: Sequence[ReportComparison]) -> Iterator[str]:
    for pair in pairs:
        for one in pair.differences:
            is_identity = one.kind is ReadingClass.IDENTITY and not one.key.startswith(_COVERED)
            if is_identity or one.key.startswith(_SETTINGS):
                yield f"{pair.a.name} and {pair.b.name}: {describe_difference(one)}"
