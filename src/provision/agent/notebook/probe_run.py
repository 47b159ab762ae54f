"""Runs the probe in the environment, unless a stored report still holds."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..core.files import read_json_object, write_json_object
from ..core.process import TIMED_OUT, stream_process
from .errors import StageError
from .session import INSTALL_RESULT_FILE, Session

REPORT_FILE = "report.json"
_OVER_S = 120.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def verify_stage(session: Session) -> None:
    """Verify, or show the stored report of the same environment, boot and probe."""
    proven = _digest(session)
    stored = _stored(session)
    if (
        stored
        and session.run_state.proven == proven
        and session.run_state.verdict == "verified"
        and not session.again
    ):
        session.is_stored_report, session.report = True, stored
        session.printer.print_stage_line(
            "verify", "environment, boot and probe are those of the stored report"
        )
        return
    session.report = _probe(session)
    session.run_state.proven, session.run_state.verdict = (
        proven,
        session.report["verdict"]["result"],
    )
    session.run_state.report_sha256 = hashlib.sha256(
        (session.folder / REPORT_FILE).read_bytes()
    ).hexdigest()
    session.run_state.save(session.folder)


def _probe(session: Session) -> dict[str, Any]:
    expectations, out = session.folder / "expectations.json", session.folder / REPORT_FILE
    document = _expectations(session)
    write_json_object(expectations, document)
    out.unlink(missing_ok=True)
    limit = float(document.get("timeout_s", 1800)) + _OVER_S
    arguments = [
        session.python,
        str(session.folder / "probe.pyz"),
        "verify",
        "--expectations",
        str(expectations),
        "--out",
        str(out),
        "--events",
    ]
    said: list[str] = []
    answer = stream_process(
        arguments, lambda line: _tell(session, line, said), limit, session.variables, session.folder
    )
    (session.folder / "probe.log").write_text(
        "\n".join([*said, session.printer.clean(answer.stderr)]), encoding="utf-8"
    )
    report = read_json_object(out)
    if report.get("subject", {}).get("nonce") != session.document.nonce or not isinstance(
        report.get("verdict"), dict
    ):
        why = (
            f"it did not end within {limit:.0f} s"
            if answer.code == TIMED_OUT
            else answer.output_tail or f"it ended with {answer.code}"
        )
        raise StageError(
            "the verification gave no report",
            why,
            "run the verify cell again; the packages stay as they are",
            "error",
        )
    return report


def _expectations(session: Session) -> dict[str, Any]:
    """Return what the lock promises, completed by where it was set up."""
    document = dict(session.document.expectations)
    document["python"] = {**document["python"], "prefix": session.prefix}
    if session.document.shared:
        document["shared"] = True
    document["installed"] = str(session.folder / INSTALL_RESULT_FILE)
    return document


def _tell(session: Session, line: str, said: list[str]) -> None:
    said.append(session.printer.clean(line))
    try:
        event = json.loads(line)
    except ValueError:
        return
    if event.get("event") == "stage" and event.get("status") == "finished":
        failed = event.get("failed")
        session.printer.print_stage_line(
            "verify",
            f"{event.get('title')}: {f'{failed} failed' if failed else 'ok'} "
            f"({event.get('seconds', 0):.1f} s)",
        )


def _stored(session: Session) -> dict[str, Any]:
    """Return the stored report where it is whole, and of this question."""
    try:
        content = (session.folder / REPORT_FILE).read_bytes()
    except OSError:
        return {}
    report = read_json_object(session.folder / REPORT_FILE)
    whole = hashlib.sha256(content).hexdigest() == session.run_state.report_sha256
    return (
        report if whole and report.get("subject", {}).get("nonce") == session.document.nonce else {}
    )


def _digest(session: Session) -> str:
    """Return the digest of what a report is valid for; the payload has probe and expectations."""
    installed = session.list_packages()
    dists = [
        (name, installed[name].version, installed[name].stamp)
        for name in sorted(session.document.packages)
        if name in installed
    ]
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = str(os.getpid())
    cards = [(card.name, card.driver) for card in session.machine.cards] if session.machine else []
    told = [
        session.payload_digest,
        session.python,
        session.machine.python if session.machine else "",
        boot,
        dists,
        cards,
        sorted(session.missing_secrets),
    ]
    return hashlib.sha256(json.dumps(told, default=list).encode()).hexdigest()
