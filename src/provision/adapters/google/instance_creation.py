"""From zones in order to one running instance: what is tried, what each zone said, and what is
cleared away before the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from provision.adapters.google import instances
from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope
from provision.adapters.google.instances import ConsoleReader
from provision.adapters.google.notebooks import NotebooksApi, RestResource
from provision.adapters.google.operations import (
    latest_operation,
    running_operation,
    wait_for_operation,
)
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.effects import ProgressCallback
from provision.sanitize import escape_line

_OWNER_LABELS = ("provision", "provision-spec", "provision-target", instances.LINEAGE_LABEL)
_RUN_KEY = "provision-run"
_CREATION_KEY = "provision-made"
_UNCERTAIN_KINDS = (
    "slow",
    "stuck",
    "ended",
    "gone",
    "exists",
    "foreign",
    "credentials",
    "no-credentials",
    "nonsense",
    "rate",
    "queue",
    "unreachable",
    "unavailable",
)
"""After these an instance may be on its way, or is not ours: nothing is deleted."""


class CreateRequest(NamedTuple):
    """An instance to create: `body` is the REST JSON, `request` a UUID that stays the same when the
    same creation is asked for again.

    `instead_of` is the full name of one that was deleted for it, "" where none was.
    """

    project: str
    zones: tuple[str, ...]
    instance: str
    body: Mapping[str, Any]
    request: str
    instead_of: str = ""


class ZoneAttempt(NamedTuple):
    """What became of one zone: `happened` is one word (created, adopted, or the kind of the
    failure), `why` the reason.
    """

    zone: str
    outcome: str
    why: str


class CreatedInstance(NamedTuple):
    """Where the instance is, as the service tells it, and what was tried before."""

    name: str
    zone: str
    instance: RestResource
    attempts: tuple[ZoneAttempt, ...]


class InstanceNotCreated(CloudError):
    """No zone took the instance: `attempts` says what each one said, `left` names what may still be
    there.
    """

    def __init__(
        self, failure: CloudFailure, attempts: tuple[ZoneAttempt, ...], left: tuple[str, ...]
    ) -> None:
        super().__init__(failure)
        self.attempts = attempts
        self.still_running = left


def create_instance(
    notebooks: NotebooksApi,
    wanted: CreateRequest,
    pace: RetryPolicy,
    tell: ProgressCallback,
    serial: ConsoleReader,
) -> CreatedInstance:
    """Create an instance in the first zone that takes it and wait until it is ACTIVE; one of ours
    that is there already is adopted.

    Every listed zone is looked at before anything is asked for, so that a run that was cut short
    never ends with two. Raises Unplaced.
    """
    return _InstanceCreation(notebooks, wanted, pace, tell, serial).create()


def format_attempts(attempts: tuple[ZoneAttempt, ...]) -> str:
    """Return the attempts as lines of text: zone, what happened, why."""
    wide = max((len(one.zone) for one in attempts), default=0)
    word = max((len(one.outcome) for one in attempts), default=0)
    return "\n".join(
        f"{one.zone:<{wide}}  {one.outcome:<{word}}  {escape_line(one.why)}" for one in attempts
    )


class _InstanceCreation:
    def __init__(
        self,
        notebooks: NotebooksApi,
        wanted: CreateRequest,
        pace: RetryPolicy,
        tell: ProgressCallback,
        serial: ConsoleReader,
    ) -> None:
        self._notebooks = notebooks
        self._wanted = wanted
        self._pace = pace
        self._tell = tell
        self._serial = serial
        self._attempts: list[ZoneAttempt] = []
        self._failures: list[CloudFailure] = []
        self._may_hold_work = (
            False  # the zone at hand holds an instance that may carry somebody's work
        )

    def create(self) -> CreatedInstance:
        waiting = list(self._wanted.zones)
        try:
            standing = self._existing_zone()
        except CloudError as error:
            raise self._not_created(error.failure, stays="nothing was asked for") from error
        if standing is not None:
            waiting = [standing, *(zone for zone in waiting if zone != standing)]
        failure = None
        while waiting:
            zone = waiting.pop(0)
            try:
                return self._create_in_zone(zone)
            except CloudError as error:
                failure = error.failure
                self._failures.append(failure)
                self._record_attempt(zone, failure.kind, failure.what)
                self._clean_up(zone, failure)
                waiting = _remaining_zones(waiting, zone, failure)
        raise self._not_created(failure)

    def _existing_zone(self) -> str | None:
        """The zone in which the instance is, or is being made; raises Unplaced where one of another
        owner bears the name.
        """
        for zone in self._wanted.zones:
            found = self._notebooks.get(self._name(zone))
            if found is not None:
                if not self._is_ours(found):
                    raise CloudError(_foreign_instance(self._name(zone)))
                return zone
        return next(
            (
                zone
                for zone in self._wanted.zones
                if running_operation(self._notebooks, self._name(zone))
            ),
            None,
        )

    def _create_in_zone(self, zone: str) -> CreatedInstance:
        self._may_hold_work = False
        found = self._notebooks.get(self._name(zone))
        tries = 0
        while found is None:
            try:
                self._request_creation(zone, tries)
                break
            except CloudError as error:
                if error.failure.kind == "exists":
                    found = self._wait_until_visible(zone)
                    continue
                if error.failure.scope is not FailureScope.RETRY or tries >= (
                    error.failure.max_retries or 0
                ):
                    raise
                self._record_attempt(zone, error.failure.kind, f"{error.failure.what}; asked again")
                self._remove(zone)
                tries += 1
        if found is not None:
            return self._adopt(zone, found)
        active = instances.await_active(
            self._notebooks, self._name(zone), self._pace, self._tell, self._serial
        )
        return self._created(zone, active, "created", "it is ACTIVE")

    def _request_creation(self, zone: str, tries: int) -> None:
        self._tell(f"request: {self._wanted.instance} in {zone}")
        request = str(uuid5(_uuid(self._wanted.request), f"{zone}/{tries}"))
        parent = self._name(zone).partition("/instances/")[0]
        operation = self._notebooks.create(
            parent, self._wanted.instance, self._wanted.body, request
        )
        if operation.get("done") and self._notebooks.get(self._name(zone)) is None:
            # The service remembers this request from a run before; what became of it then is gone,
            # so this is another one.
            operation = self._notebooks.create(
                parent, self._wanted.instance, self._wanted.body, self._pace.new_uuid()
            )
        self._tell(f"capacity: waiting for {zone} ({operation['name'].rpartition('/')[2]})")
        wait_for_operation(self._notebooks, operation, self._pace, self._tell)

    def _wait_until_visible(self, zone: str) -> RestResource:
        """The instance that the service says exists: it may be a while until it is shown."""
        found = poll_until(
            lambda: self._notebooks.get(self._name(zone)), self._pace, self._pace.visible_s
        )
        if found is None:
            raise CloudError(_not_visible(self._name(zone), self._pace.visible_s))
        if not self._is_ours(found):
            raise CloudError(_foreign_instance(self._name(zone)))
        return found

    def _adopt(self, zone: str, found: RestResource) -> CreatedInstance:
        """Take an instance of ours as it stands: wait for what is at work on it, run what is wanted
        now, and see it ACTIVE.
        """
        name = self._name(zone)
        self._tell(
            f"adopt: {self._wanted.instance} is in {zone} already ({found.get('state', '')})"
        )
        if found.get("state") != "ACTIVE" and (latest := latest_operation(self._notebooks, name)):
            # Where its creation fails it never ran: then it is a shell, to be deleted. Everything
            # else may carry somebody's work.
            self._may_hold_work = latest.get("metadata", {}).get("verb") != "create"
            if not (self._may_hold_work and latest.get("done")):
                wait_for_operation(self._notebooks, latest, self._pace, self._tell)
        self._may_hold_work = True
        found = self._notebooks.get(name) or found
        if self._is_created_differently(found):
            raise CloudError(_created_differently(name))
        found = self._rerun(name, found)
        return self._created(zone, found, "adopted", "it is ours, from a run before")

    def _rerun(self, name: str, found: RestResource) -> RestResource:
        """See the instance ACTIVE with the metadata that is wanted now: its program runs at each
        start.
        """
        metadata = self._wanted.body.get("gceSetup", {}).get("metadata", {})
        if metadata.get(_RUN_KEY) != found.get("gceSetup", {}).get("metadata", {}).get(_RUN_KEY):
            if found.get("state") != "STOPPED":
                instances.start_instance(
                    self._notebooks, name, self._pace, self._tell, self._serial
                )
                instances.stop_instance(self._notebooks, name, self._pace, self._tell)
            body = {
                "labels": self._wanted.body.get("labels", {}),
                "gceSetup": {"metadata": metadata},
            }
            instances.update_instance(
                self._notebooks,
                name,
                body,
                "labels,gce_setup.metadata",
                self._pace,
                self._tell,
                self._serial,
            )
        instances.start_instance(self._notebooks, name, self._pace, self._tell, self._serial)
        return self._notebooks.get(name) or found

    def _is_created_differently(self, found: RestResource) -> bool:
        """Whether an instance was made with another image, disk, account or network than is wanted
        now.
        """
        there, wanted = (
            one.get("gceSetup", {}).get("metadata", {}).get(_CREATION_KEY)
            for one in (found, self._wanted.body)
        )
        return bool(there != wanted)

    def _clean_up(self, zone: str, failure: CloudFailure) -> None:
        """Delete the shell that a failed creation leaves; what may still work on is not touched.
        Raises Unplaced where something stays.
        """
        if self._may_hold_work or failure.kind in _UNCERTAIN_KINDS:
            raise self._not_created(
                failure, may_stay=failure.kind not in ("foreign", "exists"), zone=zone
            )
        try:
            self._remove(zone)
        except CloudError as error:
            raise self._not_created(
                replace(
                    failure,
                    why=f"{failure.why}\nand what it left could not be deleted: {error.what}",
                ),
                may_stay=True,
                zone=zone,
            ) from error

    def _remove(self, zone: str) -> None:
        found = self._notebooks.get(self._name(zone))
        if found is not None and self._is_ours(found):
            instances.delete_instance(self._notebooks, self._name(zone), self._pace, self._tell)

    def _not_created(
        self,
        failure: CloudFailure | None,
        *,
        may_stay: bool = False,
        zone: str = "",
        stays: str = "nothing was left running",
    ) -> InstanceNotCreated:
        """The end of it: what every zone said, each way out once, and what is left."""
        failure = failure or CloudFailure(
            FailureScope.FATAL, "no-zone", "no zone is named", "", "list zones under the target"
        )
        attempts, left = tuple(self._attempts), (self._name(zone),) if may_stay else ()
        if left:
            stays = (
                f"{left[0]} may be there and cost money: "
                f"{instances.gcloud_command('describe', left[0])}"
            )
        others = [one for one in self._failures if one.kind != failure.kind]
        several = len({one.zone for one in attempts}) > 1 and failure.scope in (
            FailureScope.ZONE,
            FailureScope.REGION,
        )
        what = (
            f"none of {len({one.zone for one in attempts})} zones had the machine"
            if several
            else failure.what
        )
        gone = (
            f"{self._wanted.instead_of} was deleted for this, and its disks with it"
            if self._wanted.instead_of
            else ""
        )
        why = dict.fromkeys(
            (
                format_attempts(attempts) if len(attempts) > 1 else "",
                *(one.why for one in others),
                failure.why,
                gone,
            )
        )
        hints = dict.fromkeys((*(one.hint for one in others), failure.hint, stays))
        return InstanceNotCreated(
            replace(failure, what=what, why="\n".join(filter(None, why)), hint="\n".join(hints)),
            attempts,
            left,
        )

    def _created(self, zone: str, found: RestResource, happened: str, why: str) -> CreatedInstance:
        """The end where there is one; what was tried before it is told as a table."""
        attempts = (*self._attempts, ZoneAttempt(zone, happened, why))
        if self._attempts:
            self._tell(f"zones tried:\n{format_attempts(attempts)}")
        return CreatedInstance(self._name(zone), zone, found, attempts)

    def _record_attempt(self, zone: str, happened: str, why: str) -> None:
        self._attempts.append(ZoneAttempt(zone, happened, why))
        self._tell(f"{zone}: {happened}: {escape_line(why)}")

    def _is_ours(self, found: RestResource) -> bool:
        labels, wanted = found.get("labels", {}), self._wanted.body.get("labels", {})
        return all(labels.get(key) == wanted.get(key) and key in labels for key in _OWNER_LABELS)

    def _name(self, zone: str) -> str:
        return f"projects/{self._wanted.project}/locations/{zone}/instances/{self._wanted.instance}"


def _remaining_zones(waiting: list[str], zone: str, failure: CloudFailure) -> list[str]:
    """The zones that are still worth a try after a failure, those first that the service named."""
    match failure.scope:
        case FailureScope.ZONE:
            named = [one for one in failure.zones_available if one in waiting]
            return [*named, *(one for one in waiting if one not in named)]
        case FailureScope.REGION:
            return [one for one in waiting if one.rpartition("-")[0] != zone.rpartition("-")[0]]
        case _:
            return []


def _foreign_instance(name: str) -> CloudFailure:
    hint = (
        "it is not touched. Rename the spec file or the target, or delete it "
        f"yourself:\n{instances.gcloud_command('delete', name)}"
    )
    why = f"{name} does not carry the labels of this spec, target and state"
    return CloudFailure(
        FailureScope.FATAL, "foreign", "an instance of this name exists that is not ours", why, hint
    )


def _created_differently(name: str) -> CloudFailure:
    hint = (
        "run the same command again: the plan then compares it with the spec, and says what is "
        "to be done"
    )
    why = (
        f"{name} was made by an earlier run with another image, disk, account or network (its "
        f"metadata key {_CREATION_KEY} says how)"
    )
    return CloudFailure(
        FailureScope.FATAL,
        "otherwise",
        "the instance that is there was made from another spec",
        why,
        hint,
    )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, text)


def _not_visible(name: str, waited_s: float) -> CloudFailure:
    hint = "run the same command again in a few minutes: it is looked for in every zone"
    why = f"{name} exists already, says Google Cloud, and was not found in {waited_s:.0f} seconds"
    return CloudFailure(
        FailureScope.FATAL, "stuck", "an instance of this name exists that is not shown", why, hint
    )
