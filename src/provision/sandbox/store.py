"""State of the sandbox's services in a folder: saved completely after each change, thread-safe."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from provision.errors import StateError

MAX_SERIAL_BYTES = 1 << 20
"""Bytes of serial output that Compute Engine keeps. Source: its documentation of the serial
console.
"""
_NEW = ".new-"
_SCHEMA = "provision.sandbox/1"
_ROOMS = ("instances", "operations", "requests", "buckets", "secrets")


class StoredObject(NamedTuple):
    """An object of a bucket: its bytes and its fields in the JSON API."""

    content: bytes
    about: dict[str, Any]


class Store:
    """Instances, operations, objects, secrets, guest attributes and serial output.

    Names are full resource names, as in projects/P/locations/Z/instances/I.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "store.json"
        self._lock = threading.RLock()
        self._depth = 0
        for inner in (folder, folder / "objects", folder / "serial"):
            inner.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in (
            *folder.glob(f"{_NEW}*"),
            *(folder / "objects").glob(f"{_NEW}*"),
        ):  # of a process that was killed while it wrote
            left.unlink(missing_ok=True)
        self._data = _loaded(self._file)

    @contextmanager
    def edit_data(self) -> Iterator[dict[str, Any]]:
        """Yield all data for changes, which are saved at the end of the outermost block.

        The keys are instances, operations, requests, buckets and secrets. If the block raises, the
        changes are saved too: a service that refuses late has still done its earlier steps.
        """
        with self._lock:
            self._depth += 1
            try:
                yield self._data
            finally:
                self._depth -= 1
                if not self._depth:
                    _written(self._file, json.dumps(self._data, indent=1, sort_keys=True).encode())

    @contextmanager
    def read_data(self) -> Iterator[dict[str, Any]]:
        """Yield all data for reading; nothing is saved."""
        with self._lock:
            yield self._data

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of all data except the bytes of objects."""
        with self._lock:
            return copy.deepcopy(self._data)

    def instance(self, name: str) -> dict[str, Any] | None:
        """Return a copy of an instance's body as the service shows it, or None."""
        with self._lock:
            record = self._data["instances"].get(name)
            return None if record is None else copy.deepcopy(record["body"])

    def metadata(self, name: str) -> dict[str, str] | None:
        """Return an instance's metadata with the keys that the service added, or None."""
        body = self.instance(name)
        return None if body is None else dict(body.get("gceSetup", {}).get("metadata", {}))

    def find_instance(self, project: str, zone: str, instance: str) -> str | None:
        """Return the full name of an instance by its parts, or None."""
        name = f"projects/{project}/locations/{zone}/instances/{instance}"
        with self._lock:
            return name if name in self._data["instances"] else None

    def note(self, name: str, **values: Any) -> None:
        """Store a note on an instance for the program that runs its device.

        Services never show it.
        """
        with self.edit_data() as data:
            if name in data["instances"]:
                data["instances"][name].setdefault("notes", {}).update(values)

    def notes(self, name: str) -> dict[str, Any]:
        """Return the notes on an instance."""
        with self._lock:
            return copy.deepcopy(self._data["instances"].get(name, {}).get("notes", {}))

    def set_guest_attribute(self, name: str, namespace: str, key: str, value: str) -> bool:
        """Store a guest attribute; False if the instance does not exist."""
        with self.edit_data() as data:
            if (record := data["instances"].get(name)) is None:
                return False
            record.setdefault("guest", {}).setdefault(namespace, {})[key] = value
            return True

    def drop_guest_attribute(self, name: str, namespace: str, key: str) -> bool:
        """Remove a guest attribute; False if it does not exist."""
        with self.edit_data() as data:
            return (
                data["instances"].get(name, {}).get("guest", {}).get(namespace, {}).pop(key, None)
                is not None
            )

    def guest_attributes(self, name: str) -> dict[str, dict[str, str]]:
        """Return the guest attributes of an instance by namespace."""
        with self._lock:
            return copy.deepcopy(self._data["instances"].get(name, {}).get("guest", {}))

    def append_serial(self, name: str, text: str) -> None:
        """Append to the serial output (port 1) of an instance."""
        with self._lock, self._serial(name).open("ab") as file:
            file.write(text.encode())

    def serial(self, name: str, start: int = 0) -> tuple[bytes, int, int]:
        """Return serial output from a byte position on, its actual start and the next position.

        The start is later if the requested position is no longer stored.
        """
        with self._lock:
            path = self._serial(name)
            whole = path.read_bytes() if path.exists() else b""
        begin = min(max(start, len(whole) - MAX_SERIAL_BYTES, 0), len(whole))
        return whole[begin:], begin, len(whole)

    def delete_instance(self, name: str) -> None:
        """Remove an instance with all its data."""
        with self.edit_data() as data:
            data["instances"].pop(name, None)
            self._serial(name).unlink(missing_ok=True)

    def make_bucket(self, bucket: str, project: str = "") -> bool:
        """Create a bucket; False if it exists."""
        with self.edit_data() as data:
            if bucket in data["buckets"]:
                return False
            data["buckets"][bucket] = {
                "project": project,
                "created": utc_timestamp(),
                "objects": {},
            }
            return True

    def has_bucket(self, bucket: str) -> bool:
        """Return whether a bucket exists."""
        with self._lock:
            return bucket in self._data["buckets"]

    def put_object(
        self, bucket: str, name: str, content: bytes, content_type: str = "application/octet-stream"
    ) -> dict[str, Any]:
        """Store an object under the next generation and return its fields.

        A missing bucket is created.
        """
        self.make_bucket(bucket)
        with self.edit_data() as data:
            kept = data["buckets"][bucket]["objects"]
            before = kept.get(name)
            generation = max(time.time_ns() // 1000, data["last"] + 1)
            data["last"] = generation
            stamp = utc_timestamp()
            about = {
                "kind": "storage#object",
                "id": f"{bucket}/{name}/{generation}",
                "name": name,
                "bucket": bucket,
                "generation": str(generation),
                "metageneration": "1",
                "contentType": content_type,
                "storageClass": "STANDARD",
                "size": str(len(content)),
                "md5Hash": base64.b64encode(
                    hashlib.md5(content, usedforsecurity=False).digest()
                ).decode(),
                "etag": base64.b64encode(str(generation).encode()).decode(),
                "timeCreated": stamp,
                "updated": stamp,
            }
            _written(self._bytes(about), content)
            kept[name] = about
        if before is not None:
            self._bytes(before).unlink(missing_ok=True)
        return dict(about)

    def object(self, bucket: str, name: str) -> StoredObject | None:
        """Return an object, or None."""
        with self._lock:
            about = self._data["buckets"].get(bucket, {}).get("objects", {}).get(name)
            return (
                None
                if about is None
                else StoredObject(self._bytes(about).read_bytes(), dict(about))
            )

    def objects(self, bucket: str, prefix: str = "") -> tuple[dict[str, Any], ...]:
        """Return the fields of the objects whose name has a prefix, by name."""
        with self._lock:
            kept: Mapping[str, dict[str, Any]] = (
                self._data["buckets"].get(bucket, {}).get("objects", {})
            )
            return tuple(dict(kept[name]) for name in sorted(kept) if name.startswith(prefix))

    def delete_object(self, bucket: str, name: str) -> bool:
        """Remove an object; False if it does not exist."""
        with self.edit_data() as data:
            about = data["buckets"].get(bucket, {}).get("objects", {}).pop(name, None)
        if about is not None:
            self._bytes(about).unlink(missing_ok=True)
        return about is not None

    def set_secret(self, secret: str, value: bytes) -> str:
        """Add a version to a secret (projects/P/secrets/S) and return the version's name.

        A missing secret is created.
        """
        with self.edit_data() as data:
            versions = data["secrets"].setdefault(secret, [])
            versions.append(base64.b64encode(value).decode())
            return f"{secret}/versions/{len(versions)}"

    def secret(self, secret: str, version: str) -> tuple[bytes, str] | None:
        """Return the value and the name of a version ("3" or "latest"), or None."""
        with self._lock:
            versions: list[str] = self._data["secrets"].get(secret, [])
            number = int(version) if version.isdecimal() else 0
            if version == "latest":
                number = len(versions)
            if not 0 < number <= len(versions):
                return None
            return base64.b64decode(versions[number - 1]), f"{secret}/versions/{number}"

    def _bytes(self, about: Mapping[str, Any]) -> Path:
        return self.folder / "objects" / _digest(str(about["id"]))

    def _serial(self, name: str) -> Path:
        return self.folder / "serial" / _digest(name)


def utc_timestamp() -> str:
    """Return the time in the format of Google's APIs."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _loaded(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"schema": _SCHEMA, "last": 0, **{room: {} for room in _ROOMS}}
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return empty
    except (OSError, ValueError) as error:
        raise _damaged(path, type(error).__name__) from None
    if (
        not isinstance(data, dict)
        or data.get("schema") != _SCHEMA
        or not all(isinstance(data.get(room), dict) for room in _ROOMS)
    ):
        raise _damaged(path, f"it is not of the schema {_SCHEMA}")
    return {**empty, **data}


def _damaged(path: Path, why: str) -> StateError:
    return StateError(
        f"{path}: the sandbox's store cannot be read",
        why=why,
        hint=f"remove the folder {path.parent}: the sandbox holds nothing that is real",
    )


def _written(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_NEW)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
