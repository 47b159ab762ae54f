"""Runtime templates of Vertex AI as the sandbox answers them, through Google's discovery client and
plain HTTP.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from googleapiclient import discovery
from googleapiclient.errors import HttpError

from provision.sandbox.lifecycle import Delays
from provision.sandbox.store import Store
from tests.sandbox_rig import Clients, clients

REGION = "projects/my-project/locations/us-central1"
NAME = f"{REGION}/notebookRuntimeTemplates/one"
TEMPLATE: dict[str, Any] = {
    "displayName": "One",
    "labels": {"provision": "1"},
    "machineSpec": {
        "machineType": "g2-standard-8",
        "acceleratorType": "NVIDIA_L4",
        "acceleratorCount": 1,
    },
    "dataPersistentDiskSpec": {"diskType": "pd-ssd", "diskSizeGb": "200"},
    "networkSpec": {"enableInternetAccess": True},
    "idleShutdownConfig": {"idleTimeout": "3600s"},
    "eucConfig": {"eucDisabled": True},
    "softwareConfig": {
        "env": [{"name": "A", "value": "1"}],
        "colabImage": {"releaseName": "py312"},
    },
}
NESTED = (
    "machineSpec",
    "dataPersistentDiskSpec",
    "idleShutdownConfig",
    "softwareConfig",
    "networkSpec",
)


@pytest.fixture
def templates(sandbox: Clients) -> Iterator[Any]:
    """The resource of Google's own client."""
    built = vertex(sandbox)
    yield built.projects().locations().notebookRuntimeTemplates()
    built.close()


def vertex(sandbox: Clients) -> Any:
    return discovery.build(
        "aiplatform",
        "v1",
        static_discovery=True,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": sandbox.root},
    )


def made(templates: Any, body: Mapping[str, Any] = TEMPLATE) -> dict[str, Any]:
    call = templates.create(parent=REGION, notebookRuntimeTemplateId="one", body=dict(body))
    operation = call.execute()
    while not operation.get("done"):
        operation = templates.operations().get(name=operation["name"]).execute()
    assert operation["name"].startswith(f"{NAME}/operations/")
    return dict(operation["response"])


def test_a_template_is_made_listed_changed_and_deleted(templates: Any) -> None:
    response = made(templates)
    assert response["@type"].endswith("v1.NotebookRuntimeTemplate")
    shown = templates.get(name=NAME).execute()
    assert shown["machineSpec"] == TEMPLATE["machineSpec"]
    assert "eucConfig" not in shown, "it is input only"
    listed = templates.list(parent=REGION).execute()["notebookRuntimeTemplates"]
    assert [one["name"] for one in listed] == [NAME]
    other = templates.list(parent="projects/my-project/locations/us-east1").execute()
    assert other == {}
    changed = templates.patch(
        name=NAME,
        updateMask="displayName,softwareConfig.colabImage.releaseName,software_config.env",
        body={"displayName": "Two", "labels": {"ignored": "1"}, "machineSpec": {}},
    ).execute()
    assert (changed["displayName"], changed["labels"]) == ("Two", {"provision": "1"})
    assert changed["softwareConfig"] == {"colabImage": {}}
    assert changed["etag"] != shown["etag"]
    assert templates.delete(name=NAME).execute()["done"]
    with pytest.raises(HttpError, match="404"):
        templates.get(name=NAME).execute()


def test_what_is_not_given_is_what_the_service_chooses(templates: Any) -> None:
    made(templates, {"displayName": "Least"})
    shown = templates.get(name=NAME).execute()
    assert shown["machineSpec"] == {"machineType": "e2-standard-4"}
    assert shown["dataPersistentDiskSpec"] == {"diskType": "pd-standard", "diskSizeGb": "100"}


def test_a_name_is_taken_once(templates: Any) -> None:
    made(templates)
    with pytest.raises(HttpError, match="already exists") as caught:
        made(templates)
    assert caught.value.status_code == 409


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"displayName": ""}, "display_name"),
        ({"displayName": "x" * 129}, "display_name"),
        ({"nonsense": 1}, "Cannot find field"),
        ({"createTime": "2026-01-01T00:00:00Z"}, "output only"),
        ({"machineSpec": {"machineType": "n9-big"}}, "is not supported"),
        ({"machineSpec": {"acceleratorType": "NVIDIA_TESLA_L4"}}, "(Enum)"),
        ({"machineSpec": {"acceleratorCount": 0}}, "go together"),
        ({"machineSpec": {"machineType": "a2-highgpu-1g"}}, "cannot be used with"),
        ({"machineSpec": {"acceleratorCount": 3}}, "cannot be used with"),
        ({"dataPersistentDiskSpec": {"diskType": "PD_SSD"}}, "is not supported"),
        ({"dataPersistentDiskSpec": {"diskType": ""}}, "disk_type"),
        ({"dataPersistentDiskSpec": {"diskSizeGb": "9"}}, "from 10 to 65536"),
        ({"idleShutdownConfig": {"idleTimeout": "1h"}}, "(Duration)"),
        ({"idleShutdownConfig": {"idleTimeout": "599s"}}, "from 600s to 86400s"),
        ({"idleShutdownConfig": {"idleTimeout": "601s"}}, "whole minutes"),
        ({"softwareConfig": {"colabImage": {"releaseName": "py313"}}}, "py313"),
        ({"softwareConfig": {"env": [{"name": "a-b", "value": "1"}]}}, "a-b"),
        ({"softwareConfig": {"env": [{"name": f"V{n}"} for n in range(101)]}}, "100 variables"),
        ({"labels": {"A": "b"}}, "Invalid label"),
        ({"networkSpec": {"network": "default"}}, "not a full name"),
        (
            {"networkSpec": {"subnetwork": "projects/p/regions/us-east1/subnetworks/s"}},
            "not in region us-central1",
        ),
        ({"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}, "(Enum)"),
        ({"reservationAffinity": {"consumeReservationType": "RESERVATION_SPECIFIC"}}, "values"),
    ],
)
def test_a_body_that_the_service_would_refuse(
    templates: Any, change: dict[str, Any], words: str
) -> None:
    body = copy.deepcopy(TEMPLATE)
    for key, value in change.items():
        body[key] = {**body.get(key, {}), **value} if key in NESTED else value
    with pytest.raises(HttpError) as caught:
        made(templates, body)
    assert caught.value.status_code == 400
    assert words in str(caught.value)
    assert templates.list(parent=REGION).execute() == {}


@pytest.mark.parametrize("mask", ["", "labels", "machine_spec", "*", "software_config"])
def test_a_mask_that_the_service_would_refuse(templates: Any, mask: str) -> None:
    made(templates)
    with pytest.raises(HttpError, match="mask"):
        templates.patch(name=NAME, updateMask=mask, body={"displayName": "x"}).execute()


def test_paths_and_parameters_that_do_not_exist(sandbox: Clients) -> None:
    collection = f"/v1/{REGION}/notebookRuntimeTemplates"
    status, body, _ = sandbox.http("POST", f"{collection}?requestId=1", TEMPLATE)
    assert (status, "requestId" in body["error"]["message"]) == (400, True)
    away = "/v1/projects/p/locations/moon-east1/notebookRuntimeTemplates"
    assert sandbox.http("GET", away)[0] == 400
    assert sandbox.http("GET", f"{collection}/none")[0] == 404
    assert sandbox.http("GET", f"{collection}/none/operations/1")[0] == 404
    assert sandbox.http("GET", f"{collection}?filter=labels.a=b")[0] == 501
    assert sandbox.http("PATCH", f"{collection}/none?updateMask=display_name", {})[0] == 404


@pytest.mark.parametrize(
    ("fault", "status"), [("permission", 403), ("rate:1", 429), ("unavailable:1", 503)]
)
def test_faults_of_any_request(tmp_path: Path, fault: str, status: int) -> None:
    with clients(tmp_path, fault) as broken:
        got, body, _ = broken.http("GET", f"/v1/{NAME}")
        assert got == status
        assert "aiplatform" in str(body) or status == 503


def test_an_operation_takes_its_time_or_is_forgotten(tmp_path: Path) -> None:
    path = f"/v1/{REGION}/notebookRuntimeTemplates?notebookRuntimeTemplateId=one"
    with clients(tmp_path / "slow", delays=Delays(operation=60)) as slow:
        operation = slow.http("POST", path, TEMPLATE)[1]
        assert "done" not in operation
    with clients(tmp_path / "lost", "lost-operation") as lost:
        operation = lost.http("POST", path, TEMPLATE)[1]
        assert lost.http("GET", f"/v1/{operation['name']}")[0] == 404
        assert lost.http("GET", f"/v1/{NAME}")[0] == 200


def test_a_store_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.edit_data() as data:
        del data["templates"], data["executions"], data["vertex_operations"]
    assert Store(tmp_path).snapshot()["templates"] == {}
