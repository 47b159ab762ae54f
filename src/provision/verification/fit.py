"""Compares the memory and disk that a training takes with what each target has."""

from __future__ import annotations

from collections.abc import Iterator

from provision.facts import Facts
from provision.facts.host_usage import checkpoint_disk_usage, loaded_weights
from provision.facts.memory import (
    JAX_ALLOCATOR,
    ON_DEMAND_VALUES,
    PREALLOCATION_VARIABLES,
    MemorySaving,
    Workload,
    combine_savings,
    estimate_memory,
    find_savings,
)
from provision.field_types import parse_size
from provision.kinds.base import Capacity, TargetFacts
from provision.spec import Spec
from provision.target_facts import build_workload, data_in_memory, gpu_memory
from provision.verification.fit_model import (
    GIB,
    AvailableAmount,
    FitResource,
    FitSources,
    LargeArray,
    ModelTensors,
    NeedOrigin,
    ResourceFit,
    ResourceNeed,
    RunFigures,
    TargetFit,
    describe_arrays,
    describe_tensors,
    format_size,
    read_bytes,
)
from provision.verification.report import Report


def evaluate_target(
    spec: Spec, target: TargetFacts, facts: Facts, sources: FitSources
) -> TargetFit:
    """Return how a training fits one target.

    Args:
        spec: the spec as it holds at the target.
        target: the target with its facts; its machine type is chosen.
        facts: the tables to look up.
        sources: measurements.
    """
    work = build_workload(spec.training, target.gpu_settings.gpu.count)
    resources = []
    for resource in FitResource:
        needs = tuple(_needs(resource, spec, target, work, facts, sources.run))
        if needs:
            available = _available(resource, target, facts, sources)
            fit = ResourceFit(resource, needs, available)
            if fit.fits is False:
                helpful = tuple(_savings(fit, spec, target, work, facts, sources.run))
                fit = ResourceFit(resource, needs, available, helpful)
            resources.append(fit)
    unknown: tuple[str, ...] = ()
    if work is not None and target.gpu_settings.is_nvidia:
        unknown = estimate_memory(work, facts).unknown
    if sources.run is not None and sources.run.gpu and target.gpu_settings.is_nvidia:
        unknown += tuple(_preallocation(spec))
    return TargetFit(target.name, target.kind.name, tuple(resources), unknown)


def _preallocation(spec: Spec) -> Iterator[str]:
    """Yield why the GPU memory that a run took does not show what it needs, if so."""
    framework = {"jax": "jax", "keras": spec.backend()}.get(spec.framework(), "")
    if framework not in PREALLOCATION_VARIABLES:
        return
    variable, value, _ = PREALLOCATION_VARIABLES[framework]
    values = {spec.env.get(variable)}
    if framework == "jax":
        values.add(spec.env.get(JAX_ALLOCATOR))
    if values.isdisjoint(ON_DEMAND_VALUES[framework]):
        yield (
            f"the run's GPU memory, because {framework} reserves most of a GPU in advance (to "
            f"measure it, set {variable}={value} under `env` and run again)"
        )


def _needs(
    resource: FitResource,
    spec: Spec,
    target: TargetFacts,
    work: Workload | None,
    facts: Facts,
    run: RunFigures | None,
) -> Iterator[ResourceNeed]:
    with_gpu = target.gpu_settings.is_nvidia
    if resource is FitResource.GPU and not with_gpu:
        return
    estimate = _estimate(resource, spec, target, work, facts)
    if estimate is not None:
        yield estimate
    measured = _measured(resource, run)
    if resource is FitResource.GPU and any(_preallocation(spec)):
        measured = None
    if run is not None and measured:
        detail = f"peak of {run.program}" if run.program else "peak of the run"
        if resource is FitResource.GPU and run.gpu_name:
            detail += f" on {run.gpu_name}"
        if run.is_killed:
            detail += ", which was killed (or one of its processes was) because memory ran out"
        if resource is FitResource.RAM and run.arrays:
            detail += f", with the arrays {describe_arrays(run.arrays)}"
        tensors = _tensors_in(resource, run)
        if tensors:
            detail += f", with {describe_tensors(tensors)}"
        yield ResourceNeed(measured, NeedOrigin.MEASURED, detail, is_minimum=run.is_killed)
    required = _required(resource, spec)
    if required is not None:
        yield required


def _tensors_in(resource: FitResource, run: RunFigures) -> tuple[ModelTensors, ...]:
    """Return the weights, optimizers and jax arrays of a run that take a resource."""
    if resource not in (FitResource.RAM, FitResource.GPU):
        return ()
    return tuple(one for one in run.tensors if one.on_gpu == (resource is FitResource.GPU))


def _estimate(
    resource: FitResource,
    spec: Spec,
    target: TargetFacts,
    work: Workload | None,
    facts: Facts,
) -> ResourceNeed | None:
    origin, arguments = NeedOrigin.ESTIMATED, spec.training.arguments
    match resource:
        case FitResource.RAM:
            parts = _ram_parts(spec, target, work, facts)
            if not parts:
                return None
            return ResourceNeed(sum(parts.values()), origin, " and ".join(parts), is_minimum=True)
        case FitResource.GPU:
            if work is None:
                return None
            estimate = estimate_memory(work, facts)
            detail = f"{spec.training.method} training"
            if spec.training.method == "inference":
                detail = "inference"
            return ResourceNeed(estimate.total, origin, detail, bool(estimate.unknown))
        case FitResource.DISK:
            with_trainer = spec.framework() == "hf-trainer"
            usage = checkpoint_disk_usage(work, arguments, facts) if work and with_trainer else None
            if usage is None:
                return None
            return ResourceNeed(usage.total, origin, "weights and checkpoints", is_minimum=True)
        case FitResource.SHM:
            return None


def _ram_parts(
    spec: Spec, target: TargetFacts, work: Workload | None, facts: Facts
) -> dict[str, int]:
    """Return the bytes of RAM by purpose; without a GPU the whole training is in RAM."""
    parts = {"data": data_in_memory(spec.training, target.gpu_settings.gpu.count) or 0}
    if work is not None and target.gpu_settings.is_nvidia:
        loaded = loaded_weights(work, spec.training.arguments)
        parts["weights while loading"] = loaded.bytes if loaded else 0
    elif work is not None:
        estimate = estimate_memory(work, facts)
        parts["training on the CPU"] = estimate.total - estimate.overhead
    return {name: count for name, count in parts.items() if count}


def _measured(resource: FitResource, run: RunFigures | None) -> int | None:
    if run is None:
        return None
    match resource:
        case FitResource.RAM:
            return run.ram
        case FitResource.GPU:
            return run.gpu
        case FitResource.SHM:
            return run.shm
        case FitResource.DISK:
            return None


def _required(resource: FitResource, spec: Spec) -> ResourceNeed | None:
    requires = spec.requires
    fields = {
        FitResource.RAM: ("ram", requires.ram),
        FitResource.GPU: ("vram", requires.vram),
        FitResource.SHM: ("shm", requires.shm),
        FitResource.DISK: ("disk", requires.disk),
    }
    name, size = fields[resource]
    if size is None:
        return None
    return ResourceNeed(parse_size(size), NeedOrigin.REQUIRED, f"requires.{name}", is_minimum=True)


def _available(
    resource: FitResource, target: TargetFacts, facts: Facts, sources: FitSources
) -> AvailableAmount | None:
    """Return what a target has: by this machine, else by the facts, else by its last report.

    The facts come before the report: the spec may name another machine since it was verified.
    """
    machine = sources.machine
    if machine is not None:
        sizes = {
            FitResource.RAM: machine.memory,
            FitResource.SHM: machine.shm,
            FitResource.DISK: machine.free_disk,
        }
        measured = sizes.get(resource)
        if measured:
            return AvailableAmount(measured, "this machine", "measured now")
    capacity = _capacity(resource, target, facts)
    if capacity is not None:
        source = f"facts of {capacity.evidence.as_of}"
        return AvailableAmount(round(capacity.bytes), capacity.provider, source)
    if sources.report is not None and (size := _reported(resource, sources.report)):
        date = sources.report.subject.created_utc[:10]
        return AvailableAmount(size, "the verified machine", f"report of {date}")
    return None


def _capacity(resource: FitResource, target: TargetFacts, facts: Facts) -> Capacity | None:
    match resource:
        case FitResource.GPU:
            return gpu_memory(target, facts)
        case FitResource.RAM:
            return target.kind.capacity("ram", target, facts)
        case FitResource.SHM:
            return target.kind.capacity("shm", target, facts)
        case FitResource.DISK:
            return target.kind.capacity("disk", target, facts)


def _reported(resource: FitResource, report: Report) -> int | None:
    values = report.values
    match resource:
        case FitResource.RAM:
            keys = ("host.ram_bytes", "host.cgroup_ram_bytes")
            known = [size for key in keys if (size := read_bytes(values, key))]
            return min(known, default=None)
        case FitResource.GPU:
            return read_bytes(values, "gpu.vram_bytes")
        case FitResource.SHM:
            return read_bytes(values, "host.shm_bytes")
        case FitResource.DISK:
            return None  # free disk changes; a report shows that of its day


def _savings(
    fit: ResourceFit,
    spec: Spec,
    target: TargetFacts,
    work: Workload | None,
    facts: Facts,
    run: RunFigures | None,
) -> Iterator[str]:
    """Yield what helps, the largest saving first."""
    available = fit.available
    if available is None:
        return
    match fit.resource:
        case FitResource.GPU if work is not None:
            yield from _gpu_savings(work, available.bytes, target, facts)
        case FitResource.RAM:
            data = data_in_memory(spec.training, target.gpu_settings.gpu.count)
            if run is not None and run.arrays and fit.need.origin is NeedOrigin.MEASURED:
                yield from _array_savings(run.arrays, fit.need.bytes)
            elif data:
                left = format_size(max(fit.need.bytes - data, 0))
                yield (
                    "read the data in parts and remove `training.data.in_memory`: this saves "
                    f"{format_size(data)} and leaves a need of {left}"
                )
            larger = target.kind.machine_with_ram(fit.need.bytes / GIB, target, facts)
            if larger is not None:
                yield f"set `{larger.field}: {larger.value}`, which has {larger.ram_gib:g} GiB"
        case FitResource.DISK if spec.framework() == "hf-trainer":
            yield "keep fewer checkpoints with `training.arguments.save_total_limit`"
        case FitResource.SHM:
            yield "use fewer DataLoader workers, or smaller batches"
        case _:
            pass


def _array_savings(arrays: tuple[LargeArray, ...], needed: int) -> Iterator[str]:
    """Yield what needs less RAM than the arrays of a program.

    Frameworks make copies of arrays, so that more is saved than their own size.
    """
    size = sum(array.bytes for array in arrays)
    yield (
        "read the data in parts (tf.data, a PyDataset, a DataLoader) instead of the arrays: "
        f"this saves at least {format_size(size)}, and at most {format_size(needed - size)} is "
        "needed"
    )
    doubles = tuple(array for array in arrays if array.dtype == "float64")
    if doubles:
        half = sum(array.bytes for array in doubles) // 2
        names = ", ".join(array.name for array in doubles)
        yield (
            f"create {names} as float32 instead of float64: this saves at least "
            f"{format_size(half)}, and at most {format_size(needed - half)} is needed"
        )


def _gpu_savings(work: Workload, limit: int, target: TargetFacts, facts: Facts) -> Iterator[str]:
    has_bf16 = target.card is not None and facts.has_feature(target.card, "bf16")
    half = "bf16" if has_bf16 else "fp16"
    largest = next(iter(find_savings(work, facts, half=half)), None)
    if largest is None:
        return
    text = (
        f"set {_format_change(largest)}: saves {format_size(largest.saved_bytes)}, then "
        f"{format_size(largest.total)} is needed"
    )
    if largest.total > limit:
        together = combine_savings(work, limit, facts, half=half)
        text += ", which is still too much"
        if together:
            changes = " and ".join(map(_format_change, together[1:]))
            text = (
                f"set {_format_change(largest)} (saves {format_size(largest.saved_bytes)}) and "
                f"{changes}: then {format_size(together[-1].total)} is needed"
            )
    yield text


def _format_change(saving: MemorySaving) -> str:
    return ", ".join(
        f"training.{key}: {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in saving.change.items()
    )
