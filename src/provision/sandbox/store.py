"""State of the sandbox's services in a folder: saved completely after each change, thread-safe."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from provision.agent.core.files import write_atomically
from provision.errors import StateError

MAX_SERIAL_BYTES = 1 << 20
"""Bytes of serial output that Compute Engine keeps. Source: its documentation of the serial
console.
"""
_SCHEMA = "provision.sandbox/1"
_COLLECTIONS = ("instances", "operations", "requests", "buckets", "secrets")
_LATER_COLLECTIONS = ("templates", "executions", "runtimes", "vertex_operations", "custom_jobs")
"""Collections that stores of earlier versions lack."""


class EmulatedObject(NamedTuple):
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
        # Parts of files, left by a process that was killed while it wrote.
        for unfinished in (*folder.glob(".store.json.*"), *folder.glob("objects/.*")):
            unfinished.unlink(missing_ok=True)
        self._data = _read(self._file)

    @contextmanager
    def edit_data(self) -> Iterator[dict[str, Any]]:
        """Yield all data for changes, which are saved at the end of the outermost block.

        The keys are the names of the collections. If the block raises, the changes are saved too: a
        service that refuses late has still done its earlier steps.
        """
        with self._lock:
            self._depth += 1
            try:
                yield self._data
            finally:
                self._depth -= 1
                if not self._depth:
                    # Without indent: json writes indented text ten times slower.
                    text = json.dumps(self._data, sort_keys=True)
                    write_atomically(self._file, text, durable=False)

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
        body: dict[str, Any] | None = self._copy(name, "body", None)
        return body

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

    def set_guest_attribute(self, name: str, namespace: str, key: str, value: str) -> None:
        """Store a guest attribute of an instance, if it exists."""
        with self.edit_data() as data:
            if name in data["instances"]:
                attributes = data["instances"][name].setdefault("guest", {})
                attributes.setdefault(namespace, {})[key] = value

    def guest_attributes(self, name: str) -> dict[str, dict[str, str]]:
        """Return the guest attributes of an instance by namespace."""
        attributes: dict[str, dict[str, str]] = self._copy(name, "guest", {})
        return attributes

    def append_serial(self, name: str, text: str) -> None:
        """Append to the serial output (port 1) of an instance."""
        with self._lock, self._serial_file(name).open("ab") as file:
            file.write(text.encode())

    def serial(self, name: str, start: int = 0) -> tuple[bytes, int, int]:
        """Return serial output from a byte position on, its actual start and the next position.

        The start is later if the requested position is no longer stored.
        """
        with self._lock:
            path = self._serial_file(name)
            whole = path.read_bytes() if path.exists() else b""
        begin = min(max(start, len(whole) - MAX_SERIAL_BYTES, 0), len(whole))
        return whole[begin:], begin, len(whole)

    def delete_instance(self, name: str) -> None:
        """Remove an instance with all its data."""
        with self.edit_data() as data:
            data["instances"].pop(name, None)
            self._serial_file(name).unlink(missing_ok=True)

    def make_bucket(self, bucket: str, project: str = "", location: str = "") -> bool:
        """Create a bucket; False if it exists."""
        with self.edit_data() as data:
            if bucket in data["buckets"]:
                return False
            data["buckets"][bucket] = {
                "project": project,
                "location": location,
                "created": utc_timestamp(),
                "objects": {},
            }
            return True

    def bucket_location(self, bucket: str) -> str:
        """Return the location of a bucket; "" if the first upload created it."""
        with self._lock:
            return str(self._data["buckets"][bucket].get("location", ""))

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
            objects = data["buckets"][bucket]["objects"]
            before = objects.get(name)
            generation = data["last"] = max(time.time_ns() // 1000, data["last"] + 1)
            timestamp = utc_timestamp()
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
                "md5Hash": _base64(hashlib.md5(content, usedforsecurity=False).digest()),
                "etag": _base64(str(generation).encode()),
                "timeCreated": timestamp,
                "updated": timestamp,
            }
            write_atomically(self._content_file(about), content, durable=False)
            objects[name] = about
        if before is not None:
            self._content_file(before).unlink(missing_ok=True)
        return dict(about)

    def object(self, bucket: str, name: str) -> EmulatedObject | None:
        """Return an object, or None."""
        with self._lock:
            about = self._objects(bucket).get(name)
            if about is None:
                return None
            return EmulatedObject(self._content_file(about).read_bytes(), dict(about))

    def objects(self, bucket: str, prefix: str = "") -> tuple[dict[str, Any], ...]:
        """Return the fields of the objects whose name has a prefix, by name."""
        with self._lock:
            objects = sorted(self._objects(bucket).items())
            return tuple(dict(about) for name, about in objects if name.startswith(prefix))

    def delete_object(self, bucket: str, name: str) -> bool:
        """Remove an object; False if it does not exist."""
        with self.edit_data():
            about = self._objects(bucket).pop(name, None)
        if about is not None:
            self._content_file(about).unlink(missing_ok=True)
        return about is not None

    def set_secret(self, secret: str, value: bytes) -> str:
        """Add a version to a secret (projects/P/secrets/S) and return the version's name.

        A missing secret is created.
        """
        with self.edit_data() as data:
            versions = data["secrets"].setdefault(secret, [])
            versions.append(_base64(value))
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

    def _copy(self, name: str, key: str, default: Any) -> Any:
        """Return a copy of a part of an instance's record."""
        with self._lock:
            return copy.deepcopy(self._data["instances"].get(name, {}).get(key, default))

    def _objects(self, bucket: str) -> dict[str, dict[str, Any]]:
        objects: dict[str, dict[str, Any]] = (
            self._data["buckets"].get(bucket, {}).get("objects", {})
        )
        return objects

    def _content_file(self, about: Mapping[str, Any]) -> Path:
        return self.folder / "objects" / _digest(str(about["id"]))

    def _serial_file(self, name: str) -> Path:
        return self.folder / "serial" / _digest(name)


def utc_timestamp() -> str:
    """Return the time in the format of Google's APIs."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"schema": _SCHEMA, "last": 0}
    empty |= {key: {} for key in (*_COLLECTIONS, *_LATER_COLLECTIONS)}
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return empty
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError:
        why = "it is not valid JSON"
    else:
        is_known = isinstance(data, dict) and data.get("schema") == _SCHEMA
        if is_known and all(isinstance(data.get(key), dict) for key in _COLLECTIONS):
            data = {**empty, **data}
            if all(isinstance(data[key], dict) for key in _LATER_COLLECTIONS):
                return data
        why = f"its schema is not {_SCHEMA}"
    raise StateError(
        f"{path}: the sandbox's store cannot be read",
        why=why,
        hint=f"remove the folder {path.parent}; it contains only the sandbox's data",
    )
