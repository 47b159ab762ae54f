"""Make places as declared and prove them: intent, effects, state, and at the end the probe's verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from provision.commands.loading import Loaded
from provision.commands.lock import Locked, settle, write_lock
from provision.commands.planning import Proposal, check_saved, propose, refuse_unknown_kinds
from provision.commands.verify import Verified, verify_place
from provision.effects import CreateVenv, Effect, InstallPackages, PointLink, RemoveTree, Tell, World
from provision.errors import WorldError
from provision.plan import Action, Plan
from provision.state import Intent, Ledger, State
from provision.stores import LocalStore
from provision.targets import TARGETS, Place
from provision.targets.target import Seat
from provision.verification import Report, read_report
from provision.verification.report import LIMIT

Agree = Callable[[Plan, Locked], None]
"""Shows the plan and asks; raises Refused when the answer is no."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How apply is to go about it."""

    verify: bool = False
    frozen: bool = False
    saved_plan: Path | None = None
    lock_wait_s: float = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one target: its place and seat, the report with its files, whether it is fresh, what was changed, the kernel.

    `changed` says whether this run changed anything, `installed` whether it installed the packages: else what is told of how they came there is older.
    """

    place: Place
    seat: Seat
    report: Report
    json_path: Path
    html_path: Path
    fresh: bool
    changed: bool
    installed: bool
    kernel: str | None


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of every target; the exit code is that of the worst verdict."""

    results: tuple[Result, ...]
    lock_path: Path

    @property
    def exit_code(self) -> int:
        """1 when a verification failed, else 2 when one had no verdict, else 3 when one is unverified, else 0."""
        codes = {result.report.exit_code for result in self.results}
        return next((code for code in (1, 2, 3) if code in codes), 0)


def apply(loaded: Loaded, names: tuple[str, ...], wishes: Wishes, world: World, agree: Agree, tell: Tell) -> Applied:
    """Make the named targets as the spec says, and verify them.

    Raises Refused (declined, not available, stale plan), LockError, Findings, WorldError, StateError. Whatever was done before an error is in the state,
    what was being done is in the journal, and running the command again goes on from there.
    """
    refuse_unknown_kinds(loaded, names)
    store = LocalStore(loaded.folder, world)
    locked = settle(loaded, world, tell, frozen=wishes.frozen)
    shown = propose(loaded, locked.lock, names, store.ledger(), world, verify=wishes.verify)
    if wishes.saved_plan is not None:
        check_saved(wishes.saved_plan, shown.plan, world)
    agree(shown.plan, locked)
    with store.exclusive(wishes.lock_wait_s, tell):
        ledger = store.ledger()
        proposal = propose(loaded, locked.lock, names, ledger, world, verify=wishes.verify)
        if wishes.saved_plan is not None:
            check_saved(wishes.saved_plan, proposal.plan, world)
        elif proposal.plan.seal() != shown.plan.seal():
            agree(proposal.plan, locked)  # another run changed something while this one was waiting
        if locked.fresh:
            write_lock(loaded, locked.lock, world, tell)
        _recover(ledger, store, world, tell)
        state = ledger.state
        for action in proposal.plan.actions:
            state = _carry_out(action, state, store, world, tell)
        results = []
        for name in names:
            result, state = _prove(name, proposal, state, store, world, tell)
            results.append(result)
    return Applied(tuple(results), loaded.lock_path)


def _recover(ledger: Ledger, store: LocalStore, world: World, tell: Tell) -> None:
    """Close an intent that an earlier run left open: what it had begun, and the state does not hold, is removed."""
    if ledger.interrupted is None:
        return
    recorded = {path for record in ledger.state.resources.values() for path in record.get("paths", ())}
    for path in ledger.interrupted.paths:
        if path not in recorded and path.startswith("envs/") and ".." not in Path(path).parts:
            world.perform(RemoveTree(store.folder / path), tell)
    store.end()


def _carry_out(action: Action, state: State, store: LocalStore, world: World, tell: Tell) -> State:
    if not action.effects and state.resource(action.address, action.part) == action.record:
        return state
    tell(f"{action.verb} {action.title}")
    store.begin(Intent(action.address, action.part, str(action.verb), _touched(action.effects, store.folder), world.now()))
    for effect in action.effects:
        world.perform(effect, tell)
    after = state.after(action)
    stored = state.resource(action.address, "verification")
    if stored is not None and any(isinstance(effect, InstallPackages) for effect in action.effects):
        after = after.recording(action.address, "verification", {**stored, "verdict": ""})  # it was of what this action replaced
    store.save(after, expecting=state.serial)
    store.end()
    return after


def _touched(effects: tuple[Effect, ...], folder: Path) -> tuple[str, ...]:
    paths = [effect.path for effect in effects if isinstance(effect, CreateVenv | PointLink)]
    paths += [effect.environment for effect in effects if isinstance(effect, InstallPackages)]
    return tuple(dict.fromkeys(path.relative_to(folder).as_posix() for path in paths if path.is_relative_to(folder)))


def _prove(name: str, proposal: Proposal, state: State, store: LocalStore, world: World, tell: Tell) -> tuple[Result, State]:
    place = proposal.places[name]
    seat = TARGETS[place.spec.targets[name].kind].seat(place)
    ours = [action for action in proposal.plan.changes if action.address == place.address]
    changed, installed = bool(ours), any(isinstance(effect, InstallPackages) for action in ours for effect in action.effects)
    kernel = (state.resource(place.address, "kernel") or {}).get("name")
    if not proposal.plan.verifications[name].needed:
        record = state.resource(place.address, "verification") or {}
        path = place.folder / str(record.get("report"))
        report = _stored(path, world)
        if report is not None:
            page = place.folder / str(record.get("html"))
            return Result(place, seat, report, path, page, fresh=False, changed=changed, installed=installed, kernel=kernel), state
    done: Verified = verify_place(place, state, store, world, tell)
    told = Result(place, seat, done.report, done.json_path, done.html_path, fresh=True, changed=changed, installed=installed, kernel=kernel)
    return told, done.state


def _stored(path: Path, world: World) -> Report | None:
    """Return the stored report, or None when it is gone or damaged: then the device is asked again."""
    try:
        return read_report(world.read(path, LIMIT), str(path))
    except WorldError:
        return None
