"""Substitutes for a sandbox: a build for CPU, this machine's Python and package indexes."""

from __future__ import annotations

import sys
from dataclasses import replace

from provision.commands.shared.load import LoadedSpec
from provision.effects.packages import NamedIndex
from provision.effects.system import Reader
from provision.errors import UsageError
from provision.kinds import Gpu, MachineRequirements, TargetModel
from provision.lock import Lock, LockedEnvironment
from provision.spec import Precision, Spec
from provision.targets import SandboxSources, find_driver, load_driver

_GPU_REQUIREMENTS = ("vram", "driver", "compute_capability")
_PLACEHOLDERS = "Secret Manager: placeholders, except values that were added to the emulator"
_GPU_PRECISIONS = (Precision.FP16, Precision.TF32)
"""Precisions that a training run on a CPU ignores (check R03)."""


def build_sandbox_spec(loaded: LoadedSpec, reader: Reader) -> LoadedSpec:
    """Return a spec as a sandbox makes it.

    `spec` of the result is locked and verified: without a GPU, in a precision that a CPU computes
    in, and for a Python that this machine has. `declared` is requested from the services.

    Raises:
        UsageError: no target is of a kind that can be emulated.
    """
    spec = loaded.spec
    targets: dict[str, TargetModel] = {}
    simulated: dict[str, None] = {}
    placeholders: set[str] = set()
    for name, target in spec.targets.items():
        driver = find_driver(spec, name)
        if driver is not None and driver.sandbox_note:
            targets[name] = target
            simulated[driver.sandbox_note] = None
            secrets = spec.with_settings_of(name).secrets
            placeholders |= {key for key, source in secrets.items() if source.secret}
    if not targets:
        supported = [
            kind.name
            for kind in spec.registry.kinds
            if (driver := load_driver(kind)) is not None and driver.sandbox_note
        ]
        raise UsageError(
            f"a sandbox supports only these kinds of targets: {' and '.join(supported)}",
            why=f"{loaded.path} has no such target",
            hint="omit --sandbox; targets of other kinds do not need a cloud account",
        )
    if placeholders:
        names = ", ".join(sorted(placeholders))
        simulated[f"{_PLACEHOLDERS}: {names}"] = None
    python = _choose_python(spec.python, reader)
    if python != spec.python:
        simulated[f"Python: {python} instead of {spec.python}"] = None
    training = spec.training
    for target in targets.values():
        gpu = target.gpu or spec.gpu
        if not gpu.is_none:
            simulated[f"GPU: {gpu}; torch is built for CPU"] = None
            if spec.training.precision in _GPU_PRECISIONS:
                simulated[f"precision: fp32 instead of {spec.training.precision.value}"] = None
                training = spec.training.model_copy(update={"precision": Precision.FP32})
    declared = spec.model_copy(update={"python": python, "targets": targets})
    sources = SandboxSources(tuple(simulated), {})
    verified = _on_cpu(declared).model_copy(update={"training": training})
    return loaded._replace(spec=verified, declared=declared, sandbox_sources=sources)


def with_package_sources(
    sources: SandboxSources, lock: Lock, environment: LockedEnvironment, reader: Reader
) -> SandboxSources:
    """Return the substitutes with the addresses at which this machine finds the locked packages."""
    packages = [item for item in lock.packages_in(environment) if item.origin is None]
    flavours = {f"pytorch-{environment.flavour}": environment.flavour}
    indexes = tuple(
        NamedIndex(
            name,
            lock.indexes[name],
            flavours.get(name),
            tuple(f"{item.name}=={item.version}" for item in packages if item.index == name),
            (environment.platform,),
        )
        for name in sorted({package.index for package in packages} - {"pypi"})
    )
    addresses = reader.find_index_addresses(indexes, lock.python)
    return replace(sources, indexes=addresses.indexes, find_links=addresses.find_links)


def _on_cpu(spec: Spec) -> Spec:
    none = Gpu.model_validate("none")
    targets = {
        name: target.model_copy(
            update={
                "gpu": None,
                "cuda": None,
                "requires": _without_cards(target.requires) if target.requires else None,
            }
        )
        for name, target in spec.targets.items()
    }
    return spec.model_copy(
        update={
            "gpu": none,
            "cuda": "none",
            "requires": _without_cards(spec.requires),
            "targets": targets,
        }
    )


def _without_cards(requires: MachineRequirements) -> MachineRequirements:
    return requires.model_copy(update=dict.fromkeys(_GPU_REQUIREMENTS))


def _choose_python(declared: str, reader: Reader) -> str:
    """Return the Python of a device on this machine: the declared one, else the one we run on.

    The device searches with its own uv.
    """
    selected = reader.find_pythons(declared).selected
    if selected is not None and selected.is_found_by_uv:
        return declared
    return f"{sys.version_info.major}.{sys.version_info.minor}"
