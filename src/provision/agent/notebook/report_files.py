"""The results of a run: status.json, report.json, and the last lines of the cell."""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.files import write_atomically, write_json_object
from .errors import StageError
from .probe_run import REPORT_FILE
from .session import Session

STATUS_FILE = "status.json"
SCHEMA = "provision.agent.notebook-status/1"
_OUTCOMES = {"verified": "verified", "failed": "failed", "error": "error"}
_MOST_SHOWN = 2**19


def report_stage(session: Session) -> None:
    """Publish the report and print the verdict. Raises StageError unless it is `verified`.

    Not if the user chose to continue anyway.
    """
    content = (session.folder / REPORT_FILE).read_bytes()
    write_atomically(session.base / REPORT_FILE, content, mode=0o644)
    verdict, path = session.report["verdict"], session.base / REPORT_FILE
    session.outcome, session.message = (
        _OUTCOMES.get(verdict["result"], "unverified"),
        str(verdict.get("sentence", "")),
    )
    digest = hashlib.sha256(content).hexdigest()
    told = ", ".join(
        f"{count} {kind}" for kind, count in session.provenance_counts.items() if count
    )
    session.printer.print_stage_line(
        "report",
        f"{verdict['result']}{' (stored report)' if session.is_stored_report else ''}: "
        f"{session.message}",
    )
    session.printer.print_detail(
        f"packages: {told or 'none'}; installed now: {session.installed_now}; restart needed: no"
    )
    session.printer.print_detail(f"{path} sha256:{digest}")
    if session.host.is_colab:
        session.printer.print_detail(
            f'to download it: from google.colab import files; files.download("{path}")'
        )
    _offer(session, content)
    wrong = [
        one
        for one in session.report.get("checks", [])
        if one.get("required") and one.get("status") in ("fail", "unknown")
    ]
    for one in wrong[:5]:
        session.printer.print_detail(
            f"{one.get('id')} {one.get('title')}: {one.get('message')}"
            + (f" -> {one['fix']}" if one.get("fix") else "")
        )
    if session.outcome != "verified" and verdict["result"] != "simulated":
        session.hint = str(wrong[0].get("fix") or "") if wrong else ""
        if not session.continue_anyway:
            raise StageError(
                f"{verdict['result']}: {session.message}",
                "",
                session.hint or "read the report, then run the cell again",
                session.outcome,
            )


def write_status(session: Session, stage: str, seconds: dict[str, float]) -> None:
    """Write how far this run came and what became of it. Raises OSError."""
    ended = session.report and stage == "report"
    digest = (
        hashlib.sha256((session.base / REPORT_FILE).read_bytes()).hexdigest()
        if ended and (session.base / REPORT_FILE).is_file()
        else None
    )
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "nonce": session.document.nonce,
        "payload": session.payload_digest,
        "stage": stage,
        "outcome": session.outcome,
        "message": session.printer.clean(session.message),
        "hint": session.printer.clean(session.hint),
        "restart": list(session.stale_packages),
        "counts": session.provenance_counts,
        "installed_now": session.installed_now,
        "seconds": seconds,
        "moved": [asdict(one) for one in session.catalogue_drift],
        "report_sha256": digest,
    }
    write_json_object(session.base / STATUS_FILE, document)


def delete_report(base: Path) -> None:
    """Delete an earlier run's report: whoever fetches a report gets that of this run."""
    (base / REPORT_FILE).unlink(missing_ok=True)


def _offer(session: Session, content: bytes) -> None:
    if len(content) <= _MOST_SHOWN:
        address = f"data:application/json;base64,{base64.b64encode(content).decode('ascii')}"
        name = html.escape(
            f"{session.document.spec.get('stem', 'provision')}.report.json", quote=True
        )
        link = f'<a download="{name}" href="{address}">download the report</a>'
        session.notebook.display(
            {"text/html": link, "text/plain": f"the report is {session.base / REPORT_FILE}"}
        )
