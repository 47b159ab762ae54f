"""Writes a lock in another tool's format: pylock.toml, requirements, CycloneDX, uv or conda."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from provision.agent.probe.proofs.launch import Launch
from provision.commands.lock import ensure_lock
from provision.commands.shared.launch import build_launch
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_selection import list_targets, select_target
from provision.effects.conda import CondaChannel
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import ExternalError, Refused, UsageError
from provision.lock import Lock
from provision.lock.conda_request import requested_conda_names
from provision.lock.file_urls import resolve_file_urls
from provision.lock.target_view import TargetView, view_target
from provision.views.exports import (
    MADE_BY,
    conda,
    cyclonedx,
    launch_files,
    pylock,
    pyproject,
    requirements,
)

_LIMIT = 64 * 2**20
_HEAD = 1024
_PYLOCK = re.compile(r"pylock(\.[^.]+)?\.toml")


class ExportFormat(StrEnum):
    """A format that a lock can be written in."""

    PYLOCK = "pylock"
    REQUIREMENTS = "requirements"
    CYCLONEDX = "cyclonedx"
    PYPROJECT = "pyproject"
    ENVIRONMENT_YML = "environment.yml"
    CONDA_EXPLICIT = "conda-explicit"
    ACCELERATE = "accelerate"
    DEEPSPEED = "deepspeed"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True)
class ExportedLock:
    """A document for some targets; no index has confirmed the hashes of `unconfirmed`."""

    text: str
    targets: tuple[str, ...]
    digest: str
    unconfirmed: tuple[str, ...]


def export(
    loaded: LoadedSpec,
    form: ExportFormat,
    target: str | None,
    folder: Path,
    system: System,
    progress: ProgressCallback,
) -> ExportedLock:
    """Return a target's part of the lock in another tool's format; `pylock` reads the indexes.

    Paths in it are relative to `folder`.

    Raises:
        LockError: the lock is missing or stale, or an index no longer has a file.
        UsageError: the targets have different environments, and none is named.
    """
    lock = ensure_lock(loaded, system, progress, frozen=True).lock
    targets = _target_names(loaded, lock, target)
    part = _with_paths_from(folder, loaded, view_target(lock, targets[0]))
    text = _text(loaded, form, lock, targets[0], part, system, progress)
    return ExportedLock(
        text,
        targets,
        lock.digest,
        tuple(viewed.package.name for viewed in part.packages if viewed.package.unconfirmed),
    )


def check_output_path(out: Path, form: ExportFormat, reader: Reader, *, force: bool) -> None:
    """Check that a document can be written to a path.

    Raises:
        UsageError: installers do not accept the name.
        Refused: no export made the existing file, and `force` is not set.
        ExternalError: there is no such folder.
    """
    if form is ExportFormat.PYLOCK and not _PYLOCK.fullmatch(out.name):
        raise UsageError(
            f"{out} is not a valid name for a pylock file",
            why="installers accept only pylock.toml and pylock.NAME.toml (PEP 751)",
            hint="use a name such as pylock.toml",
        )
    if not reader.exists(out.parent):
        raise ExternalError(
            f"cannot write {out}",
            why=f"there is no folder {out.parent}",
            hint="create the folder, or choose another path",
        )
    if (
        reader.exists(out)
        and not force
        and MADE_BY.encode() not in reader.read(out, _LIMIT)[:_HEAD]
    ):
        raise Refused(
            f"{out} exists and was not written by `provision export`",
            hint="choose another file, or overwrite this one with --force",
        )


def _target_names(loaded: LoadedSpec, lock: Lock, target: str | None) -> tuple[str, ...]:
    known = tuple(loaded.spec.targets)
    if target is not None:
        return (select_target(loaded, target),)
    if len({lock.environments_of(name) for name in known}) == 1:
        return known
    raise UsageError(
        "the spec has several targets with different environments",
        why=list_targets(loaded),
        hint=f"select one, as in: {loaded.command('export', known[0])}",
    )


def _text(
    loaded: LoadedSpec,
    form: ExportFormat,
    lock: Lock,
    target: str,
    part: TargetView,
    system: System,
    progress: ProgressCallback,
) -> str:
    match form:
        case ExportFormat.PYLOCK:
            indexed = replace(part, packages=part.indexed)
            addresses = resolve_file_urls(indexed, loaded.facts, system, progress)
            return pylock.render_pylock(part, addresses)
        case ExportFormat.REQUIREMENTS:
            _refuse_sources_without_hash(part)
            return requirements.render_requirements(part)
        case ExportFormat.CYCLONEDX:
            return cyclonedx.render_cyclonedx(
                part,
                loaded.spec.name,
                tuple(package.key for package in loaded.spec.packages),
                requested_conda_names(loaded.spec),
            )
        case ExportFormat.PYPROJECT:
            return pyproject.render_pyproject(part, loaded.spec)
        case ExportFormat.ACCELERATE | ExportFormat.DEEPSPEED | ExportFormat.LAUNCH:
            return _render_launch(form, build_launch(loaded.spec.for_target(target), target, lock))
        case ExportFormat.ENVIRONMENT_YML:
            _refuse_without_conda(part, form, loaded)
            return conda.render_environment_yml(
                part,
                loaded.spec.name,
                requested_conda_names(loaded.spec),
                _own_channels(part, loaded),
            )
        case ExportFormat.CONDA_EXPLICIT:
            _refuse_without_conda(part, form, loaded)
            own = _own_channels(part, loaded)
            channels = tuple(
                CondaChannel(name, own.get(name, ""))
                for name in sorted({package.channel for package in part.conda})
            )
            return conda.render_explicit_list(part, system.channel_addresses(channels))
        case _:
            assert_never(form)


def _with_paths_from(folder: Path, loaded: LoadedSpec, part: TargetView) -> TargetView:
    """Return a part of the lock whose paths are relative to a folder."""
    packages = []
    for viewed in part.packages:
        origin = viewed.package.origin
        if origin is not None and origin.path:
            path = os.path.relpath(loaded.source.root / origin.path, folder)
            moved = replace(origin, path=Path(path).as_posix())
            viewed = replace(viewed, package=replace(viewed.package, origin=moved))  # noqa: PLW2901
        packages.append(viewed)
    return replace(part, packages=tuple(packages))


def _refuse_sources_without_hash(part: TargetView) -> None:
    origins = {one.package.name: one.package.origin for one in part.packages}
    sources = {name: origin for name, origin in origins.items() if origin and not origin.is_wheel}
    if sources:
        raise Refused(
            "a requirements file with hashes cannot list folders or repositories",
            why="\n".join(f"{name}: {origin.description}" for name, origin in sources.items()),
            hint="use --format pylock or --format pyproject, or build wheels of these packages and "
            "list the wheels in `packages`",
        )


def _render_launch(form: ExportFormat, launch: Launch) -> str:
    if form is ExportFormat.DEEPSPEED and not launch.zero_stage:
        raise UsageError(
            "there is no DeepSpeed configuration to write",
            why=f"the spec declares `strategy: {launch.strategy}`",
            hint="set `strategy: deepspeed-zero2` or `strategy: deepspeed-zero3`",
        )
    if form is ExportFormat.ACCELERATE:
        return launch_files.render_accelerate_config(launch)
    if form is ExportFormat.DEEPSPEED:
        return launch_files.render_deepspeed_config(launch)
    return launch_files.render_launch_command(launch)


def _own_channels(part: TargetView, loaded: LoadedSpec) -> dict[str, str]:
    indexes = loaded.spec.indexes
    return {
        package.channel: indexes[package.channel].url
        for package in part.conda
        if package.channel in indexes
    }


def _refuse_without_conda(part: TargetView, form: ExportFormat, loaded: LoadedSpec) -> None:
    if not part.conda:
        raise Refused(
            f"the format {form} needs a target with `manager: conda`",
            why="this target's Python does not come from conda",
            hint="use a different format",
        )
    if len(part.environments) > 1:
        platforms = ", ".join(environment.platform for environment in part.environments)
        fields = f"`extends: {loaded.path.name}` and `platforms: [{part.environments[0].platform}]`"
        raise Refused(
            f"the format {form} covers only one platform",
            why=f"conda builds differ between platforms, and {loaded.path} lists {platforms}",
            hint=f"write a second spec in the same folder with {fields}, then lock and export that "
            "spec",
        )
