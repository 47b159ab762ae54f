"""State what the lock and the last reports prove equal across all targets of a spec, and how to prove the rest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from provision.commands.carried import kept_at
from provision.commands.loading import Loaded
from provision.commands.planning import in_browser, place_of, verification_of
from provision.commands.probe import promised, settled
from provision.commands.receiving import report_path
from provision.effects import Reader
from provision.errors import WorldError
from provision.lock import Lock
from provision.lock.conda import index_name, instead_of_index
from provision.state import Ledger
from provision.targets import TARGETS, Place
from provision.verification import Report, expectations_of, probe_digest, read_report
from provision.verification.parity import Declared, Parity, Side, Standing
from provision.verification.parity import parity as stated
from provision.verification.report import LIMIT, edited


def parity(loaded: Loaded, ledger: Ledger, reader: Reader) -> Parity:
    """Return what is proven; looks, changes nothing. Raises LockError without a lock that holds."""
    lock = settled(loaded, reader)
    return stated([_side(loaded, lock, name, ledger, reader) for name in loaded.spec.targets])


def _side(loaded: Loaded, lock: Lock, name: str, ledger: Ledger, reader: Reader) -> Side:
    kind = loaded.spec.targets[name].kind
    if kind not in TARGETS:
        return Side(name, kind, Standing.MISSING, why="targets of this kind cannot be made by this version")
    platform = TARGETS[kind].platform or reader.platform()
    environment = lock.environment(name, platform)
    if environment is None:
        prove = f"run `provision parity` on one of {', '.join(loaded.spec.platforms)}"
        return Side(name, kind, Standing.MISSING, why=f"the lock holds nothing for it on {platform}", prove=prove)
    place = place_of(loaded, lock, name, reader)[1]
    brought = instead_of_index(lock, environment, loaded.spec)
    builds = {index_name(package.name): package.build for package in lock.conda_of(environment) if index_name(package.name) in brought}
    declared = Declared(lock.python, {**lock.versions(environment), **brought}, environment.flavour, environment.driver, builds)
    own = _worth(place, ledger, reader)
    side = own if own.report is not None else _carried(loaded, place, reader) or own
    return Side(name, kind, side.standing, declared, side.report, side.why, _prove(loaded, place, side), side.carried, side.at)


def _worth(place: Place, ledger: Ledger, reader: Reader) -> Side:
    """Return what the stored report of a place is worth."""
    path = report_path(place)
    if not reader.exists(path):
        return _of(place, Standing.MISSING, why="it was never verified")
    try:
        report = read_report(reader.read(path, LIMIT), str(path))
    except WorldError as error:
        return _of(place, Standing.DAMAGED, why=f"{error.what}: {error.why}")
    if wrong := edited(report):
        return _of(place, Standing.DAMAGED, why=wrong)
    stale = _stale(report, place) or _void(place, ledger, reader)
    return _of(place, Standing.STALE, why=stale) if stale else _told(place, report, carried=False)


def _carried(loaded: Loaded, place: Place, reader: Reader) -> Side | None:
    """Return what the report of a probe that was carried by hand is worth; None without one that answers what would be asked now."""
    path = kept_at(loaded, place.target)
    try:
        report = read_report(reader.read(path, LIMIT), str(path), nonce=promised(place)["nonce"])
    except WorldError:
        return None
    if wrong := edited(report):
        return _of(place, Standing.DAMAGED, why=wrong)
    return _told(place, report, carried=True)


def _told(place: Place, report: Report, *, carried: bool) -> Side:
    standing = {"verified": Standing.VERIFIED, "failed": Standing.FAILED, "simulated": Standing.SIMULATED}.get(report.verdict, Standing.UNVERIFIED)
    subject = report.document["subject"]
    at = str(subject.get("created_utc", ""))[:10]
    if standing is Standing.SIMULATED and place.stand_in is None:
        return _of(place, standing, why=f"not real there: {', '.join(str(one) for one in subject.get('simulated') or ())}")
    return Side(place.target, "", standing, report=report, carried=carried, at=at)


def _of(place: Place, standing: Standing, *, why: str) -> Side:
    return Side(place.target, "", standing, why=why)


def _stale(report: Report, place: Place) -> str:
    """Return why a report is not of the lock, the spec and the probe as they are; "" when it is."""
    asked = expectations_of(place.promised, place.target, place.lock, place.environment, TARGETS[place.spec.targets[place.target].kind].seat(place).prefix)
    document = report.document
    if document["lock"].get("environment_digest") != asked["lock"]["environment_digest"]:
        return "its report is of another lock"
    if document["spec"].get("digest") != asked["spec"]["digest"]:
        return "its report is of another spec"
    tool = document.get("tool")
    judged_by = tool.get("probe_sha256") if isinstance(tool, Mapping) else None
    return "" if judged_by == probe_digest() else "another version of the probe judged it"


def _void(place: Place, ledger: Ledger, reader: Reader) -> str:
    check = verification_of(place, ledger.state, reader)
    return check.because if check.needed else ""


def _prove(loaded: Loaded, place: Place, side: Side) -> str:
    match side.standing:
        case Standing.VERIFIED:
            return ""
        case Standing.FAILED | Standing.UNVERIFIED if not side.carried:
            return f"{place.command('report')} says why; then {place.command('verify')}"
        case Standing.SIMULATED if place.stand_in is not None:
            return ""
        case Standing.DAMAGED:
            return place.command("verify")
        case _ if in_browser(place):
            words = f"provision report add report.json --spec {shlex.quote(str(loaded.path))} --target {place.target}"
            return f"{place.command('apply')}, run its notebook, then {words}"
        case _:
            return place.command("apply")
