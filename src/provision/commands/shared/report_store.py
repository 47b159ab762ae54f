"""Stores reports: the page next to the report, the verdict in the state, and what follows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.executor import Executor
from provision.effects.local import WriteFile
from provision.targets import AnyDriver, TargetContext, get_driver
from provision.targets.base import Journal, ProbeEvidence
from provision.targets.stored_verdict import VerificationRecord, digest_files
from provision.verification import Report
from provision.verification.device_files import probe_digest
from provision.views.report import html


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """A stored report with its files.

    Attributes:
        partial: It covers single checks and is not a verdict.
        sandbox: `simulated` is the best verdict that can be expected.
        on_failure_note: What became of an instance that was not verified; "" for nothing.
        not_shown: What a verification on the same image cannot show; "" for one of the target.
    """

    report: Report
    json_path: Path
    html_path: Path
    partial: bool = False
    sandbox: bool = False
    on_failure_note: str = ""
    not_shown: str = ""

    @property
    def exit_code(self) -> int:
        """The verdict's exit code; of single checks 1 for a failure, 3 for an unknown, else 0."""
        if self.partial:
            statuses = {check.status for check in self.report.checks}
            if "fail" in statuses:
                return 1
            return 3 if "unknown" in statuses else 0
        return self.report.exit_code_in_sandbox if self.sandbox else self.report.exit_code


def store_evidence(
    driver: AnyDriver, context: TargetContext, evidence: ProbeEvidence, executor: Executor
) -> VerificationResult:
    """Store a report, and do what follows its verdict. Single checks are not recorded."""
    note = ""
    if evidence.partial:
        page = write_page(evidence, context, executor)
    else:
        page = store_report(evidence, context, executor)
        follow_up = driver.after_verdict(context, evidence.report, executor.state, executor.system)
        for action in follow_up.actions:
            executor.perform(driver, action, announce=False)
        note = follow_up.note
    return VerificationResult(
        evidence.report,
        evidence.path,
        page,
        partial=evidence.partial,
        sandbox=context.sandbox_sources is not None,
        on_failure_note=note,
    )


def store_report(evidence: ProbeEvidence, context: TargetContext, journal: Journal) -> Path:
    """Write the page of a report and record its verdict; return the page's path."""
    report, json_path = evidence.report, evidence.path
    html_path = write_page(evidence, context, journal)
    probe = probe_digest()
    created_utc = report.subject.created_utc
    record = VerificationRecord(
        f"verification of {context.target}: {report.verdict}",
        report.verdict,
        get_driver(context).expectations_digest(context, probe),
        json_path.relative_to(context.folder).as_posix(),
        html_path.relative_to(context.folder).as_posix(),
        journal.system.now(),
        (json_path.parent.relative_to(context.folder).as_posix(),),
        report.sentence,
        report.identity,
        probe,
        evidence.nonce,
        evidence.sha256,
        created_utc if evidence.sha256 else "",
        report.tier,
        digest_files(context),
    )
    journal.record(context.address, record.part, record.to_json())
    return html_path


def write_page(
    evidence: ProbeEvidence, context: TargetContext, journal: Journal, place: str = ""
) -> Path:
    """Write the page of a report next to it; `place` is where it ran, the target by default."""
    html_path = evidence.path.with_suffix(".html")
    page = html.render_report(evidence.report, f"{context.stem} on {place or context.target}")
    journal.system.perform(WriteFile(html_path, page, 0o600), journal.progress)
    return html_path
