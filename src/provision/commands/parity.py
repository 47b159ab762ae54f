"""Compare the lock's statements with the last reports of all targets, and how to prove the rest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from provision.commands.diff import diff_documents
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import require_current_lock
from provision.commands.shared.locked_context import build_probe_expectations
from provision.commands.shared.probe_report_import import probe_report_path
from provision.commands.shared.target_plans import get_driver_and_context, runs_in_browser
from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.lock import Lock, LockedEnvironment
from provision.lock.conda_request import conda_provided_versions, to_index_name
from provision.state import Ledger
from provision.targets import TargetContext, find_driver, get_driver
from provision.targets.capabilities import VerifiesImage
from provision.verification import Report, read_report
from provision.verification.device_files import expectations_of, probe_digest
from provision.verification.parity import evaluate_parity
from provision.verification.parity_model import (
    DeclaredEnvironment,
    Parity,
    ParityTarget,
    ReportStanding,
)
from provision.verification.report import MAX_REPORT_BYTES, find_tampering, read_report_file
from provision.verification.snapshot_parity import evaluate_documents

_STANDINGS = {
    "verified": ReportStanding.VERIFIED,
    "failed": ReportStanding.FAILED,
    "simulated": ReportStanding.SIMULATED,
}
"""Standings by verdict; any other verdict is `unverified`."""


def parity(loaded: LoadedSpec, ledger: Ledger, reader: Reader) -> Parity:
    """Return what is proven equal across the targets; changes nothing.

    Raises:
        LockError: the spec has no valid lock.
    """
    lock = require_current_lock(loaded, reader)
    return evaluate_parity(
        [_assess_target(loaded, lock, name, ledger, reader) for name in loaded.spec.targets]
    )


def parity_of_documents(first: str, second: str, reader: Reader) -> Parity:
    """Return what two captures, descriptions of machines or reports show to be equal.

    Raises:
        UsageError: both are the same file.
        ExternalError: a document cannot be read.
    """
    comparison, reports = diff_documents(first, second, reader)
    return evaluate_documents(comparison, reports)


def _assess_target(
    loaded: LoadedSpec, lock: Lock, name: str, ledger: Ledger, reader: Reader
) -> ParityTarget:
    kind = loaded.spec.targets[name].kind
    missing = ParityTarget(name, kind, ReportStanding.MISSING)
    driver = find_driver(loaded.spec, name)
    if driver is None:
        return replace(missing, why="this version cannot create targets of this kind")
    platform = driver.platform or reader.platform()
    environment = lock.environment(name, platform)
    if environment is None:
        return replace(
            missing,
            why=f"the lock has no environment for this target on {platform}",
            prove=f"run `provision parity` on one of {', '.join(loaded.spec.platforms)}",
        )
    context = get_driver_and_context(loaded, lock, name, reader)[1]
    target = _assess_stored_report(context, ledger, reader)
    if target.report is None:
        target = _assess_probe_report(loaded, context, reader) or target
    elsewhere = ""
    if isinstance(driver, VerifiesImage):
        elsewhere = driver.describe_image_verification(context, ledger.state)
    return replace(
        target,
        declared=_declared_environment(loaded, lock, environment),
        prove=_proof_hint(loaded, context, target),
        elsewhere=elsewhere,
    )


def _declared_environment(
    loaded: LoadedSpec, lock: Lock, environment: LockedEnvironment
) -> DeclaredEnvironment:
    from_conda = conda_provided_versions(lock, environment, loaded.spec)
    records = lock.conda_records_in(environment)
    builds = {to_index_name(record.name): record.build for record in records}
    return DeclaredEnvironment(
        lock.python,
        {**lock.versions(environment), **from_conda},
        environment.flavour,
        environment.driver,
        {name: build for name, build in builds.items() if name in from_conda},
    )


def _assess_stored_report(context: TargetContext, ledger: Ledger, reader: Reader) -> ParityTarget:
    """Return the worth of a target's stored report."""
    path = context.reports_folder / "report.json"
    if not reader.exists(path):
        return _without_report(context, ReportStanding.MISSING, "it was never verified")
    try:
        report = read_report_file(path, reader)
    except ExternalError as error:
        return _without_report(context, ReportStanding.DAMAGED, f"{error.what}: {error.why}")
    if reason := find_tampering(report):
        return _without_report(context, ReportStanding.DAMAGED, reason)
    if reason := _stale_reason(report, context):
        return _without_report(context, ReportStanding.STALE, reason)
    verification = get_driver(context).plan_verification(context, ledger.state, reader)
    if verification.needed and verification.reason:
        return _without_report(context, ReportStanding.STALE, verification.reason)
    return _with_report(context, report, carried=False)


def _assess_probe_report(
    loaded: LoadedSpec, context: TargetContext, reader: Reader
) -> ParityTarget | None:
    """Return the worth of an exported probe's report; None without one for this state."""
    path = probe_report_path(loaded, context.target)
    try:
        report = read_report(
            reader.read(path, MAX_REPORT_BYTES),
            str(path),
            nonce=build_probe_expectations(context)["nonce"],
        )
    except ExternalError:
        return None
    if reason := find_tampering(report):
        return _without_report(context, ReportStanding.DAMAGED, reason)
    return _with_report(context, report, carried=True)


def _with_report(context: TargetContext, report: Report, *, carried: bool) -> ParityTarget:
    standing = _STANDINGS.get(report.verdict, ReportStanding.UNVERIFIED)
    if standing is ReportStanding.SIMULATED and context.sandbox_sources is None:
        simulated = ", ".join(report.subject.simulated)
        return _without_report(context, standing, f"simulated: {simulated}")
    return replace(
        _without_report(context, standing, ""),
        report=report,
        carried=carried,
        at=report.subject.created_utc[:10],
    )


def _without_report(context: TargetContext, standing: ReportStanding, why: str) -> ParityTarget:
    kind = context.spec.targets[context.target].kind
    return ParityTarget(context.target, kind, standing, why=why)


def _stale_reason(report: Report, context: TargetContext) -> str:
    """Return why a report is not of the current lock, spec and probe; "" if it is."""
    expectations = expectations_of(
        context.effective_spec,
        context.target,
        context.lock,
        context.environment,
        get_driver(context).get_interpreter(context).prefix,
    )
    if report.environment_digest != expectations["lock"]["environment_digest"]:
        return "its report is for a different lock"
    if report.document["spec"].get("digest") != expectations["spec"]["digest"]:
        return "its report is for a different spec"
    if context.code is not None and report.values.get("code.digest") != context.code.digest:
        return "its report is for different code"
    tool = report.document.get("tool")
    if not isinstance(tool, Mapping) or tool.get("probe_sha256") != probe_digest():
        return "its report is from a different version of the probe"
    return ""


def _proof_hint(loaded: LoadedSpec, context: TargetContext, target: ParityTarget) -> str:
    match target.standing:
        case ReportStanding.VERIFIED:
            return ""
        case ReportStanding.FAILED | ReportStanding.UNVERIFIED if not target.carried:
            return f"see {context.command('report')}, then {context.command('verify')}"
        case ReportStanding.SIMULATED if context.sandbox_sources is not None:
            return ""
        case ReportStanding.DAMAGED:
            return context.command("verify")
        case _ if runs_in_browser(context):
            spec = shlex.quote(str(loaded.path))
            render = f"{context.command('apply')}, run its notebook"
            if getattr(loaded.spec.targets[context.target], "bucket", None):
                return f"{render}, then {loaded.command('parity')}"
            return (
                f"{render}, then provision report add report.json --spec {spec} --target "
                f"{context.target}"
            )
        case _:
            return context.command("apply")
