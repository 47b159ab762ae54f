"""Runs the probe in a local environment, and reads its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from provision.effects.local import MakeFolder, MoveFile, RemoveTree, RunProbe, WriteFile
from provision.effects.system import ProgressCallback
from provision.targets.base import Journal, ProbeEvidence, VerifyOptions
from provision.targets.context import Interpreter, TargetContext
from provision.targets.local.training_proof import (
    REPORT_FILE,
    REQUEST_FILE,
    find_earlier_proof,
    is_same_machine,
    training_packages,
)
from provision.targets.stored_verdict import VerificationRecord
from provision.verification import Report, read_report
from provision.verification.device_files import probe_zipapp
from provision.verification.report import MAX_REPORT_BYTES

_NEW_REPORT = "report-new.json"
"""The last report stays the verdict until a run has ended."""


def run_probe(
    context: TargetContext,
    interpreter: Interpreter,
    variables: Mapping[str, str],
    journal: Journal,
    options: VerifyOptions,
) -> ProbeEvidence:
    """Run the probe in a complete environment, and return its report.

    If nothing moved that the training depends on, the training proof of the last complete report
    is kept, and the training does not run again.

    Raises:
        ExternalError: the probe itself failed.
    """
    system, progress, folder = journal.system, journal.progress, context.reports_folder
    declared = context.with_run_command(context.expectations(interpreter.prefix))
    if context.code is not None:
        place = {"folder": str(context.code.folder), "manifest": str(folder / "code.json")}
        declared["code"] = {**declared["code"], **place}
    earlier = None
    if not (options.rerun or options.whole or options.only):
        packages = training_packages(context.lock, context.environment)
        earlier = find_earlier_proof(folder, declared, packages, system)
    if earlier is not None:
        system.perform(WriteFile(folder / REPORT_FILE, earlier.content, 0o600), progress)
        system.perform(WriteFile(folder / REQUEST_FILE, earlier.request, 0o600), progress)
        declared["training_proof"] = earlier.name
    only = options.only
    path = folder / ("report-only.json" if only else "report.json")
    stored = VerificationRecord.find(journal.state, context.address)
    if only or stored is None or not stored.verdict:
        # Nothing records this file: it covers single checks, or what was replaced since.
        system.perform(RemoveTree(path), progress)
    report = _run(context, interpreter, variables, journal, declared, only)
    if earlier is not None and not is_same_machine(earlier.report, report):
        progress(
            "verifying everything, because the driver, card or system has changed since "
            "training was proven"
        )
        del declared["training_proof"]
        report = _run(context, interpreter, variables, journal, declared, only)
    system.perform(MoveFile(folder / _NEW_REPORT, path), progress)
    return ProbeEvidence(report, path, partial=bool(only))


def _run(
    context: TargetContext,
    interpreter: Interpreter,
    variables: Mapping[str, str],
    journal: Journal,
    declared: Mapping[str, Any],
    only: tuple[str, ...],
) -> Report:
    """Run the probe once; its report is in a file of its own until the run has ended."""
    system, progress, folder = journal.system, journal.progress, context.reports_folder
    nonce = system.token()
    request = json.dumps({**declared, "nonce": nonce}, indent=1, sort_keys=True)
    program, expected, new_path = (
        folder / name for name in ("probe.pyz", "expectations.json", _NEW_REPORT)
    )
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(WriteFile(program, probe_zipapp(), 0o600), progress)
    system.perform(WriteFile(expected, request, 0o600), progress)
    if context.code is not None:
        listed = json.dumps(context.code.manifest.to_json(), sort_keys=True)
        system.perform(WriteFile(folder / "code.json", listed, 0o600), progress)
    system.perform(RemoveTree(new_path), progress)
    probe = RunProbe(
        interpreter.python,
        program,
        expected,
        new_path,
        declared["timeout_s"],
        tuple(variables.items()),
        only,
    )
    system.perform(probe, _show_stages(progress))
    return read_report(system.read(new_path, MAX_REPORT_BYTES), str(new_path), nonce=nonce)


def _show_stages(progress: ProgressCallback) -> ProgressCallback:
    """Return a callback that turns the probe's events into sentences; other lines pass as is."""

    def show(line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            progress(line)
            return
        if not isinstance(event, dict) or event.get("event") != "stage":
            return
        if event.get("status") == "started":
            progress(f"verifying: {event.get('title', event.get('stage'))}")

    return show
