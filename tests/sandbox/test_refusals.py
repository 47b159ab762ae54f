"""What the Notebooks service refuses, in its words: each one over REST, and over gRPC where a
message can say it.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import notebooks_v2 as nb
from google.protobuf import json_format
from googleapiclient.errors import HttpError

from provision.facts import load_facts
from provision.sandbox.discovery import load_api_schema
from provision.sandbox.instance_validation import MAX_METADATA_VALUE_BYTES
from tests.sandbox_rig import BODY, NAME, ZONE, Clients

PROTECTED = 'metadata key "{}" is protected by Workbench Notebooks, invalid argument'
Change = dict[str, Any]


def changed(change: Change, base: Change = BODY) -> Change:
    """Return a body with some fields of it replaced; None leaves one out."""
    new = copy.deepcopy(base)
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(new.get(key), dict):
            new[key] = changed(value, new[key])
        else:
            new[key] = value
    return new


def setup(**fields: Any) -> Change:
    return {"gceSetup": fields}


AT_ONCE: dict[str, tuple[Change, str]] = {
    "output only": (
        {"state": "ACTIVE"},
        "Field 'instance.state' is output only and cannot be set.",
    ),
    "output only, name": (
        {"name": NAME},
        "Field 'instance.name' is output only and cannot be set.",
    ),
    "output only below": (
        {"gceSetup": {"serviceAccounts": [{"email": "a@b.c", "scopes": ["x"]}]}},
        "service_accounts[0].scopes' is output only",
    ),
    "protected key": (setup(metadata={"title": "x"}), PROTECTED.format("title")),
    "protected keys that begin so": (
        setup(metadata={"proxy-mode": "x"}),
        PROTECTED.format("proxy-mode"),
    ),
    "metadata key": (setup(metadata={"a b": "x"}), "key 'a b'"),
    "metadata value": (
        setup(metadata={"a": "x" * (MAX_METADATA_VALUE_BYTES + 1)}),
        "Value for metadata key 'a' is too large",
    ),
    "metadata whole": (
        setup(metadata={f"k{n}": "x" * MAX_METADATA_VALUE_BYTES for n in range(3)}),
        "Metadata has size greater than",
    ),
    "script without a bucket": (
        setup(metadata={"post-startup-script": "echo hello"}),
        "must be a Cloud Storage path",
    ),
    "label key": ({"labels": {"Upper": "x"}}, "Invalid label 'Upper'"),
    "label value": ({"labels": {"a": "x/y"}}, "Invalid label 'a'"),
    "many labels": ({"labels": {f"k{n}": "" for n in range(65)}}, "at most 64 labels"),
    "two cards": (
        setup(acceleratorConfigs=[{"type": "NVIDIA_L4", "coreCount": "1"}] * 2),
        "supported in 'instance.gce_setup.accelerator_configs'",
    ),
    "two disks": (setup(dataDisks=[{"diskSizeGb": "100"}] * 2), "gce_setup.data_disks"),
    "two networks": (
        setup(networkInterfaces=[{"network": "a"}] * 2),
        "gce_setup.network_interfaces",
    ),
    "two accounts": (setup(serviceAccounts=[{"email": "a@b.c"}] * 2), "gce_setup.service_accounts"),
    "two owners": (
        {"instanceOwners": ["a@example.com", "b@example.com"]},
        "Only one instance owner",
    ),
    "image by name and family": (
        setup(vmImage={"project": "p", "name": "n", "family": "f"}),
        "'name' and 'family'",
    ),
    "image without project": (
        setup(vmImage={"family": "f", "project": "", "name": ""}),
        "vm_image.project' is required",
    ),
    "image and container": (
        setup(containerImage={"repository": "r"}),
        "Only one of 'vm_image' and 'container_image'",
    ),
    "container without repository": (
        setup(vmImage=None, containerImage={"tag": "t"}),
        "container_image.repository' is required",
    ),
    "disk size": (setup(bootDisk={"diskSizeGb": "64001"}), "disk_size_gb' must be at most 64000"),
    "key without CMEK": (
        setup(dataDisks=[{"kmsKey": "k"}]),
        "data_disks.kms_key' goes with disk_encryption CMEK",
    ),
    "CMEK without key": (
        setup(bootDisk={"diskEncryption": "CMEK"}),
        "boot_disk.kms_key' goes with disk_encryption CMEK",
    ),
    "tag": (setup(tags=["Not_A_Tag"]), "It must be a valid network tag"),
    "boot disk that cannot boot": (
        setup(bootDisk={"diskType": "HYPERDISK_EXTREME"}),
        "HYPERDISK_EXTREME is not supported for 'instance.gce_setup.boot_disk'",
    ),
    "unknown field": (
        {"gce_setup": {}},
        "Unknown name \"gce_setup\" at 'instance': Cannot find field.",
    ),
    "unknown field below": (setup(machine="x"), "Unknown name \"machine\" at 'instance.gce_setup'"),
    "unknown card": (
        setup(acceleratorConfigs=[{"type": "NVIDIA_L5", "coreCount": "1"}]),
        'accelerator_configs[0].type\' (Enum), "NVIDIA_L5"',
    ),
    "number": (
        setup(bootDisk={"diskSizeGb": "big"}),
        'boot_disk.disk_size_gb\' (TYPE_INT64), "big"',
    ),
    "kind of value": (setup(machineType=4), "machine_type' (TYPE_STRING), 4"),
    "truth": (setup(disablePublicIp="yes"), "disable_public_ip' (TYPE_BOOL"),
    "list": (setup(tags="mine"), "Invalid value at 'instance.gce_setup.tags'"),
    "map": ({"labels": {"a": 1}}, "Invalid value at 'instance.labels' (Map)"),
    "message": ({"gceSetup": 5}, "Invalid value at 'instance.gce_setup' (GceSetup)"),
}
LATER: dict[str, tuple[Change, int, str]] = {
    "machine and card": (
        setup(machineType="n1-standard-8"),
        3,
        "features are not compatible for creating instance",
    ),
    "count": (
        setup(acceleratorConfigs=[{"type": "NVIDIA_L4", "coreCount": "2"}]),
        3,
        "[2 x nvidia-l4, g2-standard-4]",
    ),
    "E2": (
        setup(
            machineType="e2-standard-4",
            acceleratorConfigs=[{"type": "NVIDIA_TESLA_T4", "coreCount": "1"}],
        ),
        3,
        "[1 x nvidia-tesla-t4, e2-standard-4]",
    ),
    "large N1": (
        setup(
            machineType="n1-standard-96",
            acceleratorConfigs=[{"type": "NVIDIA_TESLA_T4", "coreCount": "1"}],
        ),
        3,
        "n1-standard-96",
    ),
    "machine unknown": (setup(machineType="g9-standard-4"), 3, "g9-standard-4"),
    "retired card": (
        setup(
            machineType="n1-standard-8",
            acceleratorConfigs=[{"type": "NVIDIA_TESLA_P100", "coreCount": "1"}],
        ),
        5,
        "nvidia-tesla-p100",
    ),
}


@pytest.mark.parametrize(("change", "words"), AT_ONCE.values(), ids=AT_ONCE)
def test_a_body_is_refused_at_once(sandbox: Clients, change: Change, words: str) -> None:
    body = changed(change)
    with pytest.raises(HttpError) as caught:
        sandbox.rest.instances().create(parent=ZONE, instanceId="one", body=body).execute()
    error = json.loads(caught.value.content)["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert words in error["message"]
    assert sandbox.store is not None
    assert not sandbox.store.snapshot()["instances"]
    try:
        message = nb.Instance(json_format.ParseDict(body, nb.Instance.pb(nb.Instance())))
    except json_format.ParseError:
        return
    with pytest.raises(GoogleAPICallError) as refused:
        sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=message)
    assert words in refused.value.message


@pytest.mark.parametrize(("change", "code", "words"), LATER.values(), ids=LATER)
def test_a_machine_is_refused_when_it_is_made(
    sandbox: Clients, change: Change, code: int, words: str
) -> None:
    begun = (
        sandbox.rest.instances()
        .create(parent=ZONE, instanceId="one", body=changed(change))
        .execute()
    )
    error = sandbox.done(begun)["error"]
    assert error["code"] == code
    assert words in error["message"]
    assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "PROVISIONING", (
        "the failed shell is left, and never turns ACTIVE"
    )
    assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "PROVISIONING"
    sandbox.done(sandbox.rest.instances().delete(name=NAME).execute())


def test_a_zone_without_the_card(sandbox: Clients) -> None:
    body = changed(
        setup(
            machineType="a2-ultragpu-1g",
            acceleratorConfigs=[{"type": "NVIDIA_A100_80GB", "coreCount": "1"}],
        )
    )
    parent = ZONE.replace("us-central1-a", "us-central1-b")
    error = sandbox.done(
        sandbox.rest.instances().create(parent=parent, instanceId="one", body=body).execute()
    )["error"]
    assert error == {
        "code": 5,
        "message": "Resource "
        "'projects/my-project/zones/us-central1-b/acceleratorTypes/nvidia-a100-80gb' was "
        "not found",
    }


@pytest.mark.parametrize("name", ["", "1one", "One", "one-", "o_ne", "a" * 64])
def test_a_name_is_refused(sandbox: Clients, name: str) -> None:
    with pytest.raises(HttpError, match="Invalid instance ID") as caught:
        sandbox.rest.instances().create(parent=ZONE, instanceId=name, body=BODY).execute()
    assert caught.value.status_code == 400
    with pytest.raises(GoogleAPICallError, match="Invalid instance ID"):
        sandbox.grpc.create_instance(parent=ZONE, instance_id=name, instance=nb.Instance())


@pytest.mark.parametrize("name", ["a", "a" * 63, "provision-hf-trainer-1"])
def test_a_name_is_taken(sandbox: Clients, name: str) -> None:
    assert sandbox.grpc.create_instance(
        parent=ZONE, instance_id=name, instance=nb.Instance()
    ).operation.name


def test_instances_are_made_in_zones(sandbox: Clients) -> None:
    with pytest.raises(HttpError, match="is not a zone"):
        sandbox.rest.instances().create(
            parent="projects/my-project/locations/us-central1", instanceId="one", body=BODY
        ).execute()


def test_every_field_that_is_output_only_is_refused(sandbox: Clients) -> None:
    samples: dict[str, Any] = {"string": "x", "boolean": True, "object": {}, "array": []}
    for field, about in load_api_schema().messages["Instance"].items():
        if about.get("readOnly"):
            with pytest.raises(HttpError, match=r"is output only") as caught:
                sandbox.rest.instances().create(
                    parent=ZONE, instanceId="one", body={field: samples[about["type"]]}
                ).execute()
            assert caught.value.status_code == 400


MASKS: dict[str, tuple[str, Change, str]] = {
    "none": ("", {"labels": {}}, "Field mask is required"),
    "whole setup": ("gce_setup", setup(), "does not support gce_setup as a valid mask"),
    "star": ("*", setup(), "does not support * as a valid mask"),
    "image": (
        "gce_setup.vm_image",
        setup(vmImage={"project": "p", "name": "n"}),
        "'gce_setup.vm_image' is not supported for update",
    ),
    "account": (
        "gce_setup.service_accounts",
        setup(),
        "'gce_setup.service_accounts' is not supported",
    ),
    "disk": ("gce_setup.boot_disk.disk_size_gb", setup(), "is not supported for update"),
    "network": ("gce_setup.network_interfaces", setup(), "is not supported for update"),
    "one key": ("gce_setup.metadata.title", setup(), "is not supported for update"),
    "output only": ("state", {}, "'state' is not supported for update"),
    "unknown": ("labels,nothing", {"labels": {}}, "'nothing' is not supported for update"),
    "public IP again": (
        "gce_setup.disable_public_ip",
        setup(disablePublicIp=False),
        "can only be set to true on update",
    ),
    "proxy again": ("disable_proxy_access", {}, "'disable_proxy_access' can only be set to true"),
    "label": ("labels", {"labels": {"A": "b"}}, "Invalid label 'A'"),
}


@pytest.mark.parametrize(("mask", "body", "words"), MASKS.values(), ids=MASKS)
def test_a_mask_is_refused(sandbox: Clients, mask: str, body: Change, words: str) -> None:
    sandbox.made()
    with pytest.raises(HttpError) as caught:
        sandbox.rest.instances().patch(name=NAME, updateMask=mask, body=body).execute()
    error = json.loads(caught.value.content)["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert words in error["message"]
    message = nb.Instance(
        json_format.ParseDict({"name": NAME, **body}, nb.Instance.pb(nb.Instance()))
    )
    with pytest.raises(GoogleAPICallError) as refused:
        sandbox.grpc.update_instance(
            instance=message, update_mask={"paths": [path for path in mask.split(",") if path]}
        )
    assert words in refused.value.message


@pytest.mark.parametrize(
    "path",
    [
        "machine_type",
        "accelerator_configs",
        "accelerator_configs.core_count",
        "shielded_instance_config",
        "container_image",
    ],
)
def test_what_needs_a_stopped_instance(sandbox: Clients, path: str) -> None:
    sandbox.made()
    with pytest.raises(HttpError, match="must be STOPPED") as caught:
        sandbox.rest.instances().patch(name=NAME, updateMask=f"gce_setup.{path}", body={}).execute()
    assert json.loads(caught.value.content)["error"]["status"] == "FAILED_PRECONDITION"


def test_every_mask_of_the_document_is_taken(sandbox: Clients) -> None:
    sandbox.made()
    sandbox.done(sandbox.rest.instances().stop(name=NAME, body={}).execute())
    body = {
        "disableProxyAccess": True,
        "gceSetup": {
            "disablePublicIp": True,
            "machineType": "g2-standard-4",
            "acceleratorConfigs": [{"type": "NVIDIA_L4", "coreCount": "1"}],
        },
    }
    for mask in load_api_schema().mask_paths:
        assert "error" not in sandbox.done(
            sandbox.rest.instances().patch(name=NAME, updateMask=mask, body=body).execute()
        ), mask


def test_output_only_fields_cannot_be_sent_back(sandbox: Clients) -> None:
    found = sandbox.made()
    with pytest.raises(HttpError, match="is output only"):
        sandbox.rest.instances().patch(name=NAME, updateMask="labels", body=found).execute()


@pytest.mark.parametrize(
    "key", ["title", "proxy-mode", "serial-port-logging-enable", "install-nvidia-driver"]
)
def test_a_protected_key_fails_the_update_after_it_has_begun(sandbox: Clients, key: str) -> None:
    sandbox.made()
    begun = (
        sandbox.rest.instances()
        .patch(
            name=NAME,
            updateMask="gce_setup.metadata",
            body={"gceSetup": {"metadata": {key: "x", "mine": "y"}}},
        )
        .execute()
    )
    error = sandbox.done(begun)["error"]
    assert error["code"] == 3
    assert error["message"] == f"failed updating GCE instance {NAME}: {PROTECTED.format(key)}"
    assert "mine" not in sandbox.rest.instances().get(name=NAME).execute()["gceSetup"]["metadata"]


def test_keys_of_the_creation_are_taken_then(sandbox: Clients) -> None:
    keys = {row.key: "true" for row in load_facts().metadata_keys if row.owner == "create"}
    made = sandbox.made(body=changed(setup(metadata=keys)))
    assert keys.items() <= made["gceSetup"]["metadata"].items()


def test_a_g2_stays_a_g2(sandbox: Clients) -> None:
    sandbox.made()
    sandbox.done(sandbox.rest.instances().stop(name=NAME, body={}).execute())
    begun = (
        sandbox.rest.instances()
        .patch(
            name=NAME, updateMask="gce_setup.machine_type", body=setup(machineType="n1-standard-8")
        )
        .execute()
    )
    assert (
        "Changing the machine type from g2-standard-4 to n1-standard-8 is not supported"
        in sandbox.done(begun)["error"]["message"]
    )


def test_a_diagnosis_needs_a_bucket(sandbox: Clients) -> None:
    sandbox.made()
    with pytest.raises(HttpError, match="gcs_bucket' is required"):
        sandbox.rest.instances().diagnose(name=NAME, body={"diagnosticConfig": {}}).execute()


@pytest.mark.parametrize("verb", ["get", "delete", "stop", "start", "reset", "patch", "diagnose"])
def test_what_is_not_there(sandbox: Clients, verb: str) -> None:
    words = {
        "stop": {"body": {}},
        "start": {"body": {}},
        "reset": {"body": {}},
        "patch": {"body": {}, "updateMask": "labels"},
    }
    words["diagnose"] = {"body": {"diagnosticConfig": {"gcsBucket": "gs://b"}}}
    with pytest.raises(HttpError, match="was not found") as caught:
        getattr(sandbox.rest.instances(), verb)(name=NAME, **words.get(verb, {})).execute()
    assert caught.value.status_code == 404


@pytest.mark.parametrize(
    "query", ["instanceId=one&request=1", "instanceId=one&update_mask=labels", "instance=one"]
)
def test_a_parameter_is_unknown(sandbox: Clients, query: str) -> None:
    status, body, _ = sandbox.http("POST", f"/v2/{ZONE}/instances?{query}", BODY)
    assert status == 400
    assert "Cannot bind query parameter" in body["error"]["message"]


def test_parameters_are_taken_in_both_spellings(sandbox: Clients) -> None:
    assert (
        sandbox.http("POST", f"/v2/{ZONE}/instances?instance_id=one&request_id=x&$alt=json", BODY)[
            0
        ]
        == 200
    )


def test_a_list_is_not_filtered(sandbox: Clients) -> None:
    with pytest.raises(HttpError, match="does not filter or sort") as caught:
        sandbox.rest.instances().list(parent=ZONE, filter="labels.provision=1").execute()
    assert caught.value.status_code == 501
    with pytest.raises(GoogleAPICallError, match="does not filter or sort"):
        sandbox.grpc.list_instances(request={"parent": ZONE, "order_by": "name"})


def test_a_method_that_is_not_offered(sandbox: Clients) -> None:
    with pytest.raises(HttpError) as caught:
        sandbox.rest.instances().resizeDisk(notebookInstance=NAME, body={}).execute()
    assert caught.value.status_code == 404
    with pytest.raises(GoogleAPICallError) as refused:
        sandbox.grpc.check_instance_upgradability(request={"notebook_instance": NAME})
    assert refused.value.code == 501


@pytest.mark.parametrize(
    "name",
    [
        "",
        "one",
        "projects/p",
        "projects/p/locations/z/instances",
        "projects/p/locations/z/instances/a/b",
        "/" + NAME,
    ],
)
def test_a_malformed_name(sandbox: Clients, name: str) -> None:
    channel = sandbox.grpc.transport
    for method, asked in (
        (channel.get_instance, nb.GetInstanceRequest(name=name)),
        (channel.delete_instance, nb.DeleteInstanceRequest(name=name)),
        (channel.stop_instance, nb.StopInstanceRequest(name=name)),
        (channel.list_instances, nb.ListInstancesRequest(parent=name)),
        (channel.create_instance, nb.CreateInstanceRequest(parent=name, instance_id="one")),
        (channel.update_instance, nb.UpdateInstanceRequest(instance=nb.Instance(name=name))),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            method(asked)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]


def test_a_script_must_lie_in_a_bucket_after_an_update_too(sandbox: Clients) -> None:
    sandbox.made()
    body = setup(metadata={"post-startup-script": "#!/bin/sh"})
    begun = (
        sandbox.rest.instances()
        .patch(name=NAME, updateMask="gce_setup.metadata", body=body)
        .execute()
    )
    assert "must be a Cloud Storage path" in sandbox.done(begun)["error"]["message"]
