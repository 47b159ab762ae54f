"""Creates an instance in the first of several zones that has the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from provision.adapters.google.creation_attempts import CreationAttempts, ZoneAttempt
from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, fatal_error
from provision.adapters.google.instance_commands import instance_command
from provision.adapters.google.instances import LINEAGE_LABEL, InstanceOperations
from provision.adapters.google.operations import latest_operation, running_operation
from provision.adapters.google.rest import RestResource
from provision.adapters.google.retry import poll_until
from provision.effects.google import CreateInstance

_OWNER_LABELS = ("provision", "provision-spec", "provision-target", LINEAGE_LABEL)
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
"""Failures after which an instance may still come up, or is another's: nothing is deleted."""


class CreatedInstance(NamedTuple):
    """A running instance: its full name, its zone, its description, and all attempts."""

    name: str
    zone: str
    instance: RestResource
    attempts: tuple[ZoneAttempt, ...]


def create_instance(operations: InstanceOperations, request: CreateInstance) -> CreatedInstance:
    """Create an instance in the first zone that takes it, and wait until it is ACTIVE.

    An instance of the same spec, target and state is adopted. Every zone is checked for one before
    the first request, so that an interrupted run never leads to a second instance.

    Raises:
        InstanceNotCreated: no zone took it, or an instance of another owner has this name.
    """
    return _InstanceCreation(operations, request).create()


class _InstanceCreation:
    def __init__(self, operations: InstanceOperations, request: CreateInstance) -> None:
        self._operations = operations
        self._notebooks = operations.notebooks
        self._policy = operations.policy
        self._progress = operations.progress
        self._request = request
        self._attempts = CreationAttempts(operations.progress, request.instead_of)
        self._may_hold_work = False
        """The instance in the current zone may contain somebody's work."""

    def create(self) -> CreatedInstance:
        zones = list(self._request.zones)
        try:
            existing_zone = self._find_existing_zone()
        except CloudError as error:
            raise self._attempts.error(error.failure, remains="nothing was requested") from error
        if existing_zone is not None:
            zones = [existing_zone, *(zone for zone in zones if zone != existing_zone)]
        hint = "list zones under `zones` in the target"
        failure = fatal_error("no-zone", "no zone is listed", "", hint).failure
        while zones:
            zone = zones.pop(0)
            try:
                return self._create_in_zone(zone)
            except CloudError as error:
                failure = error.failure
                self._operations.stockouts.record(
                    zone, self._request.instance, self._request.body, error
                )
                self._attempts.record_failure(zone, failure)
                self._clean_up(zone, failure)
                zones = _remaining_zones(zones, zone, failure)
        raise self._attempts.error(failure)

    def _find_existing_zone(self) -> str | None:
        """Return the zone in which the instance exists or is being created.

        Raises:
            CloudError: an instance of another owner has this name.
        """
        for zone in self._request.zones:
            instance = self._notebooks.get(self._full_name(zone))
            if instance is not None:
                self._require_own(zone, instance)
                return zone
        for zone in self._request.zones:
            if running_operation(self._notebooks, self._full_name(zone)):
                return zone
        return None

    def _create_in_zone(self, zone: str) -> CreatedInstance:
        self._may_hold_work = False
        instance = self._notebooks.get(self._full_name(zone))
        tries = 0
        if instance is None:
            self._operations.stockouts.require_capacity(
                zone, self._request.instance, self._request.body
            )
        while instance is None:
            try:
                self._request_creation(zone, tries)
                break
            except CloudError as error:
                failure = error.failure
                if failure.kind == "exists":
                    instance = self._wait_until_visible(zone)
                    continue
                if failure.scope is not FailureScope.RETRY or tries >= (failure.max_retries or 0):
                    raise
                self._attempts.record(zone, failure.kind, f"{failure.what}; trying again")
                self._remove(zone)
                tries += 1
        if instance is not None:
            return self._adopt(zone, instance)
        active = self._operations.await_active(self._full_name(zone))
        return self._finish_attempts(zone, active, "created", "it is ACTIVE")

    def _request_creation(self, zone: str, tries: int) -> None:
        request, name = self._request, self._full_name(zone)
        self._progress(f"request: {request.instance} in {zone}")
        parent = name.partition("/instances/")[0]
        request_id = str(uuid5(_to_uuid(request.request), f"{zone}/{tries}"))
        operation = self._notebooks.create(parent, request.instance, request.body, request_id)
        if operation.get("done") and self._notebooks.get(name) is None:
            # The service remembers this request from an earlier run whose instance is gone by now:
            # only a request with a new id creates one.
            operation = self._notebooks.create(
                parent, request.instance, request.body, self._policy.new_uuid()
            )
        self._progress(f"capacity: waiting for {zone} ({operation['name'].rpartition('/')[2]})")
        self._operations.wait_for(operation)

    def _wait_until_visible(self, zone: str) -> RestResource:
        """Return an instance that the service reports as existing but does not list at once."""
        name = self._full_name(zone)
        instance = poll_until(
            lambda: self._notebooks.get(name), self._policy, self._policy.visible_s
        )
        if instance is None:
            hint = "run the same command again in a few minutes; it searches every zone"
            why = (
                f"Google Cloud reports that {name} already exists, but did not "
                f"list it within {self._policy.visible_s:.0f} seconds"
            )
            what = "an instance with this name exists, but Google Cloud does not list it"
            raise fatal_error("stuck", what, why, hint)
        self._require_own(zone, instance)
        return instance

    def _adopt(self, zone: str, instance: RestResource) -> CreatedInstance:
        """Bring our existing instance to what is requested now, and ACTIVE."""
        name, state = self._full_name(zone), instance.get("state", "")
        self._progress(f"adopt: {self._request.instance} already exists in {zone} ({state})")
        if state != "ACTIVE" and (operation := latest_operation(self._notebooks, name)):
            # If its creation fails, it never ran and is an empty shell that can be deleted.
            # Anything else may contain somebody's work.
            self._may_hold_work = operation.get("metadata", {}).get("verb") != "create"
            if not (self._may_hold_work and operation.get("done")):
                self._operations.wait_for(operation)
        self._may_hold_work = True
        instance = self._notebooks.get(name) or instance
        requested = _metadata_of(self._request.body)
        if _metadata_of(instance).get(_CREATION_KEY) != requested.get(_CREATION_KEY):
            raise fatal_error(
                "otherwise",
                "the existing instance was created from a different spec",
                f"an earlier run created {name} with a different image, disk, account or "
                f"network (see its metadata key {_CREATION_KEY})",
                "run the same command again: the plan then compares it with the "
                "spec and shows the necessary changes",
            )
        instance = self._rerun(name, instance)
        return self._finish_attempts(zone, instance, "adopted", "an earlier run created it")

    def _rerun(self, name: str, instance: RestResource) -> RestResource:
        """Start the instance with the requested metadata: its program runs at each start."""
        metadata = _metadata_of(self._request.body)
        if metadata.get(_RUN_KEY) != _metadata_of(instance).get(_RUN_KEY):
            if instance.get("state") != "STOPPED":
                self._operations.start(name)
                self._operations.stop(name)
            body = {
                "labels": self._request.body.get("labels", {}),
                "gceSetup": {"metadata": metadata},
            }
            self._operations.update(name, body, "labels,gce_setup.metadata")
        self._operations.start(name)
        return self._notebooks.get(name) or instance

    def _clean_up(self, zone: str, failure: CloudFailure) -> None:
        """Delete the shell that a failed creation leaves.

        Raises:
            InstanceNotCreated: an instance stays, since it may still come up or contain work.
        """
        if self._may_hold_work or failure.kind in _UNCERTAIN_KINDS:
            stays = failure.kind not in ("foreign", "exists")
            raise self._attempts.error(failure, left=self._full_name(zone) if stays else "")
        try:
            self._remove(zone)
        except CloudError as error:
            why = (
                f"{failure.why}\n"
                f"and the resources that were left behind could not be deleted: {error.what}"
            )
            raise self._attempts.error(
                replace(failure, why=why), left=self._full_name(zone)
            ) from error

    def _remove(self, zone: str) -> None:
        instance = self._notebooks.get(self._full_name(zone))
        if instance is not None and self._is_own(instance):
            self._operations.delete(self._full_name(zone))

    def _finish_attempts(
        self, zone: str, instance: RestResource, outcome: str, why: str
    ) -> CreatedInstance:
        attempts = self._attempts.finish(zone, outcome, why)
        return CreatedInstance(self._full_name(zone), zone, instance, attempts)

    def _require_own(self, zone: str, instance: RestResource) -> None:
        if not self._is_own(instance):
            name = self._full_name(zone)
            raise fatal_error(
                "foreign",
                "an instance with this name exists, but it does not belong to this target",
                f"{name} does not have the labels of this spec, target and state",
                "provision does not change this instance. Rename the spec file or the target, "
                "or delete the instance yourself:\n"
                f"{instance_command('delete', name)}",
            )

    def _is_own(self, instance: RestResource) -> bool:
        labels, own_labels = instance.get("labels", {}), self._request.body.get("labels", {})
        return all(key in labels and labels[key] == own_labels.get(key) for key in _OWNER_LABELS)

    def _full_name(self, zone: str) -> str:
        request = self._request
        return f"projects/{request.project}/locations/{zone}/instances/{request.instance}"


def _metadata_of(instance: RestResource) -> RestResource:
    metadata: RestResource = instance.get("gceSetup", {}).get("metadata", {})
    return metadata


def _remaining_zones(zones: list[str], failed_zone: str, failure: CloudFailure) -> list[str]:
    """Return the zones worth a try after a failure, first those that the service suggested."""
    match failure.scope:
        case FailureScope.ZONE:
            suggested = [zone for zone in failure.zones_available if zone in zones]
            return [*suggested, *(zone for zone in zones if zone not in suggested)]
        case FailureScope.REGION:
            region = failed_zone.rpartition("-")[0]
            return [zone for zone in zones if zone.rpartition("-")[0] != region]
        case _:
            return []


def _to_uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, text)
