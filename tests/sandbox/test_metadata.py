"""The metadata server of a machine: as strict as the real one where programs depend on it."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from provision.sandbox.metadata_server import MetadataResponse, MetadataServer
from tests.agent.workbench.bench import NAME, Store

FLAVOR = {"Metadata-Flavor": "Google"}
ROOT = "/computeMetadata/v1"


@pytest.fixture
def store() -> Store:
    body = {
        "gceSetup": {
            "machineType": "zones/us-central1-a/machineTypes/g2-standard-4",
            "serviceAccounts": [{"email": "vm@my-project.iam.gserviceaccount.com"}],
        }
    }
    return Store(body=body, attributes={"enable-guest-attributes": "true", "My-Key": "a value"})


@pytest.fixture
def metadata(store: Store) -> MetadataServer:
    return MetadataServer(store, NAME, {"own": "1"})


def test_without_the_header_nothing_is_told(metadata: MetadataServer) -> None:
    for headers in ({}, {"Metadata-Flavor": "google"}, {**FLAVOR, "X-Forwarded-For": "10.0.0.1"}):
        assert metadata.handle_request("GET", f"{ROOT}/instance/name", headers).status == 403
        assert (
            metadata.handle_request(
                "PUT", f"{ROOT}/instance/guest-attributes/a/b", headers, b"x"
            ).status
            == 403
        )
    assert metadata.handle_request("GET", "/", {}).status == 200


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/project/project-id", MetadataResponse(200, "my-project")),
        ("/instance/name", MetadataResponse(200, "provision-spec-workbench")),
        ("/instance/attributes/My-Key", MetadataResponse(200, "a value")),
        ("/instance/attributes/own", MetadataResponse(200, "1")),
        ("/instance/attributes/", MetadataResponse(200, "My-Key\nenable-guest-attributes\nown\n")),
        (
            "/instance/service-accounts/default/email",
            MetadataResponse(200, "vm@my-project.iam.gserviceaccount.com"),
        ),
        ("/instance/attributes", MetadataResponse(301, "")),
    ],
)
def test_values_and_listings(metadata: MetadataServer, path: str, answer: MetadataResponse) -> None:
    assert metadata.handle_request("GET", ROOT + path, FLAVOR) == answer


def test_what_the_machine_says_of_itself_cannot_be_talked_away(
    metadata: MetadataServer, store: Store
) -> None:
    store.attributes["own"] = "[]"
    assert metadata.handle_request("GET", f"{ROOT}/instance/attributes/own", FLAVOR).text == "1"


@pytest.mark.parametrize(
    "path",
    ["/instance/attributes/none", "/instance/name/x", "/instance/attributes/../name", "/nothing"],
)
def test_what_is_not_there_is_not_found(metadata: MetadataServer, path: str) -> None:
    assert metadata.handle_request("GET", ROOT + path, FLAVOR).status == 404
    assert metadata.handle_request("GET", "/etc/passwd", FLAVOR).status == 404
    assert metadata.handle_request("POST", ROOT + path, FLAVOR).status == 405


def test_the_zone_and_the_machine_type_name_the_project_by_number(metadata: MetadataServer) -> None:
    number = metadata.handle_request("GET", f"{ROOT}/project/numeric-project-id", FLAVOR).text
    assert (
        metadata.handle_request("GET", f"{ROOT}/instance/zone", FLAVOR).text
        == f"projects/{number}/zones/us-central1-a"
    )
    assert (
        metadata.handle_request("GET", f"{ROOT}/instance/machine-type", FLAVOR).text
        == f"projects/{number}/machineTypes/g2-standard-4"
    )


def test_the_recursive_answer_is_json_that_keeps_the_keys_of_people(
    metadata: MetadataServer,
) -> None:
    told = json.loads(metadata.handle_request("GET", f"{ROOT}/?recursive=true", FLAVOR).text)
    assert told["instance"]["attributes"] == {
        "My-Key": "a value",
        "enable-guest-attributes": "true",
        "own": "1",
    }
    assert told["instance"]["machineType"].endswith("g2-standard-4")
    assert set(told["instance"]["serviceAccounts"]) == {
        "default",
        "vm@my-project.iam.gserviceaccount.com",
    }
    assert (
        json.loads(
            metadata.handle_request(
                "GET", f"{ROOT}/instance/attributes/?recursive=true", FLAVOR
            ).text
        )["My-Key"]
        == "a value"
    )
    assert metadata.token not in json.dumps(told)


def test_a_token_is_given_where_it_is_asked_for(metadata: MetadataServer) -> None:
    told = json.loads(
        metadata.handle_request(
            "GET", f"{ROOT}/instance/service-accounts/default/token", FLAVOR
        ).text
    )
    assert told == {"access_token": metadata.token, "expires_in": 3599, "token_type": "Bearer"}
    assert metadata.token not in repr(metadata)


def test_guest_attributes_are_kept_where_they_are_on_and_well_named(
    metadata: MetadataServer, store: Store
) -> None:
    assert (
        metadata.handle_request(
            "PUT", f"{ROOT}/instance/guest-attributes/provision/status", FLAVOR, b"{}"
        ).status
        == 200
    )
    assert store.guest == {"provision/status": "{}"}
    for path in ("provision/a.b", "provision", "a/b/c", "provision/"):
        assert (
            metadata.handle_request(
                "PUT", f"{ROOT}/instance/guest-attributes/{path}", FLAVOR, b"x"
            ).status
            == 404
        )
    store.attributes["enable-guest-attributes"] = "false"
    assert (
        metadata.handle_request(
            "PUT", f"{ROOT}/instance/guest-attributes/provision/status", FLAVOR, b"x"
        ).status
        == 403
    )
    assert store.guest == {"provision/status": "{}"}


def test_more_writes_than_the_service_promises_are_lost_and_told(
    metadata: MetadataServer, store: Store
) -> None:
    for place in range(11):
        metadata.handle_request("PUT", f"{ROOT}/instance/guest-attributes/a/k{place}", FLAVOR, b"x")
    assert len(store.guest) == 10
    assert "k10 was dropped" in store.serial


def test_who_waits_for_a_change_is_answered_when_it_comes(
    metadata: MetadataServer, store: Store
) -> None:
    path = f"{ROOT}/instance/attributes/My-Key?wait_for_change=true&timeout_sec="
    began = time.monotonic()
    assert metadata.handle_request("GET", path + "1", FLAVOR).text == "a value"
    assert 0.9 < time.monotonic() - began < 20
    threading.Timer(0.3, lambda: store.attributes.update({"My-Key": "another"})).start()
    assert metadata.handle_request("GET", path + "60", FLAVOR).text == "another"
    assert metadata.handle_request("GET", path + "60&last_etag=old", FLAVOR).text == "another"


def test_it_speaks_http(metadata: MetadataServer) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for _ in range(2):
            metadata.serve_connection(listening.accept()[0])

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}{ROOT}/instance/name"
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={**FLAVOR, "Connection": "close"}), timeout=600
    ) as answer:
        assert answer.read() == b"provision-spec-workbench"
        assert answer.headers["Metadata-Flavor"] == "Google"
        assert answer.headers["ETag"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url, timeout=600)
    listening.close()
