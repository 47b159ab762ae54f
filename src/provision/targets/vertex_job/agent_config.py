"""Document and programs of a job. Secrets are references only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from provision.field_types import parse_duration
from provision.lock import digest_of
from provision.targets.context import TargetContext
from provision.targets.install_request import build_install_request
from provision.targets.pinned_uv import read_pinned_uv
from provision.targets.vertex_job.resource_names import JobNames, get_job_target
from provision.targets.vertex_job.wheels import build_wheel_request
from provision.verification import device_files

SCHEMA, _SETUP_SCHEMA = "provision.agent.job/1", "provision.agent.workbench/1"
_HOME = PurePosixPath("/root/.provision")
_JOIN_TIMEOUT_S = 1800
"""Most seconds that a replica waits for the others, whose machines may come later. Our choice."""


class JobProgram(NamedTuple):
    """A program of the replicas: its file name, which has its digest, and its bytes."""

    file: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The digest of its bytes, in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


def get_prefix(context: TargetContext) -> PurePosixPath:
    """Return the environment's path in a container: one folder for each digest.

    That of an image's own Python is only known there; the official images have it here.
    """
    if get_job_target(context).environment == "baked":
        return PurePosixPath("/usr/local")
    return _HOME / "envs" / context.environment.digest.removeprefix("sha256:")[:12]


def build_programs(context: TargetContext) -> dict[str, JobProgram]:
    """Return what a replica downloads, by name: our programs, and the project's code."""
    contents = {
        "device": device_files.job_zipapp(),
        "installer": device_files.installer_zipapp(),
        "probe": device_files.probe_zipapp(),
    }
    programs = {
        name: JobProgram(f"{name}-{hashlib.sha256(content).hexdigest()[:12]}.pyz", content)
        for name, content in contents.items()
    }
    if context.code is not None:
        digest = context.code.digest.removeprefix("sha256:")[:12]
        programs["code"] = JobProgram(f"code-{digest}.archive", context.code.pack())
    return programs


def digest_of_programs(programs: dict[str, JobProgram]) -> str:
    """Return the digest of all programs."""
    return digest_of({name: program.sha256 for name, program in programs.items()})


def list_objects(folder: str, programs: dict[str, JobProgram]) -> tuple[tuple[str, bytes], ...]:
    """Return the objects of the programs below a folder of a region."""
    return tuple((f"{folder}programs/{item.file}", item.content) for item in programs.values())


def build_job_config(
    context: TargetContext,
    names: JobNames,
    region: str,
    nonce: str,
    programs: dict[str, JobProgram],
    program: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the document of one run in a region: a verification, or the user's program."""
    spec, run, target = context.spec, names.run_folder(region, nonce), get_job_target(context)
    simulated = list(context.sandbox_sources.simulated) if context.sandbox_sources else []
    expectations = context.with_run_command(context.expectations(get_prefix(context)))
    setup: dict[str, Any] = {
        "schema": _SETUP_SCHEMA,
        "nonce": nonce,
        "digest": context.environment.digest,
        "python": context.lock.python,
        "install": build_install_request(context, "own"),
        "env": dict(spec.env),
        "paths": dict(spec.paths),
        "secrets": {
            name: reference.secret for name, reference in spec.secrets.items() if reference.secret
        },
        "system_packages": [],
        "gpu": None,
        "kernel": None,
        "simulated": simulated,
        "expectations": {**expectations, "nonce": nonce},
        "uv": read_pinned_uv(),
        "fetch": {
            name: {
                "uri": f"{names.folders[region]}programs/{programs[name].file}",
                "sha256": programs[name].sha256,
            }
            for name in programs
            if name != "device"
        },
        "report": {
            "report": f"{run}report.json",
            "log": f"{run}log.txt",
            "status": f"{run}status.json",
        },
    }
    gpu = context.effective_spec.gpu
    if not gpu.is_none:
        setup["gpu"] = {"type": gpu.type, "count": gpu.count}
    document = {
        "schema": SCHEMA,
        "folder": run,
        # The job could not tell who is missing once its time has run out.
        "join_timeout_s": min(_JOIN_TIMEOUT_S, max(1, parse_duration(target.max_duration) // 2)),
        "environment": target.environment,
        "setup": setup,
    }
    if target.environment == "install":
        document["wheels"] = build_wheel_request(context, target.bucket_in(region))
    if program is not None:
        document["program"] = dict(program)
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
