"""The cell's document: all data that the program in the notebook needs.

Secrets have their names in Colab's secret store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import provision
from provision.facts import Facts
from provision.facts.lazy_tables import load_colab_packages
from provision.facts.schema_platforms import ColabRuntime
from provision.kinds.colab import find_shape
from provision.kinds.drive import to_mounted_paths
from provision.targets.colab.file_names import get_colab_target
from provision.targets.colab.locations import get_drive_mount, get_report_location
from provision.targets.context import TargetContext
from provision.targets.install_request import build_install_request, with_own_wheels

SCHEMA = "provision.agent.notebook/1"
NONCE_DIGITS = 32
_OWN = "google-colab"
"""Colab's own package: it is on no index, so it could not be reinstalled."""


class NotebookRuntime(NamedTuple):
    """The runtime of a notebook: isolation, and what the facts know of it (None: nothing).

    `device` is the name of its GPU in nvidia-smi.
    """

    isolation: str
    runtime: ColabRuntime | None = None
    device: str | None = None


def build_agent_config(
    context: TargetContext,
    facts: Facts,
    uv: Mapping[str, Any],
    nonce: str = "",
    runtime: NotebookRuntime | None = None,
) -> dict[str, Any]:
    """Return the document; `uv` is the uv that installs: version, and sha256 by file name.

    Without a nonce it gets one that is derived from the rest, so that the same choices give the
    same bytes. `runtime` is that of the context's Colab target unless it is given.
    """
    document = _build_declaration(context, facts, uv, runtime or _colab_runtime(context, facts))
    nonce = nonce or hashlib.sha256(encode_config(document)).hexdigest()[:NONCE_DIGITS]
    return {
        **document,
        "install": with_own_wheels(document["install"], context),
        "nonce": nonce,
        "drive": None if runtime else get_drive_mount(context),
        "report": None if runtime else get_report_location(context, nonce),
        "expectations": {**document["expectations"], "nonce": nonce},
    }


def encode_config(document: Mapping[str, Any]) -> bytes:
    """Return a document's bytes: sorted, ASCII, one line."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _colab_runtime(context: TargetContext, facts: Facts) -> NotebookRuntime:
    target = get_colab_target(context)
    shape = find_shape(context.spec.gpu, target.shape, facts)
    device = (shape.device or None) if shape else None
    return NotebookRuntime(target.isolation, facts.runtimes.get(target.runtime), device)


def _build_declaration(
    context: TargetContext, facts: Facts, uv: Mapping[str, Any], target: NotebookRuntime
) -> dict[str, Any]:
    spec, environment = context.spec, context.environment
    expectations = context.expectations(PurePosixPath())
    runtime, choice = target.runtime, context.lock.targets[context.target]
    return {
        "schema": SCHEMA,
        "tool": {"name": "provision", "version": provision.__version__},
        "spec": {
            "name": spec.name,
            "stem": context.stem,
            "target": context.target,
            "digest": expectations["spec"]["digest"],
        },
        "lock": {"digest": context.lock.digest, "environment_digest": environment.digest},
        "runtime": _runtime(runtime, context, facts) if runtime else None,
        "isolation": target.isolation,
        "python": context.lock.python,
        "gpu": _gpu(context, target.device),
        "driver_min": environment.driver,
        "system_packages": list(spec.system_packages),
        "install": build_install_request(
            context,
            "shared" if target.isolation == "system" else "own",
            usable_files_only=True,
        ),
        "predicted": {
            "kept": list(choice.kept),
            "changed": dict(choice.changed),
            "added": list(choice.added),
            "restart": list(choice.restart),
        },
        "protected": sorted(
            name
            for name, row in facts.protected.items()
            if row.critical or row.kills or name == _OWN
        ),
        "env": dict(spec.env),
        "paths": to_mounted_paths(spec.paths),
        "secrets": {
            name: reference.colab for name, reference in spec.secrets.items() if reference.colab
        },
        "uv": {"version": uv["version"], "files": dict(uv["files"])},
        # The folder of the environment is known only on the runtime.
        "expectations": {**expectations, "python": {**expectations["python"], "prefix": ""}},
    }


def _runtime(runtime: ColabRuntime, context: TargetContext, facts: Facts) -> dict[str, Any]:
    # Machines without a GPU have their own image since 2025-12.
    cpu = context.spec.gpu.is_none and f"{runtime.runtime}-cpu" in load_colab_packages()
    return {
        "version": runtime.runtime,
        "as_of": runtime.evidence.as_of,
        "python": runtime.python,
        "torch": runtime.torch,
        "flavour": "cpu" if cpu else runtime.flavour,
        "os": runtime.os,
        "driver": None if context.spec.gpu.is_none else facts.conditions["host driver"].value,
    }


def _gpu(context: TargetContext, device: str | None) -> dict[str, Any] | None:
    gpu = context.spec.gpu
    return None if gpu.is_none else {"type": gpu.type, "device": device, "count": gpu.count}
