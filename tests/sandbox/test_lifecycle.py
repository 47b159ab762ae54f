"""Instances and operations over time, by the real clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import google.api_core.exceptions as said
import pytest
from google.cloud import notebooks_v2 as nb
from google.protobuf import json_format
from googleapiclient.errors import HttpError

from provision.sandbox.lifecycle import Delays
from tests.sandbox_rig import BODY, NAME, PROJECT, SOON, ZONE, Clients, clients


def message(body: Any = BODY) -> nb.Instance:
    return nb.Instance(json_format.ParseDict(body, nb.Instance.pb(nb.Instance())))


def test_the_operation_is_done_before_the_instance_is_active(sandbox: Clients) -> None:
    operation = sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=message())
    assert operation.metadata.verb == "create"
    assert operation.metadata.target == NAME
    assert operation.result(timeout=600, polling=SOON).state == nb.State.PROVISIONING
    states = [sandbox.grpc.get_instance(name=NAME).state for _ in range(3)]
    assert states == [nb.State.PROVISIONING, nb.State.ACTIVE, nb.State.ACTIVE]


def test_an_operation_is_not_done_when_it_is_begun(sandbox: Clients) -> None:
    begun = sandbox.rest.instances().create(parent=ZONE, instanceId="one", body=BODY).execute()
    assert "done" not in begun
    ended = sandbox.rest.operations().get(name=begun["name"]).execute()
    assert ended["done"]
    assert ended["response"]["@type"] == "type.googleapis.com/google.cloud.notebooks.v2.Instance"
    assert ended["response"]["state"] == "PROVISIONING"
    assert ended["metadata"]["endTime"] >= ended["metadata"]["createTime"]


def test_the_service_adds_what_is_its_own(sandbox: Clients) -> None:
    made = sandbox.made()
    setup = made["gceSetup"]
    assert set(setup["tags"]) == {"mine", "deeplearning-vm", "notebook-instance"}
    assert made["labels"]["notebooks-product"] == "workbench-instances"
    assert made["labels"]["provision"] == "1"
    assert {"version", "resource-url", "title", "proxy-mode"} <= set(setup["metadata"])
    assert set(setup["systemMetadata"]) < set(setup["metadata"])
    assert "provision-run" not in setup["systemMetadata"]
    assert setup["vmImage"]["imageId"] == "workbench-instances-2603-20261004-2157-rc0"
    assert setup["bootDisk"] == {
        "diskSizeGb": "200",
        "diskType": "PD_SSD",
        "diskEncryption": "GMEK",
    }
    assert made["proxyUri"].endswith(".notebooks.googleusercontent.com")


def test_a_new_instance_stands_in_lists_later(tmp_path: Path) -> None:
    with clients(tmp_path, delays=Delays(listed=0.3)) as sandbox:
        sandbox.made()
        assert sandbox.rest.instances().list(parent=f"{PROJECT}/locations/-").execute() == {}
        while not (
            found := sandbox.rest.instances().list(parent=f"{PROJECT}/locations/-").execute()
        ):
            pass
        assert [one["name"] for one in found["instances"]] == [NAME]


def test_an_instance_that_is_being_made_is_not_in_the_list(sandbox: Clients) -> None:
    sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=message())
    assert list(sandbox.grpc.list_instances(parent=f"{PROJECT}/locations/-")) == []
    assert [one.name for one in sandbox.grpc.list_instances(parent=f"{PROJECT}/locations/-")] == [
        NAME
    ]


def test_lists_are_of_a_zone_a_project_and_in_pages(sandbox: Clients) -> None:
    other = f"{PROJECT}/locations/us-central1-c/instances/two"
    for name in (NAME, other):
        sandbox.made(name)
    assert [one.name for one in sandbox.grpc.list_instances(parent=ZONE)] == [NAME]
    assert [
        one.name
        for one in sandbox.grpc.list_instances(
            request={"parent": f"{PROJECT}/locations/-", "page_size": 1}
        )
    ] == [NAME, other]
    assert list(sandbox.grpc.list_instances(parent="projects/other/locations/-")) == []


def test_one_operation_at_a_time(tmp_path: Path) -> None:
    with clients(tmp_path, delays=Delays(operation=30)) as sandbox:
        begun = sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=message())
        with pytest.raises(said.Aborted, match="unable to queue the operation"):
            sandbox.grpc.stop_instance({"name": NAME})
        with pytest.raises(HttpError, match="unable to queue the operation") as caught:
            sandbox.rest.instances().delete(name=NAME).execute()
        assert caught.value.status_code == 409
        begun.cancel()
        with pytest.raises(said.Cancelled):
            begun.result(timeout=600, polling=SOON)
        assert [
            one["name"] for one in sandbox.rest.operations().list(name=ZONE).execute()["operations"]
        ] == [begun.operation.name]
        assert sandbox.grpc.stop_instance({"name": NAME}).operation.name


def test_stopped_started_reset_deleted(sandbox: Clients) -> None:
    sandbox.made()
    assert (
        sandbox.grpc.stop_instance({"name": NAME}).result(timeout=600, polling=SOON).state
        == nb.State.STOPPED
    )
    assert (
        sandbox.grpc.stop_instance({"name": NAME}).result(timeout=600, polling=SOON).state
        == nb.State.STOPPED
    )
    with pytest.raises(said.BadRequest, match="must be ACTIVE"):
        sandbox.grpc.reset_instance({"name": NAME})
    assert (
        sandbox.grpc.start_instance({"name": NAME}).result(timeout=600, polling=SOON).state
        == nb.State.PROVISIONING
    )
    assert [sandbox.grpc.get_instance(name=NAME).state.name for _ in range(2)] == [
        "PROVISIONING",
        "ACTIVE",
    ]
    assert (
        sandbox.grpc.start_instance({"name": NAME}).result(timeout=600, polling=SOON).state
        == nb.State.ACTIVE
    )
    assert (
        sandbox.grpc.reset_instance({"name": NAME}).result(timeout=600, polling=SOON).state
        == nb.State.PROVISIONING
    )
    sandbox.grpc.delete_instance(name=NAME).result(timeout=600, polling=SOON)
    with pytest.raises(said.NotFound):
        sandbox.grpc.get_instance(name=NAME)
    with pytest.raises(said.NotFound):
        sandbox.grpc.delete_instance(name=NAME)


def test_a_cancelled_stop_leaves_it_running(tmp_path: Path) -> None:
    with clients(tmp_path) as sandbox:
        sandbox.made()
    with clients(tmp_path, "hang") as sandbox:
        begun = sandbox.rest.instances().stop(name=NAME, body={}).execute()
        assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "STOPPING"
        assert sandbox.rest.operations().cancel(name=begun["name"], body={}).execute() == {}
        assert sandbox.done(begun)["error"]["code"] == 1
        assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "ACTIVE"


def test_the_same_request_is_done_once(sandbox: Clients) -> None:
    asked = {
        "parent": ZONE,
        "instance_id": "one",
        "instance": message(),
        "request_id": "4f6cf1b0-64e6-4f8a-a5cf-f0e0e1a3a001",
    }
    first = sandbox.grpc.create_instance(request=asked)
    assert sandbox.grpc.create_instance(request=asked).operation.name == first.operation.name
    with pytest.raises(said.AlreadyExists, match="already exists"):
        sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=message())


def test_labels_and_metadata_are_merged_and_emptied(sandbox: Clients) -> None:
    sandbox.made()
    body = {
        "labels": {"more": "1", "provision": ""},
        "gceSetup": {"metadata": {"provision-run": "", "provision-note": "x"}, "tags": ["new"]},
    }
    sandbox.done(
        sandbox.rest.instances()
        .patch(name=NAME, updateMask="labels,gceSetup.metadata,gce_setup.tags", body=body)
        .execute()
    )
    found = sandbox.rest.instances().get(name=NAME).execute()
    assert found["labels"]["more"] == "1"
    assert "provision" not in found["labels"]
    assert found["gceSetup"]["metadata"]["provision-note"] == "x"
    assert "provision-run" not in found["gceSetup"]["metadata"]
    assert found["gceSetup"]["metadata"]["post-startup-script"] == "gs://bucket/program.sh"
    assert set(found["gceSetup"]["tags"]) == {"new", "deeplearning-vm", "notebook-instance"}
    assert found["state"] == "ACTIVE"


def test_a_machine_changes_when_it_is_stopped(sandbox: Clients) -> None:
    sandbox.made()
    change = nb.Instance(name=NAME, gce_setup=nb.GceSetup(machine_type="g2-standard-8"))
    with pytest.raises(said.BadRequest, match="must be STOPPED"):
        sandbox.grpc.update_instance(
            instance=change, update_mask={"paths": ["gce_setup.machine_type"]}
        )
    sandbox.grpc.stop_instance({"name": NAME}).result(timeout=600, polling=SOON)
    changed = sandbox.grpc.update_instance(
        instance=change, update_mask={"paths": ["gce_setup.machine_type"]}
    ).result(timeout=600, polling=SOON)
    assert changed.gce_setup.machine_type == "g2-standard-8"
    assert changed.state == nb.State.STOPPED


def test_a_count_of_cards_changes_below_its_list(sandbox: Clients) -> None:
    sandbox.made(
        body={
            **BODY,
            "gceSetup": {
                "machineType": "n1-standard-8",
                "acceleratorConfigs": [{"type": "NVIDIA_TESLA_T4", "coreCount": "1"}],
            },
        }
    )
    sandbox.done(sandbox.rest.instances().stop(name=NAME, body={}).execute())
    body = {"gceSetup": {"acceleratorConfigs": [{"coreCount": "2"}]}}
    sandbox.done(
        sandbox.rest.instances()
        .patch(name=NAME, updateMask="gce_setup.accelerator_configs.core_count", body=body)
        .execute()
    )
    found = sandbox.rest.instances().get(name=NAME).execute()
    assert found["gceSetup"]["acceleratorConfigs"] == [
        {"type": "NVIDIA_TESLA_T4", "coreCount": "2"}
    ]


def test_config_tells_what_can_be_made(sandbox: Clients) -> None:
    zone = sandbox.rest.instances().getConfig(name=ZONE).execute()
    assert "NVIDIA_L4" in zone["supportedValues"]["acceleratorTypes"]
    assert "g2-standard-4" in zone["supportedValues"]["machineTypes"]
    assert {"workbench-instances-2603", "workbench-instances"} == {
        image["imageFamily"] for image in zone["availableImages"]
    }
    region = sandbox.rest.instances().getConfig(name=f"{PROJECT}/locations/us-central1").execute()
    assert set(zone["supportedValues"]["acceleratorTypes"]) <= set(
        region["supportedValues"]["acceleratorTypes"]
    )


def test_a_diagnosis_is_written_to_the_bucket(sandbox: Clients) -> None:
    sandbox.made()
    assert sandbox.store is not None
    sandbox.store.append_serial(NAME, "it booted\n")
    config = nb.DiagnosticConfig(gcs_bucket="gs://logs", relative_path="local")
    sandbox.grpc.diagnose_instance(name=NAME, diagnostic_config=config).result(
        timeout=600, polling=SOON
    )
    held = sandbox.store.object("logs", "local/one-serial.txt")
    assert held is not None
    assert held.content == b"it booted\n"


def test_an_operation_is_found_again_by_its_name(sandbox: Clients) -> None:
    from google.api_core import operation as lro

    name = sandbox.grpc.create_instance(
        parent=ZONE, instance_id="one", instance=message()
    ).operation.name
    known = sandbox.grpc.get_operation({"name": name})
    found = lro.from_gapic(
        known,
        sandbox.grpc.transport.operations_client,
        nb.Instance,
        metadata_type=nb.OperationMetadata,
    )
    assert found.result(timeout=600, polling=SOON).name == NAME


def test_everything_is_there_when_it_comes_back(tmp_path: Path) -> None:
    with clients(tmp_path) as sandbox:
        made = sandbox.made()
        sandbox.http("POST", "/upload/storage/v1/b/bucket/o?uploadType=media&name=a", b"bytes")
    with clients(tmp_path) as sandbox:
        assert sandbox.rest.instances().get(name=NAME).execute() == made
        assert sandbox.http("GET", "/storage/v1/b/bucket/o/a?alt=media")[1] == b"bytes"


def test_disks_grow_and_never_shrink(sandbox: Clients) -> None:
    def resize(body: Any) -> Any:
        return sandbox.http("POST", f"/v2/{NAME}:resizeDisk", body)

    sandbox.done(
        sandbox.rest.instances().create(parent=ZONE, instanceId="one", body=BODY).execute()
    )
    begun = (
        sandbox.rest.instances()
        .resizeDisk(notebookInstance=NAME, body={"dataDisk": {"diskSizeGb": "300"}})
        .execute()
    )
    sandbox.done(begun)
    assert begun["metadata"]["verb"] == "resize"
    assert (
        sandbox.rest.instances().get(name=NAME).execute()["gceSetup"]["dataDisks"][0]["diskSizeGb"]
        == "300"
    )
    for body in (
        {"dataDisk": {"diskSizeGb": "200"}},
        {"dataDisk": {"diskSizeGb": "99999999"}},
        {},
        {"disk": {}},
    ):
        assert resize(body)[0] == 400
