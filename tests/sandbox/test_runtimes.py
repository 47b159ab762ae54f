"""Runtimes of the emulated Vertex AI, with the discovery-based client and the one over gRPC."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google.api_core.exceptions as refused
import pytest
from googleapiclient.errors import HttpError

from provision.lean_import import skip_package_init
from tests.sandbox.test_vertex import REGION, TEMPLATE, vertex
from tests.sandbox_rig import Clients, clients

pytest.importorskip("google.cloud.notebooks_v2")
NAME = f"{REGION}/notebookRuntimes/mine"
TEMPLATE_NAME = f"{REGION}/notebookRuntimeTemplates/one"
ASKED: dict[str, Any] = {
    "notebookRuntimeTemplate": TEMPLATE_NAME,
    "notebookRuntime": {"runtimeUser": "me@example.com", "displayName": "Mine"},
    "notebookRuntimeId": "mine",
}


@pytest.fixture
def locations(sandbox: Clients) -> Iterator[Any]:
    """The resources of Google's discovery-based client, with a template."""
    built = vertex(sandbox)
    resources = built.projects().locations()
    resources.notebookRuntimeTemplates().create(
        parent=REGION, notebookRuntimeTemplateId="one", body=TEMPLATE
    ).execute()
    yield resources
    built.close()


def grpc_client(sandbox: Clients) -> Any:
    """Google's own client over gRPC, as little of it as it takes."""
    package = "google.cloud.aiplatform_v1"
    skip_package_init(package, f"{package}.services", f"{package}.types")
    service = importlib.import_module(f"{package}.services.notebook_service")
    transports = importlib.import_module(f"{package}.services.notebook_service.transports")
    transport = transports.NotebookServiceGrpcTransport(channel=sandbox.channel)
    return service.NotebookServiceClient(transport=transport)


def code_of(call: Any) -> int:
    with pytest.raises(HttpError) as caught:
        call.execute()
    return int(json.loads(caught.value.content)["error"]["code"])


def test_a_runtime_from_assignment_to_deletion(locations: Any) -> None:
    runtimes = locations.notebookRuntimes()
    operation = runtimes.assign(parent=REGION, body=ASKED).execute()
    assert operation["done"]
    assert operation["response"]["@type"].endswith("v1.NotebookRuntime")
    assert operation["name"].startswith(f"{NAME}/operations/")
    assert runtimes.operations().get(name=operation["name"]).execute()["done"]
    runtime = runtimes.get(name=NAME).execute()
    assert (runtime["runtimeState"], runtime["healthState"]) == ("RUNNING", "HEALTHY")
    assert runtime["machineSpec"] == TEMPLATE["machineSpec"], "it is the template's machine"
    assert runtime["notebookRuntimeTemplateRef"] == {"notebookRuntimeTemplate": TEMPLATE_NAME}
    again = runtimes.assign(parent=REGION, body={**ASKED, "notebookRuntimeId": ""}).execute()
    assert again["response"]["name"] == NAME, "the assignment that exists is returned"
    assert code_of(runtimes.start(name=NAME, body={})) == 400, "it runs"
    assert runtimes.stop(name=NAME, body={}).execute()["done"]
    assert runtimes.get(name=NAME).execute()["runtimeState"] == "STOPPED"
    assert code_of(runtimes.stop(name=NAME, body={})) == 400
    assert code_of(runtimes.upgrade(name=NAME, body={})) == 400
    started = runtimes.start(name=NAME, body={}).execute()
    assert started["response"]["@type"].endswith("v1.StartNotebookRuntimeResponse")
    assert [one["name"] for one in runtimes.list(parent=REGION).execute()["notebookRuntimes"]] == [
        NAME
    ]
    assert runtimes.delete(name=NAME).execute()["done"]
    assert runtimes.list(parent=REGION).execute() == {}
    assert code_of(runtimes.get(name=NAME)) == 404


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"notebookRuntime": {"displayName": "x"}}, 400),
        ({"notebookRuntime": {"runtimeUser": "me@example.com"}}, 400),
        ({"notebookRuntime": {**ASKED["notebookRuntime"], "runtimeState": "RUNNING"}}, 400),
        ({"notebookRuntime": {**ASKED["notebookRuntime"], "labels": {"A": "b"}}}, 400),
        ({"notebookRuntimeId": "Not-possible"}, 400),
        ({"nonsense": 1}, 400),
        ({"notebookRuntimeTemplate": f"{REGION}/notebookRuntimeTemplates/other"}, 404),
    ],
)
def test_an_assignment_that_the_service_would_refuse(
    locations: Any, change: dict[str, Any], code: int
) -> None:
    call = locations.notebookRuntimes().assign(parent=REGION, body={**ASKED, **change})
    assert code_of(call) == code


def test_a_name_of_another_user(locations: Any) -> None:
    runtimes = locations.notebookRuntimes()
    runtimes.assign(parent=REGION, body=ASKED).execute()
    other = {"runtimeUser": "you@example.com", "displayName": "Yours"}
    call = runtimes.assign(parent=REGION, body={**ASKED, "notebookRuntime": other})
    assert code_of(call) == 409


def test_the_same_over_grpc(sandbox: Clients, locations: Any) -> None:
    assert locations is not None
    client = grpc_client(sandbox)
    request = {
        "parent": REGION,
        "notebook_runtime_template": TEMPLATE_NAME,
        "notebook_runtime": {"runtime_user": "me@example.com", "display_name": "Mine"},
        "notebook_runtime_id": "mine",
    }
    runtime = client.assign_notebook_runtime(request).result(timeout=300)
    assert (runtime.name, runtime.runtime_state.name) == (NAME, "RUNNING")
    assert runtime.machine_spec.machine_type == TEMPLATE["machineSpec"]["machineType"]
    client.stop_notebook_runtime(name=NAME).result(timeout=300)
    assert client.get_notebook_runtime(name=NAME).runtime_state.name == "STOPPED"
    with pytest.raises(refused.FailedPrecondition):
        client.stop_notebook_runtime(name=NAME)
    with pytest.raises(refused.FailedPrecondition):
        client.upgrade_notebook_runtime(name=NAME)
    client.start_notebook_runtime(name=NAME).result(timeout=300)
    assert [one.name for one in client.list_notebook_runtimes(parent=REGION)] == [NAME]
    client.delete_notebook_runtime(name=NAME).result(timeout=300)
    with pytest.raises(refused.NotFound):
        client.get_notebook_runtime(name=NAME)


def test_a_region_without_a_machine(tmp_path: Path) -> None:
    with clients(tmp_path, "stockout:us-central1") as sandbox:
        built = vertex(sandbox)
        resources = built.projects().locations()
        resources.notebookRuntimeTemplates().create(
            parent=REGION, notebookRuntimeTemplateId="one", body=TEMPLATE
        ).execute()
        assert code_of(resources.notebookRuntimes().assign(parent=REGION, body=ASKED)) == 429
        built.close()
