"""Run the probe in a made environment, bring its report home, and record the verdict."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from provision.commands.apart import Errors, apart
from provision.commands.filing import file_report, write_page
from provision.commands.loading import Loaded
from provision.commands.lock import read_lock
from provision.commands.on_colab import by_command_line, run_and_file, stop_interrupted
from provision.commands.planning import in_browser, place_of
from provision.commands.remote import await_and_file, is_remote, rerun
from provision.commands.running import left_behind, noting
from provision.effects import MakeFolder, MoveFile, Reader, RemoveTree, RunProbe, Tell, World, WriteFile
from provision.errors import LockError, Refused, UsageError
from provision.lock.asked import differences
from provision.probe.checks import CHECKS
from provision.state import State
from provision.stores import LocalStore
from provision.targets import TARGETS, Place
from provision.targets.target import Seat
from provision.verification import Report, expectations_of, parcel, read_report
from provision.verification.report import LIMIT


@dataclass(frozen=True, slots=True)
class Verified:
    """A report with the files that hold it, and the state that records it."""

    report: Report
    json_path: Path
    html_path: Path
    state: State
    partial: bool = False
    sandbox: bool = False
    taken: str = ""
    """What became of an instance that was not verified; "" where nothing was done."""

    @property
    def exit_code(self) -> int:
        """The verdict's exit code; of a partial run: 1 when a check that was asked for failed, 3 when it could not be observed, else 0."""
        if not self.partial:
            return self.report.exit_code_in_sandbox if self.sandbox else self.report.exit_code
        found = {check.get("status") for check in self.report.document["checks"]}
        return 1 if "fail" in found else 3 if "unknown" in found else 0


def verify(
    loaded: Loaded,
    names: tuple[str, ...],
    world: World,
    tell: Tell,
    *,
    only: tuple[str, ...] = (),
    lock_wait_s: float = 0,
    failed: Errors | None = None,
) -> tuple[Verified, ...]:
    """Verify environments that exist. Raises LockError without a lock or when the spec moved since, Refused without a whole environment.

    With `failed`, an error of one target among several is kept there, and the others are verified.
    """
    _refuse_unknown_checks(only)
    lock = read_lock(loaded, world)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=f"make the environment with `provision apply {loaded.path}`")
    if moved := differences(loaded.spec, lock):
        raise LockError("the spec moved since the environment was made", why="; ".join(moved), hint=f"bring it up to date: provision apply {loaded.path}")
    store = LocalStore(loaded.folder, world)
    done: list[Verified] = []
    with store.exclusive(lock_wait_s, tell):
        for intent in store.intents():
            stop_interrupted(intent, store, world, tell)
        places = {name: place_of(loaded, lock, name, world)[1] for name in names}
        with noting(lambda: left_behind(places.values(), store.ledger())):
            for name, place in places.items():
                with apart(name, names, failed, tell):
                    done.append(_verified(place, loaded, only, store, world, tell))
    return tuple(done)


def _verified(place: Place, loaded: Loaded, only: tuple[str, ...], store: LocalStore, world: World, tell: Tell) -> Verified:
    ledger = store.ledger()
    _refuse_notebook(place, loaded)
    if only and (is_remote(place) or by_command_line(place)):
        raise Refused("single checks are repeated on this machine only", why=f"{place.address} verifies itself as a whole", hint="leave --only out")
    if by_command_line(place):
        ran = run_and_file(place, ledger.state, store, world, tell)
        return Verified(ran.report, ran.json_path, ran.html_path, ran.state)
    if is_remote(place):
        proven = await_and_file(place, rerun(place, store, ledger.state, world, tell), store, world, tell)
        sandbox = place.stand_in is not None
        return Verified(proven.report, proven.json_path, proven.html_path, proven.state, sandbox=sandbox, taken=proven.taken)
    kind = TARGETS[place.spec.targets[place.target].kind]
    if not kind.look(place, ledger, world).whole:
        raise Refused(f"there is no whole environment for {place.address}", why=_lacking(kind.seat(place), world), hint=place.command("apply"))
    return verify_place(place, ledger.state, store, world, tell, only=only)


def verify_place(place: Place, state: State, store: LocalStore, world: World, tell: Tell, *, only: tuple[str, ...] = ()) -> Verified:
    """Verify a place with a whole environment; raises WorldError when the probe itself fails. With `only`, nothing is recorded as its verdict."""
    kind = TARGETS[place.spec.targets[place.target].kind]
    seat = kind.seat(place)
    promised = expectations_of(place.spec, place.target, place.lock, place.environment, seat.prefix)
    nonce = world.token()
    folder = place.folder / "reports" / f"{place.stem}.{place.target}"
    world.perform(MakeFolder(folder, 0o700), tell)
    world.perform(WriteFile(folder / "probe.pyz", parcel(), 0o600), tell)
    world.perform(WriteFile(folder / "expectations.json", json.dumps({**promised, "nonce": nonce}, indent=1, sort_keys=True), 0o600), tell)
    report_path = folder / ("report-only.json" if only else "report.json")
    if only or not (state.resource(place.address, "verification") or {}).get("verdict"):
        world.perform(RemoveTree(report_path), tell)  # nothing records it: it is of single checks, or of what was replaced since
    fresh = folder / "report-new.json"  # beside the last one, which stays the verdict until this run has ended
    world.perform(RemoveTree(fresh), tell)
    caller = world.environment()
    variables = tuple({**kind.variables(place, caller, partial=True), **activation(seat.prefix, caller)}.items())
    timeout_s = promised["timeout_s"]
    world.perform(RunProbe(seat.python, folder / "probe.pyz", folder / "expectations.json", fresh, timeout_s, variables, only), _telling(tell))
    report = read_report(world.read(fresh, LIMIT), str(fresh), nonce=nonce)
    world.perform(MoveFile(fresh, report_path), tell)
    if only:
        return Verified(report, report_path, write_page(report, report_path, place, world, tell), state, partial=True)
    filed = file_report(report, report_path, place, state, store, world, tell)
    return Verified(report, report_path, filed.html_path, filed.state)


def activation(prefix: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that activate an environment: its programs first on the PATH."""
    return {"VIRTUAL_ENV": str(prefix), "PATH": f"{prefix / 'bin'}:{caller.get('PATH', '/usr/bin:/bin')}"}


def _lacking(seat: Seat, reader: Reader) -> str:
    """Return what is known of an environment that is not whole: that its Python went away is the usual cause where its folder is there."""
    if reader.exists(seat.prefix) and not reader.exists(seat.python):
        return f"{seat.python} is missing, or leads to a Python that was removed or upgraded since"
    return f"looked in {seat.prefix}"


def _refuse_notebook(place: Place, loaded: Loaded) -> None:
    if not in_browser(place):
        return
    words = f"{shlex.quote(str(loaded.path))} --target {place.target}"
    hint = f"open the notebook (`provision apply {words}` says how), run all of it, and file what it offers: provision report add FILE"
    raise Refused(f"{place.address} is verified in its notebook", why="provision reaches no runtime that a browser holds", hint=hint)


def _refuse_unknown_checks(only: tuple[str, ...]) -> None:
    known = [check.id for check in CHECKS]
    for wanted in only:
        if wanted.partition(":")[0] not in known:
            near = [wanted.upper()] if wanted.upper() in known else get_close_matches(wanted.upper(), known, n=3, cutoff=0.3)
            raise UsageError(f"there is no check {wanted}", hint=f"did you mean {' or '.join(near)}?" if near else f"checks: {', '.join(known)}")


def _telling(tell: Tell) -> Tell:
    """Turn the probe's events into sentences; other lines of it are shown as they are."""

    def told(line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            tell(line)
            return
        if isinstance(event, dict) and event.get("event") == "stage" and event.get("status") == "started":
            tell(f"verifying: {event.get('title', event.get('stage'))}")

    return told
