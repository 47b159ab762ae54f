"""Make places as declared and prove them: intent, effects, state, and at the end the probe's verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from provision.commands.adopt import refuse_foreign
from provision.commands.apart import Errors, apart
from provision.commands.loading import Loaded
from provision.commands.lock import Locked, settle, write_lock
from provision.commands.on_colab import by_command_line, run_and_file, stop_interrupted
from provision.commands.planning import NOTEBOOK, Proposal, check_saved, in_browser, propose, refuse_unknown_kinds
from provision.commands.remote import await_and_file, begun, nothing_left, rerun, settle_intent, settled
from provision.commands.running import left_behind, noting
from provision.commands.verify import Verified, verify_place
from provision.effects import CreateCondaPrefix, CreateInstance, CreateVenv, Effect, InstallPackages, MakeFolder, PointLink, RemoveTree, Tell, World
from provision.errors import ProvisionError, WorldError
from provision.plan import Action, Plan, Verb
from provision.state import Intent, Ledger, State
from provision.stores import LocalStore
from provision.targets import TARGETS, Place
from provision.targets.colab import SESSION
from provision.targets.conda_name import PART as NAME
from provision.targets.conda_name import activation_of
from provision.targets.target import Seat
from provision.targets.workbench import full_name, go_last, with_former, without_former
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
    detach: bool = False
    keep: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one target: its place and seat, the report with its files, whether it is fresh, what was changed, the kernel.

    `changed` says whether this run changed anything, `installed` whether it installed the packages: else what is told of how they came there is older.
    `compared` says with what this run compared the files of a local environment.
    `activation` is the command by which the user's own conda finds it by name; "" where there is none. Of an instance: its record, and in words what
    became of it when it was not verified. Of a notebook: its record, and the session that still runs at Colab.
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
    instance: Mapping[str, Any] | None = None
    taken: str = ""
    notebook: Mapping[str, Any] | None = None
    session: str = ""
    activation: str = ""
    compared: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict; in a sandbox `simulated` is all that can be expected."""
        return self.report.exit_code_in_sandbox if self.place.stand_in is not None else self.report.exit_code


@dataclass(frozen=True, slots=True)
class Waiting:
    """A target that was made and not waited for: its place, and the record of its instance or of its notebook; `because` says why it has no verdict."""

    place: Place
    instance: Mapping[str, Any] | None
    notebook: Mapping[str, Any] | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of every target; the exit code is that of the worst. `failed` are the errors that stopped one of several, by its name."""

    results: tuple[Result, ...]
    lock_path: Path
    waiting: tuple[Waiting, ...] = ()
    failed: Errors = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 when a verification failed, else 2 when one had no verdict, else 3 when one is unverified or not waited for, else 0."""
        errors = (error.exit_code for error in self.failed.values())
        codes = {*(result.exit_code for result in self.results), *(3 for _ in self.waiting), *errors}
        return next((code for code in (1, 2, 3) if code in codes), 0)


def apply(loaded: Loaded, names: tuple[str, ...], wishes: Wishes, world: World, agree: Agree, tell: Tell) -> Applied:
    """Make the named targets as the spec says, and verify them.

    Raises Refused (declined, not available, stale plan), LockError, Findings, WorldError, StateError. Whatever was done before an error is in the state,
    what was being done is in the journal, and running the command again goes on from there. An error of one target among several stops that one alone.
    """
    refuse_unknown_kinds(loaded, names)
    store = LocalStore(loaded.folder, world)
    locked = settle(loaded, world, tell, frozen=wishes.frozen)
    shown = propose(loaded, locked.lock, names, store.ledger(), world, verify=wishes.verify, adopt=wishes.adopt)
    if wishes.saved_plan is not None:
        check_saved(wishes.saved_plan, shown.plan, world)
    agree(shown.plan, locked)
    with store.exclusive(wishes.lock_wait_s, tell):
        ledger = store.founded()
        proposal = propose(loaded, locked.lock, names, ledger, world, verify=wishes.verify, adopt=wishes.adopt)
        if wishes.saved_plan is not None:
            check_saved(wishes.saved_plan, proposal.plan, world)
        elif proposal.plan.seal() != shown.plan.seal():
            agree(proposal.plan, locked)  # another run changed something while this one was waiting
        if locked.fresh:
            write_lock(loaded, locked.lock, world, tell)
        begun_with = _recover(ledger, {place.address for place in proposal.places.values()}, store, world, tell)
        failed: Errors = {}
        found: list[Result | Waiting] = []
        with noting(lambda: left_behind(proposal.places.values(), store.ledger())):
            for name in names:
                with apart(name, names, failed, tell, lambda error: _settle(error, begun_with, store, world, tell)):
                    _make(proposal, name, _saved(begun_with, store), store, world, tell)
            for intent in (one for one in ledger.intents if one in store.intents() and one.address.rpartition("/")[2] not in failed):
                _close(intent, _saved(begun_with, store), store, world, tell)
            for name in (name for name in names if name not in failed):
                with apart(name, names, failed, tell):
                    found.append(_prove(name, proposal, _saved(begun_with, store), store, world, tell, wishes))
    results = tuple(one for one in found if isinstance(one, Result))
    return Applied(results, loaded.lock_path, tuple(one for one in found if isinstance(one, Waiting)), failed)


def _saved(begun_with: State, store: LocalStore) -> State:
    """Return the state as it is saved; as long as none is, the one that this run began with, whose lineage is that of all it makes."""
    saved = store.load()
    return saved if saved.serial else begun_with


def _make(proposal: Proposal, name: str, state: State, store: LocalStore, world: World, tell: Tell) -> None:
    place = proposal.places[name]
    for action in proposal.plan.actions:
        if action.address == place.address:
            state = _carry_out(action, state, store, world, tell)


def _settle(error: ProvisionError, begun_with: State, store: LocalStore, world: World, tell: Tell) -> None:
    """See to what an error left half-made, as the next run would: what may be there is in the state, and the journal is free for the next target."""
    ledger = store.ledger() if store.load().serial else Ledger(begun_with, store.intents())
    state, left = _recover(ledger, set(), store, world, tell), getattr(error, "left", ())
    for intent in ledger.intents:
        if left and set(left) <= set(intent.names) and state.resource(intent.address, intent.part) is None:
            record = {**intent.details, "kind": "workbench", "zone": "", "zones": [name.split("/")[3] for name in left]}
            store.save(after := state.recording(intent.address, intent.part, record), expecting=state.serial)
            state = after
            store.end(intent)


def _recover(ledger: Ledger, addresses: set[str], store: LocalStore, world: World, tell: Tell) -> State:
    """Close intents that earlier runs left open, and return the state after.

    What they had begun on this machine, and the state does not hold, is removed. An instance that one had begun is adopted by the plan of its own address,
    where that is among `addresses`; else it is recorded here as soon as it is shown, so that it is never running unknown.
    """
    state = ledger.state
    for intent in ledger.intents:
        if not intent.names or intent.address not in addresses:
            state = _closed(intent, replace(ledger, state=state), store, world, tell)
    return state


def _close(intent: Intent, state: State, store: LocalStore, world: World, tell: Tell) -> None:
    """Close an intent whose address was planned and made anew: the state holds its result, or what it had begun is looked for once more."""
    if intent.names:
        settle_intent(intent, state, store, world, tell, planned=True)
    else:
        store.end(intent)


def _closed(intent: Intent, ledger: Ledger, store: LocalStore, world: World, tell: Tell) -> State:
    state = ledger.state
    if intent.part == SESSION:
        stop_interrupted(intent, store, world, tell)
        return state
    if intent.part == NAME and intent.details:  # what it makes lies elsewhere: it is in the state, whether it was made or not
        after = state.recording(intent.address, intent.part, dict(intent.details))
        store.save(after, expecting=state.serial)
        store.end(intent)
        return after
    if intent.names:
        return settle_intent(intent, state, store, world, tell)
    refuse_foreign(ledger, (RemoveTree(store.folder / path) for path in intent.paths), store.folder)
    recorded = {path for record in state.resources.values() for path in record.get("paths", ())}
    for path in intent.paths:
        if path not in recorded and path.startswith("envs/") and ".." not in Path(path).parts:
            world.perform(RemoveTree(store.folder / path), tell)
    store.end(intent)
    return state


def _carry_out(action: Action, state: State, store: LocalStore, world: World, tell: Tell) -> State:
    if not action.effects and state.resource(action.address, action.part) == action.record:
        return state
    tell(f"{action.verb} {action.title}{f': {action.because}' if action.verb is Verb.KEEP else ''}")
    named = {key: str(value) for key, value in (action.record or {}).items()} if action.part == NAME else {}
    here = Intent(action.address, action.part, str(action.verb), _touched(action.effects, store.folder), world.now(), details=named)
    intent = begun(action, world.now()) or here
    formers = go_last(state, action, intent.names)
    for former in formers:
        store.save(after := with_former(state, action.address, former), expecting=state.serial)
        state = after
    store.begin(intent)
    if intent.names and action.record is not None and action.record.get("zone"):  # it was seen there: what was begun for it earlier is accounted for
        for earlier in store.intents():
            if earlier.address == action.address and earlier.key != intent.key and full_name(action.record) in earlier.names:
                store.end(earlier)
    try:
        for effect in action.effects:
            if isinstance(effect, CreateInstance):  # from here on an instance may come to be
                store.begin(intent := replace(intent, details={**intent.details, "asked": world.now()}))
            world.perform(effect, tell)
    except WorldError as error:
        if getattr(error, "left", None) == ():  # no zone took it, and what a try had left is deleted
            nothing_left(action, intent, state, store)
        raise
    after = state.after(done := settled(action, world))
    for record in (*formers, *(one for one in (done.record,) if one is not None)):
        if record.get("zone"):
            after = without_former(after, action.address, record)
    stored = state.resource(action.address, "verification")
    if stored is not None and any(isinstance(effect, InstallPackages) for effect in action.effects):
        after = after.recording(action.address, "verification", {**stored, "verdict": ""})  # it was of what this action replaced
    store.save(after, expecting=state.serial)
    store.end(intent)
    return after


def _touched(effects: tuple[Effect, ...], folder: Path) -> tuple[str, ...]:
    paths = [effect.path for effect in effects if isinstance(effect, CreateCondaPrefix | CreateVenv | PointLink)]
    paths += [effect.environment for effect in effects if isinstance(effect, InstallPackages)]
    return tuple(dict.fromkeys(path.relative_to(folder).as_posix() for path in paths if path.is_relative_to(folder)))


def _prove(name: str, proposal: Proposal, state: State, store: LocalStore, world: World, tell: Tell, wishes: Wishes) -> Result | Waiting:
    place = proposal.places[name]
    seat = TARGETS[place.spec.targets[name].kind].seat(place)
    ours = [action for action in proposal.plan.changes if action.address == place.address]
    changed, installed = bool(ours), any(isinstance(effect, InstallPackages) for action in ours for effect in action.effects)
    kernel = (state.resource(place.address, "kernel") or {}).get("name")
    activation = activation_of(state.resource(place.address, NAME))
    instance, notebook = state.resource(place.address, "instance"), state.resource(place.address, NOTEBOOK)
    if not proposal.plan.verifications[name].needed:
        record = state.resource(place.address, "verification") or {}
        path = place.folder / str(record.get("report"))
        report = _stored(path, world)
        if report is not None:
            page = place.folder / str(record.get("html"))
            told = Result(place, seat, report, path, page, fresh=False, changed=changed, installed=installed, kernel=kernel, instance=instance)
            session = str((state.resource(place.address, SESSION) or {}).get("session", ""))
            return replace(told, notebook=notebook, session=session, activation=activation, compared=_compared(proposal, place, installed=installed))
    if notebook is not None and in_browser(place):
        world.perform(MakeFolder(place.folder / "reports" / f"{place.stem}.{place.target}", 0o700), tell)  # to drop the report into
        return Waiting(place, None, notebook, _because(proposal, name))
    if by_command_line(place):
        ran = run_and_file(place, state, store, world, tell, keep=wishes.keep)
        told = Result(place, seat, ran.report, ran.json_path, ran.html_path, fresh=True, changed=changed, installed=True, kernel=None, notebook=notebook)
        return replace(told, session=ran.left)
    if instance is not None:
        stored = state.resource(place.address, "verification")
        if stored is not None and stored.get("nonce") == instance.get("nonce"):
            state = rerun(place, store, state, world, tell)
            instance = state.resource(place.address, "instance") or {}
        if wishes.detach:
            return Waiting(place, instance)
        proven = await_and_file(place, state, store, world, tell)
        paths = (proven.report, proven.json_path, proven.html_path)
        return Result(place, seat, *paths, fresh=True, changed=changed, installed=installed, kernel=None, instance=instance, taken=proven.taken)
    done: Verified = verify_place(place, state, store, world, tell)
    told = Result(place, seat, done.report, done.json_path, done.html_path, fresh=True, changed=changed, installed=installed, kernel=kernel)
    return replace(told, activation=activation, compared=_compared(proposal, place, installed=installed))


def _compared(proposal: Proposal, place: Place, *, installed: bool) -> str:
    """Return what the files of a local environment were compared with; "" for another target, and when conda compares files by itself."""
    made = next((action for action in proposal.plan.actions if action.address == place.address and action.part == "environment"), None)
    if made is None or (made.record or {}).get("manager") != "uv":
        return ""
    if installed:
        return "downloads with the lock, installed files with their RECORDs: all by sha256"
    return made.because if made.verb is Verb.KEEP else ""


def _because(proposal: Proposal, name: str) -> str:
    check = proposal.plan.verifications[name]
    return check.because if check.needed else "its report is gone"


def _stored(path: Path, world: World) -> Report | None:
    """Return the stored report, or None when it is gone or damaged: then the device is asked again."""
    try:
        return read_report(world.read(path, LIMIT), str(path))
    except WorldError:
        return None
