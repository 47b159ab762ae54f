"""Validation of notebook runtime templates beyond the schema.

The limits are those of the aiplatform v1 discovery document and of Terraform's
google_colab_runtime_template; the service's own words for a refusal are not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox import hardware
from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.discovery import VERTEX, load_api_schema
from provision.sandbox.request_validation import to_snake_case
from provision.sandbox.vertex_validation import (
    check_disk_size,
    check_heading,
    check_machine_type,
    check_reservation,
    check_variables,
)

_NAME = re.compile(
    r"projects/([^/]+)/locations/([^/]+)"
    r"(?:/(?:notebookRuntimeTemplates|notebookRuntimes|notebookExecutionJobs|customJobs)/[^/]+"
    r"(?:/operations/[^/]+)?)?"
)
_ID = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_RELEASES = ("py310", "py311", "py312")
_DISK_SIZES_GB = (10, 65536)
_IDLE_S = (600, 86400)


def parse_template_name(name: str, facts: Facts) -> tuple[str, str]:
    """Return the project and the region of a full name; raises ApiError for an invalid one."""
    if (match := _NAME.fullmatch(name)) is None:
        raise invalid_argument(f"Malformed name: '{name}'")
    if match[2] not in facts.conditions["enterprise regions"].value.split():
        raise invalid_argument(f"Unsupported region for Vertex AI: {match[2]}")
    return match[1], match[2]


def check_template_id(text: str) -> None:
    """Raise ApiError for an invalid id; the service chooses one if it is left out."""
    if not _ID.fullmatch(text):
        raise invalid_argument(f"Invalid notebook_runtime_template_id '{text}'")


def check_template(body: Mapping[str, Any], region: str, facts: Facts) -> None:
    """Raise the first ApiError that the service would raise when a template is created."""
    check_heading(body)
    check_machine(body.get("machineSpec", {}), region, facts)
    check_disk(body.get("dataPersistentDiskSpec", {}), facts)
    idle = body.get("idleShutdownConfig")
    if idle is not None and not idle.get("idleShutdownDisabled"):
        seconds = float(idle.get("idleTimeout", "0s").removesuffix("s"))
        if not _IDLE_S[0] <= seconds <= _IDLE_S[1] or seconds % 60:
            raise invalid_argument(
                "'idle_shutdown_config.idle_timeout' must be whole minutes from 600s to 86400s"
            )
    check_software(body.get("softwareConfig", {}))
    check_network(body.get("networkSpec", {}), region)
    check_reservation(
        body.get("reservationAffinity"),
        "consumeReservationType",
        "RESERVATION_SPECIFIC",
        "reservation_affinity.",
    )


def check_software(software: Mapping[str, Any]) -> None:
    """Raise ApiError for an unknown image release or invalid variables."""
    release = software.get("colabImage", {}).get("releaseName", "")
    if release and release not in _RELEASES:
        raise invalid_argument(f"Colab image release '{release}' is not supported")
    check_variables(software.get("env", ()), "software_config.env")


def parse_template_mask(mask: str) -> tuple[str, ...]:
    """Return the paths of an update mask; raises ApiError for one that cannot be updated."""
    paths = tuple(to_snake_case(text.strip()) for text in mask.split(",") if text.strip())
    if not paths:
        raise invalid_argument("Field mask is required: update_mask")
    for path in paths:
        if path not in load_api_schema(VERTEX).mask_paths:
            raise invalid_argument(f"Field mask path '{path}' is not supported for update")
    return paths


def check_machine(machine: Mapping[str, Any], region: str, facts: Facts) -> None:
    """Raise ApiError for an unknown machine type, or an accelerator that it cannot have there."""
    name = machine.get("machineType", hardware.DEFAULT_MACHINE)
    card = check_machine_type(name, machine, facts, lambda card: card.workbench)
    if card is not None and hardware.zones_of(card, region) == ():
        raise invalid_argument(f"{card.workbench} is not available in region {region}")


def check_disk(disk: Mapping[str, Any], facts: Facts) -> None:
    """Raise ApiError for an unknown type of disk, or a size outside of the limits."""
    types = {row.api.lower().replace("_", "-") for row in facts.disks.values()}
    if "diskSizeGb" in disk and "diskType" not in disk:
        raise invalid_argument("'disk_type' is required with a size")
    if disk.get("diskType", "pd-standard") not in types:
        raise invalid_argument(f"Disk type '{disk['diskType']}' is not supported")
    check_disk_size(disk, "diskSizeGb", "disk_size_gb", _DISK_SIZES_GB)


def check_network(network: Mapping[str, Any], region: str) -> None:
    """Raise ApiError for a subnet of another region, or a network without its full name."""
    subnet = network.get("subnetwork", "")
    if subnet and f"/regions/{region}/subnetworks/" not in subnet:
        raise invalid_argument(f"Subnetwork '{subnet}' is not in region {region}")
    vpc = network.get("network", "")
    if vpc and not re.fullmatch(r"projects/[^/]+/global/networks/[^/]+", vpc):
        raise invalid_argument(f"Network '{vpc}' is not a full name")
