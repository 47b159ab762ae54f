"""Sessions: machines that run at Colab, recorded or in the journal, and how they are released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.effects.colab import StopColabSession
from provision.plan import Action, Operation
from provision.state import Ledger
from provision.targets.colab.records import SessionRecord


def get_sessions_folder(folder: Path) -> Path:
    """Return the folder in which Colab's command line records our sessions."""
    return folder / "colab"


def plan_session_stops(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the actions that release the machines of an address, recorded or only begun."""
    intent, record = ledger.find_interrupted(address), SessionRecord.find(ledger.state, address)
    if intent is not None and intent.part == SessionRecord.part:
        reason = "an interrupted run may have left it"
        yield plan_session_stop(address, folder, intent.details["session"], reason)
    if record is not None:
        reason = "destroy was asked for"
        yield plan_session_stop(address, folder, record.session, reason)


def plan_session_stop(address: str, folder: Path, session: str, reason: str) -> Action:
    """Return the action that releases a session."""
    stop = StopColabSession(session, get_sessions_folder(folder))
    title = f"Colab session {session}"
    return Action(Operation.DESTROY, address, SessionRecord.part, title, reason, (stop,))
