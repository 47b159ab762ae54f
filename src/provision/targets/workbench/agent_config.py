"""Document and programs for an instance. Secrets are references only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from provision.assets import find_asset
from provision.field_types import parse_duration
from provision.lock import digest_of
from provision.targets.context import TargetContext
from provision.targets.install_request import (
    build_install_request,
    pack_own_wheels,
    with_own_wheels,
)
from provision.targets.workbench.resource_names import (
    ResourceNames,
    build_instance_kernel_name,
    get_workbench_target,
)
from provision.verification import device_files

SCHEMA = "provision.agent.workbench/1"
_HOME = PurePosixPath("/home/jupyter/.provision")
"""On the data disk, which an upgrade of the image does not change (Workbench documentation, Manage
instances).
"""
STABLE_PREFIX = _HOME / "envs" / "current"
"""The link on the device that follows the current environment."""


class Program(NamedTuple):
    """A program that the device fetches: its file below the instance's folder, and its bytes."""

    file: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The digest of its bytes, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


def get_prefix(context: TargetContext) -> PurePosixPath:
    """Return the environment's path on the device: one folder for each digest."""
    return _HOME / "envs" / context.environment.digest.removeprefix("sha256:")[:12]


def build_agent_config(
    context: TargetContext,
    names: ResourceNames,
    nonce: str,
    programs: Mapping[str, Program],
    uv: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the document for one run; `uv` has the version, and sha256 by file name."""
    run = names.run_folder(nonce)
    declaration = _build_declaration(context)
    return {
        **declaration,
        "install": with_own_wheels(declaration["install"], context),
        "schema": SCHEMA,
        "nonce": nonce,
        "report": {
            "report": f"{run}report.json",
            "log": f"{run}log.txt",
            "status": f"{run}status.json",
        },
        "fetch": {
            name: {"uri": names.folder + program.file, "sha256": program.sha256}
            for name, program in programs.items()
        },
        "uv": dict(uv),
        "expectations": {**_build_expectations(context), "nonce": nonce},
    }


def compute_declared_digest(context: TargetContext) -> str:
    """Return the digest of what a document declares, without the run and our version.

    A different digest means that the device has something to do.
    """
    return digest_of(_build_declaration(context))


def encode_config(document: Mapping[str, Any]) -> bytes:
    """Return the document's bytes."""
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def _build_declaration(context: TargetContext) -> dict[str, Any]:
    spec, target = context.spec, get_workbench_target(context)
    return {
        "digest": context.environment.digest,
        "python": context.lock.python,
        "install": build_install_request(context, "own", mirrors=target.mirrors),
        "env": dict(spec.env),
        "paths": dict(spec.paths),
        "secrets": {
            name: reference.secret for name, reference in spec.secrets.items() if reference.secret
        },
        "system_packages": list(spec.system_packages),
        "gpu": None if spec.gpu.is_none else {"type": spec.gpu.type, "count": spec.gpu.count},
        "kernel": {
            "name": build_instance_kernel_name(context),
            "title": f"{spec.name} ({context.target})",
        },
        "max_lifetime_s": parse_duration(target.max_lifetime) if target.max_lifetime else None,
        "simulated": list(context.sandbox_sources.simulated) if context.sandbox_sources else [],
        "expectations": {
            key: value for key, value in _build_expectations(context).items() if key != "tool"
        },
    }


def _build_expectations(context: TargetContext) -> dict[str, Any]:
    return context.expectations(get_prefix(context))


_TEMPLATE = "templates/workbench-startup.sh"


def read_startup_program() -> bytes:
    """Return the program that an instance runs at each start."""
    return find_asset(_TEMPLATE).read_bytes()


def build_programs(context: TargetContext) -> Mapping[str, Program]:
    """Return what an instance downloads by name: programs, the project's code and packages."""
    contents = {
        "device": device_files.workbench_zipapp(),
        "installer": device_files.installer_zipapp(),
        "probe": device_files.probe_zipapp(),
    }
    programs = {name: Program(f"{name}.pyz", content) for name, content in contents.items()}
    if context.code is not None:
        digest = context.code.digest.removeprefix("sha256:")[:12]
        programs["code"] = Program(f"code-{digest}.archive", context.code.pack())
    for content in pack_own_wheels(context).values():
        digest = hashlib.sha256(content).hexdigest()[:12]
        programs["wheels"] = Program(f"wheels-{digest}.zip", content)
    return programs
