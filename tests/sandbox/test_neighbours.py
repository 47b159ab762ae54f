"""Compute Engine and Secret Manager, as far as they are needed."""

from __future__ import annotations

import base64

import pytest

from provision.facts import load_facts
from provision.sandbox import hardware
from provision.sandbox.store import MAX_SERIAL_BYTES
from tests.sandbox_rig import NAME, Clients

ZONE = "/compute/v1/projects/my-project/zones/us-central1-a"
ONE = f"{ZONE}/instances/one"


def test_guest_attributes(sandbox: Clients) -> None:
    assert sandbox.http("GET", f"{ONE}/getGuestAttributes?queryPath=provision/")[0] == 404
    sandbox.made()
    assert sandbox.http("GET", f"{ONE}/getGuestAttributes?queryPath=provision/")[0] == 404, (
        "none was written"
    )
    assert sandbox.store is not None
    for space, key, value in (
        ("provision", "status", "{}"),
        ("provision", "result", "x"),
        ("notebooks", "DONE", "true"),
    ):
        sandbox.store.set_guest_attribute(NAME, space, key, value)

    def items(query: str) -> list[tuple[str, str, str]]:
        body = sandbox.http("GET", f"{ONE}/getGuestAttributes?queryPath={query}")[1]
        return [(one["namespace"], one["key"], one["value"]) for one in body["queryValue"]["items"]]

    assert items("provision/") == [("provision", "result", "x"), ("provision", "status", "{}")]
    assert items("provision/status") == [("provision", "status", "{}")]
    assert len(items("")) == 3
    assert sandbox.http("GET", f"{ONE}/getGuestAttributes?queryPath=provision/other")[0] == 404


def test_serial_output_is_paged_and_its_beginning_is_lost(sandbox: Clients) -> None:
    sandbox.made()
    assert sandbox.store is not None
    assert sandbox.http("GET", f"{ONE}/serialPort")[1]["next"] == "0"
    sandbox.store.append_serial(NAME, "first\n")
    page = sandbox.http("GET", f"{ONE}/serialPort?port=1&start=0")[1]
    assert (page["contents"], page["start"], page["next"]) == ("first\n", "0", "6")
    sandbox.store.append_serial(NAME, "second\n")
    assert sandbox.http("GET", f"{ONE}/serialPort?start=6")[1]["contents"] == "second\n"
    assert sandbox.http("GET", f"{ONE}/serialPort?start=13")[1]["contents"] == ""
    sandbox.store.append_serial(NAME, "x" * MAX_SERIAL_BYTES)
    page = sandbox.http("GET", f"{ONE}/serialPort?start=0")[1]
    assert (len(page["contents"]), page["start"], page["next"]) == (
        MAX_SERIAL_BYTES,
        "13",
        str(MAX_SERIAL_BYTES + 13),
    )
    assert sandbox.http("GET", f"{ONE}/serialPort?port=2")[0] == 400


def test_accelerator_types_of_a_zone(sandbox: Clients) -> None:
    items = sandbox.http("GET", f"{ZONE}/acceleratorTypes")[1]["items"]
    most = {one["name"]: one["maximumCardsPerInstance"] for one in items}
    assert most["nvidia-l4"] == 8
    assert most["nvidia-tesla-t4"] == 4
    assert "nvidia-tesla-k80" not in most
    assert (
        sandbox.http("GET", "/compute/v1/projects/my-project/zones/nowhere1-a/acceleratorTypes")[1][
            "items"
        ]
        == []
    )


def test_machine_types(sandbox: Clients) -> None:
    one = sandbox.http("GET", f"{ZONE}/machineTypes/g2-standard-4")[1]
    assert (one["guestCpus"], one["memoryMb"]) == (4, 16384)
    assert one["accelerators"] == [
        {"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}
    ]
    assert "accelerators" not in sandbox.http("GET", f"{ZONE}/machineTypes/n1-standard-4")[1]
    assert sandbox.http("GET", f"{ZONE}/machineTypes/g9-standard-4")[0] == 404
    assert len(sandbox.http("GET", f"{ZONE}/machineTypes")[1]["items"]) == len(
        load_facts().machines
    )


def test_quotas_count_what_runs(sandbox: Clients) -> None:
    def usage(region: str) -> float:
        quotas = sandbox.http("GET", f"/compute/v1/projects/my-project/regions/{region}")[1][
            "quotas"
        ]
        return float(next(one["usage"] for one in quotas if one["metric"] == "NVIDIA_L4_GPUS"))

    assert usage("us-central1") == 0
    sandbox.made()
    assert (usage("us-central1"), usage("us-west1")) == (1, 0)
    sandbox.done(sandbox.rest.instances().stop(name=NAME, body={}).execute())
    assert usage("us-central1") == 0


@pytest.mark.parametrize(
    ("card", "metric"),
    [
        ("L4", "NVIDIA_L4_GPUS"),
        ("T4", "NVIDIA_T4_GPUS"),
        ("A100-40GB", "NVIDIA_A100_GPUS"),
        ("A100-80GB", "NVIDIA_A100_80GB_GPUS"),
    ],
)
def test_names_of_quotas(card: str, metric: str) -> None:
    found = load_facts().card(card)
    assert found is not None
    assert hardware.quota_metric(found) == metric


def test_secrets(sandbox: Clients) -> None:
    secret = "/v1/projects/my-project/secrets/hf"
    for version in ("3", "latest"):
        body = sandbox.http("GET", f"{secret}/versions/{version}:access")[1]
        assert base64.b64decode(body["payload"]["data"]) == b"sandbox-placeholder-hf"
    for value in (b"one", b"two"):
        sandbox.http(
            "POST", f"{secret}:addVersion", {"payload": {"data": base64.b64encode(value).decode()}}
        )

    def access(version: str) -> tuple[str, bytes]:
        body = sandbox.http("GET", f"{secret}/versions/{version}:access")[1]
        return body["name"], base64.b64decode(body["payload"]["data"])

    assert access("1") == ("projects/my-project/secrets/hf/versions/1", b"one")
    assert access("latest") == ("projects/my-project/secrets/hf/versions/2", b"two")
    for version in ("0", "3", "x"):
        assert sandbox.http("GET", f"{secret}/versions/{version}:access")[0] == 404
    assert sandbox.http("POST", f"{secret}:addVersion", {"payload": {"data": "%%"}})[0] == 400
