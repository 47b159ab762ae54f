"""What leaves with a Colab target: sessions that run there, recorded or begun, and files that were
written for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.effects.colab import StopColabSession
from provision.plan import Action, Operation
from provision.state import Ledger

SESSION_PART = "session"
"""The part of a target that is a machine running at Colab: recorded where it was kept, in the
journal while it is being used.
"""


def get_sessions_folder(folder: Path) -> Path:
    """Return where in our folder the command line keeps what it knows of our sessions."""
    return folder / "colab"


def plan_session_stops(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the actions that give back the machines of an address, one that an interrupted run may
    have taken included.
    """
    intent, record = ledger.find_interrupted(address), ledger.state.resource(address, SESSION_PART)
    if intent is not None and intent.part == SESSION_PART:
        yield _stop_session(
            address, folder, intent.details["session"], "an interrupted run may have left it"
        )
    if record is not None:
        yield _stop_session(address, folder, str(record["session"]), "destroy was asked for")


def _stop_session(address: str, folder: Path, session: str, because: str) -> Action:
    return Action(
        Operation.DESTROY,
        address,
        SESSION_PART,
        f"Colab session {session}",
        because,
        (StopColabSession(session, get_sessions_folder(folder)),),
    )
