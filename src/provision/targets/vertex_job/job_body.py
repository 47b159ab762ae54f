"""Request body of a custom job: REST JSON of aiplatform v1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from provision.assets import find_asset
from provision.facts import Card
from provision.field_types import parse_duration, parse_size
from provision.targets.context import TargetContext
from provision.targets.vertex_job.resource_names import JobNames, build_labels, get_job_target

_DISPLAY_NAME_LENGTH = 128
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_DISKS = {"ssd": "pd-ssd", "standard": "pd-standard", "hyperdisk-balanced": "hyperdisk-balanced"}
_BOOT = "templates/job-boot.py"


def build_machine(context: TargetContext, machine_type: str, card: Card | None) -> dict[str, Any]:
    """Return the machine and disk of each replica, and how the job gets them."""
    target = get_job_target(context)
    machine: dict[str, Any] = {"machineType": machine_type}
    if card is not None:
        machine |= {"acceleratorType": card.vertex, "acceleratorCount": context.spec.gpu.count}
    if target.capacity.reservation is not None:
        machine["reservationAffinity"] = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": _RESERVATION_KEY,
            "values": [target.capacity.reservation],
        }
    disk = {
        "bootDiskType": _DISKS[target.boot_disk.type],
        "bootDiskSizeGb": math.ceil(parse_size(target.boot_disk.size) / 2**30),
    }
    return {"machineSpec": machine, "diskSpec": disk}


def build_job_spec(context: TargetContext, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job without what differs from run to run.

    The service repeats nothing: a failed verification would be paid for again and again.
    """
    target = get_job_target(context)
    container = {
        "imageUri": target.image,
        "command": ["python3", "-I", "-c", find_asset(_BOOT).read_text(encoding="utf-8")],
    }
    pool = {**machine, "containerSpec": container}
    pools = [{**pool, "replicaCount": "1"}]
    if target.replicas > 1:
        pools.append({**pool, "replicaCount": str(target.replicas - 1)})
    spec: dict[str, Any] = {"workerPoolSpecs": pools, "scheduling": _build_scheduling(context)}
    if target.service_account is not None:
        spec["serviceAccount"] = target.service_account
    if target.network is not None:
        spec["network"] = target.network
    if target.capacity.persistent_resource is not None:
        spec["persistentResourceId"] = target.capacity.persistent_resource
    return spec


def repeat_lost_machines(job_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job whose failed or lost machines the service starts again, each by itself."""
    scheduling = {
        key: value for key, value in job_spec["scheduling"].items() if key != "disableRetries"
    }
    return {**job_spec, "scheduling": scheduling}


def build_job_body(
    context: TargetContext,
    names: JobNames,
    job_spec: Mapping[str, Any],
    nonce: str,
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the body of one run; `run` names the objects that each replica starts from."""
    variable = {"name": "PROVISION_RUN", "value": json.dumps(run, sort_keys=True)}
    pools = [
        {**pool, "containerSpec": {**pool["containerSpec"], "env": [variable]}}
        for pool in job_spec["workerPoolSpecs"]
    ]
    return {
        "displayName": f"provision {context.address}"[:_DISPLAY_NAME_LENGTH],
        "labels": build_labels(context, names, nonce),
        "jobSpec": {**job_spec, "workerPoolSpecs": pools},
    }


def _build_scheduling(context: TargetContext) -> dict[str, Any]:
    target = get_job_target(context)
    scheduling: dict[str, Any] = {
        "timeout": f"{parse_duration(target.max_duration)}s",
        "disableRetries": True,
        "strategy": target.capacity.strategy.upper(),
    }
    if target.capacity.flex_start is not None:
        wait = f"{parse_duration(target.capacity.flex_start)}s"
        scheduling |= {"strategy": "FLEX_START", "maxWaitDuration": wait}
    return scheduling
