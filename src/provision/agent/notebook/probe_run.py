"""Runs the probe in the environment, unless a stored report is still valid."""

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
_GRACE_S = 120.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def verify_stage(session: Session) -> None:
    """Verify, or show the stored report of the same environment, boot and probe."""
    digest, state = _digest(session), session.run_state
    stored = _read_stored_report(session)
    is_valid = stored and state.proven == digest and state.verdict == "verified"
    if is_valid and not session.again:
        session.is_stored_report, session.report = True, stored
        session.print_line(
            "the stored report is still valid: the environment, boot and probe are the same"
        )
        return
    session.report = _run_probe(session)
    state.proven, state.verdict = digest, session.report["verdict"]["result"]
    content = (session.folder / REPORT_FILE).read_bytes()
    state.report_sha256 = hashlib.sha256(content).hexdigest()
    state.save(session.folder)


def _run_probe(session: Session) -> dict[str, Any]:
    """Run the probe and return its report. Raises StageError."""
    expectations_file, report_file = (
        session.folder / "expectations.json",
        session.folder / REPORT_FILE,
    )
    # The lock's expectations, with the paths on this machine.
    expectations = {
        **session.document.locate_code(session.code_parent),
        "python": {**session.document.expectations["python"], "prefix": session.prefix},
        "installed": str(session.folder / INSTALL_RESULT_FILE),
    }
    if session.document.shared:
        expectations["shared"] = True
    write_json_object(expectations_file, expectations)
    report_file.unlink(missing_ok=True)
    limit_s = float(expectations.get("timeout_s", 1800)) + _GRACE_S
    argv = [session.python, str(session.folder / "probe.pyz"), "verify", "--events"]
    argv += ["--expectations", str(expectations_file), "--out", str(report_file)]
    log: list[str] = []

    def on_line(line: str) -> None:
        log.append(session.printer.clean(line))
        _print_event(session, line)

    answer = stream_process(argv, on_line, limit_s, session.variables, session.folder)
    log.append(session.printer.clean(answer.stderr))
    (session.folder / "probe.log").write_text("\n".join(log), encoding="utf-8")
    report = read_json_object(report_file)
    if not _is_of_document(report, session) or not isinstance(report.get("verdict"), dict):
        why = answer.output_tail or f"it exited with code {answer.code}"
        if answer.code == TIMED_OUT:
            why = f"it did not finish within {limit_s:.0f} s"
        raise StageError(
            "the verification did not write a report",
            why,
            "run the second cell again; the packages remain installed",
            "error",
        )
    return report


def _print_event(session: Session, line: str) -> None:
    try:
        event = json.loads(line)
    except ValueError:
        return
    if event.get("event") == "stage" and event.get("status") == "finished":
        outcome = f"{event['failed']} failed" if event.get("failed") else "ok"
        session.print_line(f"{event.get('title')}: {outcome} ({event.get('seconds', 0):.1f} s)")


def _read_stored_report(session: Session) -> dict[str, Any]:
    """Return the stored report if it is unchanged and belongs to this document, else {}."""
    path = session.folder / REPORT_FILE
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return {}
    report = read_json_object(path)
    is_whole = digest == session.run_state.report_sha256
    return report if is_whole and _is_of_document(report, session) else {}


def _is_of_document(report: dict[str, Any], session: Session) -> bool:
    return bool(report.get("subject", {}).get("nonce") == session.document.nonce)


def _digest(session: Session) -> str:
    """Return the digest of everything that a report depends on."""
    installed, machine = session.list_packages(), session.machine
    packages = [
        (name, installed[name].version, installed[name].stamp)
        for name in sorted(session.document.packages)
        if name in installed
    ]
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = str(os.getpid())
    inputs = [
        session.payload_digest,
        session.python,
        machine.python if machine else "",
        boot,
        packages,
        [(card.name, card.driver) for card in machine.cards] if machine else [],
        sorted(session.missing_secrets),
    ]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
