"""Verification on a Colab machine that is acquired for one run of the cell."""

from __future__ import annotations

import hashlib
from pathlib import Path

from provision.effects.colab import RunOnColab, StopColabSession
from provision.effects.local import MakeFolder, RemoveTree
from provision.errors import Refused
from provision.facts import Facts
from provision.field_types import parse_duration
from provision.kinds.colab import find_shape
from provision.plan import Action, Intent, Operation
from provision.targets.base import AnyDriver, Journal, ProbeEvidence
from provision.targets.colab.file_names import get_colab_target
from provision.targets.colab.records import NotebookRecord, SessionRecord
from provision.targets.colab.rendered_files import render_files
from provision.targets.colab.sessions import get_sessions_folder, plan_session_stop
from provision.targets.context import TargetContext
from provision.verification.report import MAX_REPORT_BYTES, read_report

_INSTALL_S = 60 * 60
"""Seconds in addition to the verification: an hour for the packages, as on an instance. Our
choice."""


def verify_on_colab(
    driver: AnyDriver, context: TargetContext, facts: Facts, journal: Journal, *, keep: bool
) -> ProbeEvidence:
    """Run the cell of a target on a fresh machine under a fresh nonce, and return its report.

    A machine that was kept running before is released first. With `keep` the new one keeps
    running, and the state names it.

    Raises:
        Refused: an earlier run was interrupted and has not been settled.
        ExternalError: no machine, or no acceptable report.
    """
    if (earlier := journal.ledger.find_interrupted(context.address)) is not None:
        raise Refused(
            f"an earlier run was cut short at {earlier.address}",
            why="what it had begun would be forgotten",
            hint="go on with it: provision apply",
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
    # The verdict answers the notebook, whose nonce differs from that of the run.
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
    """Release what an interrupted run may have acquired, and close its intent.

    Raises:
        ExternalError: it may still run; the intent stays open.
    """
    session = intent.details["session"]
    journal.progress(f"an earlier run was cut short: stopping {session} on Colab, in case it runs")
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
        render_files(context, facts, nonce=nonce).cell.encode(),
        nonce,
        context.lock.digest,
        get_sessions_folder(context.folder),
        path,
        _INSTALL_S + parse_duration(context.spec.verify.timeout),
        keep,
    )
