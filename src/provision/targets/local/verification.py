"""Verification on this machine: runs the probe in the environment and reads its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from provision.effects.local import MakeFolder, MoveFile, RemoveTree, RunProbe, WriteFile
from provision.effects.system import ProgressCallback
from provision.targets.base import VERIFICATION_PART, Journal, ProbeEvidence
from provision.targets.context import Interpreter, TargetContext
from provision.verification import expectations_of, probe_zipapp, read_report
from provision.verification.report import MAX_REPORT_BYTES


def run_probe_locally(
    context: TargetContext,
    interpreter: Interpreter,
    variables: Mapping[str, str],
    journal: Journal,
    only: tuple[str, ...],
) -> ProbeEvidence:
    """Run the probe in a complete environment, and return its report.

    Raises:
        ExternalError: the probe itself failed.
    """
    system, progress = journal.system, journal.progress
    expectations = expectations_of(
        context.spec, context.target, context.lock, context.environment, interpreter.prefix
    )
    nonce = system.token()
    request = json.dumps({**expectations, "nonce": nonce}, indent=1, sort_keys=True)
    folder = context.reports_folder
    program, expected = folder / "probe.pyz", folder / "expectations.json"
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(WriteFile(program, probe_zipapp(), 0o600), progress)
    system.perform(WriteFile(expected, request, 0o600), progress)
    path = folder / ("report-only.json" if only else "report.json")
    stored = journal.state.resource(context.address, VERIFICATION_PART) or {}
    if only or not stored.get("verdict"):
        # Nothing records this file: it covers single checks, or what was replaced since.
        system.perform(RemoveTree(path), progress)
    # The last report stays the verdict until this run has ended.
    new_path = folder / "report-new.json"
    system.perform(RemoveTree(new_path), progress)
    probe = RunProbe(
        interpreter.python,
        program,
        expected,
        new_path,
        expectations["timeout_s"],
        tuple(variables.items()),
        only,
    )
    system.perform(probe, _show_stages(progress))
    report = read_report(system.read(new_path, MAX_REPORT_BYTES), str(new_path), nonce=nonce)
    system.perform(MoveFile(new_path, path), progress)
    return ProbeEvidence(report, path, partial=bool(only))


def activation_variables(prefix: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that activate an environment: its programs come first on the PATH."""
    path = caller.get("PATH", "/usr/bin:/bin")
    return {"VIRTUAL_ENV": str(prefix), "PATH": f"{prefix / 'bin'}:{path}"}


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
