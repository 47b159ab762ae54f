"""Fields of an instance that no update changes, from the text of two specs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from provision.facts import Facts
from provision.facts.machines import region_of
from provision.field_types import parse_size
from provision.kinds.workbench_fields import Disk, WorkbenchTarget

_IMMUTABLE = ("project", "service_account", "network", "subnet", "access", "managed_euc")


def find_replaced_fields(old: WorkbenchTarget, new: WorkbenchTarget, facts: Facts) -> Iterator[str]:
    """Yield the changed fields for which an instance of `old` is replaced by one of `new`.

    The machine types are chosen. Source: notebooks.v2 discovery document, instances.patch;
    Workbench documentation, Change machine type.
    """
    yield from (name for name in _IMMUTABLE if getattr(old, name) != getattr(new, name))
    removed = [zone for zone in old.zones if zone not in new.zones]
    if removed:
        whole = len(removed) == len(old.zones)
        yield "zones" if whole else f"zones (if the instance is in {' or '.join(removed)})"
    elif old.subnet == new.subnet and _subnet_region(old) != _subnet_region(new):
        yield "subnet"
    if old.machine_type.startswith("g2-") != new.machine_type.startswith("g2-"):
        yield "machine_type"
    if _image(old, facts) != _image(new, facts):
        yield "image"
    for name in ("boot_disk", "data_disk"):
        default = int(facts.limits[name.replace("_", " ")].value)
        if _is_disk_replaced(getattr(old, name), getattr(new, name), default):
            yield name
    if new.public_ip and not old.public_ip:
        yield "public_ip"


def _subnet_region(target: WorkbenchTarget) -> str:
    """Return the region of a subnet that is named without one; "" for others."""
    subnet = target.subnet or "/"
    return "" if "/" in subnet else region_of(target.zones[0])


def _image(target: WorkbenchTarget, facts: Facts) -> str:
    """Return the image as declared, the newest family if none is declared."""
    return target.image or facts.newest_workbench_image().family


def _is_disk_replaced(old: Disk, new: Disk, default: int) -> bool:
    """Return whether a disk changes in more than growing."""
    same = (old.type, old.kms_key) == (new.type, new.kms_key)
    return not same or _gib(new, default) < _gib(old, default)


def _gib(disk: Disk, default: int) -> int:
    return math.ceil(parse_size(disk.size) / 2**30) if disk.size else default
