"""The store: saved whole, safe between threads, and never a damaged one taken for an empty one."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from provision.errors import StateError
from provision.sandbox.store import Store

NAME = "projects/p/locations/us-central1-a/instances/one"


def with_instance(folder: Path) -> Store:
    store = Store(folder)
    with store.edit_data() as data:
        data["instances"][NAME] = {"body": {"name": NAME, "labels": {}}}
    return store


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    store = with_instance(tmp_path)
    store.set_guest_attribute(NAME, "provision", "status", "x")
    store.append_serial(NAME, "hello")
    store.note(NAME, booted=True)
    about = store.put_object("bucket", "a", b"bytes")
    version = store.set_secret("projects/p/secrets/s", b"value")
    again = Store(tmp_path)
    assert again.snapshot() == store.snapshot()
    assert again.object("bucket", "a") == (b"bytes", about)
    assert again.secret("projects/p/secrets/s", "1") == (b"value", version)
    assert again.serial(NAME) == (b"hello", 0, 5)
    assert again.snapshot()["instances"][NAME]["notes"] == {"booted": True}
    assert int(again.put_object("bucket", "a", b"")["generation"]) > int(about["generation"])


def test_what_is_given_is_a_copy(tmp_path: Path) -> None:
    store = with_instance(tmp_path)
    found = store.instance(NAME)
    assert found is not None
    found["labels"]["x"] = "y"
    assert store.instance(NAME) == {"name": NAME, "labels": {}}


def test_nothing_is_kept_of_what_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.set_guest_attribute(NAME, "provision", "status", "x")
    store.note(NAME, booted=True)
    assert (store.guest_attributes(NAME), store.instance(NAME)) == ({}, None)
    assert store.snapshot()["instances"] == {}
    assert store.find_instance("p", "us-central1-a", "one") is None


def test_a_deleted_instance_leaves_nothing(tmp_path: Path) -> None:
    store = with_instance(tmp_path)
    store.append_serial(NAME, "secret words")
    store.delete_instance(NAME)
    assert store.serial(NAME) == (b"", 0, 0)
    assert list((tmp_path / "serial").iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"schema": "provision.sandbox/2"}',
        '{"schema": "provision.sandbox/1", "instances": []}',
        "\0" * 100,
    ],
)
def test_a_damaged_store_is_never_an_empty_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StateError, match="cannot be read") as caught:
        Store(tmp_path)
    assert str(tmp_path) in caught.value.hint
    assert (tmp_path / "store.json").read_text() == content


def test_threads_lose_nothing(tmp_path: Path) -> None:
    store = with_instance(tmp_path)

    def work(number: int) -> None:
        for turn in range(20):
            store.set_guest_attribute(NAME, "provision", f"{number}-{turn}", "x")
            store.put_object("bucket", "same", str(turn).encode())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(tmp_path).guest_attributes(NAME)["provision"]) == 160
    assert len(list((tmp_path / "objects").iterdir())) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["objects", "serial", "store.json"], (
        "no temporary file is left"
    )


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    store.set_secret("projects/p/secrets/s", b"value")
    store.put_object("bucket", "a", b"")
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    assert (tmp_path / "new/store.json").stat().st_mode & 0o077 == 0
    assert all(one.stat().st_mode & 0o077 == 0 for one in (tmp_path / "new/objects").iterdir())


def test_a_change_that_fails_is_still_saved(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail() -> None:
        with store.edit_data() as data:
            data["buckets"]["b"] = {"objects": {}}
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "b" in json.loads((tmp_path / "store.json").read_text())["buckets"]
