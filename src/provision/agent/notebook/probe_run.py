"""The probe, run with the interpreter that was set up; and whether the report of an earlier run
still says it.
"""

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


def verify_stage(course: Session) -> None:
    """Prove the environment, or show what was proven of it before: environment, boot and probe are
    the same then.
    """
    proven = _digest(course)
    stored = _stored(course)
    if (
        stored
        and course.run_state.proven == proven
        and course.run_state.verdict == "verified"
        and not course.again
    ):
        course.is_stored_report, course.report = True, stored
        course.printer.print_stage_line(
            "verify", "environment, boot and probe are those of the stored report"
        )
        return
    course.report = _probe(course)
    course.run_state.proven, course.run_state.verdict = proven, course.report["verdict"]["result"]
    course.run_state.report_sha256 = hashlib.sha256(
        (course.folder / REPORT_FILE).read_bytes()
    ).hexdigest()
    course.run_state.save(course.folder)


def _probe(course: Session) -> dict[str, Any]:
    expectations, out = course.folder / "expectations.json", course.folder / REPORT_FILE
    document = _expectations(course)
    write_json_object(expectations, document)
    out.unlink(missing_ok=True)
    limit = float(document.get("timeout_s", 1800)) + _OVER_S
    words = [
        course.python,
        str(course.folder / "probe.pyz"),
        "verify",
        "--expectations",
        str(expectations),
        "--out",
        str(out),
        "--events",
    ]
    said: list[str] = []
    answer = stream_process(
        words, lambda line: _tell(course, line, said), limit, course.variables, course.folder
    )
    (course.folder / "probe.log").write_text(
        "\n".join([*said, course.printer.clean(answer.stderr)]), encoding="utf-8"
    )
    report = read_json_object(out)
    if report.get("subject", {}).get("nonce") != course.document.nonce or not isinstance(
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


def _expectations(course: Session) -> dict[str, Any]:
    """Return what the lock promises, completed by where it was set up."""
    document = dict(course.document.expectations)
    document["python"] = {**document["python"], "prefix": course.prefix}
    if course.document.shared:
        document["shared"] = True
    document["installed"] = str(course.folder / INSTALL_RESULT_FILE)
    return document


def _tell(course: Session, line: str, said: list[str]) -> None:
    said.append(course.printer.clean(line))
    try:
        event = json.loads(line)
    except ValueError:
        return
    if event.get("event") == "stage" and event.get("status") == "finished":
        failed = event.get("failed")
        course.printer.print_stage_line(
            "verify",
            f"{event.get('title')}: {f'{failed} failed' if failed else 'ok'} "
            f"({event.get('seconds', 0):.1f} s)",
        )


def _stored(course: Session) -> dict[str, Any]:
    """Return the stored report where it is whole, and of this question."""
    try:
        content = (course.folder / REPORT_FILE).read_bytes()
    except OSError:
        return {}
    report = read_json_object(course.folder / REPORT_FILE)
    whole = hashlib.sha256(content).hexdigest() == course.run_state.report_sha256
    return (
        report if whole and report.get("subject", {}).get("nonce") == course.document.nonce else {}
    )


def _digest(course: Session) -> str:
    """Return a digest of what a report is valid for. The payload stands for the probe and for all
    that is promised.
    """
    there = course.list_packages()
    dists = [
        (name, there[name].version, there[name].stamp)
        for name in sorted(course.document.packages)
        if name in there
    ]
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = str(os.getpid())
    cards = [(card.name, card.driver) for card in course.machine.cards] if course.machine else []
    told = [
        course.payload_digest,
        course.python,
        course.machine.python if course.machine else "",
        boot,
        dists,
        cards,
        sorted(course.missing_secrets),
    ]
    return hashlib.sha256(json.dumps(told, default=list).encode()).hexdigest()
