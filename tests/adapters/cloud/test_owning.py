"""Deeds on an instance that hold for one state's own only, and disks that grow; every scenario over
gRPC and over REST.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from provision.adapters.google.creation_attempts import InstanceNotCreated
from provision.adapters.google.errors import CloudError
from tests.adapters.cloud.conftest import INSTANCE, ZONES, Begin, instance


def of(lineage: str, **metadata: str) -> dict[str, Any]:
    body = instance()
    body["labels"]["provision-lineage"] = lineage
    body["gceSetup"]["metadata"] |= metadata
    return body


def test_one_of_another_state_is_no_instance_of_ours(begin: Begin) -> None:
    cloud = begin()
    cloud.create(("us-central1-b",), of("other"))
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create(body=of("mine"))
    assert (
        "an instance with this name exists, but it does not belong to this target"
        in raised.value.what
    )
    assert cloud.names() == [cloud.name("us-central1-b")]


def test_deleting_leaves_one_of_another_state_alone(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create(body=of("other")).name
    cloud.services.operations(cloud.lines.append).delete(name, "mine")
    cloud.services.operations(cloud.lines.append).delete(name, "")
    assert cloud.names() == [name]
    assert cloud.lines[-1].startswith(
        f"not deleted: {name} belongs to another state (label provision-lineage=other)"
    )
    cloud.services.operations(cloud.lines.append).delete(name, "other")
    assert cloud.names() == []


def test_one_that_was_made_from_another_image_is_not_adopted_silently(begin: Begin) -> None:
    cloud = begin()
    made = [json.dumps({"gceSetup": {"vmImage": {"name": name}}}) for name in ("one", "other")]
    name = cloud.create(body=of("mine", **{"provision-made": made[0]})).name
    with pytest.raises(CloudError, match="created from a different spec") as raised:
        cloud.create(body=of("mine", **{"provision-made": made[1]}))
    assert "run the same command again" in raised.value.hint
    assert cloud.names() == [name]
    assert cloud.create(body=of("mine", **{"provision-made": made[0]})).name == name


def test_what_was_deleted_for_a_creation_that_failed_is_told(begin: Begin) -> None:
    cloud = begin(*(f"stockout:{zone}" for zone in ZONES))
    old = cloud.name("us-central1-a")
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create(instead_of=old)
    assert raised.value.why.endswith(f"{old} and its disks were deleted before this attempt")
    assert raised.value.still_running == ()
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert "was deleted" not in raised.value.why


def test_a_disk_grows_once_and_one_that_is_as_large_stays(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    for disk, size in (
        ("dataDisk", "200"),
        ("dataDisk", "200"),
        ("bootDisk", "160"),
        ("bootDisk", "100"),
    ):
        cloud.services.operations(cloud.lines.append).resize_disk(name, disk, size)
    setup = (cloud.services.notebooks.get(name) or {})["gceSetup"]
    assert (setup["dataDisks"][0]["diskSizeGb"], setup["bootDisk"]["diskSizeGb"]) == ("200", "160")
    assert [line for line in cloud.lines if line.startswith("resize")] == [
        "resize: data disk to 200 GiB",
        "resize: boot disk to 160 GiB",
    ]


def test_an_update_that_is_refused_says_that_the_instance_stands_still(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    cloud.services.operations(cloud.lines.append).stop(name)
    with pytest.raises(CloudError) as raised:
        cloud.services.operations(cloud.lines.append).update(
            name, {"gceSetup": {"metadata": {"title": "x"}}}, "gceSetup.metadata"
        )
    assert f"{INSTANCE} is now stopped; `provision apply` starts it again" in raised.value.why
