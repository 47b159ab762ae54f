"""The Notebooks service (v2) over a store, in JSON bodies; REST and gRPC both use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox import hardware, instance_bodies, instance_validation, operations
from provision.sandbox.api_errors import ApiError, StatusCode, error_info, not_found
from provision.sandbox.faults import Faults
from provision.sandbox.injected_faults import (
    creation_operation_error,
    raise_creation_fault,
    raise_request_fault,
)
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
        project, zone = self._place(parent)
        name = f"{parent}/instances/{instance_id}"
        raise_request_fault(self._faults, project, changes=name)
        instance_validation.check_instance_id(instance_id)
        requested = validate_body(body, "Instance", "instance")
        instance_validation.check_instance(requested, self._facts)

        def make(data: Body) -> Body:
            if self._faults.has("exists") and name not in data["instances"]:
                data["instances"][name] = _record(
                    instance_bodies.build_instance(
                        name, {"labels": {"owner": "somebody-else"}}, self._facts
                    ),
                    0.0,
                    active=0.0,
                )
            if name in data["instances"]:
                raise ApiError(
                    StatusCode.ALREADY_EXISTS,
                    f"Resource '{name}' already exists",
                    reason="alreadyExists",
                )
            raise_creation_fault(self._faults, zone, requested)
            setup = requested.get("gceSetup", {})
            error = creation_operation_error(
                self._faults, project, zone, setup, self._facts
            ) or hardware.hardware_error(setup, project, zone, self._facts)
            operation = operations.begin(
                data, "create", name, self._life.operation_end_time(), error=error
            )
            data["instances"][name] = _record(
                instance_bodies.build_instance(name, requested, self._facts),
                time.time() + self._life.delays.listed,
            )
            return operation

        return self._once(request_id, "create", name, make)

    def get(self, name: str) -> Body:
        """Return an instance.

        A new one is PROVISIONING at least once after its operation has ended.
        """
        raise_request_fault(self._faults, instance_validation.parse_resource_name(name)[0])
        if self._store.instance(name) is not None and self._faults.consume("hidden"):
            raise not_found(name)
        self._life.run_due_operations()
        with self._store.read_data() as data:
            record = self._known(data, name)
            body = dict(record["body"])
            if (
                record["active"] is not None
                and record["active"] <= time.time()
                and body["state"] == "PROVISIONING"
            ):
                with self._store.edit_data():
                    mark_active(record["body"])
            return body

    def list_instances(self, parent: str, size: int = 0, token: str = "") -> Body:
        """Return the instances of a zone, or with `locations/-` of all.

        Instances that are being created are not listed.
        """
        project, zone = instance_validation.parse_resource_name(parent)
        raise_request_fault(self._faults, project)
        with self._store.read_data() as data:
            young = {
                record["target"]
                for record in data["operations"].values()
                if record["verb"] == "create" and not record["done"]
            }
        self._life.run_due_operations()
        with self._store.read_data() as data:
            names = sorted(
                name
                for name, record in data["instances"].items()
                if name.split("/")[1] == project
                and zone in ("-", name.split("/")[3])
                and name not in young
                and record["listed"] <= time.time()
            )
            first = int(token) if token.isdecimal() else 0
            last = first + (size or len(names))
            page: Body = {
                "instances": [dict(data["instances"][name]["body"]) for name in names[first:last]]
            }
        return (
            {**page, **({"nextPageToken": str(last)} if last < len(names) else {})} if names else {}
        )

    def patch(self, name: str, body: Any, mask: str | Iterable[str], request_id: str = "") -> Body:
        """Start to update the paths of a mask."""
        raise_request_fault(
            self._faults, instance_validation.parse_resource_name(name)[0], changes=name
        )
        requested = validate_body(
            {key: value for key, value in body.items() if key != "name"}
            if isinstance(body, dict)
            else body,
            "Instance",
            "instance",
        )

        def change(data: Body) -> Body:
            record = self._known(data, name)
            paths = instance_validation.parse_update_mask(mask, requested, record["body"]["state"])
            if "labels" in paths:
                instance_validation.check_labels(requested.get("labels", {}))
            new = instance_bodies.update_instance(record["body"], requested, paths)
            operation = operations.begin(
                data,
                "update",
                name,
                self._life.operation_end_time(),
                error=self._unfit(name, record["body"], requested, new),
            )
            if operation["outcome"] is None:
                record["next"] = new
            return operation

        return self._once(request_id, "update", name, change)

    def resize(self, name: str, body: Any) -> Body:
        """Start to enlarge disks; a smaller size is refused."""
        raise_request_fault(
            self._faults, instance_validation.parse_resource_name(name)[0], changes=name
        )
        requested = validate_body(body, "ResizeDiskRequest", "request")
        with self._store.edit_data() as data:
            record = self._known(data, name)
            new = instance_bodies.resize_disks(record["body"], requested, self._facts)
            operation = operations.begin(data, "resize", name, self._life.operation_end_time())
            record["next"] = new
        return operations.to_json(operation)

    def delete(self, name: str, request_id: str = "") -> Body:
        """Start to delete an instance."""
        return self._move("delete", name, "STOPPING", request_id)

    def start(self, name: str) -> Body:
        """Start to start an instance."""
        return self._move("start", name, "STARTING")

    def stop(self, name: str) -> Body:
        """Start to stop an instance."""
        return self._move("stop", name, "STOPPING")

    def reset(self, name: str) -> Body:
        """Start to reset an instance: it boots again."""
        return self._move("reset", name, "STARTING")

    def diagnose(self, name: str, body: Any) -> Body:
        """Start to collect logs into a bucket; the sandbox writes the serial output."""
        raise_request_fault(
            self._faults, instance_validation.parse_resource_name(name)[0], changes=name
        )
        requested = validate_body(body, "DiagnoseInstanceRequest", "request").get(
            "diagnosticConfig", {}
        )
        bucket = str(requested.get("gcsBucket", "")).removeprefix("gs://").split("/")[0]
        if not bucket:
            raise ApiError(
                StatusCode.INVALID_ARGUMENT, "'request.diagnostic_config.gcs_bucket' is required"
            )
        with self._store.edit_data() as data:
            self._known(data, name)
            operation = operations.begin(data, "diagnose", name, self._life.operation_end_time())
        folder = str(requested.get("relativePath", "")).strip("/")
        path = "/".join(part for part in (folder, f"{name.rsplit('/', 1)[-1]}-serial.txt") if part)
        self._store.put_object(bucket, path, self._store.serial(name)[0], "text/plain")
        return operations.to_json(operation)

    def config(self, location: str) -> Body:
        """Return the images that a zone or region offers."""
        raise_request_fault(self._faults, instance_validation.parse_resource_name(location)[0])
        place = instance_validation.parse_resource_name(location)[1]
        zones = [place] if place.count("-") > 1 else [f"{place}-{letter}" for letter in "abcdf"]
        cards = sorted(
            {
                card.workbench
                for zone in zones
                for card, _ in hardware.offered_cards(zone, self._facts)
                if card.workbench
            }
        )
        families = [row for row in self._facts.images.values() if row.kind == "workbench"]
        images = [
            {
                "imageFamily": row.family,
                "imageName": "-".join(
                    (row.family, instance_bodies.newest_image_suffix(self._facts, row.family))
                ),
                "releaseName": "sandbox",
                "description": f"{row.os}, Python {row.python}",
            }
            for row in families
        ]
        supported = {"machineTypes": sorted(self._facts.machines), "acceleratorTypes": cards}
        return {
            "defaultValues": {"machineType": hardware.DEFAULT_MACHINE},
            "supportedValues": supported,
            "availableImages": images,
        }

    def operation(self, name: str) -> Body:
        """Return an operation."""
        raise_request_fault(self._faults, instance_validation.parse_resource_name(name)[0])
        self._life.run_due_operations()
        with self._store.edit_data() as data:
            if self._faults.has("lost-operation"):
                data["operations"].pop(name, None)
            return operations.to_json(operations.find(data, name))

    def operations(self, parent: str) -> Body:
        """Return the operations of a zone, or with `locations/-` of all."""
        raise_request_fault(self._faults, instance_validation.parse_resource_name(parent)[0])
        self._life.run_due_operations()
        prefix = parent.removesuffix("-") if parent.endswith("/-") else parent + "/"
        with self._store.read_data() as data:
            found = [
                operations.to_json(record)
                for name, record in sorted(data["operations"].items())
                if name.startswith(prefix)
            ]
        return {"operations": found} if found else {}

    def cancel(self, name: str) -> Body:
        """Request the cancellation of an operation."""
        with self._store.edit_data() as data:
            operations.cancel(data, name)
        return {}

    def _move(self, verb: str, name: str, through: str, request_id: str = "") -> Body:
        project, zone = instance_validation.parse_resource_name(name)
        raise_request_fault(self._faults, project, changes=name)

        def begin(data: Body) -> Body:
            body = self._known(data, name)["body"]
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
            operation = operations.begin(
                data, verb, name, self._life.operation_end_time(), error=error
            )
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

    def _unfit(
        self, name: str, body: Body, requested: Mapping[str, Any], new: Body
    ) -> ApiError | None:
        """Return the error of an update that fails after it has begun, or None."""
        if scripted_error := self._faults.consume_scripted_error(
            "update", instance_validation.parse_resource_name(name)[1]
        ):
            return scripted_error
        try:
            for key, value in requested.get("gceSetup", {}).get("metadata", {}).items():
                instance_validation.check_metadata(key, value, self._facts, update=True)
        except ApiError as failure:
            return ApiError(failure.code, f"failed updating GCE instance {name}: {failure.message}")
        old, machine = (
            hardware.machine_type_of(body["gceSetup"]),
            hardware.machine_type_of(new["gceSetup"]),
        )
        if old.startswith("g2-") != machine.startswith("g2-"):
            return ApiError(
                StatusCode.INVALID_ARGUMENT,
                f"Changing the machine type from {old} to {machine} is not supported",
            )
        return hardware.hardware_error(
            new["gceSetup"], *instance_validation.parse_resource_name(name), self._facts
        )

    def _known(self, data: Body, name: str) -> Body:
        if name not in data["instances"]:
            raise not_found(name)
        record: Body = data["instances"][name]
        return record

    def _place(self, parent: str) -> tuple[str, str]:
        project, zone = instance_validation.parse_resource_name(parent)
        if zone.count("-") < 2:
            info = error_info("LOCATION_INVALID", "notebooks.googleapis.com", {"location": zone})
            raise ApiError(
                StatusCode.INVALID_ARGUMENT, f"Location '{zone}' is not a zone", details=(info,)
            )
        return project, zone


def filter_unsupported_error() -> ApiError:
    """Return the error for a filter or an order of a list, whose real behavior is unknown."""
    return ApiError(
        StatusCode.UNIMPLEMENTED,
        "The sandbox neither filters nor orders a list; leave filter and orderBy out",
    )


def _record(body: Body, listed: float, active: float | None = None) -> Body:
    return {"body": body, "listed": listed, "active": active, "boots": False}
