"""What leaves with a Colab target: sessions that run there, recorded or begun, and files that were written for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.effects import StopColab
from provision.plan import Action, Verb
from provision.state import Ledger

SESSION = "session"
"""The part of a target that is a machine running at Colab: recorded where it was kept, in the journal while it is being used."""


def sessions_folder(folder: Path) -> Path:
    """Return where in our folder the command line keeps what it knows of our sessions."""
    return folder / "colab"


def sessions_away(address: str, folder: Path, ledger: Ledger) -> Iterator[Action]:
    """Yield the actions that give back the machines of an address, one that an interrupted run may have taken included."""
    intent, record = ledger.cut_short(address), ledger.state.resource(address, SESSION)
    if intent is not None and intent.part == SESSION:
        yield _away(address, folder, intent.details["session"], "an interrupted run may have left it")
    if record is not None:
        yield _away(address, folder, str(record["session"]), "destroy was asked for")


def _away(address: str, folder: Path, session: str, because: str) -> Action:
    return Action(Verb.DESTROY, address, SESSION, f"Colab session {session}", because, (StopColab(session, sessions_folder(folder)),))
