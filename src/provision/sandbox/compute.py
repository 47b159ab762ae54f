"""The emulated part of Compute Engine, read only.

It has guest attributes, serial output, accelerator and machine types, and regional quotas.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from provision.facts import Facts
from provision.sandbox import hardware
from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument, not_found
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Route
from provision.sandbox.request_validation import first_or_empty
from provision.sandbox.store import Store

_PROJECT = "/compute/v1/projects/{project}"
_ZONE = _PROJECT + "/zones/{zone}"
_INSTANCE = _ZONE + "/instances/{instance}"
_QUOTA = 64.0


def compute_routes(store: Store, facts: Facts, faults: Faults) -> list[Route]:
    """Return the routes of the emulated methods of compute.v1."""
    compute = _Compute(store, facts, faults)
    return [
        ("GET", _INSTANCE + "/getGuestAttributes", compute.guest_attributes),
        ("GET", _INSTANCE + "/serialPort", compute.serial_output),
        ("GET", _ZONE + "/acceleratorTypes", compute.accelerator_types),
        ("GET", _ZONE + "/machineTypes", compute.machine_types),
        ("GET", _ZONE + "/machineTypes/{machine}", compute.machine_type),
        ("GET", _PROJECT + "/regions/{region}", compute.region),
        ("GET", _PROJECT, compute.project),
    ]


class _Compute:
    def __init__(self, store: Store, facts: Facts, faults: Faults) -> None:
        self._store, self._facts, self._faults = store, facts, faults

    def guest_attributes(self, request: Request, project: str, zone: str, instance: str) -> Any:
        name = self._instance_name(project, zone, instance)
        if self._faults.has("no-guest-attributes"):
            message = (
                "Constraint constraints/compute.disableGuestAttributesAccess violated for "
                f"project {project}. Guest attributes access is disabled."
            )
            raise ApiError(StatusCode.PERMISSION_DENIED, message, reason="forbidden")
        query = request.query.get("queryPath", "")
        namespace, _, key = query.partition("/")
        items = [
            {"namespace": space, "key": attribute, "value": value}
            for space, values in sorted(self._store.guest_attributes(name).items())
            for attribute, value in sorted(values.items())
            if namespace in ("", space) and key in ("", attribute)
        ]
        if not items:
            raise _no_resource(
                f"projects/{project}/zones/{zone}/instances/{instance}/guestAttributes/{query}"
            )
        return {
            "kind": "compute#guestAttributes",
            "queryPath": query,
            "queryValue": {"items": items},
        }

    def serial_output(self, request: Request, project: str, zone: str, instance: str) -> Any:
        name = self._instance_name(project, zone, instance)
        start = request.query.get("start", "0")
        if request.query.get("port", "1") != "1" or not start.lstrip("-").isdecimal():
            raise invalid_argument("Invalid value for field 'port' or 'start'")
        content, begin, end = self._store.serial(name, int(start))
        return {
            "kind": "compute#serialPortOutput",
            "contents": content.decode(errors="replace"),
            "start": str(begin),
            "next": str(end),
        }

    def accelerator_types(self, _request: Request, project: str, zone: str) -> Any:
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
        return {
            "kind": "compute#acceleratorTypeList",
            "id": f"projects/{project}/zones/{zone}/acceleratorTypes",
            "items": items,
        }

    def machine_type(self, _request: Request, project: str, zone: str, machine: str) -> Any:
        if machine not in self._facts.machines:
            raise _no_resource(f"projects/{project}/zones/{zone}/machineTypes/{machine}")
        return _machine_type(machine, zone, self._facts)

    def machine_types(self, _request: Request, project: str, zone: str) -> Any:
        return {
            "kind": "compute#machineTypeList",
            "id": f"projects/{project}/zones/{zone}/machineTypes",
            "items": [
                _machine_type(name, zone, self._facts) for name in sorted(self._facts.machines)
            ],
        }

    def region(self, _request: Request, project: str, region: str) -> Any:
        usage = self._gpu_usage(project, region)
        limit = 0.0 if self._faults.has("quota", region) else _QUOTA
        metrics = sorted({hardware.quota_metric(card) for card in self._facts.cards if card.gcp})
        quotas = [
            {"metric": metric, "limit": limit, "usage": float(usage[metric])} for metric in metrics
        ]
        return {
            "kind": "compute#region",
            "name": region,
            "status": "UP",
            "quotas": [{"metric": "CPUS", "limit": 2400.0, "usage": 0.0}, *quotas],
        }

    def project(self, _request: Request, project: str) -> Any:
        limit = 0.0 if self._faults.has("quota-global") else _QUOTA
        usage = float(self._gpu_usage(project, "").total())
        return {
            "kind": "compute#project",
            "name": project,
            "quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": limit, "usage": usage}],
        }

    def _instance_name(self, project: str, zone: str, instance: str) -> str:
        if (name := self._store.find_instance(project, zone, instance)) is None:
            raise _no_resource(f"projects/{project}/zones/{zone}/instances/{instance}")
        return name

    def _gpu_usage(self, project: str, region: str) -> Counter[str]:
        """Return the number of GPUs by quota metric in a project's instances ("": all regions)."""
        usage = Counter[str]()
        for name, record in self._store.snapshot()["instances"].items():
            _, owner, _, zone, _, _ = name.split("/")
            body = record["body"]
            accelerator = first_or_empty(body.get("gceSetup", {}).get("acceleratorConfigs"))
            card = hardware.card_of(accelerator, self._facts)
            in_region = owner == project and region in ("", hardware.region_of(zone))
            if card is not None and in_region and body["state"] != "STOPPED":
                usage[hardware.quota_metric(card)] += int(accelerator.get("coreCount", 0))
        return usage


def _no_resource(path: str) -> ApiError:
    return not_found(f"The resource '{path}' was not found")


def _machine_type(name: str, zone: str, facts: Facts) -> dict[str, object]:
    row = facts.machines[name]
    machine_type: dict[str, object] = {
        "kind": "compute#machineType",
        "name": name,
        "zone": zone,
        "guestCpus": row.vcpus,
        "memoryMb": round(row.ram_gb * 1024),
    }
    card = facts.card(row.card) if row.card else None
    if card and row.gpus >= 1:
        machine_type["accelerators"] = [
            {"guestAcceleratorType": card.gcp, "guestAcceleratorCount": int(row.gpus)}
        ]
    return machine_type
