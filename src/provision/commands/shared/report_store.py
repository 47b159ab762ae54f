"""Stores reports: the page next to the report, and the verdict in the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from provision.effects.local import WriteFile
from provision.targets import TargetContext, get_driver
from provision.targets.base import VERIFICATION_PART, Journal, ProbeEvidence
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
    record: dict[str, Any] = {
        "title": f"verification of {context.target}: {report.verdict}",
        "verdict": report.verdict,
        "sentence": report.sentence,
        "identity": report.identity,
        "expectations": get_driver(context).expectations_digest(context, probe),
        "probe": probe,
        "report": json_path.relative_to(context.folder).as_posix(),
        "html": html_path.relative_to(context.folder).as_posix(),
        "at": journal.system.now(),
        "paths": [json_path.parent.relative_to(context.folder).as_posix()],
    }
    if evidence.nonce:
        record["nonce"] = evidence.nonce
    if evidence.sha256:
        record["sha256"] = evidence.sha256
        record["created_utc"] = str(report.document["subject"].get("created_utc", ""))
    journal.record(context.address, VERIFICATION_PART, record)
    return html_path
