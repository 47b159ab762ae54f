"""Verifying on a Colab machine that is taken for one run: the cell goes there, its report comes
home, and the machine is given back.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from provision.commands.shared.report_store import store_report
from provision.effects import (
    MakeFolder,
    ProgressCallback,
    RemoveTree,
    RunOnColab,
    StopColabSession,
    System,
)
from provision.errors import ExternalError, Refused
from provision.field_types import parse_duration
from provision.kinds.models import ColabTarget
from provision.state import Intent, State
from provision.state_store import LocalStore
from provision.targets import DRIVERS, TargetContext
from provision.targets.colab import NOTEBOOK_PART as NOTEBOOK
from provision.targets.colab import SESSION_PART, ColabDriver, get_sessions_folder, render_files
from provision.targets.colab.shapes import find_shape
from provision.verification import Report
from provision.verification.report import MAX_REPORT_BYTES, read_report

_INSTALL_S = 60 * 60
"""Seconds beside the verification's own: an hour for the packages, as on an instance. Our choice."""  # noqa: E501


class SessionResult(NamedTuple):
    """The report with its files, the state that records it, and in words what still runs, "" for
    nothing.
    """

    report: Report
    json_path: Path
    html_path: Path
    state: State
    running_session: str


def uses_colab_cli(context: TargetContext) -> bool:
    """Tell whether a place is a Colab machine that is taken through Google's command line."""
    target = context.spec.targets[context.target]
    return isinstance(target, ColabTarget) and target.via == "colab-cli"


def verify_on_colab(
    context: TargetContext,
    state: State,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
    *,
    keep: bool = False,
) -> SessionResult:
    """Run the cell of a place on a fresh machine under a fresh nonce, and file its report; one that
    was kept running before is given back first.

    The intent is on disk before a machine is asked for, and is closed once it is known that none
    runs, or, with `keep`, that the state names it.
    Raises Refused while another intent is open, WorldError, NoReport.
    """
    if (other := store.load_ledger().find_interrupted(context.address)) is not None:
        raise Refused(
            f"an earlier run was cut short at {other.address}",
            why="what it had begun would be forgotten",
            hint="go on with it: provision apply",
        )
    state = _stop_kept_session(context.address, state, store, system, progress)
    nonce = system.token()
    session = f"provision-{nonce[:12]}"
    path = context.folder / "reports" / f"{context.stem}.{context.target}" / "report.json"
    system.perform(MakeFolder(path.parent, 0o700), progress)
    system.perform(RemoveTree(path), progress)
    intent = Intent(context.address, SESSION_PART, "+", (), system.now(), (), {"session": session})
    store.open_intent(intent)
    try:
        system.perform(_session_request(context, session, nonce, path, keep=keep), progress)
    except ExternalError as error:
        if error.still_running == ():
            store.close_intent(intent)
        raise
    if keep:
        state = _record_session(
            context.address, {"title": f"Colab session {session}", "session": session}, state, store
        )
    store.close_intent(intent)
    content = system.read(path, MAX_REPORT_BYTES)
    report = read_report(content, str(path), nonce=nonce)
    question = str(
        (state.resource(context.address, NOTEBOOK) or {}).get("nonce", "")
    )  # what the verdict is valid for
    filed = store_report(
        report,
        path,
        context,
        state,
        store,
        system,
        progress,
        nonce=question,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return SessionResult(report, path, filed.html_path, filed.state, session if keep else "")


def stop_interrupted_session(
    intent: Intent, store: LocalStore, system: System, progress: ProgressCallback
) -> None:
    """Give back what an earlier run that was cut short may have taken, and close its intent; does
    nothing for an intent of another kind.

    Raises WorldError, with the intent still open, when it may still run.
    """
    if intent.part != SESSION_PART:
        return
    session = intent.details["session"]
    progress(f"an earlier run was cut short: stopping {session} on Colab, in case it runs")
    system.perform(StopColabSession(session, get_sessions_folder(store.folder)), progress)
    store.close_intent(intent)


def _session_request(
    context: TargetContext, session: str, nonce: str, path: Path, *, keep: bool
) -> RunOnColab:
    target, kind = context.spec.targets[context.target], DRIVERS["colab"]
    assert isinstance(target, ColabTarget)  # noqa: S101
    assert isinstance(kind, ColabDriver)  # noqa: S101
    facts = kind.facts()
    shape = find_shape(context.spec.gpu, target.shape, facts)
    gpu, high = (shape.colab, shape.shape == "high") if shape else (context.spec.gpu.type, False)
    cell = render_files(context, facts, nonce=nonce).cell.encode()
    timeout_s = _INSTALL_S + parse_duration(context.spec.verify.timeout)
    return RunOnColab(
        session,
        gpu,
        high,
        cell,
        nonce,
        context.lock.digest,
        get_sessions_folder(context.folder),
        path,
        timeout_s,
        keep,
    )


def _stop_kept_session(
    address: str, state: State, store: LocalStore, system: System, progress: ProgressCallback
) -> State:
    kept = state.resource(address, SESSION_PART)
    if kept is None:
        return state
    system.perform(
        StopColabSession(str(kept["session"]), get_sessions_folder(store.folder)), progress
    )
    return _record_session(address, None, state, store)


def _record_session(
    address: str, record: dict[str, Any] | None, state: State, store: LocalStore
) -> State:
    after = state.with_record(address, SESSION_PART, record)
    store.save(after, expecting=state.serial)
    return after
