"""What takes the place of the real world in a sandbox: a build for CPU, this machine's Python and
package indexes; each of it named.
"""

from __future__ import annotations

from dataclasses import replace

from provision.commands.shared.load import LoadedSpec
from provision.effects.packages import Index
from provision.effects.system import Reader
from provision.errors import UsageError
from provision.kinds import Gpu, Requires, WorkbenchTarget
from provision.lock import Lock, LockedEnvironment
from provision.spec import Spec
from provision.targets import SandboxSources

_GPU_REQUIREMENTS = ("vram", "driver", "compute_capability")
SERVICES_NOTE = "Google Cloud: services on this machine"


def build_sandbox_spec(loaded: LoadedSpec, reader: Reader) -> LoadedSpec:
    """Return a spec as a sandbox makes it; raises UsageError where it names no place on Google
    Cloud.

    `spec` of the result is what is locked and promised, without a card and for a Python that
    this machine has; `declared` is what is asked of the services.
    """
    spec = loaded.spec
    targets = {
        name: target for name, target in spec.targets.items() if isinstance(target, WorkbenchTarget)
    }
    if not targets:
        raise UsageError(
            "a sandbox is for targets of kind workbench",
            why=f"{loaded.path} has none",
            hint="leave --sandbox out: other targets need no account",
        )
    minor, words = _python(spec.python, reader), [SERVICES_NOTE]
    if minor != spec.python:
        words.append(f"Python: {minor} in place of {spec.python}")
    cards = dict.fromkeys(
        str(target.gpu or spec.gpu)
        for target in targets.values()
        if not (target.gpu or spec.gpu).is_none
    )
    words += [f"GPU: {card}; torch is built for CPU" for card in cards]
    declared = spec.model_copy(update={"python": minor, "targets": targets})
    return loaded._replace(
        spec=_on_cpu(declared), declared=declared, sandbox_sources=SandboxSources(tuple(words), {})
    )


def with_package_sources(
    stand_in: SandboxSources, lock: Lock, environment: LockedEnvironment, reader: Reader
) -> SandboxSources:
    """Return what stands in, with the addresses at which this machine finds what is locked."""
    held = lock.packages_in(environment)
    names = sorted({package.index for package in held} - {"pypi"})
    flavours = {f"pytorch-{environment.flavour}": environment.flavour}
    pins = {
        name: tuple(f"{one.name}=={one.version}" for one in held if one.index == name)
        for name in names
    }
    found = reader.find_index_addresses(
        tuple(
            Index(name, lock.indexes[name], flavours.get(name), pins[name], (environment.platform,))
            for name in names
        ),
        lock.python,
    )
    return replace(stand_in, indexes=found.indexes, find_links=found.find_links)


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


def _without_cards(requires: Requires) -> Requires:
    return requires.model_copy(update=dict.fromkeys(_GPU_REQUIREMENTS))


def _python(wanted: str, reader: Reader) -> str:
    """Return the Python that a device on this machine has: the wanted one, else that which runs us."""  # noqa: E501
    if reader.find_pythons(wanted).selected is not None:
        return wanted
    import sys

    return f"{sys.version_info.major}.{sys.version_info.minor}"
