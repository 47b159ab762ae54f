"""Objects in Cloud Storage: content, broken answers, names that could lead elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.rest import RestClient
from provision.adapters.google.storage import Storage
from provision.errors import ExternalError
from provision.sandbox.serve import serve
from tests.adapters.cloud.conftest import Clock
from tests.adapters.cloud.stub import Reply, answering

URI = "gs://my-bucket/provision/i/nonce/report.json"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with serve(tmp_path / "sandbox") as sandbox:
        yield GoogleClient(Endpoints.from_addresses(sandbox.endpoints), Clock().pace()).storage


def test_what_is_written_is_read(storage: Storage) -> None:
    first = storage.put(URI, b"one")
    second = storage.put(URI, b"two")
    assert second.generation > first.generation
    assert storage.get(URI, 100) == b"two"
    assert storage.stat(URI) == second
    assert (second.size, second.md5) == (3, base64.b64encode(hashlib.md5(b"two").digest()).decode())


@pytest.mark.parametrize("name", ["a b/ü%2F+?#&=.txt", "x" * 1000, "..//.."])
def test_any_name_is_one_object(storage: Storage, name: str) -> None:
    storage.put(f"gs://my-bucket/{name}", name.encode())
    assert storage.get(f"gs://my-bucket/{name}", 5000) == name.encode()
    assert [one.uri for one in storage.list("gs://my-bucket")] == [f"gs://my-bucket/{name}"]


def test_nothing_there(storage: Storage) -> None:
    storage.put(URI, b"")
    assert storage.get(URI + "x", 10) is None
    assert storage.stat(URI + "x") is None
    assert storage.delete(URI + "x") is False
    assert storage.get(URI, 0) == b""
    assert storage.get("gs://no-such-bucket/x", 10) is None


def test_more_than_the_limit_is_refused(storage: Storage) -> None:
    storage.put(URI, b"x" * 1000)
    assert storage.get(URI, 1000) == b"x" * 1000
    with pytest.raises(CloudError, match="larger than 999 bytes"):
        storage.get(URI, 999)


def test_content_that_arrives_broken_is_told() -> None:
    with (
        answering(Reply(body={"name": "x", "generation": "7", "md5Hash": "AAAA"})) as (address, _),
        pytest.raises(CloudError, match="changed during the upload"),
    ):
        _of(address).put("gs://my-bucket/x", b"mine")


def test_only_what_is_new_is_uploaded(storage: Storage) -> None:
    objects = ((URI, b"one"), (URI + "2", b"two"))
    assert storage.upload(objects) == (URI, URI + "2")
    assert storage.upload((*objects[:1], (URI + "2", b"three"))) == (URI + "2",)


def test_a_folder_of_ours_is_cleared_and_nothing_else(storage: Storage) -> None:
    kept = "gs://my-bucket/provision/i2/x"
    storage.upload(((URI, b"1"), ("gs://my-bucket/provision/i/y", b"2"), (kept, b"3")))
    assert storage.delete_folder("gs://my-bucket/provision/i/") == 2
    assert [one.uri for one in storage.list("gs://my-bucket/")] == [kept]
    for wrong in ("gs://my-bucket/", "gs://my-bucket/provision/i", "gs://my-bucket", "x/"):
        with pytest.raises(ExternalError):
            storage.delete_folder(wrong)
    assert [one.uri for one in storage.list("gs://my-bucket/")] == [kept]


@pytest.mark.parametrize(
    "uri",
    [
        "gs://",
        "gs://b",
        "gs://my-bucket",
        "gs://my-bucket/",
        "http://my-bucket/x",
        "gs://My-Bucket/x",
        "gs://../x",
        "gs://my-bucket/a\nb",
        "gs://my-bucket/" + "x" * 1025,
    ],
)
def test_what_is_no_address_is_refused(storage: Storage, uri: str) -> None:
    with pytest.raises(ExternalError, match="is not a Cloud Storage URI"):
        storage.get(uri, 10)


def test_a_bucket_that_is_not_there_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with serve(tmp_path / "sandbox", ("no-bucket",)) as sandbox:
        storage = GoogleClient(Endpoints.from_addresses(sandbox.endpoints), Clock().pace()).storage
        with pytest.raises(CloudError) as raised:
            storage.put(URI, b"x")
        with pytest.raises(CloudError) as listed:
            storage.list("gs://my-bucket/")
        reader = GoogleClient(Endpoints.from_addresses(sandbox.endpoints), Clock().pace())
        assert reader.object_uris("gs://my-bucket/") == ()
        assert storage.delete_folder("gs://my-bucket/provision/") == 0, "there is nothing left"
    for error in (raised, listed):
        assert error.value.what == "there is no bucket my-bucket"
        assert "gcloud storage buckets create gs://my-bucket" in error.value.hint


def test_a_missing_role_names_the_bucket() -> None:
    denied = Reply(
        403,
        {
            "error": {
                "code": 403,
                "message": "me@example.com does not have storage.objects.create access to the "
                "Google Cloud Storage object.",
            }
        },
    )
    with answering(denied) as (address, _), pytest.raises(CloudError) as raised:
        _of(address).put("gs://my-bucket/x", b"x")
    assert (
        "gcloud storage buckets add-iam-policy-binding gs://my-bucket "
        "--role=roles/storage.objectAdmin" in raised.value.hint
    )
    assert "gs://my-bucket/x" in raised.value.what


def _of(address: str, given: Any = None) -> Storage:
    return Storage(
        RestClient(given or AnonymousCredentials(), Clock().pace(), loopback=True), address
    )
