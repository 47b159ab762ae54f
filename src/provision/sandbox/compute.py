"""The required part of Compute Engine, read only.

It has guest attributes, serial output, accelerator and machine types, and regional quotas.
"""

from __future__ import annotations

from provision.facts import Facts
from provision.sandbox import hardware
from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Response, Router, json_response
from provision.sandbox.request_validation import first_or_empty
from provision.sandbox.store import Store

_PROJECT = "/compute/v1/projects/{project}"
_ZONE = _PROJECT + "/zones/{zone}"
_INSTANCE = _ZONE + "/instances/{instance}"
_PLENTY = 64.0


def add_routes(router: Router, store: Store, facts: Facts, faults: Faults) -> None:
    """Add the routes of these methods of compute.v1."""
    handlers = _Handlers(store, facts, faults)
    router.add("GET", _INSTANCE + "/getGuestAttributes", handlers.guest_attributes)
    router.add("GET", _INSTANCE + "/serialPort", handlers.serial)
    router.add("GET", _ZONE + "/acceleratorTypes", handlers.accelerators)
    router.add("GET", _ZONE + "/machineTypes", handlers.machines)
    router.add("GET", _ZONE + "/machineTypes/{machine}", handlers.machine)
    router.add("GET", _PROJECT + "/regions/{region}", handlers.region)
    router.add("GET", _PROJECT, handlers.whole)


class _Handlers:
    def __init__(self, store: Store, facts: Facts, faults: Faults) -> None:
        self._store, self._facts, self._faults = store, facts, faults

    def guest_attributes(
        self, request: Request, project: str, zone: str, instance: str
    ) -> Response:
        name = _instance_name(self._store, project, zone, instance)
        if self._faults.has("no-guest-attributes"):
            message = (
                "Constraint constraints/compute.disableGuestAttributesAccess violated for "
                f"project {project}. Guest attributes access is disabled."
            )
            raise ApiError(StatusCode.PERMISSION_DENIED, message, reason="forbidden")
        query = request.query.get("queryPath", "")
        namespace, _, key = query.partition("/")
        attributes = self._store.guest_attributes(name)
        items = [
            {"namespace": space, "key": attribute, "value": value}
            for space, values in sorted(attributes.items())
            for attribute, value in sorted(values.items())
            if namespace in ("", space) and key in ("", attribute)
        ]
        if not items:
            raise _not_found(
                "The resource "
                f"'projects/{project}/zones/{zone}/instances/{instance}/guestAttributes/{query}' "
                "was not found"
            )
        return json_response(
            {"kind": "compute#guestAttributes", "queryPath": query, "queryValue": {"items": items}}
        )

    def serial(self, request: Request, project: str, zone: str, instance: str) -> Response:
        name = _instance_name(self._store, project, zone, instance)
        start = request.query.get("start", "0")
        if request.query.get("port", "1") != "1" or not start.lstrip("-").isdecimal():
            raise invalid_argument("Invalid value for field 'port' or 'start'")
        content, begin, end = self._store.serial(name, int(start))
        text = content.decode(errors="replace")
        return json_response(
            {
                "kind": "compute#serialPortOutput",
                "contents": text,
                "start": str(begin),
                "next": str(end),
            }
        )

    def accelerators(self, _request: Request, project: str, zone: str) -> Response:
        items = [
            {
                "kind": "compute#acceleratorType",
                "name": card.gcp,
                "description": card.name,
                "maximumCardsPerInstance": maximum,
                "zone": zone,
            }
            for card, maximum in hardware.offered_cards(zone, self._facts)
        ]
        return json_response(
            {
                "kind": "compute#acceleratorTypeList",
                "id": f"projects/{project}/zones/{zone}/acceleratorTypes",
                "items": items,
            }
        )

    def machine(self, _request: Request, project: str, zone: str, machine: str) -> Response:
        if machine not in self._facts.machines:
            raise _not_found(
                f"The resource 'projects/{project}/zones/{zone}/machineTypes/{machine}' "
                "was not found"
            )
        return json_response(_machine(machine, zone, self._facts))

    def machines(self, _request: Request, project: str, zone: str) -> Response:
        items = [_machine(name, zone, self._facts) for name in sorted(self._facts.machines)]
        return json_response(
            {
                "kind": "compute#machineTypeList",
                "id": f"projects/{project}/zones/{zone}/machineTypes",
                "items": items,
            }
        )

    def region(self, _request: Request, project: str, region: str) -> Response:
        usage = _usage(self._store, self._facts, project, region)
        is_exhausted = self._faults.has("quota", region)
        quotas = [
            {
                "metric": metric,
                "limit": 0.0 if is_exhausted else _PLENTY,
                "usage": usage.get(metric, 0.0),
            }
            for metric in _metrics(self._facts)
        ]
        return json_response(
            {
                "kind": "compute#region",
                "name": region,
                "status": "UP",
                "quotas": [{"metric": "CPUS", "limit": 2400.0, "usage": 0.0}, *quotas],
            }
        )

    def whole(self, _request: Request, project: str) -> Response:
        limit = 0.0 if self._faults.has("quota-global") else _PLENTY
        usage = sum(_usage(self._store, self._facts, project, "").values())
        return json_response(
            {
                "kind": "compute#project",
                "name": project,
                "quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": limit, "usage": usage}],
            }
        )


def _instance_name(store: Store, project: str, zone: str, instance: str) -> str:
    if (name := store.find_instance(project, zone, instance)) is None:
        raise _not_found(
            f"The resource 'projects/{project}/zones/{zone}/instances/{instance}' was not found"
        )
    return name


def _not_found(message: str) -> ApiError:
    return ApiError(StatusCode.NOT_FOUND, message, reason="notFound")


def _machine(name: str, zone: str, facts: Facts) -> dict[str, object]:
    row = facts.machines[name]
    card = facts.card(row.card) if row.card else None
    accelerators = (
        [{"guestAcceleratorType": card.gcp, "guestAcceleratorCount": int(row.gpus)}]
        if card and row.gpus >= 1
        else []
    )
    machine_type: dict[str, object] = {
        "kind": "compute#machineType",
        "name": name,
        "zone": zone,
        "guestCpus": row.vcpus,
        "memoryMb": round(row.ram_gb * 1024),
    }
    return {**machine_type, "accelerators": accelerators} if accelerators else machine_type


def _metrics(facts: Facts) -> list[str]:
    return sorted({hardware.quota_metric(card) for card in facts.cards if card.gcp})


def _usage(store: Store, facts: Facts, project: str, region: str) -> dict[str, float]:
    """Return the number of GPUs of each type in a project's instances, in a region ("": all)."""
    usage: dict[str, float] = {}
    for name, record in store.snapshot()["instances"].items():
        _, owner, _, zone, _, _ = name.split("/")
        accelerator = first_or_empty(record["body"].get("gceSetup", {}).get("acceleratorConfigs"))
        card = hardware.card_of(accelerator, facts)
        if (
            card is None
            or owner != project
            or region not in ("", hardware.region_of(zone))
            or record["body"]["state"] == "STOPPED"
        ):
            continue
        metric = hardware.quota_metric(card)
        usage[metric] = usage.get(metric, 0.0) + float(accelerator.get("coreCount", 0))
    return usage
