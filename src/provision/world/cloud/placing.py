"""From zones in order to one running instance: what is tried, what each zone said, and what is cleared away before the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from provision.effects import Tell
from provision.safe import safe_line
from provision.world.cloud import instances
from provision.world.cloud.failures import CloudError, Failure, Width
from provision.world.cloud.instances import Serial
from provision.world.cloud.notebooks import Notebooks, Wire
from provision.world.cloud.operations import at_work, finish, last
from provision.world.cloud.pace import Pace, polled

_OURS = ("provision", "provision-spec", "provision-target", instances.LINEAGE)
_RUN = "provision-run"
_MADE = "provision-made"
_UNSURE = ("slow", "stuck", "ended", "gone", "exists", "foreign", "credentials", "no-credentials", "nonsense", "rate", "queue", "unreachable", "unavailable")
"""After these an instance may be on its way, or is not ours: nothing is deleted."""


class Wanted(NamedTuple):
    """An instance to create: `body` is the REST JSON, `request` a UUID that stays the same when the same creation is asked for again.

    `instead_of` is the full name of one that was deleted for it, "" where none was.
    """

    project: str
    zones: tuple[str, ...]
    instance: str
    body: Mapping[str, Any]
    request: str
    instead_of: str = ""


class Attempt(NamedTuple):
    """What became of one zone: `happened` is one word (created, adopted, or the kind of the failure), `why` the reason."""

    zone: str
    happened: str
    why: str


class Placed(NamedTuple):
    """Where the instance is, as the service tells it, and what was tried before."""

    name: str
    zone: str
    instance: Wire
    attempts: tuple[Attempt, ...]


class Unplaced(CloudError):
    """No zone took the instance: `attempts` says what each one said, `left` names what may still be there."""

    def __init__(self, failure: Failure, attempts: tuple[Attempt, ...], left: tuple[str, ...]) -> None:
        super().__init__(failure)
        self.attempts = attempts
        self.left = left


def create(notebooks: Notebooks, wanted: Wanted, pace: Pace, tell: Tell, serial: Serial) -> Placed:
    """Create an instance in the first zone that takes it and wait until it is ACTIVE; one of ours that is there already is adopted.

    Every listed zone is looked at before anything is asked for, so that a run that was cut short never ends with two. Raises Unplaced.
    """
    return _Placing(notebooks, wanted, pace, tell, serial).place()


def table(attempts: tuple[Attempt, ...]) -> str:
    """Return the attempts as lines of text: zone, what happened, why."""
    wide = max((len(one.zone) for one in attempts), default=0)
    word = max((len(one.happened) for one in attempts), default=0)
    return "\n".join(f"{one.zone:<{wide}}  {one.happened:<{word}}  {safe_line(one.why)}" for one in attempts)


class _Placing:
    def __init__(self, notebooks: Notebooks, wanted: Wanted, pace: Pace, tell: Tell, serial: Serial) -> None:
        self._notebooks = notebooks
        self._wanted = wanted
        self._pace = pace
        self._tell = tell
        self._serial = serial
        self._attempts: list[Attempt] = []
        self._failures: list[Failure] = []
        self._kept = False  # the zone at hand holds an instance that may carry somebody's work

    def place(self) -> Placed:
        waiting = list(self._wanted.zones)
        try:
            standing = self._standing()
        except CloudError as error:
            raise self._unplaced(error.failure, stays="nothing was asked for") from error
        if standing is not None:
            waiting = [standing, *(zone for zone in waiting if zone != standing)]
        failure = None
        while waiting:
            zone = waiting.pop(0)
            try:
                return self._in(zone)
            except CloudError as error:
                failure = error.failure
                self._failures.append(failure)
                self._note(zone, failure.kind, failure.what)
                self._clear(zone, failure)
                waiting = _left_to_try(waiting, zone, failure)
        raise self._unplaced(failure)

    def _standing(self) -> str | None:
        """The zone in which the instance is, or is being made; raises Unplaced where one of another owner bears the name."""
        for zone in self._wanted.zones:
            found = self._notebooks.get(self._name(zone))
            if found is not None:
                if not self._ours(found):
                    raise CloudError(_foreign(self._name(zone)))
                return zone
        return next((zone for zone in self._wanted.zones if at_work(self._notebooks, self._name(zone))), None)

    def _in(self, zone: str) -> Placed:
        self._kept = False
        found = self._notebooks.get(self._name(zone))
        tries = 0
        while found is None:
            try:
                self._ask(zone, tries)
                break
            except CloudError as error:
                if error.failure.kind == "exists":
                    found = self._seen(zone)
                    continue
                if error.failure.width is not Width.RETRY or tries >= (error.failure.repeats or 0):
                    raise
                self._note(zone, error.failure.kind, f"{error.failure.what}; asked again")
                self._remove(zone)
                tries += 1
        if found is not None:
            return self._adopt(zone, found)
        active = instances.await_active(self._notebooks, self._name(zone), self._pace, self._tell, self._serial)
        return self._placed(zone, active, "created", "it is ACTIVE")

    def _ask(self, zone: str, tries: int) -> None:
        self._tell(f"request: {self._wanted.instance} in {zone}")
        request = str(uuid5(_uuid(self._wanted.request), f"{zone}/{tries}"))
        parent = self._name(zone).partition("/instances/")[0]
        operation = self._notebooks.create(parent, self._wanted.instance, self._wanted.body, request)
        if operation.get("done") and self._notebooks.get(self._name(zone)) is None:
            # The service remembers this request from a run before; what became of it then is gone, so this is another one.
            operation = self._notebooks.create(parent, self._wanted.instance, self._wanted.body, self._pace.fresh())
        self._tell(f"capacity: waiting for {zone} ({operation['name'].rpartition('/')[2]})")
        finish(self._notebooks, operation, self._pace, self._tell)

    def _seen(self, zone: str) -> Wire:
        """The instance that the service says exists: it may be a while until it is shown."""
        found = polled(lambda: self._notebooks.get(self._name(zone)), self._pace, self._pace.visible_s)
        if found is None:
            raise CloudError(_hidden(self._name(zone), self._pace.visible_s))
        if not self._ours(found):
            raise CloudError(_foreign(self._name(zone)))
        return found

    def _adopt(self, zone: str, found: Wire) -> Placed:
        """Take an instance of ours as it stands: wait for what is at work on it, run what is wanted now, and see it ACTIVE."""
        name = self._name(zone)
        self._tell(f"adopt: {self._wanted.instance} is in {zone} already ({found.get('state', '')})")
        if found.get("state") != "ACTIVE" and (latest := last(self._notebooks, name)):
            # Where its creation fails it never ran: then it is a shell, to be deleted. Everything else may carry somebody's work.
            self._kept = latest.get("metadata", {}).get("verb") != "create"
            if not (self._kept and latest.get("done")):
                finish(self._notebooks, latest, self._pace, self._tell)
        self._kept = True
        found = self._notebooks.get(name) or found
        if self._made_otherwise(found):
            raise CloudError(_otherwise(name))
        found = self._rerun(name, found)
        return self._placed(zone, found, "adopted", "it is ours, from a run before")

    def _rerun(self, name: str, found: Wire) -> Wire:
        """See the instance ACTIVE with the metadata that is wanted now: its program runs at each start."""
        metadata = self._wanted.body.get("gceSetup", {}).get("metadata", {})
        if metadata.get(_RUN) != found.get("gceSetup", {}).get("metadata", {}).get(_RUN):
            if found.get("state") != "STOPPED":
                instances.start(self._notebooks, name, self._pace, self._tell, self._serial)
                instances.stop(self._notebooks, name, self._pace, self._tell)
            body = {"labels": self._wanted.body.get("labels", {}), "gceSetup": {"metadata": metadata}}
            instances.update(self._notebooks, name, body, "labels,gce_setup.metadata", self._pace, self._tell, self._serial)
        instances.start(self._notebooks, name, self._pace, self._tell, self._serial)
        return self._notebooks.get(name) or found

    def _made_otherwise(self, found: Wire) -> bool:
        """Whether an instance was made with another image, disk, account or network than is wanted now."""
        there, wanted = (one.get("gceSetup", {}).get("metadata", {}).get(_MADE) for one in (found, self._wanted.body))
        return bool(there != wanted)

    def _clear(self, zone: str, failure: Failure) -> None:
        """Delete the shell that a failed creation leaves; what may still work on is not touched. Raises Unplaced where something stays."""
        if self._kept or failure.kind in _UNSURE:
            raise self._unplaced(failure, may_stay=failure.kind not in ("foreign", "exists"), zone=zone)
        try:
            self._remove(zone)
        except CloudError as error:
            raise self._unplaced(
                replace(failure, why=f"{failure.why}\nand what it left could not be deleted: {error.what}"), may_stay=True, zone=zone
            ) from error

    def _remove(self, zone: str) -> None:
        found = self._notebooks.get(self._name(zone))
        if found is not None and self._ours(found):
            instances.delete(self._notebooks, self._name(zone), self._pace, self._tell)

    def _unplaced(self, failure: Failure | None, *, may_stay: bool = False, zone: str = "", stays: str = "nothing was left running") -> Unplaced:
        """The end of it: what every zone said, each way out once, and what is left."""
        failure = failure or Failure(Width.FATAL, "no-zone", "no zone is named", "", "list zones under the target")
        attempts, left = tuple(self._attempts), (self._name(zone),) if may_stay else ()
        if left:
            stays = f"{left[0]} may be there and cost money: {instances.gcloud('describe', left[0])}"
        others = [one for one in self._failures if one.kind != failure.kind]
        several = len({one.zone for one in attempts}) > 1 and failure.width in (Width.ZONE, Width.REGION)
        what = f"none of {len({one.zone for one in attempts})} zones had the machine" if several else failure.what
        gone = f"{self._wanted.instead_of} was deleted for this, and its disks with it" if self._wanted.instead_of else ""
        why = dict.fromkeys((table(attempts) if len(attempts) > 1 else "", *(one.why for one in others), failure.why, gone))
        hints = dict.fromkeys((*(one.hint for one in others), failure.hint, stays))
        return Unplaced(replace(failure, what=what, why="\n".join(filter(None, why)), hint="\n".join(hints)), attempts, left)

    def _placed(self, zone: str, found: Wire, happened: str, why: str) -> Placed:
        """The end where there is one; what was tried before it is told as a table."""
        attempts = (*self._attempts, Attempt(zone, happened, why))
        if self._attempts:
            self._tell(f"zones tried:\n{table(attempts)}")
        return Placed(self._name(zone), zone, found, attempts)

    def _note(self, zone: str, happened: str, why: str) -> None:
        self._attempts.append(Attempt(zone, happened, why))
        self._tell(f"{zone}: {happened}: {safe_line(why)}")

    def _ours(self, found: Wire) -> bool:
        labels, wanted = found.get("labels", {}), self._wanted.body.get("labels", {})
        return all(labels.get(key) == wanted.get(key) and key in labels for key in _OURS)

    def _name(self, zone: str) -> str:
        return f"projects/{self._wanted.project}/locations/{zone}/instances/{self._wanted.instance}"


def _left_to_try(waiting: list[str], zone: str, failure: Failure) -> list[str]:
    """The zones that are still worth a try after a failure, those first that the service named."""
    match failure.width:
        case Width.ZONE:
            named = [one for one in failure.zones_available if one in waiting]
            return [*named, *(one for one in waiting if one not in named)]
        case Width.REGION:
            return [one for one in waiting if one.rpartition("-")[0] != zone.rpartition("-")[0]]
        case _:
            return []


def _foreign(name: str) -> Failure:
    hint = f"it is not touched. Rename the spec file or the target, or delete it yourself:\n{instances.gcloud('delete', name)}"
    why = f"{name} does not carry the labels of this spec, target and state"
    return Failure(Width.FATAL, "foreign", "an instance of this name exists that is not ours", why, hint)


def _otherwise(name: str) -> Failure:
    hint = "run the same command again: the plan then compares it with the spec, and says what is to be done"
    why = f"{name} was made by an earlier run with another image, disk, account or network (its metadata key {_MADE} says how)"
    return Failure(Width.FATAL, "otherwise", "the instance that is there was made from another spec", why, hint)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, text)


def _hidden(name: str, waited_s: float) -> Failure:
    hint = "run the same command again in a few minutes: it is looked for in every zone"
    why = f"{name} exists already, says Google Cloud, and was not found in {waited_s:.0f} seconds"
    return Failure(Width.FATAL, "stuck", "an instance of this name exists that is not shown", why, hint)
