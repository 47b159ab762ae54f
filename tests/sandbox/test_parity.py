"""gRPC and REST come to one service: the same deeds leave the same store. What the gRPC messages
cannot say is listed in drift.json.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import notebooks_v2 as nb
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from provision.facts import load_facts
from provision.sandbox.discovery import (
    NOTEBOOKS,
    VERTEX,
    ApiDocument,
    extract_schema,
    find_discovery_document,
    load_api_schema,
)
from tests.sandbox_rig import BODY, NAME, SOON, ZONE, Clients, clients

DRIFT = Path(__file__).with_name("drift.json")
CHANGE: dict[str, Any] = {
    "labels": {"more": "2", "provision": ""},
    "gceSetup": {"metadata": {"provision-run": '{"nonce": "2"}'}, "disablePublicIp": True},
}
MASK = ["labels", "gce_setup.metadata", "gce_setup.disable_public_ip"]
BIGGER: dict[str, Any] = {
    "gceSetup": {
        "machineType": "g2-standard-8",
        "shieldedInstanceConfig": {"enableVtpm": True, "enableSecureBoot": False},
    }
}
NEW = {
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": "TIME",
    r"operation-\d+-[0-9a-f-]{36}": "OPERATION",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "UUID",
    r'"(listed|due|active)": [\d.]+': r'"\1": 0',
    r'"(instanceId|proxyUri)": "[^"]+"': r'"\1": ""',
}
BIGGER_MASK = ["gce_setup.machine_type", "gce_setup.shielded_instance_config"]


def message(body: dict[str, Any]) -> nb.Instance:
    return nb.Instance(json_format.ParseDict(body, nb.Instance.pb(nb.Instance())))


def by_grpc(sandbox: Clients) -> None:
    def wait(operation: Any) -> None:
        operation.result(timeout=600, polling=SOON)

    client = sandbox.grpc
    wait(
        client.create_instance(
            request={
                "parent": ZONE,
                "instance_id": "one",
                "instance": message(BODY),
                "request_id": "r1",
            }
        )
    )
    while client.get_instance(name=NAME).state != nb.State.ACTIVE:
        pass
    wait(
        client.update_instance(
            instance=message({"name": NAME, **CHANGE}), update_mask={"paths": MASK}
        )
    )
    wait(client.stop_instance({"name": NAME}))
    wait(
        client.update_instance(
            instance=message({"name": NAME, **BIGGER}), update_mask={"paths": BIGGER_MASK}
        )
    )
    wait(client.start_instance({"name": NAME}))
    wait(client.create_instance(parent=ZONE, instance_id="two", instance=message(BODY)))
    wait(client.delete_instance(name=f"{ZONE}/instances/two"))


def by_rest(sandbox: Clients) -> None:
    instances = sandbox.rest.instances()
    sandbox.done(
        instances.create(parent=ZONE, instanceId="one", body=BODY, requestId="r1").execute()
    )
    while instances.get(name=NAME).execute()["state"] != "ACTIVE":
        pass
    sandbox.done(instances.patch(name=NAME, updateMask=",".join(MASK), body=CHANGE).execute())
    sandbox.done(instances.stop(name=NAME, body={}).execute())
    sandbox.done(
        instances.patch(name=NAME, updateMask=",".join(BIGGER_MASK), body=BIGGER).execute()
    )
    sandbox.done(instances.start(name=NAME, body={}).execute())
    sandbox.done(instances.create(parent=ZONE, instanceId="two", body=BODY).execute())
    sandbox.done(instances.delete(name=f"{ZONE}/instances/two").execute())


def plain(store: dict[str, Any]) -> Any:
    """Return a store without what is new each time: times, ids and names of operations; these as a
    list, oldest first.
    """
    text = json.dumps(
        {
            **store,
            "operations": sorted(
                store["operations"].values(), key=lambda record: record["created"]
            ),
        },
        sort_keys=True,
    )
    for pattern, word in NEW.items():
        text = re.sub(pattern, word, text)
    return json.loads(text)


def test_the_same_deeds_leave_the_same_store(tmp_path: Path) -> None:
    left = []
    for name, deeds in (("grpc", by_grpc), ("rest", by_rest)):
        with clients(tmp_path / name) as sandbox:
            deeds(sandbox)
            assert sandbox.store is not None
            left.append(sandbox.store.snapshot())
    grpc, rest = left
    assert len(grpc["operations"]) == len(rest["operations"]) == 7
    assert plain(grpc) == plain(rest)


def drift() -> dict[str, list[str]]:
    """Return what the discovery document has and google-cloud-notebooks lacks, by message: fields,
    enum values (FIELD=VALUE), methods.
    """
    found = {
        name: sorted(_lacking(getattr(nb, name, None), fields))
        for name, fields in load_api_schema().messages.items()
    }
    installed = find_discovery_document()
    assert installed is not None
    whole = json.loads(installed.read_bytes())["resources"]["projects"]["resources"]["locations"][
        "resources"
    ]["instances"]["methods"]
    have = {name.replace("_", "") for name in dir(nb.NotebookServiceClient)}
    other = {
        "list": "listinstances",
        "patch": "updateinstance",
        "checkUpgradability": "checkinstanceupgradability",
    }
    gone = [
        name
        for name in whole
        if {other.get(name, name.lower() + "instance"), name.lower()}.isdisjoint(have)
    ]
    return {
        name: lacking for name, lacking in {**found, "methods": sorted(gone)}.items() if lacking
    }


def _lacking(kind: Any, fields: Any) -> Iterator[str]:
    if kind is None:
        yield from fields
        return
    known = {field.json_name: field for field in kind.pb(kind()).DESCRIPTOR.fields}
    for name, about in fields.items():
        if name not in known:
            yield name
        elif "enum" in about and known[name].type == FieldDescriptor.TYPE_ENUM:
            values = {value.name for value in known[name].enum_type.values}
            yield from (f"{name}={value}" for value in about["enum"] if value not in values)


def test_the_drift_of_the_grpc_messages_is_known() -> None:
    assert drift() == json.loads(DRIFT.read_text()), (
        "google-cloud-notebooks or the discovery document has moved: see what can now be "
        "sent over gRPC"
    )


@pytest.mark.parametrize("document", [NOTEBOOKS, VERTEX])
def test_the_extract_is_that_of_the_installed_discovery_document(document: ApiDocument) -> None:
    installed = find_discovery_document(document)
    assert installed is not None
    kept = json.loads(document.extract_file.read_bytes())
    kept.pop("source")
    assert kept == extract_schema(json.loads(installed.read_bytes()), document), (
        "run support/extract_api_schemas.py"
    )


def test_the_regions_are_those_of_the_installed_discovery_document() -> None:
    installed = find_discovery_document(VERTEX)
    assert installed is not None
    endpoints = json.loads(installed.read_bytes())["endpoints"]
    locations = {endpoint["location"] for endpoint in endpoints} - {"us", "eu"}
    known = load_facts().conditions["enterprise regions"].value.split()
    assert set(known) == locations, "edit src/provision/facts/tables/colab.yaml"


def test_the_extract_serves_where_the_document_is_not_installed() -> None:
    code = (
        "import sys\nsys.modules['googleapiclient'] = None\nfrom provision.sandbox.discovery "
        "import find_discovery_document, load_api_schema\n"
        "print(find_discovery_document(), len(load_api_schema().mask_paths))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == f"None {len(load_api_schema().mask_paths)}\n"


def test_what_grpc_cannot_say_rest_can(sandbox: Clients) -> None:
    body = {
        **BODY,
        "gceSetup": {
            "machineType": "a3-highgpu-8g",
            "acceleratorConfigs": [{"type": "NVIDIA_H100_80GB", "coreCount": "8"}],
        },
    }
    setup = sandbox.made(body=body)["gceSetup"]
    assert setup["acceleratorConfigs"] == [{"type": "NVIDIA_H100_80GB", "coreCount": "8"}]
    seen = sandbox.grpc.get_instance(name=NAME).gce_setup
    assert seen.accelerator_configs[0].core_count == 8
    assert seen.accelerator_configs[0].type_ == 0
