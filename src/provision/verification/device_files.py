"""Files for a device: the expectations that the probe reads, and the agent's programs as zipapps.

A zipapp is a file that Python 3.10 and newer runs, the same on every machine. It has one package:
the program's own folder, and of the agent's core the modules that the program imports. They are
listed here, and a test compares the lists with the imports.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import provision
from provision.agent.core.files import digest_of_sources, zip_files
from provision.agent.probe.own_code import CORE_MODULES
from provision.effects.wheels import PackageSource
from provision.facts import load_facts
from provision.facts.memory import MemorySaving, estimate_memory, find_savings
from provision.kinds import TargetModel
from provision.kinds.drive import to_mounted_paths
from provision.lock import Lock, LockedEnvironment, digest_of
from provision.lock.conda_request import conda_provided_versions, to_index_name
from provision.spec import (
    Spec,
    TrainingModel,
    parse_duration,
    parse_size,
)
from provision.target_facts import build_workload, find_model_sizes

SCHEMA = "provision.expectations/1"
_MAX_SAVINGS = 3
_GIB = 2**30
"""Vendors say GB and mean GiB: a card of 24 GB shows a little less than 24 GiB, never more."""
_SIZES = ("ram", "disk", "shm", "vram")
_MAIN = "import sys\n\n{before}from {package}.{program}.cli import main\n\nsys.exit(main())\n"
_TOO_OLD = """if sys.version_info < (3, 10):
    sys.stderr.write(
        "probe: this is Python %d.%d, but the probe needs 3.10 or newer: run it with the "
        "environment's Python\\n" % sys.version_info[:2]
    )
    sys.exit(2)

"""
"""Stands before the first import of the probe, which people copy to machines: an older Python
cannot even parse the rest.
"""
_PACKAGES = {
    "probe": "provision_probe",
    "install": "provision_installing",
    "workbench": "provision_device",
    "notebook": "provision_cell",
    "job": "provision_job",
}
"""The package in each zipapp, by the agent's folder. Rendered notebooks import provision_cell:
these names are public.
"""
CORE_OF_PROGRAM: dict[str, tuple[str, ...]] = {
    "probe": CORE_MODULES,
    "install": (
        "files",
        "installed_packages",
        "json_fields",
        "own_wheels",
        "process",
        "record_audit",
        "redact",
        "versions",
    ),
    "workbench": (
        "agent_config",
        "code_files",
        "files",
        "gpu_names",
        "installed_packages",
        "json_fields",
        "nvidia_smi",
        "own_wheels",
        "process",
        "record_audit",
        "redact",
        "system_packages",
        "timed_http",
        "versions",
    ),
    "notebook": (
        "agent_config",
        "code_clone",
        "code_files",
        "files",
        "git_objects",
        "gpu_names",
        "installed_packages",
        "json_fields",
        "nvidia_smi",
        "own_wheels",
        "process",
        "record_audit",
        "redact",
        "system_packages",
        "versions",
    ),
    "job": (
        "agent_config",
        "code_files",
        "files",
        "gpu_names",
        "installed_packages",
        "json_fields",
        "nvidia_smi",
        "own_wheels",
        "process",
        "record_audit",
        "redact",
        "shared_marks",
        "system_packages",
        "timed_http",
        "versions",
    ),
}
"""The modules of the core in each zipapp, by the agent's folder."""
PARTS_OF_PROGRAM = {"job": ("workbench",)}
"""The other folders of the agent in a zipapp, by the agent's folder."""
_PUBLIC_IMPORTS = {"notebook": "from .notebook import StageError, rollback, run, start, verify\n"}
"""Exports of a zipapp's package."""


def expectations_of(
    spec: Spec,
    target: str,
    lock: Lock,
    environment: LockedEnvironment,
    prefix: PurePath,
    code_digest: str | None = None,
    sources: Sequence[PackageSource] = (),
) -> dict[str, Any]:
    """Return the expectations for one target; the caller adds a nonce.

    Args:
        spec: The spec with the overrides of the target.
        target: The target's name.
        lock: The lock.
        environment: The target's part of the lock.
        prefix: The folder of the environment on the device.
        code_digest: Digest of the code that is brought there; None for no code.
        sources: The packages from paths and repositories.
    """
    declared = spec.targets[target]
    from_conda = conda_provided_versions(lock, environment, spec) if lock.conda else {}
    versions = {**lock.versions(environment), **from_conda}
    target_block = {"name": target, "kind": declared.kind}
    if manager := getattr(declared, "manager", None):
        target_block["manager"] = manager
    expectations = {
        "schema": SCHEMA,
        "tool": {"name": "provision", "version": provision.__version__},
        "spec": {"name": spec.name, "digest": digest_of(dict(lock.inputs))},
        "lock": {"digest": lock.digest, "environment_digest": environment.digest},
        "target": target_block,
        "tier": spec.verify.tier,
        "timeout_s": parse_duration(spec.verify.timeout),
        "python": {"version": lock.python, "prefix": str(prefix)},
        "platform": environment.platform,
        "flavour": environment.flavour,
        "glibc_min": environment.glibc,
        "packages": [
            {"name": name, "version": version} for name, version in sorted(versions.items())
        ],
        "direct": sorted(
            ({package.key for package in spec.packages} & versions.keys()) | from_conda.keys()
        ),
        "gpu": _gpu(spec),
        "requires": _requires(spec),
        "paths": to_mounted_paths(spec.paths),
        "env": dict(spec.env),
        "secrets": sorted(spec.secrets),
        "training": _training(spec),
        **_conda_files(lock, environment),
        **_from_facts(spec),
        **_job(spec, code_digest, sources),
    }
    if environment.driver:
        expectations["driver_min"] = environment.driver
    return {**expectations, **_of_kind(declared)}


def _of_kind(declared: TargetModel) -> dict[str, Any]:
    """Return the expectations that follow from fields of some kinds."""
    own: dict[str, Any] = {}
    is_baked = getattr(declared, "environment", None) == "baked"
    if is_baked or getattr(declared, "isolation", None) == "system":
        own["shared"] = True
    if replicas := getattr(declared, "replicas", None):
        own["replicas"] = {"count": replicas}
    return own


def _gpu(spec: Spec) -> dict[str, Any]:
    if spec.gpu.is_none:
        return {"type": None, "count": 0}
    return {"type": spec.gpu.type, "count": spec.gpu.count}


def _job(spec: Spec, code_digest: str | None, sources: Sequence[PackageSource]) -> dict[str, Any]:
    """Return the project's packages, code and command, as far as they are declared."""
    verify = spec.verify
    job: dict[str, Any] = {}
    if sources:
        job["sources"] = {
            source.name: {"digest": source.digest, "editable": source.editable}
            for source in sources
        }
    if code_digest is not None:
        job["code"] = {"digest": code_digest}
    if verify.command:
        expect = verify.expect
        job["command"] = {
            "argv": list(verify.command),
            "exit": expect.exit,
            "files": list(expect.files),
            "stdout": expect.stdout,
        }
    return job


def _requires(spec: Spec) -> dict[str, Any]:
    """Return the required sizes in bytes, the driver and the compute capability."""
    requires = spec.requires
    sizes = {name: getattr(requires, name) for name in _SIZES}
    return {
        **{f"{name}_bytes": parse_size(size) if size else None for name, size in sizes.items()},
        "driver": requires.driver,
        "compute_capability": requires.compute_capability,
    }


def _training(spec: Spec) -> dict[str, Any]:
    training, framework = spec.training, spec.framework()
    return {
        "framework": framework,
        **({"backend": spec.backend()} if framework == "keras" else {}),
        "precision": str(training.precision),
        "dataloader_workers": training.dataloader_workers,
        "gradient_checkpointing": training.gradient_checkpointing,
        "optimizer": training.optimizer,
        "arguments": dict(training.arguments),
        "method": training.method,
        "model": _model(training.model),
        "batch_size": training.batch_size,
        "sequence_length": training.sequence_length,
        "torch_compile": training.torch_compile,
        "strategy": training.strategy,
        "launcher": training.launcher,
    }


def _model(model: TrainingModel | None) -> dict[str, int | None] | None:
    if model is None:
        return None
    return find_model_sizes(model)._asdict()


def _conda_files(lock: Lock, environment: LockedEnvironment) -> dict[str, Any]:
    """Return the packages that conda installs, which need not be locked, and its files."""
    records = lock.conda_records_in(environment)
    if not records:
        return {}
    return {
        "extras_allowed": sorted({to_index_name(record.name) for record in records}),
        "conda": sorted(record.stem for record in records),
    }


def _from_facts(spec: Spec) -> dict[str, Any]:
    """Return the card's data sheet, the memory estimate and the options that save memory."""
    facts, on_card = load_facts(), not spec.gpu.is_none
    card, workload = facts.card(spec.gpu.type), build_workload(spec.training, spec.gpu.count)
    known: dict[str, Any] = {"card": None, "estimate_bytes": None, "levers": []}
    half = "bf16"
    if card:
        known["card"] = {
            "memory_bytes": int(card.memory_gb * _GIB),
            "bandwidth_gb_s": card.bandwidth_gb_s,
            "tflops": dict(card.tflops),
            "source": card.tflops_source,
        }
        if not facts.has_feature(card, "bf16"):
            half = "fp16"
    if workload:
        estimate = estimate_memory(workload, facts)
        # Without a card there is no CUDA context.
        known["estimate_bytes"] = estimate.total - (0 if on_card else estimate.overhead)
        known["levers"] = _savings(find_savings(workload, facts, half=half), on_card=on_card)
    return known


def _savings(savings: Iterable[MemorySaving], *, on_card: bool) -> list[dict[str, Any]]:
    # Weights of 4 bits need a card, in the training and in the rehearsal.
    possible = [saving for saving in savings if on_card or saving.change.get("method") != "qlora"]
    return [
        {"change": dict(saving.change), "saves_bytes": saving.saved_bytes}
        for saving in possible[:_MAX_SAVINGS]
    ]


def digest_of_expectations(expectations: Mapping[str, Any], probe: str) -> str:
    """Return the digest that a stored verdict is valid for: these expectations and this probe."""
    promises = {key: value for key, value in expectations.items() if key != "nonce"}
    return digest_of({"expectations": promises, "probe": probe})


@functools.cache
def probe_digest() -> str:
    """Return the digest that the probe gives itself in its reports."""
    return digest_of_sources(agent_files("probe"))


@functools.cache
def probe_zipapp() -> bytes:
    """Return the program that verifies an environment."""
    return zip_files(agent_files("probe"))


@functools.cache
def installer_zipapp() -> bytes:
    """Return the program that installs what a lock names."""
    return zip_files(agent_files("install"))


@functools.cache
def workbench_zipapp() -> bytes:
    """Return the program that sets up a Workbench instance."""
    return zip_files(agent_files("workbench"))


@functools.cache
def job_zipapp() -> bytes:
    """Return the program of a replica of a job."""
    return zip_files(agent_files("job"))


@functools.cache
def notebook_zipapp() -> bytes:
    """Return the package whose functions a notebook calls."""
    return zip_files(agent_files("notebook"))


def agent_files(program: str) -> dict[str, bytes]:
    """Return the files of a zipapp: __main__.py, and the package with the program and its core."""
    source, package = Path(provision.__file__).parent / "agent", _PACKAGES[program]
    core = [source / "core" / f"{name}.py" for name in ("__init__", *CORE_OF_PROGRAM[program])]
    folders = (program, *PARTS_OF_PROGRAM.get(program, ()))
    parts = [path for folder in folders for path in (source / folder).rglob("*.py")]
    files = {
        f"{package}/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in (*core, *parts)
    }
    before = _TOO_OLD if program == "probe" else ""
    main = _MAIN.format(package=package, program=program, before=before)
    files[f"{package}/__init__.py"] = _PUBLIC_IMPORTS.get(program, "").encode()
    files["__main__.py"] = main.encode()
    return files
