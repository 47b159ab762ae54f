"""Wheels in the bucket, as a replica takes them from there and adds them, over HTTP on loopback."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from provision.agent.core.agent_config import DocumentError, LockedUv
from provision.agent.job.document import WheelFile, WheelFolder, parse_job_document
from provision.agent.job.wheels import BucketWheels, read_glibc
from provision.agent.workbench.cloud import CloudClient, ServiceCallFailed
from provision.agent.workbench.package_index import find_default_index
from tests.agent.workbench.bench import CUT, Cloud
from tests.rig import make_index, served

FOLDER = "gs://my-bucket/provision/provision-wheels/"


@dataclass
class Replica:
    """A replica with an empty working folder, and what it reports."""

    cloud: Cloud
    work: Path
    log: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def file(self, name: str) -> WheelFile:
        """A wheel of the rig's index."""
        path = self.cloud.wheels[name]
        return WheelFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), None)

    def keep(self, name: str, content: bytes | None = None) -> str:
        """Put a wheel of the index, or other content, into the bucket; return its address."""
        address = f"{FOLDER}{self.file(name).sha256}/{self.file(name).name}"
        self.cloud.objects[address] = content or self.cloud.wheels[name].read_bytes()
        return address

    @property
    def client(self) -> CloudClient:
        metadata = f"{self.cloud.address}/computeMetadata/v1"
        return CloudClient(metadata, self.cloud.address, self.cloud.address, sleep=lambda _: None)

    def wheels(
        self,
        *names: str,
        fills: bool = True,
        glibc: tuple[int, ...] | None = (2, 31),
        **files: tuple[WheelFile, ...],
    ) -> BucketWheels:
        uv = files.pop("uv", ())
        folder = WheelFolder(FOLDER, {**{name: (self.file(name),) for name in names}, **files}, uv)
        outputs = (self.log.append, self.warnings.append)
        return BucketWheels(self.client, folder, fills, self.work, *outputs, glibc)

    def bind(self, wheels: BucketWheels, index: str = "") -> dict[str, str]:
        """Return the index of each package in the installer's request."""
        packages = [{"name": name, "index": "pypi"} for name in wheels.wheels.packages]
        indexes = {"pypi": index or self.cloud.index}
        bound = wheels.bind({"packages": packages, "indexes": indexes})
        return {package["name"]: package["index"] for package in bound["packages"]}


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    with Cloud(tmp_path / "cloud") as cloud:
        yield Replica(cloud, tmp_path / "wheels")


def test_a_broken_transfer_is_repeated_and_other_replicas_add_nothing(replica: Replica) -> None:
    address = replica.keep("alpha")
    replica.cloud.trouble = {"-wheels/": [CUT, 503]}
    found = replica.bind(replica.wheels("alpha", "beta", fills=False))
    assert found == {"alpha": "bucket.wheels", "beta": "pypi"}
    assert (replica.log, replica.warnings) == (["wheels: 1 from the bucket, 1 left to uv"], [])
    page = (replica.work / "alpha/index.html").read_text()
    assert f"#sha256={replica.file('alpha').sha256}" in page
    assert (replica.work / "alpha" / replica.file("alpha").name).is_file()
    assert list(replica.cloud.objects) == [address]


def test_a_missing_wheel_is_added_only_if_nobody_else_has_added_it(replica: Replica) -> None:
    assert replica.bind(replica.wheels("alpha")) == {"alpha": "bucket.wheels"}
    (asked,) = [line for line in replica.cloud.asked if line.startswith("POST")]
    assert asked.endswith("&ifGenerationMatch=0")
    address = f"{FOLDER}{replica.file('alpha').sha256}/{replica.file('alpha').name}"
    assert replica.cloud.objects == {address: replica.cloud.wheels["alpha"].read_bytes()}
    replica.cloud.refused = {"alpha-1.0": 412}
    replica.client.add_file(address, replica.cloud.wheels["beta"])
    replica.cloud.refused = {"alpha-1.0": 403}
    with pytest.raises(ServiceCallFailed, match="HTTP 403 refused by the test"):
        replica.client.add_file(address, replica.cloud.wheels["beta"])
    assert replica.cloud.objects[address] == replica.cloud.wheels["alpha"].read_bytes()


def test_a_bucket_that_cannot_be_read_is_left_alone_after_one_warning(replica: Replica) -> None:
    replica.cloud.refused = {"-wheels/": 403}
    found = replica.bind(replica.wheels("alpha", "beta", "ipykernel"))
    assert set(found.values()) == {"pypi"}
    (warning,) = replica.warnings
    assert warning.startswith("wheels are not taken from the bucket: cannot read gs://my-bucket/")
    assert not [line for line in replica.cloud.asked if line.startswith("POST")]


def test_the_wheel_is_the_first_one_that_runs_on_the_machine(replica: Replica) -> None:
    replica.keep("alpha")
    pure = replica.file("alpha")
    new, old = (
        WheelFile(f"alpha-1.0-cp311-cp311-manylinux_2_{minor}_x86_64.whl", "0" * 64, (2, minor))
        for minor in (39, 17)
    )
    plain = WheelFile("alpha-1.0-cp311-cp311-linux_x86_64.whl", "0" * 64, None)
    cases: list[tuple[tuple[int, ...] | None, tuple[WheelFile, ...], WheelFile | None]] = [
        ((2, 39), (new, old, pure), new),
        ((2, 38), (new, old, pure), old),
        ((2, 4), (new, old, pure), pure),
        ((2, 4), (plain, pure), plain),
        (None, (new, plain, pure), pure),
        (None, (new, plain), None),
    ]
    for glibc, files, expected in cases:
        replica.cloud.asked.clear()
        replica.bind(replica.wheels(glibc=glibc, fills=False, alpha=files))
        asked = [unquote(line) for line in replica.cloud.asked if "-wheels/" in unquote(line)]
        names = [line.rpartition("/")[2].partition("?")[0] for line in asked]
        assert names == ([] if expected is None else [expected.name]), (glibc, files)
    found = read_glibc()
    assert found is None or found >= (2, 17)


def test_an_index_that_cannot_be_reached_is_tried_once(replica: Replica) -> None:
    """More wheels than are transferred at a time."""
    files = {f"some-{number}": (replica.file("alpha"),) for number in range(30)}
    found = replica.bind(replica.wheels(**files), "http://127.0.0.1:9")
    assert set(found.values()) == {"pypi"}
    assert replica.log[0] == "wheels: 30 left to uv"
    assert 2 <= len(replica.log) <= 9, "those that began at the same time"


def _with_password(address: str) -> str:
    return address.replace("http://", "http://me:a-password@")


BAD_INDEXES: dict[str, Callable[[str], str]] = {
    "the index address contains credentials": _with_password,
    "the index address does not start with http": lambda _: "file:///srv/index",
    "the index responded with HTTP 404": lambda address: f"{address}/nowhere",
    "Connection refused": lambda _: "http://127.0.0.1:9",
}


@pytest.mark.parametrize("reason", BAD_INDEXES)
def test_an_index_that_cannot_be_used_is_left_to_uv(replica: Replica, reason: str) -> None:
    found = replica.bind(replica.wheels("alpha"), BAD_INDEXES[reason](replica.cloud.index))
    assert found == {"alpha": "pypi"}
    assert replica.log[0] == "wheels: 1 left to uv"
    assert reason in replica.log[1]
    assert replica.warnings == []
    assert "a-password" not in "".join(replica.log)
    assert not replica.cloud.objects


def test_a_file_on_the_index_that_is_not_the_locked_one_is_not_added(
    replica: Replica, tmp_path: Path
) -> None:
    path = replica.cloud.wheels["alpha"]
    file = replica.file("alpha")
    make_index(tmp_path / "other", (path,))
    (tmp_path / "other/alpha" / path.name).write_bytes(b"another wheel")
    with served(tmp_path / "other") as index:
        assert replica.bind(replica.wheels("alpha"), index) == {"alpha": "pypi"}
        assert "the file on the index does not match the lock" in replica.log[1]
        unknown = WheelFile("alpha-9.0-py3-none-any.whl", "0" * 64, None)
        assert replica.bind(replica.wheels(alpha=(unknown,)), index) == {"alpha": "pypi"}
        assert "the index does not list the file" in replica.log[3]
        # An index without hashes: the name counts.
        page = f'<a href="{path.name}">x</a>'
        (tmp_path / "other/alpha/index.html").write_text(page)
        (tmp_path / "other/alpha" / path.name).write_bytes(path.read_bytes())
        assert replica.bind(replica.wheels(alpha=(file,)), index) == {"alpha": "bucket.wheels"}


def test_the_locked_uv_comes_from_the_bucket(replica: Replica, tmp_path: Path) -> None:
    path = tmp_path / "uv-9.9.9-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("uv-9.9.9.data/scripts/uv", "#!/bin/sh\necho uv 9.9.9\n")
    replica.cloud.wheels["uv"] = path
    replica.keep("uv")
    wheels = replica.wheels(uv=(replica.file("uv"),), fills=False)
    uv = LockedUv("9.9.9", (replica.file("uv").sha256,))
    wheels.install_uv(uv, tmp_path / "tools", "")
    program = str(tmp_path / "tools/bin/uv")
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"uv 9.9.9\n"
    wheels.install_uv(LockedUv("9.9.8", uv.hashes), tmp_path / "other", "")
    assert replica.log[-1].endswith("the wheel does not contain the program uv")
    assert not (tmp_path / "other").exists()


ROW = {"name": "alpha-1.0-py3-none-any.whl", "sha256": "0" * 64}
BAD: list[tuple[str, Any, str]] = [
    ("folder", "/tmp/", "wheels.folder"),
    ("packages", {"../alpha": []}, "wheels.packages"),
    ("packages", {"alpha": ["x"]}, "wheels.packages.alpha[0]"),
    ("packages", {"alpha": [{**ROW, "name": "../alpha.whl"}]}, "wheels.packages.alpha[0].name"),
    ("packages", {"alpha": [{**ROW, "sha256": "0"}]}, "wheels.packages.alpha[0].sha256"),
    ("uv", [{**ROW, "glibc": "two"}], "wheels.uv[0].glibc"),
]


@pytest.mark.parametrize(("key", "value", "route"), BAD)
def test_a_document_with_other_wheels_is_refused(
    replica: Replica, key: str, value: Any, route: str
) -> None:
    document: dict[str, Any] = {
        "schema": "provision.agent.job/1",
        "folder": "gs://my-bucket/x/",
        "join_timeout_s": 60,
        "environment": "install",
        "setup": replica.cloud.document("nonce-0001", "alpha"),
        "wheels": {"folder": FOLDER, "packages": {"alpha": [{**ROW, "glibc": "2.17"}]}, "uv": []},
    }
    wheels = parse_job_document(document).wheels
    assert wheels is not None
    assert wheels.packages["alpha"][0].glibc == (2, 17)
    document["wheels"][key] = value
    with pytest.raises(DocumentError, match=route.replace("[", r"\[")):
        parse_job_document(document)


def test_the_default_index_is_that_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch(r"https://[a-z.]+/simple", find_default_index())
    monkeypatch.setitem(sys.modules, "pip._internal.models.index", None)
    assert find_default_index() == ""
