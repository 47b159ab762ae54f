"""The emulated Notebooks service (v2) over a store, in JSON bodies; REST and gRPC call it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox import hardware, instance_bodies, instance_validation, operations
from provision.sandbox.api_errors import (
    ApiError,
    StatusCode,
    error_info,
    invalid_argument,
    resource_not_found,
)
from provision.sandbox.faults import Faults
from provision.sandbox.injected_faults import (
    creation_operation_error,
    raise_creation_fault,
    raise_request_fault,
)
from provision.sandbox.instance_validation import parse_resource_name
from provision.sandbox.lifecycle import Lifecycle, mark_active
from provision.sandbox.request_validation import validate_body
from provision.sandbox.store import Store

Body = dict[str, Any]
_ALREADY = {"start": ("ACTIVE", "PROVISIONING"), "stop": ("STOPPED",)}


class NotebooksService:
    """The service over a store. Names are full resource names; methods raise ApiError to refuse."""

    def __init__(self, store: Store, facts: Facts, faults: Faults, life: Lifecycle) -> None:
        self._store, self._facts, self._faults, self._life = store, facts, faults, life

    def create(self, parent: str, instance_id: str, body: Any, request_id: str = "") -> Body:
        """Start to create an instance; the operation ends before the instance is ACTIVE."""
        project, zone = parse_resource_name(parent)
        if zone.count("-") < 2:
            info = error_info("LOCATION_INVALID", "notebooks.googleapis.com", {"location": zone})
            raise ApiError(
                StatusCode.INVALID_ARGUMENT, f"Location '{zone}' is not a zone", details=(info,)
            )
        name = f"{parent}/instances/{instance_id}"
        raise_request_fault(self._faults, project, changes=name)
        instance_validation.check_instance_id(instance_id)
        requested = validate_body(body, "Instance", "instance")
        instance_validation.check_instance(requested, self._facts)
        setup = requested.get("gceSetup", {})

        def make(data: Body) -> Body:
            instances = data["instances"]
            if self._faults.has("exists") and name not in instances:
                foreign = {"labels": {"owner": "somebody-else"}}
                instances[name] = self._new_record(name, foreign, 0.0, active=0.0)
            if name in instances:
                raise ApiError(
                    StatusCode.ALREADY_EXISTS,
                    f"Resource '{name}' already exists",
                    reason="alreadyExists",
                )
            raise_creation_fault(self._faults, zone, requested)
            error = creation_operation_error(self._faults, project, zone, setup, self._facts)
            error = error or hardware.hardware_error(setup, project, zone, self._facts)
            operation = self._begin(data, "create", name, error)
            listed = time.time() + self._life.delays.listed
            instances[name] = self._new_record(name, requested, listed)
            return operation

        return self._once(request_id, "create", name, make)

    def get(self, name: str) -> Body:
        """Return an instance.

        A new one is PROVISIONING at least once after its operation has ended.
        """
        self._admit(name)
        if self._store.instance(name) is not None and self._faults.consume("hidden"):
            raise resource_not_found(name)
        self._life.run_due_operations()
        with self._store.read_data() as data:
            return self._show(_instance(data, name))

    def _show(self, record: Body) -> Body:
        """Return the body of an instance; one that is due to be ACTIVE is from then on."""
        body = dict(record["body"])
        is_due = record["active"] is not None and record["active"] <= time.time()
        if is_due and body["state"] == "PROVISIONING":
            with self._store.edit_data():
                mark_active(record["body"])
        return body

    def list_instances(self, parent: str, size: int = 0, token: str = "") -> Body:
        """Return the instances of a zone, or with `locations/-` of all.

        Instances that are being created are not listed.
        """
        project, zone = self._admit(parent)
        with self._store.read_data() as data:
            being_created = {
                record["target"]
                for record in data["operations"].values()
                if record["verb"] == "create" and not record["done"]
            }
        self._life.run_due_operations()
        with self._store.read_data() as data:
            bodies = [
                self._show(record)
                for name, record in sorted(data["instances"].items())
                if _is_in(name, project, zone)
                and name not in being_created
                and record["listed"] <= time.time()
            ]
        if not bodies:
            return {}
        first = int(token) if token.isdecimal() else 0
        last = first + (size or len(bodies))
        page: Body = {"instances": bodies[first:last]}
        if last < len(bodies):
            page["nextPageToken"] = str(last)
        return page

    def patch(self, name: str, body: Any, mask: str | Iterable[str], request_id: str = "") -> Body:
        """Start to update the paths of a mask."""
        _, zone = self._admit(name, changes=True)
        if isinstance(body, dict):
            body = {key: value for key, value in body.items() if key != "name"}
        requested = validate_body(body, "Instance", "instance")

        def change(data: Body) -> Body:
            record = _instance(data, name)
            paths = instance_validation.parse_update_mask(mask, requested, record["body"]["state"])
            if "labels" in paths:
                instance_validation.check_labels(requested.get("labels", {}))
            new = instance_bodies.update_instance(record["body"], requested, paths)
            error = self._faults.consume_scripted_error("update", zone)
            error = error or self._update_error(name, record["body"], requested, new)
            operation = self._begin(data, "update", name, error)
            if error is None:
                record["next"] = new
            return operation

        return self._once(request_id, "update", name, change)

    def resize(self, name: str, body: Any) -> Body:
        """Start to enlarge disks; a smaller size is refused."""
        self._admit(name, changes=True)
        requested = validate_body(body, "ResizeDiskRequest", "request")

        def change(data: Body) -> Body:
            record = _instance(data, name)
            new = instance_bodies.resize_disks(record["body"], requested, self._facts)
            operation = self._begin(data, "resize", name)
            record["next"] = new
            return operation

        return self._once("", "resize", name, change)

    def delete(self, name: str, request_id: str = "") -> Body:
        """Start to delete an instance."""
        return self._change_state("delete", name, "STOPPING", request_id)

    def start(self, name: str) -> Body:
        """Start to start an instance."""
        return self._change_state("start", name, "STARTING")

    def stop(self, name: str) -> Body:
        """Start to stop an instance."""
        return self._change_state("stop", name, "STOPPING")

    def reset(self, name: str) -> Body:
        """Start to reset an instance: it boots again."""
        return self._change_state("reset", name, "STARTING")

    def diagnose(self, name: str, body: Any) -> Body:
        """Start to collect logs into a bucket; the sandbox writes the serial output."""
        self._admit(name, changes=True)
        config = validate_body(body, "DiagnoseInstanceRequest", "request").get(
            "diagnosticConfig", {}
        )
        bucket = str(config.get("gcsBucket", "")).removeprefix("gs://").split("/")[0]
        if not bucket:
            raise invalid_argument("'request.diagnostic_config.gcs_bucket' is required")
        folder = str(config.get("relativePath", "")).strip("/")
        path = f"{folder}/{name.rsplit('/', 1)[-1]}-serial.txt".lstrip("/")

        def collect(data: Body) -> Body:
            _instance(data, name)
            operation = self._begin(data, "diagnose", name)
            self._store.put_object(bucket, path, self._store.serial(name)[0], "text/plain")
            return operation

        return self._once("", "diagnose", name, collect)

    def config(self, location: str) -> Body:
        """Return the images that a zone or region offers."""
        _, area = self._admit(location)
        zones = [area] if area.count("-") > 1 else [f"{area}-{letter}" for letter in "abcdf"]
        cards = {
            card.workbench
            for zone in zones
            for card, _ in hardware.offered_cards(zone, self._facts)
            if card.workbench
        }
        images = [
            {
                "imageFamily": row.family,
                "imageName": instance_bodies.newest_image(self._facts, row.family),
                "releaseName": "sandbox",
                "description": f"{row.os}, Python {row.python}",
            }
            for row in self._facts.images.values()
            if row.kind == "workbench"
        ]
        return {
            "defaultValues": {"machineType": hardware.DEFAULT_MACHINE},
            "supportedValues": {
                "machineTypes": sorted(self._facts.machines),
                "acceleratorTypes": sorted(cards),
            },
            "availableImages": images,
        }

    def operation(self, name: str) -> Body:
        """Return an operation."""
        self._admit(name)
        self._life.run_due_operations()
        if self._faults.has("lost-operation"):
            with self._store.edit_data() as data:
                data["operations"].pop(name, None)
        with self._store.read_data() as data:
            return operations.to_json(operations.find(data, name))

    def operations(self, parent: str) -> Body:
        """Return the operations of a zone, or with `locations/-` of all."""
        project, zone = self._admit(parent)
        self._life.run_due_operations()
        with self._store.read_data() as data:
            listed = [
                operations.to_json(record)
                for name, record in sorted(data["operations"].items())
                if _is_in(name, project, zone)
            ]
        return {"operations": listed} if listed else {}

    def cancel(self, name: str) -> Body:
        """Request the cancellation of an operation."""
        with self._store.edit_data() as data:
            operations.cancel(data, name)
        return {}

    def _admit(self, name: str, *, changes: bool = False) -> tuple[str, str]:
        """Return the project and zone of a name. Raises ApiError for a fault of any request."""
        project, zone = parse_resource_name(name)
        raise_request_fault(self._faults, project, changes=name if changes else "")
        return project, zone

    def _begin(self, data: Body, verb: str, name: str, error: ApiError | None = None) -> Body:
        return operations.begin(data, verb, name, self._life.operation_end_time(), error)

    def _change_state(self, verb: str, name: str, through: str, request_id: str = "") -> Body:
        project, zone = self._admit(name, changes=True)

        def begin(data: Body) -> Body:
            body = _instance(data, name)["body"]
            error = None
            if verb == "start" and self._faults.has("stockout", zone):
                error = hardware.stockout_error(
                    project, zone, body["gceSetup"], self._facts, self._faults.locations("stockout")
                )
            if verb == "reset" and body["state"] != "ACTIVE":
                raise ApiError(
                    StatusCode.FAILED_PRECONDITION,
                    f"The instance must be ACTIVE to reset it, it is {body['state']}",
                )
            operation = self._begin(data, verb, name, error)
            operation["before"] = body["state"]
            operation["idle"] = body["state"] in _ALREADY.get(verb, ())
            if error is None and not operation["idle"]:
                body["state"] = through
            return operation

        return self._once(request_id, verb, name, begin)

    def _once(self, request_id: str, verb: str, name: str, begin: Callable[[Body], Body]) -> Body:
        """Begin an operation, or return the one that the same request id began."""
        with self._store.edit_data() as data:
            key = f"{verb} {name} {request_id}"
            if request_id and (known := data["operations"].get(data["requests"].get(key))):
                return operations.to_json(known)
            operation = begin(data)
            if request_id:
                data["requests"][key] = operation["name"]
            return operations.to_json(operation)

    def _update_error(
        self, name: str, body: Body, requested: Mapping[str, Any], new: Body
    ) -> ApiError | None:
        """Return the error of an update that fails after it has begun, or None."""
        try:
            for key, value in requested.get("gceSetup", {}).get("metadata", {}).items():
                instance_validation.check_metadata(key, value, self._facts, update=True)
        except ApiError as failure:
            return ApiError(failure.code, f"failed updating GCE instance {name}: {failure.message}")
        old = hardware.machine_type_of(body["gceSetup"])
        machine = hardware.machine_type_of(new["gceSetup"])
        if old.startswith("g2-") != machine.startswith("g2-"):
            return invalid_argument(
                f"Changing the machine type from {old} to {machine} is not supported"
            )
        return hardware.hardware_error(new["gceSetup"], *parse_resource_name(name), self._facts)

    def _new_record(
        self, name: str, requested: Body, listed: float, active: float | None = None
    ) -> Body:
        body = instance_bodies.build_instance(name, requested, self._facts)
        return {"body": body, "listed": listed, "active": active, "boots": False}


def _instance(data: Body, name: str) -> Body:
    if name not in data["instances"]:
        raise resource_not_found(name)
    record: Body = data["instances"][name]
    return record


def _is_in(name: str, project: str, zone: str) -> bool:
    """Return whether a resource is in a zone of a project, "-" for any zone."""
    _, owner, _, location, *_ = name.split("/")
    return owner == project and zone in ("-", location)


def filter_unsupported_error() -> ApiError:
    """Return the error for a filter or an order of a list, whose real behavior is unknown."""
    return ApiError(
        StatusCode.UNIMPLEMENTED,
        "The sandbox does not filter or sort lists; leave out filter and orderBy",
    )
