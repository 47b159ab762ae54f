"""Request body of an instance: REST JSON of Notebooks v2, from the spec and our choices."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.facts import Card, Facts
from provision.field_types import parse_duration, parse_size
from provision.kinds import Disk, WorkbenchTarget
from provision.targets.context import TargetContext
from provision.targets.workbench.resource_names import (
    ResourceNames,
    build_labels,
    get_workbench_target,
)

STARTUP_BEHAVIOR = "download_and_run_every_start"
GUEST_NAMESPACE = "provision"
_ENCRYPTION = {True: "CMEK", False: "GMEK"}
CREATION_METADATA_KEY = "provision-made"
"""The metadata key with the part of the creation body that never changes, because the service does
not report it faithfully.
"""
IMMUTABLE_SETUP_FIELDS = (
    "vmImage",
    "bootDisk",
    "dataDisks",
    "serviceAccounts",
    "networkInterfaces",
)
"""Fields below gceSetup that no update changes."""
IMMUTABLE_FIELDS = ("instanceOwners", "enableManagedEuc")
"""Fields of an instance that no update changes."""
STARTUP_PROGRAM = "program.sh"
"""The program that the instance runs at each start, below the instance's folder."""


class InstanceChoices(NamedTuple):
    """Choices that the spec leaves open: machine type, exact image, GPU (None: CPU), count."""

    machine_type: str
    image_project: str
    image: str
    gpu: Card | None
    gpu_count: int = 0


class AgentRun(NamedTuple):
    """One run on the device: nonce, sha256 of its document, digest of its declaration.

    `config_uri` is the document's address in the instance's metadata.
    """

    nonce: str
    config_sha256: str
    declared_digest: str
    config_uri: str = ""


def read_metadata(instance: Mapping[str, Any], key: str) -> str:
    """Return a value of an instance's metadata; "" if it has none."""
    return str(instance.get("gceSetup", {}).get("metadata", {}).get(key, ""))


def read_run(instance: Mapping[str, Any]) -> AgentRun | None:
    """Return the run in an instance's metadata; None if it has no run."""
    try:
        run = json.loads(read_metadata(instance, "provision-run"))
        return AgentRun(*(str(run[key]) for key in ("nonce", "digest", "holds", "document")))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def read_creation_body(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the unchangeable part of the body that an instance was created with; {} if unknown."""
    try:
        body = json.loads(read_metadata(instance, CREATION_METADATA_KEY))
    except (ValueError, RecursionError):
        return {}
    setup = body.get("gceSetup") if isinstance(body, dict) else None
    is_whole = isinstance(setup, dict) and isinstance(setup.get("vmImage"), dict)
    return body if is_whole else {}


def build_body(
    context: TargetContext,
    names: ResourceNames,
    choices: InstanceChoices,
    run: AgentRun,
    facts: Facts,
) -> dict[str, Any]:
    """Return the request body of the instance, the same for every zone.

    Keys are camelCase, enums and int64 are strings.
    """
    target = get_workbench_target(context)
    body: dict[str, Any] = {
        "labels": {**target.labels, **build_labels(context, names)},
        "gceSetup": _setup(target, names, choices, run, facts),
    }
    if target.access.owner is not None:
        body["instanceOwners"] = [target.access.owner]
    if target.managed_euc:
        body["enableManagedEuc"] = True
    body["gceSetup"]["metadata"][CREATION_METADATA_KEY] = _encode_creation_body(body)
    return body


def build_metadata(target: WorkbenchTarget, names: ResourceNames, run: AgentRun) -> dict[str, str]:
    """Return our metadata and the author's; the service accepts only strings as values."""
    idle = parse_duration(target.idle_shutdown) if target.idle_shutdown else None
    document = {
        "nonce": run.nonce,
        "digest": run.config_sha256,
        "holds": run.declared_digest,
        "document": f"{names.run_folder(run.nonce)}document.json",
    }
    limit = (
        {"provision-max-lifetime-seconds": str(parse_duration(target.max_lifetime))}
        if target.max_lifetime
        else {}
    )
    return {
        **target.metadata,
        **limit,
        "provision-run": json.dumps(document, sort_keys=True, separators=(",", ":")),
        "post-startup-script": names.folder + STARTUP_PROGRAM,
        "post-startup-script-behavior": STARTUP_BEHAVIOR,
        "enable-guest-attributes": "true",
        # An empty value disables the service's own default (three hours).
        "idle-timeout-seconds": "" if idle is None else str(idle),
    }


def _encode_creation_body(body: Mapping[str, Any]) -> str:
    lasting = {
        key: body["gceSetup"][key] for key in IMMUTABLE_SETUP_FIELDS if key in body["gceSetup"]
    }
    return json.dumps(
        {"gceSetup": lasting, **{key: body[key] for key in IMMUTABLE_FIELDS if key in body}},
        sort_keys=True,
        separators=(",", ":"),
    )


def _setup(
    target: WorkbenchTarget,
    names: ResourceNames,
    choices: InstanceChoices,
    run: AgentRun,
    facts: Facts,
) -> dict[str, Any]:
    setup: dict[str, Any] = {
        "machineType": choices.machine_type,
        "vmImage": {"project": choices.image_project, "name": choices.image},
        "bootDisk": _disk(target.boot_disk, facts.limits["boot disk"].value, facts),
        "dataDisks": [_disk(target.data_disk, facts.limits["data disk"].value, facts)],
        "shieldedInstanceConfig": {
            "enableSecureBoot": target.shielded.secure_boot,
            "enableVtpm": target.shielded.vtpm,
            "enableIntegrityMonitoring": target.shielded.integrity_monitoring,
        },
        "disablePublicIp": not target.public_ip,
        "metadata": build_metadata(target, names, run),
    }
    if choices.gpu is not None:
        setup["acceleratorConfigs"] = [
            {"type": choices.gpu.workbench, "coreCount": str(choices.gpu_count)}
        ]
        setup["gpuDriverConfig"] = {"enableGpuDriver": target.gpu_driver}
    if target.service_account is not None:
        setup["serviceAccounts"] = [{"email": target.service_account}]
    if target.network is not None or target.subnet is not None:
        setup["networkInterfaces"] = [_interface(target, names)]
    if target.tags:
        setup["tags"] = list(target.tags)
    if target.reservation is not None:
        setup["reservationAffinity"] = {
            "consumeReservationType": "RESERVATION_SPECIFIC",
            "key": "compute.googleapis.com/reservation-name",
            "values": [target.reservation],
        }
    return setup


def _disk(disk: Disk, default_gb: float, facts: Facts) -> dict[str, Any]:
    # The service counts a GB of a disk as 2^30 bytes (compute.v1 discovery document, Disk.sizeGb;
    # Compute Engine, About disks).
    size = math.ceil(parse_size(disk.size) / 2**30) if disk.size else int(default_gb)
    body: dict[str, Any] = {
        "diskSizeGb": str(size),
        "diskType": facts.disks[disk.type].api,
        "diskEncryption": _ENCRYPTION[disk.kms_key is not None],
    }
    return {**body, "kmsKey": disk.kms_key} if disk.kms_key is not None else body


def _interface(target: WorkbenchTarget, names: ResourceNames) -> dict[str, str]:
    interface = {}
    if target.network is not None:
        interface["network"] = (
            target.network
            if "/" in target.network
            else f"projects/{names.project}/global/networks/{target.network}"
        )
    if target.subnet is not None:
        region = names.zones[0].rpartition("-")[0]
        interface["subnet"] = (
            target.subnet
            if "/" in target.subnet
            else f"projects/{names.project}/regions/{region}/subnetworks/{target.subnet}"
        )
    return interface
