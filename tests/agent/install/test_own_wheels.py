"""Wheels of a project's packages that come with the document: no index has them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from provision.agent.core.installed_packages import find_installed_packages
from provision.agent.core.own_wheels import OWN_INDEX, find_outdated_packages
from tests.agent.install.bench import Device, sha256
from tests.rig import make_wheel


def pack(device: Device, code: str) -> dict[str, Any]:
    """Return a request for alpha and the wheel of ours with some code."""
    wheel = make_wheel(device.folder / "ours", "ours", "1.0", code=code)
    archive = device.folder / "wheels.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(wheel, wheel.name)
    document = device.document("alpha==1.0", mode="own", wheels=str(archive))
    row = {"name": "ours", "version": "1.0", "index": OWN_INDEX, "files": {}}
    document["packages"].append({**row, "files": {wheel.name: sha256(wheel)}})
    return document


def outdated(device: Device) -> tuple[str, ...]:
    installed = find_installed_packages([str(device.packages)])
    return find_outdated_packages(device.folder / "wheels.zip", installed)


def test_an_edit_without_another_version_is_installed_again(device: Device) -> None:
    done = device.install(pack(device, "CODE = 1\n"))
    assert done.returncode == 0, done.stderr
    assert outdated(device) == ()
    done = device.install(pack(device, "CODE = 1\n"))
    assert device.provenance() == {"alpha": "preinstalled", "ours": "preinstalled"}
    document = pack(device, "CODE = 2\n")
    assert outdated(device) == ("ours",)
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "preinstalled", "ours": "reinstalled"}
    assert (device.packages / "ours/__init__.py").read_text() == "CODE = 2\n"
    assert outdated(device) == ()
    (device.packages / "ours/more.py").write_text("")
    record = device.packages / "ours-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "ours/more.py,,\n")
    assert outdated(device) == ("ours",)


def test_wheels_that_cannot_be_used_change_nothing(device: Device) -> None:
    document = pack(device, "CODE = 1\n")
    archive = Path(document["wheels"])
    archive.write_bytes(b"PK")
    done = device.install(document)
    assert done.returncode == 2
    assert "cannot use the project's wheel archive" in done.stderr
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("../ours-1.0-py3-none-any.whl", b"")
    done = device.install(document)
    assert "which is not a wheel" in done.stderr
    done = device.install({**document, "wheels": ""})
    assert "the index source.own, which has no URL" in done.stderr
    assert not device.there()
