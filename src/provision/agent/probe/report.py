"""The report of a verification as one JSON document: readings, checks, verdict, digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

from .expectations import Expectations
from .judging.packages import packages_of_conda, version_differences
from .model import (
    Check,
    JsonObject,
    Judgement,
    Need,
    ObservedValues,
    Proof,
    Reading,
    ReadingClass,
    SelectedCheck,
    Status,
    Tier,
    Verdict,
)
from .own_code import own_digest
from .readings import published_readings
from .redactor import Redactor
from .report_json import canonical_digest, compact
from .supervisor import StageRun

SCHEMA = "provision.report/1"
_MOST_DIFFERENCES = 100


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """One check with its judgement and the seconds that observing it took."""

    asked: SelectedCheck
    judgement: Judgement
    seconds: float


def make_report(
    expected: Expectations,
    judged: Sequence[JudgedCheck],
    seen: ObservedValues,
    runs: Sequence[StageRun],
    redactor: Redactor,
    partial: bool,
) -> JsonObject:
    """Return the whole document; a `partial` verification is never `verified`."""
    readings = [_published(reading, redactor) for reading in published_readings(seen)]
    document: JsonObject = {
        "schema": SCHEMA,
        "tool": {**_select(expected.tool, "name", "version"), "probe_sha256": own_digest()},
        "subject": {
            "target": expected.target.get("name"),
            "kind": expected.target.get("kind"),
            "created_utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "nonce": expected.nonce,
            "proof": expected.proof.value,
            "simulated": [redactor.text(check) for check in expected.simulated],
            **({"training_proof": expected.training_proof} if expected.training_proof else {}),
        },
        "spec": _select(expected.spec, "name", "digest"),
        "lock": _select(expected.lock, "digest", "environment_digest"),
        "tier": expected.tier.value,
        "readings": [
            {"key": reading.key, "value": reading.value, "class": reading.reading_class.value}
            for reading in readings
        ],
        "checks": [_check(check, redactor) for check in judged],
        "stages": [run.to_json() for run in runs],
        "packages": _packages(expected, seen, redactor),
        "verdict": verdict_of(expected, judged, partial, redactor),
    }
    document["digests"] = {
        "identity": identity_digest(readings),
        "report": canonical_digest(compact(document)),
    }
    return document


def identity_digest(readings: Sequence[Reading]) -> str:
    """One digest over the identity readings: equal for two runs of one environment."""
    return canonical_digest(
        {
            reading.key: reading.value
            for reading in readings
            if reading.reading_class is ReadingClass.IDENTITY
        }
    )


def result_of(judged: Sequence[JudgedCheck], partial: bool, simulated: bool = False) -> Verdict:
    """Return the verdict of judged checks.

    A required failure fails; a required unknown, or a partial run, is unverified.
    """
    required = [check.judgement.status for check in judged if check.asked.required]
    if Status.FAIL in required:
        return Verdict.FAILED
    if Status.UNKNOWN in required or partial:
        return Verdict.UNVERIFIED
    return Verdict.SIMULATED if simulated else Verdict.VERIFIED


def verdict_of(
    expected: Expectations, judged: Sequence[JudgedCheck], partial: bool, redactor: Redactor
) -> JsonObject:
    """Return the verdict with its counts, first cause and sentence."""
    result = result_of(judged, partial, bool(expected.simulated))
    decisive = Status.FAIL if result is Verdict.FAILED else Status.UNKNOWN
    statuses = [check.judgement.status for check in judged]
    first = next(
        (check for check in judged if check.asked.required and check.judgement.status is decisive),
        None,
    )
    return {
        "result": result.value,
        "counts": {status.value: statuses.count(status) for status in Status},
        "first_cause": first.asked.id if first else None,
        "sentence": redactor.text(_sentence(result, expected, judged, first, partial)),
    }


def _sentence(
    result: Verdict,
    expected: Expectations,
    judged: Sequence[JudgedCheck],
    first: JudgedCheck | None,
    partial: bool,
) -> str:
    proof = _PROOFS[expected.proof]
    if expected.training_proof:
        proof = f"training proof from {expected.training_proof}, not run again"
    if expected.tier is Tier.INVENTORY:
        proof = "no package was imported, no training was run (tier: inventory)"
    if result is Verdict.VERIFIED:
        return f"The environment is as declared: {_tally(expected, judged)}; {proof}."
    if result is Verdict.SIMULATED:
        simulated = ", ".join(expected.simulated)
        return f"{_tally(expected, judged)}; {proof}; simulated: {simulated}."
    if result is Verdict.FAILED and first is not None:
        more = (
            sum(check.asked.required and check.judgement.status is Status.FAIL for check in judged)
            - 1
        )
        others = f" (and {more} more)" if more else ""
        return (
            f"The environment is not as declared: {first.asked.id}: "
            f"{first.judgement.message}{others}. Declared proof: {expected.proof.value}."
        )
    if first is not None:
        return (
            f"Not verified: {first.asked.id} could not be observed: {first.judgement.message}. "
            f"Declared proof: {expected.proof.value}."
        )
    if not partial:
        return ""
    return (
        f"Only some of the checks were run: {_tally(expected, judged)}. Proof of a complete run: "
        f"{expected.proof.value}."
    )


def _tally(expected: Expectations, judged: Sequence[JudgedCheck]) -> str:
    """Return how many checks passed, and how many do not apply: "44 checks passed, ..."."""
    statuses = [check.judgement.status for check in judged]
    passed, skipped = statuses.count(Status.PASS), statuses.count(Status.SKIP)
    text = "1 check passed" if passed == 1 else f"{passed} checks passed"
    if not skipped:
        return text
    for_gpu = sum(Need.GPU in check.asked.check.needs for check in judged)
    reason = f" ({for_gpu}: no GPU declared)" if for_gpu and expected.gpu_type is None else ""
    return f"{text}, {skipped} not applicable{reason}"


_PROOFS = {
    Proof.HF_TRAINER: "a Trainer run learned, repeated and resumed exactly (proof: hf-trainer)",
    Proof.TORCH: "a plain torch run learned, repeated and resumed exactly (proof: torch)",
    Proof.JAX: "a plain jax run learned, repeated and resumed (proof: jax)",
    Proof.KERAS: "a Keras run learned, repeated and resumed (proof: keras)",
    Proof.IMPORTS: "packages were imported, no training was run (proof: imports)",
}

EXIT_CODES = {
    Verdict.VERIFIED: 0,
    Verdict.SIMULATED: 0,
    Verdict.FAILED: 1,
    Verdict.ERROR: 2,
    Verdict.UNVERIFIED: 3,
}


def _check(judged: JudgedCheck, redactor: Redactor) -> JsonObject:
    judgement, check = judged.judgement, judged.asked.check
    row = {
        "id": judged.asked.id,
        "group": check.group,
        "title": judged.asked.title,
        "status": judgement.status.value,
        "required": judged.asked.required,
        "expected": redactor.tree(judgement.expected),
        "observed": redactor.tree(judgement.observed),
        "threshold": asdict(judgement.threshold) if judgement.threshold else None,
        "message": redactor.text(judgement.message),
        "cause": redactor.tree(judgement.cause),
        "fix": redactor.tree(judgement.fix),
        "causes": reported_causes(check, judgement.status),
        "seconds": round(judged.seconds, 2),
    }
    if judgement.status is not Status.SKIP:
        return row
    # Half the checks of a machine without a card are skipped: their rows stay short.
    del row["threshold"]
    return {key: value for key, value in row.items() if value is not None}


def reported_causes(check: Check, status: Status) -> list[str]:
    """Return the readings that can cause a check's result; none if it passes or does not apply."""
    return [] if status in (Status.PASS, Status.SKIP) else list(check.causes)


def _published(reading: Reading, redactor: Redactor) -> Reading:
    # Identity readings are versions and names of products: a host called "debian" must not change
    # os.id. What looks like a token is removed from them too.
    if reading.reading_class is ReadingClass.IDENTITY:
        redactor = Redactor()
    return replace(reading, value=redactor.tree(reading.value))


def _packages(expected: Expectations, seen: ObservedValues, redactor: Redactor) -> JsonObject:
    installed, count = seen.get("_packages.installed"), len(expected.packages)
    if installed is None:
        return {"locked": count, "matching": None, "differences": []}
    # Versions are identity, as in `_published`.
    compared = Redactor().tree(seen.get("_packages.compared", {}))
    required_by = seen.get("_packages.required_by", {})
    locked = version_differences(expected.packages, installed)
    provided = packages_of_conda(expected, seen.get("_packages.brought"))
    of_conda = version_differences(provided, installed)
    differences = [*locked, *of_conda][:_MOST_DIFFERENCES]
    for position, row in enumerate(differences):
        row["observed"] = redactor.tree(row["observed"])
        if position < len(locked) and row["name"] in required_by:
            row["required_by"] = required_by[row["name"]]
    return {
        "locked": count,
        "matching": count - len(locked),
        "differences": differences,
        "installed": compared,
    }


def _select(block: dict[str, str], *names: str) -> dict[str, str | None]:
    return {name: block.get(name) for name in names}
