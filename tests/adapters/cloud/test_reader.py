"""What is asked of Google Cloud: what it answers, what it means when it does not, and what is
loaded for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.extras import install_command
from provision.sandbox.serve import serve
from tests.adapters.cloud.conftest import PROJECT, Begin, Clock
from tests.adapters.cloud.stub import Reply, answering


def test_nothing_is_there(begin: Begin) -> None:
    reader = begin().services
    assert reader.instance(f"projects/{PROJECT}/locations/us-central1-a/instances/i") is None
    assert reader.instances(PROJECT) == ()
    assert reader.unreachable_zones == ()
    assert reader.object("gs://my-bucket/x", 10) is None
    assert reader.serial_output(f"projects/{PROJECT}/locations/us-central1-a/instances/i", 0) == (
        "",
        0,
    )


def test_what_a_zone_has(begin: Begin) -> None:
    reader = begin().services
    config = reader.config(PROJECT, "us-central1-a")
    assert config is not None
    assert config["availableImages"][0]["imageName"].startswith("workbench-instances-")
    cards = reader.accelerator_types(PROJECT, "us-central1-a")
    assert cards is not None
    assert {"nvidia-l4"} <= {card["name"] for card in cards}
    quotas = reader.quotas(PROJECT, "us-central1")
    assert quotas is not None
    assert {"metric", "limit", "usage"} <= set(quotas[0])


def test_guest_attributes_and_console(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    store, reader = cloud.sandbox.store, cloud.services
    assert store is not None
    assert reader.guest_attributes(name, "provision") == {}
    store.set_guest_attribute(name, "provision", "status", '{"n":"1"}')
    store.set_guest_attribute(name, "other", "status", "x")
    assert reader.guest_attributes(name, "provision") == {"status": '{"n":"1"}'}
    text, position = reader.serial_output(name, 0)
    store.append_serial(name, "one\n")
    more, end = reader.serial_output(name, position)
    assert (more, end) == ("one\n", position + 4)
    assert reader.serial_output(name, end) == ("", end)
    assert text == "" or text.endswith("\n")


def test_guest_attributes_that_are_switched_off(begin: Begin) -> None:
    cloud = begin("no-guest-attributes")
    assert cloud.services.guest_attributes(cloud.create().name, "provision") is None


DENIED = Reply(
    403,
    {
        "error": {
            "code": 403,
            "message": "Required 'compute.regions.get' permission for "
            "'projects/my-project/regions/us-central1'",
        }
    },
)
OFF = Reply(
    403,
    {
        "error": {
            "code": 403,
            "message": "Compute Engine API has not been used in project 1 before or it is "
            "disabled.",
            "status": "PERMISSION_DENIED",
        }
    },
)
EXPIRED = Reply(
    401, {"error": {"code": 401, "message": "Request had invalid authentication credentials."}}
)


def services(address: str) -> GoogleClient:
    return GoogleClient(
        Endpoints(address, "127.0.0.1:1", *[address] * 7), Clock().pace(), only_rest=True
    )


@pytest.mark.parametrize("reply", [DENIED, OFF])
def test_what_may_not_be_asked_is_unknown_not_nothing(reply: Reply) -> None:
    with answering(reply) as (address, _):
        reader = services(address)
        assert reader.quotas(PROJECT, "us-central1") is None
        assert reader.accelerator_types(PROJECT, "us-central1-a") is None
        assert reader.object_uris("gs://my-bucket/wheels/") is None
        assert reader.guest_attributes("projects/p/locations/z/instances/i", "provision") is None
        assert reader.serial_output("projects/p/locations/z/instances/i", 7) == ("", 7)


def test_credentials_that_do_not_hold_are_never_taken_for_unknown() -> None:
    with answering(EXPIRED) as (address, _):
        reader = services(address)
        for ask in (
            lambda: reader.quotas(PROJECT, "r"),
            lambda: reader.accelerator_types(PROJECT, "z"),
            lambda: reader.config(PROJECT, "z"),
            lambda: reader.object_uris("gs://my-bucket/wheels/"),
        ):
            with pytest.raises(CloudError) as raised:
                ask()
            assert raised.value.hint == "gcloud auth application-default login"


@pytest.mark.parametrize(
    "mixed",
    [
        ("https://notebooks.googleapis.com", "127.0.0.1:1"),
        ("http://example.com", "example.com:443"),
        ("http://127.0.0.1.example.com", "127.0.0.1:1"),
    ],
)
def test_credentials_never_go_to_a_place_that_is_half_ours(mixed: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="either all loopback"):
        _ = Endpoints(mixed[0], mixed[1], *[mixed[0]] * 6, mixed[1]).is_loopback


def run(
    program: str, folder: Path, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "NO_GCE_CHECK": "true",
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )


TOLD = """
from provision.errors import ProvisionError
from provision.adapters.google.client import GoogleClient
try:
    GoogleClient().rest
except ProvisionError as error:
    print(error.what, "|", error.why, "|", error.hint, "|", error.exit_code)
"""


def test_no_credentials_are_told_with_the_way_out(tmp_path: Path) -> None:
    done = run(TOLD, tmp_path)
    assert done.stdout.startswith("no credentials for Google Cloud were found | ")
    assert "gcloud auth application-default login" in done.stdout
    assert "| 2" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "not json",
        '{"type": "authorized_user", "refresh_token": "1//canary-canary-canary"}',
        '{"type": "unheard-of"}',
    ],
)
def test_a_credentials_file_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "key.json").write_text(text)
    done = run(TOLD, tmp_path, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "key.json"))
    assert "gcloud auth application-default login" in done.stdout
    assert "canary" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run(TOLD, tmp_path, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "nowhere.json"))
    assert "no credentials for Google Cloud were found" in done.stdout
    assert "nowhere.json" in done.stdout


def _key(folder: Path) -> Path:
    path = folder / "key.json"
    path.write_text(
        json.dumps(
            {
                "type": "authorized_user",
                "client_id": "a",
                "client_secret": "b",
                "refresh_token": "c",
            }
        )
    )
    return path


@pytest.mark.parametrize("gone", ["google", "requests"])
def test_a_missing_extra_names_what_installs_it(tmp_path: Path, gone: str) -> None:
    program = (
        f"gone = {gone!r}"
        """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
"""
    )
    done = run(
        program + TOLD.replace("GoogleClient().rest", "GoogleClient().rest"),
        tmp_path,
        GOOGLE_APPLICATION_CREDENTIALS=str(_key(tmp_path)),
    )
    assert install_command("workbench") in done.stdout, done.stderr


LOADED = """
import json, sys
from provision.adapters.google import client, endpoints, errors, instance_creation
from provision.adapters.google import notebooks_grpc, rest, storage
before = sorted(sys.modules)
addresses = endpoints.Endpoints.from_addresses(json.loads(sys.argv[1]))
services = client.GoogleClient(addresses)
labels = {"provision": "1", "provision-spec": "s"}
labels |= {"provision-target": "t", "provision-lineage": "l"}
body = {"labels": labels, "gceSetup": {"machineType": "e2-standard-4", "disablePublicIp": True}}
from provision.effects.google import CreateInstance
request = CreateInstance("my-project", ("us-central1-a",), "i", body, "r")
operations = services.operations(lambda line: None)
operations.delete(instance_creation.create_instance(operations, request).name)
print(json.dumps([before, sorted(sys.modules)]))
"""


def test_what_is_loaded(tmp_path: Path) -> None:
    with serve(tmp_path / "sandbox") as sandbox:
        done = run(LOADED, tmp_path, json.dumps(sandbox.endpoints))
    assert done.returncode == 0, done.stderr
    before, after = (set(names) for names in json.loads(done.stdout))
    assert not {"google.auth", "grpc", "requests", "google.protobuf"} & before
    assert "google.cloud.notebooks_v2" in after
    assert not [
        name
        for name in after
        if "aiplatform" in name
        or "compute_v1" in name
        or name.startswith(("google.cloud.storage", "googleapiclient"))
    ]


def test_the_token_is_in_nothing_that_is_shown() -> None:
    canary = "ya29.canary-canary-canary-canary"
    denied: Any = Reply(
        403,
        {
            "error": {
                "code": 403,
                "message": f"Permission 'notebooks.instances.get' denied for token {canary} at "
                "https://me:pw@host/",
            }
        },
    )
    with answering(denied) as (address, _), pytest.raises(CloudError) as raised:
        services(address).instance("projects/p/locations/z/instances/i")
    assert "canary" not in repr(raised.value.failure)
    assert "pw@" not in repr(raised.value.failure)
