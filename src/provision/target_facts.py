"""Facts of each target of a spec (GPU, driver, C library, Python), and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Facts
from provision.facts.lazy_tables import load_models
from provision.facts.memory import Workload
from provision.field_types import parse_size
from provision.kinds.base import Capacity, GpuSettings, Refusal, TargetFacts, TargetFields
from provision.kinds.drive import is_on_drive
from provision.spec import CARD_REQUIREMENTS, Spec, Training, TrainingModel, parse_parameter_count


class ModelSizes(NamedTuple):
    """Sizes of the model to train; None for those that are unknown."""

    parameters: int | None
    hidden_size: int | None
    layers: int | None


def collect_target_facts(spec: Spec, facts: Facts) -> tuple[TargetFacts, ...]:
    """Return every target of a spec, in its order."""
    return tuple(target_facts(spec, facts, name) for name in spec.targets)


def target_facts(spec: Spec, facts: Facts, name: str) -> TargetFacts:
    """Return one target with its facts."""
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


def gpu_memory(target: TargetFacts, facts: Facts) -> Capacity | None:
    """Return the memory of one GPU of a target, None if it is unknown.

    It is nvidia-smi's figure if it was seen, else the vendor's as GiB, which is never less.
    """
    card, route = target.card, target.gpu_settings.gpu_route
    if card is None:
        return None
    for shape in facts.shapes:
        if shape.card == card.name and shape.vram_mib:
            return Capacity(shape.vram_mib * 2**20, card.name, route, shape.evidence)
    return Capacity(card.memory_gb * 2**30, card.name, route, card.evidence)


def find_model_sizes(model: TrainingModel) -> ModelSizes:
    """Return the sizes that a spec declares, else those of the model with its id."""
    known = load_models().get(model.id.lower()) if model.id else None
    declared = parse_parameter_count(model.parameters) if model.parameters else None
    if known is None:
        return ModelSizes(declared, model.hidden_size, model.layers)
    return ModelSizes(
        declared or known.parameters,
        model.hidden_size or known.hidden_size,
        model.layers or known.layers,
    )


def build_workload(training: Training, devices: int) -> Workload | None:
    """Return the training of a spec on a number of devices, None without a parameter count."""
    model = find_model_sizes(training.model) if training.model else None
    if model is None or model.parameters is None:
        return None
    return Workload(
        parameters=model.parameters,
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


def data_in_memory(training: Training, devices: int) -> int | None:
    """Return the RAM of the data in bytes, None if none is declared.

    Each process of a distributed training loads its own copy.
    """
    if training.data is None or training.data.in_memory is None:
        return None
    processes = devices if training.strategy != "none" else 1
    return parse_size(training.data.in_memory) * max(processes, 1)


def find_target_refusals(spec: Spec, name: str, facts: Facts) -> tuple[Refusal, ...]:
    """Return everything that one target of a spec does not support."""
    return list_refusals(spec, target_facts(spec, facts, name), facts)


def list_refusals(spec: Spec, target: TargetFacts, facts: Facts) -> tuple[Refusal, ...]:
    """Return everything that a target, whose facts are known, does not support."""
    name = target.name
    own = spec.for_target(name)
    used_indexes = {package.index for package in own.packages}
    fields = TargetFields(
        packages=frozenset(package.key for package in own.packages),
        cuda_toolkit=own.cuda_toolkit,
        secrets={variable: secret.sources for variable, secret in own.secrets.items()},
        card_requirements=tuple(
            key for key in CARD_REQUIREMENTS if getattr(own.requires, key) is not None
        ),
        index_folders=tuple(
            name
            for name, index in own.indexes.items()
            if name in used_indexes and index.url.startswith("file:")
        ),
        code_routes=tuple(
            route
            for route, is_declared in (
                (("code",), own.code is not None),
                (("verify", "command"), bool(own.verify.command)),
            )
            if is_declared
        ),
        origin_routes=tuple(
            ("packages", number)
            for number, package in enumerate(spec.packages)
            if not package.is_from_index
        ),
        drive_routes=tuple(_drive_routes(spec, name)),
        system_packages=bool(own.system_packages),
    )
    return tuple(target.kind.refusals(target, fields, facts))


def _drive_routes(spec: Spec, name: str) -> Iterator[Route]:
    """Yield the folders of Google Drive among the paths that hold at a target."""
    own = spec.targets[name].paths
    for key, path in {**spec.paths, **own}.items():
        if is_on_drive(path):
            yield ("targets", name, "paths", key) if key in own else ("paths", key)


def find_unlockable(spec: Spec) -> tuple[Refusal, ...]:
    """Return every choice of a spec that cannot be locked for any target."""
    return tuple(_unlockable(spec))


def _unlockable(spec: Spec) -> Iterator[Refusal]:
    kind_of = spec.registry.kind_of
    by_conda = any(kind_of(target).uses_conda(target) for target in spec.targets.values())
    fix = "set `manager: conda` on a local target, or remove it"
    for number, package in enumerate(spec.packages):
        if package.source == "conda" and not by_conda:
            yield Refusal(
                ("packages", number),
                "`source: conda` requires a target with `manager: conda`",
                fix,
            )
    if "pypi" in spec.indexes:
        yield Refusal(
            ("indexes", "pypi"),
            "the name pypi is reserved for the default index; to use a mirror of the default "
            "index, set pip's index-url or PROVISION_INDEX_PYPI",
            "give the index a different name",
            rule="SEC002",
        )
    if spec.conda_packages and not by_conda:
        yield Refusal(
            ("conda_packages",),
            "`conda_packages` require a target with `manager: conda`",
            fix,
        )
