"""What goes when an instance does: only what we make, whatever the state says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provision.effects import DeleteInstance, DeleteObjects, Effect
from provision.errors import Refused
from provision.plan import Intent


def plan_instance_deletion(record: Mapping[str, Any]) -> Iterator[Effect]:
    """Yield what removes a recorded instance and the objects of its state; raises Refused where the
    record names what we do not make.
    """
    project, instance, bucket, lineage = (
        str(record.get(key, "")) for key in ("project", "instance", "bucket", "lineage")
    )
    zones = (
        [str(record["zone"])]
        if record.get("zone")
        else [str(zone) for zone in record.get("zones", ())]
    )
    if not has_own_names(record):
        raise Refused(
            f"{instance or 'the instance'} is not ours to delete",
            why="the state names what we do not make",
            hint="look at the state file",
        )
    yield from (
        DeleteInstance(f"projects/{project}/locations/{zone}/instances/{instance}", lineage)
        for zone in zones
    )
    yield DeleteObjects(bucket)


def plan_interrupted_deletion(intent: Intent, gone: tuple[Effect, ...]) -> Iterator[Effect]:
    """Yield what removes what an interrupted run may have left, beside what goes already."""
    details = intent.details
    yield from (
        effect
        for name in intent.names
        if (effect := DeleteInstance(name, str(details.get("lineage", "")))) not in gone
    )
    if has_own_names(details) and (objects := DeleteObjects(str(details["bucket"]))) not in gone:
        yield objects


def has_own_names(record: Mapping[str, Any]) -> bool:
    """Tell whether a record names an instance as we name them, and a folder that is of it and of
    its state alone.
    """
    instance, bucket, lineage = (
        str(record.get(key, "")) for key in ("instance", "bucket", "lineage")
    )
    named = instance.startswith("provision-") and re.fullmatch(r"[a-z0-9_-]+", lineage) is not None
    return named and bucket.startswith("gs://") and bucket.endswith(f"/{instance}/{lineage}/")
