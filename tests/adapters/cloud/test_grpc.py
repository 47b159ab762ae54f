"""Bodies as messages and back: what the client of gRPC can hold, what it is behind on, and that
both ways give the same state.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import notebooks_v2 as v2

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.grpc_messages import (
    UnsupportedByGrpc,
    to_message,
    to_rest_resource,
    to_rest_resource_lenient,
)
from provision.adapters.google.instance_creation import create_instance
from provision.adapters.google.notebooks_grpc import GrpcNotebooks
from provision.adapters.google.rest import RestClient
from provision.effects.google import CreateInstance
from provision.sandbox.api_errors import ApiError
from provision.sandbox.discovery import find_discovery_document
from provision.sandbox.request_validation import validate_body
from provision.sandbox.serve import serve
from tests.adapters.cloud.conftest import BODIES, INSTANCE, PROJECT, REQUEST, Clock, instance

BEHIND = {"H100", "hyperdisk", "reservation"}


@pytest.mark.parametrize("which", BODIES)
def test_every_body_is_valid_by_the_discovery_document(which: str) -> None:
    assert find_discovery_document() is not None, (
        "google-api-python-client is a dependency of the tests"
    )
    assert validate_body(BODIES[which], "Instance", "instance")


@pytest.mark.parametrize(
    "wrong",
    [
        {"acceleratorConfigs": [{"type": "NVIDIA_L5"}]},
        {"machineKind": "x"},
        {"dataDisks": [{"diskSizeGb": "ten"}]},
        {"instanceId": "1"},
        {"tags": "x"},
    ],
)
def test_a_wrong_body_is_not(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        validate_body(instance(**wrong), "Instance", "instance")


@pytest.mark.parametrize("which", BODIES)
def test_which_way_a_body_takes(which: str) -> None:
    assert (to_message(BODIES[which], v2.Instance) is None) is (which in BEHIND)


@pytest.mark.parametrize(
    "body",
    [
        {"gceSetup": {"minCpuPlatform": "x"}},
        {"gceSetup": {"confidentialInstanceConfig": {"confidentialInstanceType": "SEV"}}},
        {"enableManagedEuc": True},
        {"enableDeletionProtection": True},
        {"gceSetup": {"networkInterfaces": [{"accessConfigs": []}]}},
    ],
)
def test_what_the_messages_lack_goes_over_rest(body: dict[str, Any]) -> None:
    assert to_message(body, v2.Instance) is None


@pytest.mark.parametrize("which", sorted(set(BODIES) - BEHIND))
def test_a_body_is_the_same_after_a_way_through_messages(which: str) -> None:
    assert to_rest_resource(to_message(BODIES[which], v2.Instance)) == BODIES[which]


def test_the_client_lags_behind_the_service_by_this() -> None:
    """When google-cloud-notebooks catches up this fails: then less goes over REST, and the page on
    Workbench says so.
    """
    found = find_discovery_document()
    assert found is not None
    schemas = json.loads(found.read_bytes())["schemas"]
    lacks = {}
    for name, message in (
        ("Instance", v2.Instance),
        ("GceSetup", v2.GceSetup),
        ("NetworkInterface", v2.NetworkInterface),
        ("DataDisk", v2.DataDisk),
    ):
        have = {field.json_name for field in message.pb(message()).DESCRIPTOR.fields}
        lacks[name] = sorted(set(schemas[name]["properties"]) - have)
    cards = {row.name for row in v2.AcceleratorConfig.AcceleratorType}
    disks = {row.name for row in v2.DiskType}
    assert lacks == {
        "Instance": [
            "enableDeletionProtection",
            "enableManagedEuc",
            "enableThirdPartyIdentity",
            "satisfiesPzi",
            "satisfiesPzs",
            "thirdPartyProxyUrl",
        ],
        "GceSetup": [
            "confidentialInstanceConfig",
            "instanceId",
            "minCpuPlatform",
            "reservationAffinity",
            "systemMetadata",
        ],
        "NetworkInterface": ["accessConfigs", "internalIp"],
        "DataDisk": ["resourcePolicies"],
    }
    assert sorted(set(schemas["AcceleratorConfig"]["properties"]["type"]["enum"]) - cards) == [
        "NVIDIA_B200",
        "NVIDIA_H100_80GB",
        "NVIDIA_H100_MEGA_80GB",
        "NVIDIA_H200_141GB",
        "NVIDIA_RTX6000",
    ]
    assert all(
        disk.startswith("HYPERDISK_")
        for disk in set(schemas["DataDisk"]["properties"]["diskType"]["enum"]) - disks
    )


def test_values_without_a_name_are_tolerated() -> None:
    message = v2.Instance()
    raw = v2.Instance.pb(message)
    raw.state = 11
    raw.gce_setup.accelerator_configs.add(core_count=8).type_ = 14
    raw.gce_setup.metadata["a"] = "b"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert to_rest_resource_lenient(message) == {
            "state": "UNKNOWN_11",
            "gceSetup": {
                "acceleratorConfigs": [{"type": "UNKNOWN_14", "coreCount": "8"}],
                "metadata": {"a": "b"},
            },
        }
        with pytest.raises(UnsupportedByGrpc):
            to_rest_resource(message)


def test_a_field_without_a_name_is_seen() -> None:
    message = v2.Instance(name="x", gce_setup=v2.GceSetup(machine_type="m"))
    v2.Instance.pb(message).gce_setup.MergeFromString(b"\xc0\x3e\x01")
    with pytest.raises(UnsupportedByGrpc):
        to_rest_resource(message)


@pytest.mark.parametrize("which", BODIES)
def test_both_ways_give_the_same_state(tmp_path: Path, which: str) -> None:
    seen = []
    for only_rest in (False, True):
        lines: list[str] = []
        with serve(tmp_path / str(only_rest)) as sandbox:
            services = GoogleClient(
                Endpoints.from_addresses(sandbox.endpoints), Clock().pace(), only_rest=only_rest
            )
            operations = services.operations(lines.append)
            request = CreateInstance(PROJECT, ("us-central1-a",), INSTANCE, BODIES[which], REQUEST)
            name = create_instance(operations, request).name
            created = services.instance(name)
            operations.update(
                name,
                {"labels": {"provision-lock": "ffffffffffff"}, "gceSetup": {"tags": ["a"]}},
                "labels,gceSetup.tags",
            )
            updated = services.instance(name)
            operations.stop(name)
            stopped = services.instance(name)
            listed = services.instances(PROJECT)
            operations.delete(name)
            assert sandbox.store is not None
            seen.append(
                (
                    _steady(created),
                    _steady(updated),
                    _steady(stopped),
                    [_steady(one) for one in listed],
                    services.instances(PROJECT),
                    _plain(lines),
                )
            )
    assert seen[0] == seen[1]


def test_nobody_listens() -> None:
    clock = Clock()
    endpoints = Endpoints(
        "http://127.0.0.1:9",
        "127.0.0.1:9",
        *["http://127.0.0.1:9"] * 7,
    )
    policy = clock.pace(retry_limit_s=5)
    rest = RestClient(AnonymousCredentials(), policy, loopback=True)
    notebooks = GrpcNotebooks(rest, endpoints, policy)
    with pytest.raises(CloudError) as raised:
        notebooks.get("projects/p/locations/z/instances/i")
    assert raised.value.failure.kind == "unreachable"
    assert "connection error: " in raised.value.why
    assert clock.waits


def test_a_channel_to_loopback_asks_no_proxy(tmp_path: Path) -> None:
    program = """
import json, sys
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.client import GoogleClient
services = GoogleClient(Endpoints.from_addresses(json.loads(sys.argv[1])))
instances = list(services.instances("my-project"))
modules = sorted(name for name in sys.modules if name.startswith("google.cloud."))
print(json.dumps([instances, modules]))
"""
    environment = {
        **os.environ,
        **dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy"), "http://127.0.0.1:9"),
    }
    for key in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        environment.pop(key, None)
    with serve(tmp_path / "sandbox") as sandbox:
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps(sandbox.endpoints)],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0] == []
    assert {name.split(".")[2] for name in json.loads(done.stdout)[1]} <= {
        "notebooks_v2",
        "location",
    }


def _steady(found: Any) -> Any:
    """An instance without what differs from one to the next."""
    volatile = {"createTime", "updateTime", "id", "proxyUri", "instanceId"}
    if isinstance(found, dict):
        return {key: _steady(value) for key, value in found.items() if key not in volatile}
    return found


def _plain(lines: list[str]) -> list[str]:
    return [
        line.partition(" (operation-")[0] for line in lines if not line.endswith("is PROVISIONING")
    ]
