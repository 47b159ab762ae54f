"""Bodies of instances: creation with the service's defaults, and updates."""

from __future__ import annotations

import copy
import uuid
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox.api_errors import invalid_argument
from provision.sandbox.hardware import DEFAULT_MACHINE, region_of
from provision.sandbox.request_validation import first_or_empty, to_camel_case, value_at_path
from provision.sandbox.store import utc_timestamp

Body = dict[str, Any]
_SERVICE_TAGS = ("deeplearning-vm", "notebook-instance")
_MAPS = ("labels", "gce_setup.metadata")


def build_instance(name: str, requested: Mapping[str, Any], facts: Facts) -> Body:
    """Return a new instance: the request, defaults, and the fields that the service adds.

    The tags, labels and keys are those that Terraform's provider is known to ignore;
    `systemMetadata` repeats the service's own keys.
    """
    body: Body = copy.deepcopy(dict(requested))
    project, zone = name.split("/")[1], name.split("/")[3]
    setup = body.setdefault("gceSetup", {})
    setup.setdefault("machineType", DEFAULT_MACHINE)
    _add_disk_defaults(setup, facts)
    number = str(zlib.crc32(project.encode()))
    added = _service_metadata(name, zone)
    setup["metadata"] = {
        **added,
        "idle-timeout-seconds": "10800",
        "enable-guest-attributes": "true",
        "report-event-health": "true",
        **setup.get("metadata", {}),
    }
    setup["systemMetadata"] = added
    _add_service_tags(setup)
    setup["instanceId"] = str(uuid.uuid4().int % 10**19)
    account = first_or_empty(setup.get("serviceAccounts")).get(
        "email", f"{number}-compute@developer.gserviceaccount.com"
    )
    setup["serviceAccounts"] = [
        {"email": account, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    ]
    if "containerImage" not in setup:
        setup["vmImage"] = _image(setup.get("vmImage"), facts)
    owned = {
        "consumer-project-id": project,
        "consumer-project-number": number,
        "notebooks-product": "workbench-instances",
        "resource-name": name.rsplit("/", 1)[-1],
    }
    body["labels"] = {**body.get("labels", {}), **owned}
    stamp = utc_timestamp()
    body.update(
        name=name,
        id=str(uuid.uuid4()),
        creator="sandbox@example.com",
        createTime=stamp,
        updateTime=stamp,
        state="PROVISIONING",
        satisfiesPzs=True,
    )
    return body


_ONE_OF = {"vmImage": "containerImage", "containerImage": "vmImage"}
"""An instance has one image: setting one takes the other away, as with every oneof of a proto."""


def update_instance(
    body: Mapping[str, Any], requested: Mapping[str, Any], paths: Iterable[str]
) -> Body:
    """Return an instance with the paths of a mask taken from a request.

    Labels and metadata are merged, and a key with value "" is removed.
    """
    new: Body = copy.deepcopy(dict(body))
    for path in paths:
        *above, last = [to_camel_case(part) for part in path.split(".")]
        value = copy.deepcopy(value_at_path(requested, path))
        if path in _MAPS:
            holder = new.setdefault("gceSetup", {}) if above else new
            holder[last] = {
                key: text
                for key, text in {**holder.get(last, {}), **(value or {})}.items()
                if text != ""
            }
        else:
            _put(new, [*above, last], value)
            kind = next((part for part in (*above, last) if part in _ONE_OF), None)
            if kind is not None:
                new["gceSetup"].pop(_ONE_OF[kind] if new["gceSetup"].get(kind) else kind, None)
    if "gce_setup.tags" in paths:
        _add_service_tags(new["gceSetup"])
    return {**new, "updateTime": utc_timestamp()}


def resize_disks(body: Mapping[str, Any], requested: Mapping[str, Any], facts: Facts) -> Body:
    """Return an instance with resized disks.

    Raises:
        ApiError: a disk does not exist, or would become smaller.
    """
    if not requested:
        raise invalid_argument("One of 'request.boot_disk' and 'request.data_disk' is required")
    new: Body = copy.deepcopy(dict(body))
    largest = int(facts.limits["largest disk"].value)
    for field, disk in (
        ("bootDisk", new["gceSetup"]["bootDisk"]),
        ("dataDisk", new["gceSetup"]["dataDisks"][0]),
    ):
        if field in requested:
            size, new_size = int(disk["diskSizeGb"]), int(requested[field].get("diskSizeGb", 0))
            if not size < new_size <= largest:
                raise invalid_argument(
                    f"The disk can only grow: from {size} GB, to at most {largest} GB; "
                    f"{new_size} GB were requested"
                )
            disk["diskSizeGb"] = str(new_size)
    return {**new, "updateTime": utc_timestamp()}


def _add_service_tags(setup: Body) -> None:
    setup["tags"] = list(dict.fromkeys([*setup.get("tags", ()), *_SERVICE_TAGS]))


def _put(body: Body, parts: list[str], value: Any) -> None:
    *above, last = parts
    holder: Any = body
    for part in above:
        holder = holder.setdefault(part, [{}] if part == "acceleratorConfigs" else {})
        holder = holder[0] if isinstance(holder, list) else holder
    if value in (None, "", False, [], {}):
        holder.pop(last, None)
    else:
        holder[last] = value


def _add_disk_defaults(setup: Body, facts: Facts) -> None:
    defaults = {"diskType": "PD_BALANCED", "diskEncryption": "GMEK"}
    boot_size = str(int(facts.limits["boot disk"].value))
    data_size = str(int(facts.limits["data disk"].value))
    data_disk = first_or_empty(setup.get("dataDisks"))
    setup["bootDisk"] = {"diskSizeGb": boot_size, **defaults, **setup.get("bootDisk", {})}
    setup["dataDisks"] = [{"diskSizeGb": data_size, **defaults, **data_disk}]


def _image(requested: Mapping[str, Any] | None, facts: Facts) -> Body:
    images = [row for row in facts.images.values() if row.kind == "workbench"]
    default = next((row.family for row in images if row.legacy), images[0].family)
    image = dict(requested or {"project": images[0].project, "family": default})
    image_id = image.get("name") or newest_image(facts, str(image["family"]))
    return {**image, "imageId": image_id, "imageDescription": f"{image_id} (sandbox)"}


def newest_image(facts: Facts, family: str) -> str:
    """Return the name of a family's newest image in the facts."""
    row = facts.images.get(family)
    days = [
        change.since
        for change in facts.image_changes
        if change.family == family and change.since.isdigit()
    ]
    first = (row.released if row else "").replace("-", "")
    day = max([*days, first.ljust(6, "0").ljust(8, "1")[:8]])
    return f"{family}-{day}-1200-rc0"


def _service_metadata(name: str, zone: str) -> dict[str, str]:
    return {
        "framework": "PyTorch/TensorFlow",
        "instance-region": region_of(zone),
        "notebooks-api": "PROD",
        "notebooks-api-version": "v2",
        "proxy-mode": "service_account",
        "resource-url": f"//notebooks.googleapis.com/{name}",
        "service-account-mode": "true",
        "shutdown-script": "/opt/deeplearning/bin/shutdown_script.sh",
        "title": "Workbench",
        "version": "sandbox",
        "version-description": "an instance of the sandbox",
    }
