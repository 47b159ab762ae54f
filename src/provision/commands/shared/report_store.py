"""Stores reports: the page next to the report, and the verdict in the state."""

from __future__ import annotations

from pathlib import Path

from provision.effects.local import WriteFile
from provision.targets import TargetContext, get_driver
from provision.targets.base import Journal, ProbeEvidence
from provision.targets.stored_verdict import VerificationRecord
from provision.verification import Report, probe_digest
from provision.views.report import html


def write_report_page(
    report: Report, json_path: Path, context: TargetContext, journal: Journal
) -> Path:
    """Write the page of a report next to it."""
    html_path = json_path.with_suffix(".html")
    page = html.render_report(report, f"{context.stem} on {context.target}")
    journal.system.perform(WriteFile(html_path, page, 0o600), journal.progress)
    return html_path


def store_report(evidence: ProbeEvidence, context: TargetContext, journal: Journal) -> Path:
    """Write the page of a report and record its verdict; return the page's path."""
    report, json_path = evidence.report, evidence.path
    html_path = write_report_page(report, json_path, context, journal)
    probe = probe_digest()
    created_utc = str(report.document["subject"].get("created_utc", ""))
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
    )
    journal.record(context.address, record.part, record.to_json())
    return html_path
