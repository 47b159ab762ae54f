"""Verifying on a Colab machine that is taken for one run: the cell goes there, its report comes home, and the machine is given back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from provision.commands.filing import file_report
from provision.effects import MakeFolder, RemoveTree, RunOnColab, StopColab, Tell, World
from provision.errors import Refused, WorldError
from provision.grammar import seconds_of
from provision.places import ColabTarget
from provision.state import Intent, State
from provision.stores import LocalStore
from provision.targets import TARGETS, Place
from provision.targets.colab import PART as NOTEBOOK
from provision.targets.colab import SESSION, Colab, rendered, sessions_folder
from provision.targets.colab.shapes import shape_of
from provision.verification import Report
from provision.verification.report import LIMIT, read_report

_INSTALL_S = 60 * 60
"""Seconds beside the verification's own: an hour for the packages, as on an instance. Our choice."""


class Ran(NamedTuple):
    """The report with its files, the state that records it, and in words what still runs, "" for nothing."""

    report: Report
    json_path: Path
    html_path: Path
    state: State
    left: str


def by_command_line(place: Place) -> bool:
    """Tell whether a place is a Colab machine that is taken through Google's command line."""
    target = place.spec.targets[place.target]
    return isinstance(target, ColabTarget) and target.via == "colab-cli"


def run_and_file(place: Place, state: State, store: LocalStore, world: World, tell: Tell, *, keep: bool = False) -> Ran:
    """Run the cell of a place on a fresh machine under a fresh nonce, and file its report; one that was kept running before is given back first.

    The intent is on disk before a machine is asked for, and is closed once it is known that none runs, or, with `keep`, that the state names it.
    Raises Refused while another intent is open, WorldError, NoReport.
    """
    if (other := store.ledger().cut_short(place.address)) is not None:
        raise Refused(f"an earlier run was cut short at {other.address}", why="what it had begun would be forgotten", hint="go on with it: provision apply")
    state = _given_back(place.address, state, store, world, tell)
    nonce = world.token()
    session = f"provision-{nonce[:12]}"
    path = place.folder / "reports" / f"{place.stem}.{place.target}" / "report.json"
    world.perform(MakeFolder(path.parent, 0o700), tell)
    world.perform(RemoveTree(path), tell)
    intent = Intent(place.address, SESSION, "+", (), world.now(), (), {"session": session})
    store.begin(intent)
    try:
        world.perform(_run(place, session, nonce, path, keep=keep), tell)
    except WorldError as error:
        if error.left == ():
            store.end(intent)
        raise
    if keep:
        state = _recorded(place.address, {"title": f"Colab session {session}", "session": session}, state, store)
    store.end(intent)
    content = world.read(path, LIMIT)
    report = read_report(content, str(path), nonce=nonce)
    question = str((state.resource(place.address, NOTEBOOK) or {}).get("nonce", ""))  # what the verdict is valid for
    filed = file_report(report, path, place, state, store, world, tell, nonce=question, sha256=hashlib.sha256(content).hexdigest())
    return Ran(report, path, filed.html_path, filed.state, session if keep else "")


def stop_interrupted(intent: Intent, store: LocalStore, world: World, tell: Tell) -> None:
    """Give back what an earlier run that was cut short may have taken, and close its intent; does nothing for an intent of another kind.

    Raises WorldError, with the intent still open, when it may still run.
    """
    if intent.part != SESSION:
        return
    session = intent.details["session"]
    tell(f"an earlier run was cut short: stopping {session} on Colab, in case it runs")
    world.perform(StopColab(session, sessions_folder(store.folder)), tell)
    store.end(intent)


def _run(place: Place, session: str, nonce: str, path: Path, *, keep: bool) -> RunOnColab:
    target, kind = place.spec.targets[place.target], TARGETS["colab"]
    assert isinstance(target, ColabTarget)  # noqa: S101 - asked after by_command_line
    assert isinstance(kind, Colab)  # noqa: S101
    facts = kind.facts()
    shape = shape_of(place.spec.gpu, target.shape, facts)
    gpu, high = (shape.colab, shape.shape == "high") if shape else (place.spec.gpu.type, False)
    cell = rendered(place, facts, nonce=nonce).cell.encode()
    timeout_s = _INSTALL_S + seconds_of(place.spec.verify.timeout)
    return RunOnColab(session, gpu, high, cell, nonce, place.lock.digest, sessions_folder(place.folder), path, timeout_s, keep)


def _given_back(address: str, state: State, store: LocalStore, world: World, tell: Tell) -> State:
    kept = state.resource(address, SESSION)
    if kept is None:
        return state
    world.perform(StopColab(str(kept["session"]), sessions_folder(store.folder)), tell)
    return _recorded(address, None, state, store)


def _recorded(address: str, record: dict[str, Any] | None, state: State, store: LocalStore) -> State:
    after = state.recording(address, SESSION, record)
    store.save(after, expecting=state.serial)
    return after
