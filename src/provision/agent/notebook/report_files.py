"""How a run ended: status.json and report.json for whoever fetches them, and a few lines for the
person at the notebook.
"""

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


def report_stage(course: Session) -> None:
    """Put the report where it is fetched, and say the verdict; stop where it is not `verified`,
    unless one chose to continue anyway.
    """
    content = (course.folder / REPORT_FILE).read_bytes()
    write_atomically(course.base / REPORT_FILE, content, mode=0o644)
    verdict, path = course.report["verdict"], course.base / REPORT_FILE
    course.outcome, course.message = (
        _OUTCOMES.get(verdict["result"], "unverified"),
        str(verdict.get("sentence", "")),
    )
    digest = hashlib.sha256(content).hexdigest()
    told = ", ".join(f"{count} {kind}" for kind, count in course.provenance_counts.items() if count)
    course.printer.print_stage_line(
        "report",
        f"{verdict['result']}{' (stored report)' if course.is_stored_report else ''}: "
        f"{course.message}",
    )
    course.printer.print_detail(
        f"packages: {told or 'none'}; installed now: {course.installed_now}; restart needed: no"
    )
    course.printer.print_detail(f"{path} sha256:{digest}")
    if course.host.is_colab:
        course.printer.print_detail(
            f'to download it: from google.colab import files; files.download("{path}")'
        )
    _offer(course, content)
    wrong = [
        one
        for one in course.report.get("checks", [])
        if one.get("required") and one.get("status") in ("fail", "unknown")
    ]
    for one in wrong[:5]:
        course.printer.print_detail(
            f"{one.get('id')} {one.get('title')}: {one.get('message')}"
            + (f" -> {one['fix']}" if one.get("fix") else "")
        )
    if course.outcome != "verified" and verdict["result"] != "simulated":
        course.hint = str(wrong[0].get("fix") or "") if wrong else ""
        if not course.continue_anyway:
            raise StageError(
                f"{verdict['result']}: {course.message}",
                "",
                course.hint or "read the report, then run the cell again",
                course.outcome,
            )


def write_status(course: Session, stage: str, seconds: dict[str, float]) -> None:
    """Write how far this run came and what became of it. Raises OSError."""
    ended = course.report and stage == "report"
    digest = (
        hashlib.sha256((course.base / REPORT_FILE).read_bytes()).hexdigest()
        if ended and (course.base / REPORT_FILE).is_file()
        else None
    )
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "nonce": course.document.nonce,
        "payload": course.payload_digest,
        "stage": stage,
        "outcome": course.outcome,
        "message": course.printer.clean(course.message),
        "hint": course.printer.clean(course.hint),
        "restart": list(course.stale_packages),
        "counts": course.provenance_counts,
        "installed_now": course.installed_now,
        "seconds": seconds,
        "moved": [asdict(one) for one in course.catalogue_drift],
        "report_sha256": digest,
    }
    write_json_object(course.base / STATUS_FILE, document)


def delete_report(base: Path) -> None:
    """Take away what an earlier run reported: whoever fetches a report gets that of this run, or
    none.
    """
    (base / REPORT_FILE).unlink(missing_ok=True)


def _offer(course: Session, content: bytes) -> None:
    if len(content) <= _MOST_SHOWN:
        address = f"data:application/json;base64,{base64.b64encode(content).decode('ascii')}"
        name = html.escape(
            f"{course.document.spec.get('stem', 'provision')}.report.json", quote=True
        )
        link = f'<a download="{name}" href="{address}">download the report</a>'
        course.notebook.display(
            {"text/html": link, "text/plain": f"the report is {course.base / REPORT_FILE}"}
        )
