"""Joins every target of a spec with what the facts and its kind know of it."""

from __future__ import annotations

from provision.diagnostics import Route
from provision.facts import Facts
from provision.facts.memory import Workload
from provision.kinds.base import GpuSettings, TargetFacts
from provision.spec import Spec, Training, parse_parameter_count


def collect_target_facts(spec: Spec, facts: Facts) -> tuple[TargetFacts, ...]:
    """Return every target of a spec, in its order."""
    return tuple(target_facts(spec, facts, name) for name in spec.targets)


def target_facts(spec: Spec, facts: Facts, name: str) -> TargetFacts:
    """Return one target with what is known of it."""
    target = spec.targets[name]
    route: Route = ("targets", name)
    settings = GpuSettings(spec.gpu, ("gpu",), spec.cuda, ("cuda",))
    if target.gpu is not None:
        settings = settings._replace(gpu=target.gpu, gpu_route=(*route, "gpu"))
    if target.cuda is not None:
        settings = settings._replace(cuda=target.cuda, cuda_route=(*route, "cuda"))
    card = facts.card(settings.gpu.type) if settings.is_nvidia else None
    kind = spec.registry.kind_of(target)
    platforms = kind.lock_platforms(spec.platforms)
    provided = kind.provides(target, route, facts, gpu=settings.is_nvidia)
    return TargetFacts(name, target, kind, settings, card, platforms, *provided)


def build_workload(training: Training, devices: int) -> Workload | None:
    """Return what a spec trains on a number of devices, None without a number of parameters."""
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
