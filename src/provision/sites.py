"""What is known of each place that a spec names: its card, driver, C library and Python, and where in the spec each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Card, Evidence, Facts, flavour_of, parts
from provision.facts.memory import Workload
from provision.facts.places import Image, Runtime, family_and_day
from provision.spec import ColabTarget, Gpu, LocalTarget, Spec, Target, Training, WorkbenchTarget, parameters_of


class Device(NamedTuple):
    """What one or more targets compute on: the values and the routes they were written at."""

    gpu: Gpu
    gpu_route: Route
    cuda: str
    cuda_route: Route

    @property
    def nvidia(self) -> bool:
        """Whether it is a CUDA card."""
        return self.gpu.type not in ("none", "mps")

    @property
    def flavour(self) -> str | None:
        """The torch build family that is asked for: "cpu", "cu128"; None when the lock is to choose it."""
        if not self.nvidia or self.cuda == "none":
            return "cpu"
        return None if self.cuda == "auto" else flavour_of(self.cuda)


class Brought(NamedTuple):
    """What a place brings by itself, as "580.82.07": who brings it, in words; the route of what chose that; how sure we are."""

    value: str
    by: str
    route: Route
    evidence: Evidence


class Site(NamedTuple):
    """One target with what the facts know of it; None where they know nothing, as of the driver of a local machine."""

    name: str
    target: Target
    device: Device
    card: Card | None
    platforms: tuple[str, ...]
    image: Image | None = None
    runtime: Runtime | None = None
    driver: Brought | None = None
    glibc: Brought | None = None
    python: Brought | None = None

    @property
    def route(self) -> Route:
        """The route of the target."""
        return ("targets", self.name)


def sites_of(spec: Spec, facts: Facts) -> tuple[Site, ...]:
    """Return every target of a spec, in its order."""
    return tuple(_site(spec, facts, name) for name in spec.targets)


def runtime_packages(site: Site) -> Mapping[str, str] | None:
    """Return the packages (canonical name to version) of the Colab runtime that a spec's go on top of.

    None where they stand alone, and where the runtime is unknown. Two images hold a runtime: one for machines with a GPU, one for those without.
    """
    if not isinstance(site.target, ColabTarget) or site.target.isolation != "system" or site.runtime is None:
        return None
    sets = parts.colab_packages()
    return sets.get(site.runtime.runtime if site.device.nvidia else f"{site.runtime.runtime}-cpu", sets[site.runtime.runtime])


def workload_of(training: Training, devices: int) -> Workload | None:
    """Return what a spec trains on a number of devices; None when the number of parameters is not given."""
    model = training.model
    if model is None or model.parameters is None:
        return None
    return Workload(
        parameters=parameters_of(model.parameters),
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


def _site(spec: Spec, facts: Facts, name: str) -> Site:
    target, device = spec.targets[name], _device(spec, name)
    card = facts.card(device.gpu.type) if device.nvidia else None
    match target:
        case LocalTarget():
            return Site(name, target, device, card, tuple(spec.platforms))
        case ColabTarget():
            return _colab(Site(name, target, device, card, ("linux-x86_64",)), target, facts)
        case WorkbenchTarget():
            return _workbench(Site(name, target, device, card, ("linux-x86_64",)), target, facts)
        case _:
            return Site(name, target, device, card, ("linux-x86_64",))


def _device(spec: Spec, name: str) -> Device:
    target, own = spec.targets[name], ("targets", name)
    gpu, gpu_route = (target.gpu, (*own, "gpu")) if target.gpu is not None else (spec.gpu, ("gpu",))
    cuda, cuda_route = (target.cuda, (*own, "cuda")) if target.cuda is not None else (spec.cuda, ("cuda",))
    return Device(gpu, gpu_route, cuda, cuda_route)


def _colab(site: Site, target: ColabTarget, facts: Facts) -> Site:
    runtime, route = facts.runtimes.get(target.runtime), (*site.route, "runtime")
    driver = facts.conditions["host driver"]
    by = f"Colab runtime {target.runtime}"
    return Site(
        site.name,
        target,
        site.device,
        site.card,
        site.platforms,
        runtime=runtime,
        driver=Brought(driver.value, "Colab's machines", (*site.route, "kind"), driver.evidence) if site.device.nvidia else None,
        glibc=Brought(runtime.glibc, by, route, runtime.evidence) if runtime else None,
        python=Brought(runtime.minor, by, route, runtime.evidence) if runtime else None,
    )


def _workbench(site: Site, target: WorkbenchTarget, facts: Facts) -> Site:
    family, day = family_and_day(target.image or "")
    image, route, by = facts.images.get(family), (*site.route, "image"), f"image {target.image}"
    if image is None:
        return site
    dated = facts.image_driver(family, day) if day else None
    known = (dated.driver, dated.evidence) if dated else (image.driver, image.evidence) if image.driver else None
    system = facts.systems.get(image.os)
    return Site(
        site.name,
        target,
        site.device,
        site.card,
        site.platforms,
        image=image,
        driver=Brought(known[0], by, route, known[1]) if known and site.device.nvidia else None,
        glibc=Brought(system.glibc, f"{by} ({image.os})", route, system.evidence) if system else None,
        python=Brought(image.python, by, route, image.evidence) if image.python else None,
    )
