"""The device's document: all that its program is told, as data. Secrets stand in it by reference only; no value of a spec stands anywhere else.

schema          "provision.device/1"
nonce           of this run
holds           digest over the rest, without nonce, fetch and tool: the same for the same declared environment
instance        name, project, spec, target
uris            run, report, log, status: gs:// addresses
fetch           by name (device, installer, probe): {uri, sha256} of programs of ours
prefix, stable  absolute paths on the device: the environment, and the link that follows it
install         a provision.install/1 document without `python`
uv              the version of uv that installs
env, paths      as declared; a path is exported as PROVISION_PATH_<NAME>
secrets         name to "projects/P/secrets/S/versions/V"
system_packages names of Debian packages
gpu             whether a driver is waited for
kernel          name, display_name
tier, timeout_s, max_lifetime_s (null: none)
simulated       what is not real, in words; [] on a real device
expectations    as the probe reads them, with the nonce
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from provision.grammar import seconds_of
from provision.lock import digest_of
from provision.lock.portion import PYPI
from provision.places import WorkbenchTarget
from provision.targets.target import Place
from provision.targets.workbench.naming import Names, kernel_name
from provision.verification import expectations_of

SCHEMA = "provision.device/1"
_HOME = PurePosixPath("/home/jupyter/.provision")
"""On the data disk, which an upgrade of the image leaves alone (Workbench documentation, Manage instances)."""


class Program(NamedTuple):
    """A program of ours that the device fetches: its file's name below the instance's folder, and its bytes."""

    file: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The digest of its bytes, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


def prefix_of(place: Place) -> PurePosixPath:
    """Return where the environment lies on the device: one folder for each digest."""
    return _HOME / "envs" / place.environment.digest.removeprefix("sha256:")[:12]


def stable_of(place: Place) -> PurePosixPath:
    """Return the link on the device that follows the current environment."""
    return _HOME / "envs" / "current"


def document_of(place: Place, names: Names, nonce: str, programs: Mapping[str, Program]) -> dict[str, Any]:
    """Return the document for one run."""
    said = _said(place, names)
    run = names.run(nonce)
    return {
        **said,
        "schema": SCHEMA,
        "nonce": nonce,
        "holds": digest_of(said),
        "uris": {"run": run, "report": f"{run}report.json", "log": f"{run}log.txt", "status": f"{run}status.json"},
        "fetch": {name: {"uri": names.folder + program.file, "sha256": program.sha256} for name, program in programs.items()},
        "uv": _uv(),
        "expectations": {**_promised(place), "nonce": nonce},
    }


def holds(place: Place, names: Names) -> str:
    """Return the digest of what a document declares: another one means that the device has something to do."""
    return digest_of(_said(place, names))


def written(document: Mapping[str, Any]) -> bytes:
    """Return the document's bytes."""
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def _said(place: Place, names: Names) -> dict[str, Any]:
    spec, target = place.spec, place.spec.targets[place.target]
    assert isinstance(target, WorkbenchTarget)  # noqa: S101 - the registry asks by kind
    promised = _promised(place)
    return {
        "instance": {"name": names.instance, "project": names.project, "spec": place.stem, "target": place.target},
        "prefix": str(prefix_of(place)),
        "stable": str(stable_of(place)),
        "install": _install(place, target),
        "env": dict(spec.env),
        "paths": dict(spec.paths),
        "secrets": {name: reference.secret for name, reference in spec.secrets.items() if reference.secret},
        "system_packages": list(spec.system_packages),
        "gpu": not spec.gpu.none,
        "kernel": {"name": kernel_name(place), "display_name": f"{spec.name} ({place.target})"},
        "tier": spec.verify.tier,
        "timeout_s": seconds_of(spec.verify.timeout),
        "max_lifetime_s": seconds_of(target.max_lifetime) if target.max_lifetime else None,
        "simulated": list(place.simulated),
        "expectations": {key: value for key, value in promised.items() if key != "tool"},
    }


def _install(place: Place, target: WorkbenchTarget) -> dict[str, Any]:
    """Return what the installer is given: every file by hash, and indexes at the addresses that the device reaches."""
    held = place.lock.held_by(place.environment)
    packages = [
        {"name": one.name, "version": one.version, "index": one.index, "files": {file.name: file.sha256 for file in one.files}}
        for one in sorted(held, key=lambda one: one.name)
    ]
    known = {"pypi": PYPI, **place.lock.indexes}
    indexes = {name: _mirrored(name, address, target) for name, address in known.items() if name == "pypi" or any(one.index == name for one in held)}
    return {"schema": "provision.install/1", "mode": "own", "python_version": place.lock.python, "packages": packages, "indexes": indexes, "audit": "size"}


def _mirrored(name: str, address: str, target: WorkbenchTarget) -> str:
    """Return an index's address on the device. A mirror called pytorch stands for the folder that holds one index for each flavour."""
    if name in target.mirrors:
        return target.mirrors[name]
    if name.startswith("pytorch-") and "pytorch" in target.mirrors:
        return f"{target.mirrors['pytorch'].rstrip('/')}/{name.removeprefix('pytorch-')}"
    return address


def _promised(place: Place) -> dict[str, Any]:
    return expectations_of(place.spec, place.target, place.lock, place.environment, prefix_of(place))


def _uv() -> str:
    try:
        return version("uv")
    except PackageNotFoundError:
        return ""
