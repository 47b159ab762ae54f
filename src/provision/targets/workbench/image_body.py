"""Request body of an execution job on the image and machine of an instance (aiplatform v1)."""

from __future__ import annotations

import math
from typing import Any

from provision.facts import Card, Facts
from provision.field_types import parse_duration, parse_size
from provision.kinds import WorkbenchTarget
from provision.targets.context import TargetContext
from provision.targets.workbench.choices import ImageChoice
from provision.targets.workbench.resource_names import (
    ResourceNames,
    build_labels,
    get_workbench_target,
)

_INSTALL_S = 45 * 60
"""Seconds of a job in addition to the verification, for boot and packages. Our choice."""
_DISPLAY_NAME_LENGTH = 128
_KERNEL = "python3"
"""A job on an image of Workbench always names its kernel: gcloud tells its jobs by that field."""


def job_timeout_s(context: TargetContext) -> int:
    """Return the seconds after which the service ends the job."""
    return _INSTALL_S + parse_duration(context.spec.verify.timeout)


def build_environment_body(
    context: TargetContext,
    region: str,
    machine_type: str,
    card: Card | None,
    image: ImageChoice,
    facts: Facts,
) -> dict[str, Any]:
    """Return the machine, disk, network and image of the job: those of the instance."""
    target = get_workbench_target(context)
    machine: dict[str, Any] = {"machineType": machine_type}
    if card is not None:
        machine |= {"acceleratorType": card.workbench, "acceleratorCount": context.spec.gpu.count}
    size = target.data_disk.size
    size_gb = math.ceil(parse_size(size) / 2**30) if size else int(facts.limits["data disk"].value)
    disk_type = facts.disks[target.data_disk.type].api.lower().replace("_", "-")
    body: dict[str, Any] = {
        "customEnvironmentSpec": {
            "machineSpec": machine,
            "persistentDiskSpec": {"diskType": disk_type, "diskSizeGb": str(size_gb)},
            "networkSpec": _network(target, region),
            "shieldedInstanceConfig": {
                "enableSecureBoot": target.shielded.secure_boot,
                "enableVtpm": target.shielded.vtpm,
                "enableIntegrityMonitoring": target.shielded.integrity_monitoring,
            },
        },
        "workbenchRuntime": {"vmImage": {"project": image.project, "name": image.name}},
        "kernelName": _KERNEL,
        "serviceAccount": target.service_account,
        "executionTimeout": f"{job_timeout_s(context)}s",
    }
    if target.data_disk.kms_key is not None:
        body["encryptionSpec"] = {"kmsKeyName": target.data_disk.kms_key}
    return body


def build_job_body(
    context: TargetContext, names: ResourceNames, environment: dict[str, Any], folder: str
) -> dict[str, Any]:
    """Return the body of a job whose notebook and output are in `folder` (gs://.../)."""
    return {
        **environment,
        "displayName": f"provision {context.address} on its image"[:_DISPLAY_NAME_LENGTH],
        "labels": {**get_workbench_target(context).labels, **build_labels(context, names)},
        "gcsNotebookSource": {"uri": f"{folder}notebook.ipynb"},
        "gcsOutputUri": f"{folder}executed/",
    }


def _network(target: WorkbenchTarget, region: str) -> dict[str, Any]:
    """Return the declared network; without one the service's own, with internet if it is needed.

    Cloud NAT is that of a declared subnet.
    """
    has_own = target.network is not None or target.subnet is not None
    network: dict[str, Any] = {
        "enableInternetAccess": target.public_ip or (target.nat and not has_own)
    }
    if target.network is not None:
        parent = f"projects/{target.project}/global/networks"
        network["network"] = _full_name(target.network, parent)
    if target.subnet is not None:
        parent = f"projects/{target.project}/regions/{region}/subnetworks"
        network["subnetwork"] = _full_name(target.subnet, parent)
    return network


def _full_name(name: str, parent: str) -> str:
    return name if "/" in name else f"{parent}/{name}"
