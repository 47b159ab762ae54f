"""Deletion of instances: only what provision makes, whatever the state says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provision.effects.google import DeleteInstance, DeleteObjects
from provision.effects.system import Effect
from provision.errors import Refused
from provision.plan import Intent


def plan_instance_deletion(record: Mapping[str, Any]) -> Iterator[Effect]:
    """Yield the effects that delete a recorded instance and the objects of its state.

    Raises:
        Refused: the record names something that provision does not make.
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
    """Yield the effects that delete what an interrupted run may have left, except `gone`."""
    details = intent.details
    yield from (
        effect
        for name in intent.names
        if (effect := DeleteInstance(name, str(details.get("lineage", "")))) not in gone
    )
    if has_own_names(details) and (objects := DeleteObjects(str(details["bucket"]))) not in gone:
        yield objects


def has_own_names(record: Mapping[str, Any]) -> bool:
    """Return whether a record names an instance and a folder as provision names them."""
    instance, bucket, lineage = (
        str(record.get(key, "")) for key in ("instance", "bucket", "lineage")
    )
    named = instance.startswith("provision-") and re.fullmatch(r"[a-z0-9_-]+", lineage) is not None
    return named and bucket.startswith("gs://") and bucket.endswith(f"/{instance}/{lineage}/")
