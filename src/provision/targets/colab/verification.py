"""Verification in a Colab session that is acquired for one run, and the release of sessions."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from provision.effects.colab import RunOnColab, StopColabSession
from provision.effects.local import MakeFolder, RemoveTree
from provision.errors import Refused
from provision.facts import Facts
from provision.field_types import parse_duration
from provision.kinds.colab import find_shape
from provision.plan import Action, Intent, Operation
from provision.state import Ledger
from provision.targets.base import AnyDriver, Journal, ProbeEvidence
from provision.targets.colab.file_names import get_colab_target
from provision.targets.colab.records import NotebookRecord, SessionRecord
from provision.targets.colab.rendered_files import render_files
from provision.targets.context import TargetContext
from provision.verification.report import MAX_REPORT_BYTES, read_report


def get_sessions_folder(folder: Path) -> Path:
    """Return the folder where Colab's command line records our sessions."""
    return folder / "colab"


def plan_session_stops(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the actions that release the machines of an address, recorded or only begun."""
    intent, record = ledger.find_interrupted(address), SessionRecord.find(ledger.state, address)
    if intent is not None and intent.part == SessionRecord.part:
        reason = "an interrupted run may have left it behind"
        yield plan_session_stop(address, folder, intent.details["session"], reason)
    if record is not None:
        reason = "destroy was requested"
        yield plan_session_stop(address, folder, record.session, reason)


def plan_session_stop(address: str, folder: Path, session: str, reason: str) -> Action:
    """Return the action that releases a session."""
    stop = StopColabSession(session, get_sessions_folder(folder))
    title = f"Colab session {session}"
    return Action(Operation.DESTROY, address, SessionRecord.part, title, reason, (stop,))


_INSTALL_S = 60 * 60
"""Seconds for the packages, in addition to the verification: an hour, as on an instance. Our
choice."""


def verify_on_colab(
    driver: AnyDriver, context: TargetContext, facts: Facts, journal: Journal, *, keep: bool
) -> ProbeEvidence:
    """Run the cell of a target on a fresh machine under a fresh nonce, and return its report.

    A machine that was kept running before is released first. With `keep` the new one keeps
    running, and the state names it.

    Raises:
        Refused: an earlier run was interrupted and not resumed.
        ExternalError: no machine, or no acceptable report.
    """
    if (earlier := journal.ledger.find_interrupted(context.address)) is not None:
        raise Refused(
            f"an earlier run of {earlier.address} was interrupted",
            why="a new run would lose track of that run's Colab session",
            hint=f"resume it with `{context.command('apply')}`",
        )
    kept = SessionRecord.find(journal.state, context.address)
    if kept is not None:
        stop = plan_session_stop(context.address, journal.folder, kept.session, "")
        journal.perform(driver, stop, announce=False)
    nonce = journal.system.token()
    session = f"provision-{nonce[:12]}"
    path = context.reports_folder / "report.json"
    journal.system.perform(MakeFolder(path.parent, 0o700), journal.progress)
    journal.system.perform(RemoveTree(path), journal.progress)
    request = _session_request(context, facts, session, nonce, path, keep=keep)
    journal.perform(driver, _session_action(context.address, session, request), announce=False)
    content = journal.system.read(path, MAX_REPORT_BYTES)
    # The verdict belongs to the notebook, whose nonce differs from that of the run.
    notebook = NotebookRecord.find(journal.state, context.address)
    return ProbeEvidence(
        read_report(content, str(path), nonce=nonce),
        path,
        nonce=notebook.nonce if notebook is not None else "",
        installed=True,
        sha256=hashlib.sha256(content).hexdigest(),
        session=session if keep else "",
    )


def stop_interrupted_session(intent: Intent, journal: Journal) -> None:
    """Release the session of an interrupted run, and close its intent.

    Raises:
        ExternalError: it may still run; the intent stays open.
    """
    session = intent.details["session"]
    journal.progress(
        f"an earlier run was interrupted: stopping {session} on Colab if it is still running"
    )
    stop = StopColabSession(session, get_sessions_folder(journal.folder))
    journal.system.perform(stop, journal.progress)
    journal.close_intent(intent)


def _session_action(address: str, session: str, request: RunOnColab) -> Action:
    """Return the action that runs a session; the state records it only if it keeps running."""
    record = SessionRecord(f"Colab session {session}", session)
    create, part = Operation.CREATE, record.part
    intent = Intent(address, part, str(create), details={"session": session})
    kept = record.to_json() if request.keep_session else None
    return Action(create, address, part, record.title, "", (request,), kept, intent=intent)


def _session_request(
    context: TargetContext, facts: Facts, session: str, nonce: str, path: Path, *, keep: bool
) -> RunOnColab:
    gpu, high_memory = context.spec.gpu.type, False
    shape = find_shape(context.spec.gpu, get_colab_target(context).shape, facts)
    if shape is not None:
        gpu, high_memory = shape.colab, shape.shape == "high"
    return RunOnColab(
        session,
        gpu,
        high_memory,
        render_files(context, facts, nonce=nonce, max_payload_bytes=sys.maxsize).cell.encode(),
        nonce,
        context.lock.digest,
        get_sessions_folder(context.folder),
        path,
        _INSTALL_S + parse_duration(context.spec.verify.timeout),
        keep,
    )
