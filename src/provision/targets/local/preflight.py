"""Comparison of a spec with this machine before anything is downloaded for its environment."""

from __future__ import annotations

from collections.abc import Iterator

from provision.agent.core.gpu_names import is_declared_gpu
from provision.agent.probe.byte_sizes import format_bytes
from provision.agent.probe.checks.host import RAM_SHARE
from provision.effects.machine import MachineResources
from provision.effects.system import Reader
from provision.field_types import parse_size
from provision.lock.model import LockedPackage
from provision.lock.wheels import with_platform_files
from provision.spelling import pluralize
from provision.targets.context import TargetContext

_MAX_NAMED = 3


def preflight_notes(context: TargetContext, reader: Reader) -> tuple[str, ...]:
    """Return warnings about what this machine lacks, and the size of the download."""
    spec = context.spec
    with_gpus = not spec.gpu.is_none and spec.gpu.type != "mps"
    resources = reader.machine_resources(context.folder, with_gpus=with_gpus)
    problems = [
        *(_gpu_problems(context, resources) if with_gpus else ()),
        *_size_problems(context, resources),
        *_path_problems(context, reader),
        *_secret_problems(context, reader),
    ]
    warnings = [f"warning: {problem}" for problem in problems]
    return (*warnings, *_download_notes(context, resources))


def _gpu_problems(context: TargetContext, resources: MachineResources) -> Iterator[str]:
    gpu, names = context.spec.gpu, resources.gpus
    fitting = [name for name in names or () if is_declared_gpu(name, gpu.type)]
    if names is None:
        yield (
            f"the spec declares `gpu: {gpu}`, but this machine has no NVIDIA driver "
            "(nvidia-smi is missing)"
        )
    elif len(fitting) < gpu.count:
        listed = ", ".join(names) or "no GPU"
        yield f"the spec declares `gpu: {gpu}`, but nvidia-smi lists {listed}"


def _size_problems(context: TargetContext, resources: MachineResources) -> Iterator[str]:
    requires = context.spec.requires
    if requires.ram and resources.memory < parse_size(requires.ram) * RAM_SHARE.value:
        has = format_bytes(resources.memory)
        yield f"`requires.ram` is {requires.ram}, but this machine has {has} of memory"
    if requires.disk and not context.spec.paths and resources.free_disk < parse_size(requires.disk):
        free = format_bytes(resources.free_disk)
        yield (
            f"`requires.disk` is {requires.disk}, but {context.folder.parent} has only {free} free"
        )


def _path_problems(context: TargetContext, reader: Reader) -> Iterator[str]:
    for name, path in context.spec.paths.items():
        folder = context.folder / path  # the rules report a path that is not absolute
        if not reader.exists(folder):
            yield f"paths.{name}: {path} does not exist"
        elif not reader.is_writable(folder):
            yield f"paths.{name}: {path} is not writable"


def _secret_problems(context: TargetContext, reader: Reader) -> Iterator[str]:
    variables = reader.environment()
    for name, reference in context.spec.secrets.items():
        if reference.env and not variables.get(reference.env):
            yield (
                f"secrets.{name}: the environment variable {reference.env} is not set or is "
                "empty; the verification will fail (Y01)"
            )


def _download_notes(context: TargetContext, resources: MachineResources) -> Iterator[str]:
    """Yield the size of the download, as far as the indexes listed it when it was resolved."""
    python, platform = context.lock.python, context.platform
    sizes = {
        package.name: _largest_file(with_platform_files(package, python, platform))
        for package in context.lock.packages_in(context.environment)
        if package.origin is None
    }
    known = [size for size in sizes.values() if size]
    unknown = [name for name, size in sizes.items() if size is None]
    if not known:
        return
    total = sum(known)
    note = f"downloads about {_format_download(total)} for {pluralize(len(known), 'package')}"
    if unknown:
        more = ", ..." if len(unknown) > _MAX_NAMED else ""
        names = ", ".join(unknown[:_MAX_NAMED]) + more
        note += f", plus {pluralize(len(unknown), 'package')} of unknown size ({names})"
    yield f"{note}; files in uv's cache are not downloaded again"
    if resources.free_disk < total:
        free = format_bytes(resources.free_disk)
        yield f"warning: {context.folder.parent} has only {free} of free disk space"


def _largest_file(package: LockedPackage) -> int | None:
    """Return the size of the largest file; None if no index listed one."""
    return max((file.size for file in package.files if file.size is not None), default=None)


def _format_download(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1):.0f} MB"
