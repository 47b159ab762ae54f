"""Validation of custom jobs beyond the schema.

Groups and limits are those of the aiplatform v1 discovery document and of the documentation of
training; the service's own words for most refusals are not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from provision.facts import Facts
from provision.facts.job_machines import is_job_machine, list_training_cards
from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.vertex_validation import (
    check_disk_size,
    check_heading,
    check_machine_type,
    check_reservation,
    check_variables,
)

_MAX_POOLS = 4
_DISK_SIZES_GB = (100, 64000)
_DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_HYPERDISK_MACHINES = ("a3-ultragpu-8g", "a4-highgpu-8g")
_MAX_FLEX_START_S = 7 * 86400
_IMAGE = re.compile(
    r"((docker\.io|[a-z0-9-]+-docker\.pkg\.dev|([a-z]+\.)?gcr\.io)/)?"
    r"[a-z0-9_-]+(/[a-z0-9][a-z0-9._-]*)*(:[\w.-]+)?"
)
_BY_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")
_NETWORK = re.compile(r"projects/[0-9]+/global/networks/[^/]+")


def check_custom_job(body: Mapping[str, Any], region: str, facts: Facts) -> None:
    """Raise the first ApiError that the service would raise when a job is created.

    Jobs that the sandbox does not run are refused as not implemented.
    """
    check_heading(body)
    spec = body.get("jobSpec", {})
    pools = spec.get("workerPoolSpecs", [])
    if not 0 < len(pools) <= _MAX_POOLS:
        raise invalid_argument(f"'worker_pool_specs' must have from 1 to {_MAX_POOLS} pools")
    if int(pools[0].get("replicaCount", 0)) != 1:
        raise invalid_argument("The first worker pool must have a replica_count of 1")
    for number, pool in enumerate(pools):
        if pool or number == 0:
            _check_pool(pool, region, facts)
    _check_scheduling(spec.get("scheduling", {}), pools, facts)
    network = spec.get("network", "")
    if network and not _NETWORK.fullmatch(network):
        raise invalid_argument(f"Network '{network}' is not a full name with a project number")
    names = [pool.get("machineSpec", {}).get("acceleratorType", "") for pool in pools]
    exceptions = facts.job_properties["peering exceptions"].value.split()
    if network and any(card.vertex in names for card in facts.cards if card.name in exceptions):
        raise invalid_argument("VPC Peering is not supported with this accelerator")


def _check_pool(pool: Mapping[str, Any], region: str, facts: Facts) -> None:
    if int(pool.get("replicaCount", 0)) < 1:
        raise invalid_argument("'replica_count' must be at least 1")
    if ("containerSpec" in pool) == ("pythonPackageSpec" in pool):
        raise invalid_argument("Exactly one of container_spec, python_package_spec must be set")
    if "pythonPackageSpec" in pool:
        raise ApiError(
            StatusCode.UNIMPLEMENTED, "The sandbox does not run Python packages; use a container"
        )
    container = pool["containerSpec"]
    image = container.get("imageUri", "")
    digest = _BY_DIGEST.search(image)
    if not _IMAGE.fullmatch(image[: digest.start()] if digest else image):
        raise invalid_argument(f"Image '{image}' is neither in Artifact Registry nor on Docker Hub")
    if not container.get("command"):
        raise ApiError(
            StatusCode.UNIMPLEMENTED, "The sandbox runs no images; set the container's command"
        )
    check_variables(container.get("env", ()), "env")
    machine = pool.get("machineSpec", {})
    _check_machine(machine, region, facts)
    _check_disk(pool.get("diskSpec", {}), machine["machineType"])


def _check_machine(machine: Mapping[str, Any], region: str, facts: Facts) -> None:
    name = machine.get("machineType", "")
    card = check_machine_type(
        name,
        machine,
        facts,
        lambda card: card.vertex,
        lambda known: is_job_machine(known, facts),
    )
    if card is None:
        return
    if card.name not in list_training_cards(region, facts):
        raise invalid_argument(
            f"Accelerator type {card.vertex} is not supported in region {region}"
        )
    affinity = machine.get("reservationAffinity")
    check_reservation(affinity, "reservationAffinityType", "SPECIFIC_RESERVATION")


def _check_disk(disk: Mapping[str, Any], machine_type: str) -> None:
    kind = disk.get("bootDiskType", "")
    needs_hyperdisk = machine_type in _HYPERDISK_MACHINES
    if kind and (kind not in _DISK_TYPES or needs_hyperdisk != (kind == "hyperdisk-balanced")):
        raise invalid_argument(f"Disk type '{kind}' cannot be used with '{machine_type}'")
    check_disk_size(disk, "bootDiskSizeGb", "boot_disk_size_gb", _DISK_SIZES_GB)


def _check_scheduling(
    scheduling: Mapping[str, Any], pools: list[Mapping[str, Any]], facts: Facts
) -> None:
    is_flex = scheduling.get("strategy") == "FLEX_START"
    if "maxWaitDuration" in scheduling and not is_flex:
        raise invalid_argument("'max_wait_duration' is only supported with FLEX_START")
    if not is_flex:
        return
    if float(scheduling.get("timeout", "604800s")[:-1]) > _MAX_FLEX_START_S:
        raise invalid_argument("'timeout' must be at most 7 days with FLEX_START")
    machines = [pool["machineSpec"] for pool in pools if pool]
    if any(machine != machines[0] for machine in machines):
        raise invalid_argument("FLEX_START needs the same machine in all worker pools")
    names = facts.job_properties["flex start GPUs"].value.split()
    allowed = {card.vertex for card in facts.cards if card.name in names}
    if any(machine.get("acceleratorType") not in allowed for machine in machines):
        raise invalid_argument("FLEX_START is not supported for this accelerator")
    if any("reservationAffinity" in machine for machine in machines):
        raise invalid_argument("FLEX_START cannot use a reservation")
