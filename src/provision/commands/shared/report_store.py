"""A report that came back, filed: its page beside it, and its verdict in the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from provision.effects import ProgressCallback, System, WriteFile
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.verification import Report
from provision.views.report import html


class StoredReport(NamedTuple):
    """The page of a report, and the state that records it."""

    html_path: Path
    state: State


def write_report_page(
    report: Report,
    json_path: Path,
    context: TargetContext,
    system: System,
    progress: ProgressCallback,
) -> Path:
    """Write the page of a report beside it."""
    html_path = json_path.with_suffix(".html")
    system.perform(
        WriteFile(
            html_path,
            html.render_report(dict(report.document), f"{context.stem} on {context.target}"),
            0o600,
        ),
        progress,
    )
    return html_path


def store_report(
    report: Report,
    json_path: Path,
    context: TargetContext,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
    *,
    nonce: str = "",
    sha256: str = "",
) -> StoredReport:
    """Write a report's page and record its verdict; `nonce` is that of a run on a device elsewhere,
    `sha256` that of a file which people may replace.
    """
    from provision.commands.shared.target_plans import expectations_digest

    html_path = write_report_page(report, json_path, context, system, progress)
    record = _record(
        report, json_path, html_path, context, expectations_digest(context), system.now()
    )
    run = {"nonce": nonce} if nonce else {}
    file = (
        {"sha256": sha256, "created_utc": str(report.document["subject"].get("created_utc", ""))}
        if sha256
        else {}
    )
    after = state.with_record(context.address, "verification", {**record, **run, **file})
    store.save(after, expecting=state.serial)
    return StoredReport(html_path, after)


def _record(
    report: Report,
    json_path: Path,
    html_path: Path,
    context: TargetContext,
    promised: str,
    now: str,
) -> dict[str, Any]:
    return {
        "title": f"verification of {context.target}: {report.verdict}",
        "verdict": report.verdict,
        "sentence": report.sentence,
        "identity": report.identity,
        "expectations": promised,
        "report": json_path.relative_to(context.folder).as_posix(),
        "html": html_path.relative_to(context.folder).as_posix(),
        "at": now,
        "paths": [json_path.parent.relative_to(context.folder).as_posix()],
    }
