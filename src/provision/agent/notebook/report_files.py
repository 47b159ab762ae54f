"""The results of a run: status.json, report.json, and the last lines of the cell."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.files import write_atomically, write_json_object
from ..core.installed_packages import format_counts
from .bucket import BucketError, write_object
from .drive import is_mounted
from .errors import StageError
from .probe_run import REPORT_FILE
from .session import Session

STATUS_FILE = "status.json"
SCHEMA = "provision.agent.notebook-status/1"
_MAX_SHOWN_BYTES = 2**19


def report_stage(session: Session) -> None:
    """Publish the report and print the verdict. Raises StageError unless it is `verified`.

    The error is not raised if the user chose to continue anyway.
    """
    content = (session.folder / REPORT_FILE).read_bytes()
    path, verdict = session.base / REPORT_FILE, session.report["verdict"]
    write_atomically(path, content, mode=0o644)
    result = verdict["result"]
    session.outcome = result if result in ("verified", "failed", "error") else "unverified"
    session.message = str(verdict.get("sentence", ""))
    source = " (stored report)" if session.is_stored_report else ""
    session.print_line(f"{result}{source}: {session.message}")
    provenance = format_counts(session.provenance_counts) or "none"
    session.print_detail(
        f"packages: {provenance}; installed now: {session.installed_now}; restart needed: no"
    )
    session.print_detail(f"{path} sha256:{hashlib.sha256(content).hexdigest()}")
    if not _copy_report(session, content) and session.host.is_colab:
        session.print_detail(
            f'to download the report, run: from google.colab import files; files.download("{path}")'
        )
    _show_download_link(session, content)
    wrong = [
        check
        for check in session.report.get("checks", [])
        if check.get("required") and check.get("status") in ("fail", "unknown")
    ]
    for check in wrong[:5]:
        fix = f" -> {check['fix']}" if check.get("fix") else ""
        session.print_detail(f"{check.get('id')} {check.get('title')}: {check.get('message')}{fix}")
    if result in ("verified", "simulated"):
        return
    session.hint = str(wrong[0].get("fix") or "") if wrong else ""
    if not session.continue_anyway:
        hint = session.hint or "read the report, then run the cell again"
        raise StageError(f"{result}: {session.message}", "", hint, session.outcome)


def write_status(session: Session, seconds: dict[str, float]) -> None:
    """Write the stage and the outcome of this run. Raises OSError."""
    report_file, digest = session.base / REPORT_FILE, None
    if session.report and session.stage == "report" and report_file.is_file():
        digest = hashlib.sha256(report_file.read_bytes()).hexdigest()
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "nonce": session.document.nonce,
        "payload": session.payload_digest,
        "stage": session.stage,
        "outcome": session.outcome,
        "message": session.printer.clean(session.message),
        "hint": session.printer.clean(session.hint),
        "restart": list(session.stale_packages),
        "counts": session.provenance_counts,
        "installed_now": session.installed_now,
        "seconds": seconds,
        "moved": [asdict(drift) for drift in session.facts_drift],
        "report_sha256": digest,
    }
    write_json_object(session.base / STATUS_FILE, document)


def delete_report(base: Path) -> None:
    """Delete an earlier run's report, so that it is not taken for the report of this run."""
    (base / REPORT_FILE).unlink(missing_ok=True)


def _copy_report(session: Session, content: bytes) -> bool:
    """Copy the report to the bucket or to Drive, and return whether it is there."""
    place, mount = session.document.report, session.document.drive
    if place is None:
        return False
    try:
        if place.startswith("gs://"):
            write_object(place, content)
        elif mount is None or not is_mounted(mount):
            raise OSError("Google Drive is not mounted")
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            write_atomically(Path(place), content, mode=0o644)
    except (OSError, BucketError) as error:
        why = getattr(error, "strerror", None) or error
        session.print_detail(f"cannot copy the report to {place}: {why}")
        return False
    session.print_detail(f"the report is also in {place}")
    return True


def _show_download_link(session: Session, content: bytes) -> None:
    if len(content) > _MAX_SHOWN_BYTES:
        return
    address = f"data:application/json;base64,{base64.b64encode(content).decode('ascii')}"
    name = html.escape(f"{session.document.spec.get('stem', 'provision')}.report.json")
    link = f'<a download="{name}" href="{address}">download the report</a>'
    session.notebook.display(
        {"text/html": link, "text/plain": f"the report is {session.base / REPORT_FILE}"}
    )
