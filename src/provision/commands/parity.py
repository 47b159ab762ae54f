"""State what the lock and the last reports prove equal across all targets of a spec, and how to
prove the rest.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from provision.commands.probe import build_probe_expectations, read_current_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.probe_report_import import probe_report_path
from provision.commands.shared.target_plans import get_driver_and_context, runs_in_browser
from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.lock import Lock
from provision.lock.conda_names import conda_provided_versions, to_index_name
from provision.state import Ledger
from provision.targets import DRIVERS, TargetContext, get_driver
from provision.verification import Report, expectations_of, probe_digest, read_report
from provision.verification.parity import DeclaredEnvironment, Parity, ParityTarget, ReportStanding
from provision.verification.parity import evaluate_parity as stated
from provision.verification.report import MAX_REPORT_BYTES, find_tampering


def parity(loaded: LoadedSpec, ledger: Ledger, reader: Reader) -> Parity:
    """Return what is proven; looks, changes nothing. Raises LockError without a lock that holds."""
    lock = read_current_lock(loaded, reader)
    return stated(
        [_target_evidence(loaded, lock, name, ledger, reader) for name in loaded.spec.targets]
    )


def _target_evidence(
    loaded: LoadedSpec, lock: Lock, name: str, ledger: Ledger, reader: Reader
) -> ParityTarget:
    kind = loaded.spec.targets[name].kind
    if kind not in DRIVERS:
        return ParityTarget(
            name,
            kind,
            ReportStanding.MISSING,
            why="targets of this kind cannot be made by this version",
        )
    platform = DRIVERS[kind].platform or reader.platform()
    environment = lock.environment(name, platform)
    if environment is None:
        prove = f"run `provision parity` on one of {', '.join(loaded.spec.platforms)}"
        return ParityTarget(
            name,
            kind,
            ReportStanding.MISSING,
            why=f"the lock holds nothing for it on {platform}",
            prove=prove,
        )
    place = get_driver_and_context(loaded, lock, name, reader)[1]
    brought = conda_provided_versions(lock, environment, loaded.spec)
    builds = {
        to_index_name(package.name): package.build
        for package in lock.conda_records_in(environment)
        if to_index_name(package.name) in brought
    }
    declared = DeclaredEnvironment(
        lock.python,
        {**lock.versions(environment), **brought},
        environment.flavour,
        environment.driver,
        builds,
    )
    own = _assess_stored_report(place, ledger, reader)
    side = own if own.report is not None else _assess_probe_report(loaded, place, reader) or own
    return ParityTarget(
        name,
        kind,
        side.standing,
        declared,
        side.report,
        side.why,
        _proof_hint(loaded, place, side),
        side.carried,
        side.at,
    )


def _assess_stored_report(place: TargetContext, ledger: Ledger, reader: Reader) -> ParityTarget:
    """Return what the stored report of a place is worth."""
    path = place.reports_folder / "report.json"
    if not reader.exists(path):
        return _evidence_without_report(place, ReportStanding.MISSING, why="it was never verified")
    try:
        report = read_report(reader.read(path, MAX_REPORT_BYTES), str(path))
    except ExternalError as error:
        return _evidence_without_report(
            place, ReportStanding.DAMAGED, why=f"{error.what}: {error.why}"
        )
    if wrong := find_tampering(report):
        return _evidence_without_report(place, ReportStanding.DAMAGED, why=wrong)
    stale = _stale_reason(report, place) or _unverified_reason(place, ledger, reader)
    return (
        _evidence_without_report(place, ReportStanding.STALE, why=stale)
        if stale
        else _evidence_from_report(place, report, carried=False)
    )


def _assess_probe_report(
    loaded: LoadedSpec, place: TargetContext, reader: Reader
) -> ParityTarget | None:
    """Return what the report of a probe that was carried by hand is worth; None without one that
    answers what would be asked now.
    """
    path = probe_report_path(loaded, place.target)
    try:
        report = read_report(
            reader.read(path, MAX_REPORT_BYTES),
            str(path),
            nonce=build_probe_expectations(place)["nonce"],
        )
    except ExternalError:
        return None
    if wrong := find_tampering(report):
        return _evidence_without_report(place, ReportStanding.DAMAGED, why=wrong)
    return _evidence_from_report(place, report, carried=True)


def _evidence_from_report(place: TargetContext, report: Report, *, carried: bool) -> ParityTarget:
    standing = {
        "verified": ReportStanding.VERIFIED,
        "failed": ReportStanding.FAILED,
        "simulated": ReportStanding.SIMULATED,
    }.get(report.verdict, ReportStanding.UNVERIFIED)
    subject = report.document["subject"]
    at = str(subject.get("created_utc", ""))[:10]
    if standing is ReportStanding.SIMULATED and place.sandbox_sources is None:
        return _evidence_without_report(
            place,
            standing,
            why=f"not real there: {', '.join(str(one) for one in subject.get('simulated') or ())}",
        )
    return ParityTarget(place.target, "", standing, report=report, carried=carried, at=at)


def _evidence_without_report(
    place: TargetContext, standing: ReportStanding, *, why: str
) -> ParityTarget:
    return ParityTarget(place.target, "", standing, why=why)


def _stale_reason(report: Report, place: TargetContext) -> str:
    """Return why a report is not of the lock, the spec and the probe as they are; "" when it is."""
    asked = expectations_of(
        place.effective_spec,
        place.target,
        place.lock,
        place.environment,
        DRIVERS[place.spec.targets[place.target].kind].get_interpreter(place).prefix,
    )
    document = report.document
    if document["lock"].get("environment_digest") != asked["lock"]["environment_digest"]:
        return "its report is of another lock"
    if document["spec"].get("digest") != asked["spec"]["digest"]:
        return "its report is of another spec"
    tool = document.get("tool")
    judged_by = tool.get("probe_sha256") if isinstance(tool, Mapping) else None
    return "" if judged_by == probe_digest() else "another version of the probe judged it"


def _unverified_reason(place: TargetContext, ledger: Ledger, reader: Reader) -> str:
    check = get_driver(place).plan_verification(place, ledger.state, reader)
    return check.reason if check.needed else ""


def _proof_hint(loaded: LoadedSpec, place: TargetContext, side: ParityTarget) -> str:
    match side.standing:
        case ReportStanding.VERIFIED:
            return ""
        case ReportStanding.FAILED | ReportStanding.UNVERIFIED if not side.carried:
            return f"{place.command('report')} says why; then {place.command('verify')}"
        case ReportStanding.SIMULATED if place.sandbox_sources is not None:
            return ""
        case ReportStanding.DAMAGED:
            return place.command("verify")
        case _ if runs_in_browser(place):
            words = (
                f"provision report add report.json --spec {shlex.quote(str(loaded.path))} "
                f"--target {place.target}"
            )
            return f"{place.command('apply')}, run its notebook, then {words}"
        case _:
            return place.command("apply")
