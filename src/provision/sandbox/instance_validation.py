"""Validation of instances beyond the schema: names, metadata, labels, counts, disks and masks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument
from provision.sandbox.discovery import load_api_schema
from provision.sandbox.request_validation import to_snake_case, value_at_path

_ID = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)(?:/(?:instances|operations)/[^/]+)?")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_METADATA = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TAG = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SINGLE = ("acceleratorConfigs", "dataDisks", "serviceAccounts", "networkInterfaces")
ENABLE_ONLY_FIELDS = ("gce_setup.disable_public_ip", "disable_proxy_access")
_STOPPED = (
    "gce_setup.machine_type",
    "gce_setup.accelerator_configs",
    "gce_setup.shielded_instance_config",
    "gce_setup.container_image",
)
MAX_METADATA_VALUE_BYTES = 256 << 10
MAX_METADATA_BYTES = 512 << 10
"""Bytes of one metadata value, and of all together. Source: Compute Engine's documentation of
custom metadata.
"""


def parse_resource_name(name: str) -> tuple[str, str]:
    """Return the project and the zone of a full name; raises ApiError for an invalid one."""
    if (match := _NAME.fullmatch(name)) is None:
        raise invalid_argument(f"Malformed name: '{name}'")
    return match[1], match[2]


def check_instance_id(text: str) -> None:
    """Raise ApiError for an invalid id. Source: the documentation of creating an instance."""
    if not _ID.fullmatch(text):
        raise invalid_argument(
            f"Invalid instance ID '{text}': it must start with a letter followed by up to "
            "62 lowercase letters, numbers, or hyphens (-), "
            "and cannot end with a hyphen"
        )


def check_instance(body: Mapping[str, Any], facts: Facts) -> None:
    """Raise the first ApiError that the service would raise when an instance is created."""
    setup = body.get("gceSetup", {})
    check_labels(body.get("labels", {}))
    for key, value in setup.get("metadata", {}).items():
        check_metadata(key, value, facts)
    if (
        sum(len(key) + len(value.encode()) for key, value in setup.get("metadata", {}).items())
        > MAX_METADATA_BYTES
    ):
        raise invalid_argument(f"Metadata has size greater than {MAX_METADATA_BYTES} bytes")
    if len(body.get("instanceOwners", ())) > 1:
        raise invalid_argument("Only one instance owner is supported")
    for field in _SINGLE:
        if len(setup.get(field, ())) > 1:
            raise invalid_argument(
                f"Only one element is supported in 'instance.gce_setup.{to_snake_case(field)}'"
            )
    _check_image(setup)
    _check_disks(setup, facts)
    for tag in setup.get("tags", ()):
        if not _TAG.fullmatch(tag):
            raise invalid_argument(
                f"Invalid value for field 'tags': '{tag}'. It must be a valid network tag"
            )


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise ApiError for an invalid label. Source: the documentation of labels."""
    if len(labels) > 64:
        raise invalid_argument("A resource can have at most 64 labels")
    for key, value in labels.items():
        if not _LABEL.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise invalid_argument(
                f"Invalid label '{key}': '{value}'; keys and values consist of lowercase "
                "letters, digits, _ and -, and a key starts with a letter"
            )


def check_metadata(key: str, value: str, facts: Facts, *, update: bool = False) -> None:
    """Raise ApiError for a reserved metadata key, or on an update for a creation-only key."""
    owned = ("service", "create") if update else ("service",)
    if any(row.matches(key) for row in facts.metadata_keys if row.owner in owned):
        # The words of hashicorp/terraform-provider-google#19342.
        raise invalid_argument(
            f'metadata key "{key}" is protected by Workbench Notebooks, invalid argument'
        )
    if not _METADATA.fullmatch(key):
        raise invalid_argument(
            f"Invalid value for field 'metadata': key '{key}'; a key consists of letters, "
            "digits, - and _, up to 128 of them"
        )
    if len(value.encode()) > MAX_METADATA_VALUE_BYTES:
        raise invalid_argument(
            f"Value for metadata key '{key}' is too large: maximum size is "
            f"{MAX_METADATA_VALUE_BYTES} bytes"
        )
    if key == "post-startup-script" and value and not value.startswith("gs://"):
        raise invalid_argument(
            'metadata key "post-startup-script" must be a Cloud Storage path (gs://...)'
        )


def parse_update_mask(
    mask: str | Iterable[str], body: Mapping[str, Any], state: str
) -> tuple[str, ...]:
    """Return the paths of an update mask in the proto's names.

    Raises:
        ApiError: a path cannot be updated, or not in the current state.
    """
    texts = mask.split(",") if isinstance(mask, str) else list(mask)
    paths = tuple(to_snake_case(text.strip()) for text in texts if text.strip())
    if not paths:
        raise invalid_argument("Field mask is required: update_mask")
    for path in paths:
        if path in ("gce_setup", "*"):
            raise invalid_argument(f"notebooks API does not support {path} as a valid mask")
        if path not in load_api_schema().mask_paths:
            raise invalid_argument(f"Field mask path '{path}' is not supported for update")
        if path in ENABLE_ONLY_FIELDS and not value_at_path(body, path):
            raise invalid_argument(f"'{path}' can only be set to true on update")
        if state != "STOPPED" and path.startswith(_STOPPED):
            raise ApiError(
                StatusCode.FAILED_PRECONDITION,
                f"The instance must be STOPPED to update '{path}', it is {state}",
            )
    return paths


def _check_image(setup: Mapping[str, Any]) -> None:
    image, container = setup.get("vmImage"), setup.get("containerImage")
    if image and container:
        raise invalid_argument(
            "Only one of 'vm_image' and 'container_image' can be set in 'instance.gce_setup'"
        )
    if image and ("name" in image) == ("family" in image):
        raise invalid_argument(
            "Exactly one of 'name' and 'family' must be set in 'instance.gce_setup.vm_image'"
        )
    if image and "project" not in image:
        raise invalid_argument("'instance.gce_setup.vm_image.project' is required")
    if container and "repository" not in container:
        raise invalid_argument("'instance.gce_setup.container_image.repository' is required")


def _check_disks(setup: Mapping[str, Any], facts: Facts) -> None:
    boots = {row.api: row.boot for row in facts.disks.values()}
    largest = int(facts.limits["largest disk"].value)
    disks = [("boot_disk", setup["bootDisk"])] if "bootDisk" in setup else []
    disks += [("data_disks", disk) for disk in setup.get("dataDisks", ())]
    for field, disk in disks:
        kind = disk.get("diskType", "")
        if field == "boot_disk" and kind and not boots.get(kind, True):
            raise invalid_argument(
                f"Disk type {kind} is not supported for 'instance.gce_setup.boot_disk'"
            )
        if not 0 <= int(disk.get("diskSizeGb", 0)) <= largest:
            raise invalid_argument(
                f"'instance.gce_setup.{field}.disk_size_gb' must be at most {largest}"
            )
        if (disk.get("diskEncryption") == "CMEK") != ("kmsKey" in disk):
            raise invalid_argument(
                f"'instance.gce_setup.{field}.kms_key' goes with disk_encryption CMEK, and "
                "only with it"
            )
