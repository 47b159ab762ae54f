"""What is known of each place that a spec names: its card, driver, C library and Python, and where
in the spec each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Card, Evidence, Facts, flavour_of, lazy_tables
from provision.facts.memory import Workload
from provision.facts.schema_platforms import ColabRuntime, ImageFamily, split_image_name
from provision.spec import (
    ColabTarget,
    Gpu,
    LocalTarget,
    Spec,
    Target,
    Training,
    WorkbenchTarget,
    parse_parameter_count,
)


class GpuSettings(NamedTuple):
    """What one or more targets compute on: the values and the routes they were written at."""

    gpu: Gpu
    gpu_route: Route
    cuda: str
    cuda_route: Route

    @property
    def is_nvidia(self) -> bool:
        """Whether it is a CUDA card."""
        return self.gpu.type not in ("none", "mps")

    @property
    def flavour(self) -> str | None:
        """The torch build family that is asked for: "cpu", "cu128"; None when the lock is to choose
        it.
        """
        if not self.is_nvidia or self.cuda == "none":
            return "cpu"
        return None if self.cuda == "auto" else flavour_of(self.cuda)


class ProvidedVersion(NamedTuple):
    """What a place brings by itself, as "580.82.07": who brings it, in words; the route of what
    chose that; how sure we are.
    """

    value: str
    provider: str
    route: Route
    evidence: Evidence


class TargetFacts(NamedTuple):
    """One target with what the facts know of it; None where they know nothing, as of the driver of
    a local machine.
    """

    name: str
    target: Target
    gpu_settings: GpuSettings
    card: Card | None
    platforms: tuple[str, ...]
    image: ImageFamily | None = None
    runtime: ColabRuntime | None = None
    driver: ProvidedVersion | None = None
    glibc: ProvidedVersion | None = None
    python: ProvidedVersion | None = None

    @property
    def route(self) -> Route:
        """The route of the target."""
        return ("targets", self.name)


def collect_target_facts(spec: Spec, facts: Facts) -> tuple[TargetFacts, ...]:
    """Return every target of a spec, in its order."""
    return tuple(_target_facts(spec, facts, name) for name in spec.targets)


def runtime_packages(site: TargetFacts) -> Mapping[str, str] | None:
    """Return the packages (canonical name to version) of the Colab runtime that a spec's go on top
    of.

    None where they stand alone, and where the runtime is unknown. Two images hold a runtime: one
    for machines with a GPU, one for those without.
    """
    if (
        not isinstance(site.target, ColabTarget)
        or site.target.isolation != "system"
        or site.runtime is None
    ):
        return None
    sets = lazy_tables.load_colab_packages()
    return sets.get(
        site.runtime.runtime if site.gpu_settings.is_nvidia else f"{site.runtime.runtime}-cpu",
        sets[site.runtime.runtime],
    )


def build_workload(training: Training, devices: int) -> Workload | None:
    """Return what a spec trains on a number of devices; None when the number of parameters is not
    given.
    """
    model = training.model
    if model is None or model.parameters is None:
        return None
    return Workload(
        parameters=parse_parameter_count(model.parameters),
        method=training.method,
        precision=training.precision.value,
        optimizer=training.optimizer,
        checkpointing=training.gradient_checkpointing,
        strategy=training.strategy,
        devices=max(devices, 1),
        batch_size=training.batch_size,
        sequence_length=training.sequence_length,
        hidden_size=model.hidden_size,
        layers=model.layers,
    )


def _target_facts(spec: Spec, facts: Facts, name: str) -> TargetFacts:
    target, device = spec.targets[name], _gpu_settings(spec, name)
    card = facts.card(device.gpu.type) if device.is_nvidia else None
    match target:
        case LocalTarget():
            return TargetFacts(name, target, device, card, tuple(spec.platforms))
        case ColabTarget():
            return _colab(TargetFacts(name, target, device, card, ("linux-x86_64",)), target, facts)
        case WorkbenchTarget():
            return _workbench(
                TargetFacts(name, target, device, card, ("linux-x86_64",)), target, facts
            )
        case _:
            return TargetFacts(name, target, device, card, ("linux-x86_64",))


def _gpu_settings(spec: Spec, name: str) -> GpuSettings:
    target, own = spec.targets[name], ("targets", name)
    gpu, gpu_route = (target.gpu, (*own, "gpu")) if target.gpu is not None else (spec.gpu, ("gpu",))
    cuda, cuda_route = (
        (target.cuda, (*own, "cuda")) if target.cuda is not None else (spec.cuda, ("cuda",))
    )
    return GpuSettings(gpu, gpu_route, cuda, cuda_route)


def _colab(site: TargetFacts, target: ColabTarget, facts: Facts) -> TargetFacts:
    runtime, route = facts.runtimes.get(target.runtime), (*site.route, "runtime")
    driver = facts.conditions["host driver"]
    by = f"Colab runtime {target.runtime}"
    return TargetFacts(
        site.name,
        target,
        site.gpu_settings,
        site.card,
        site.platforms,
        runtime=runtime,
        driver=ProvidedVersion(
            driver.value, "Colab's machines", (*site.route, "kind"), driver.evidence
        )
        if site.gpu_settings.is_nvidia
        else None,
        glibc=ProvidedVersion(runtime.glibc, by, route, runtime.evidence) if runtime else None,
        python=ProvidedVersion(runtime.minor, by, route, runtime.evidence) if runtime else None,
    )


def _workbench(site: TargetFacts, target: WorkbenchTarget, facts: Facts) -> TargetFacts:
    family, day = split_image_name(target.image or "")
    image, route, by = facts.images.get(family), (*site.route, "image"), f"image {target.image}"
    if image is None:
        return site
    dated = facts.image_driver(family, day) if day else None
    known = (
        (dated.driver, dated.evidence)
        if dated
        else (image.driver, image.evidence)
        if image.driver
        else None
    )
    system = facts.systems.get(image.os)
    return TargetFacts(
        site.name,
        target,
        site.gpu_settings,
        site.card,
        site.platforms,
        image=image,
        driver=ProvidedVersion(known[0], by, route, known[1])
        if known and site.gpu_settings.is_nvidia
        else None,
        glibc=ProvidedVersion(system.glibc, f"{by} ({image.os})", route, system.evidence)
        if system
        else None,
        python=ProvidedVersion(image.python, by, route, image.evidence) if image.python else None,
    )
