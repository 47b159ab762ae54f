"""Write a lock as a document of another tool: pylock.toml, requirements, a bill of materials, a uv
project, or what conda reads.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from provision.agent.probe.proofs.launch import Launch
from provision.commands.lock import ensure_lock
from provision.commands.shared.launch import build_launch
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import select_targets
from provision.effects import CondaChannel, ProgressCallback, Reader, System, WriteFile
from provision.errors import ExternalError, Refused, UsageError
from provision.lock import Lock
from provision.lock.conda_names import requested_conda_names
from provision.lock.file_urls import resolve_file_urls
from provision.lock.target_view import TargetView, target_environments, view_target
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
    """What a lock can be written as."""

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
    """A document, the targets that it is for, the digest of its lock, and the packages whose hashes
    nothing but the locking machine vouches for.
    """

    text: str
    targets: tuple[str, ...]
    digest: str
    unconfirmed: tuple[str, ...]


def export(
    loaded: LoadedSpec,
    form: ExportFormat,
    target: str | None,
    world: System,
    tell: ProgressCallback,
) -> ExportedLock:
    """Return what a target uses of the lock beside the spec, in another tool's format; only
    `pylock` asks the indexes.

    Raises LockError when the lock is missing or stale, UsageError when it is not clear which
    target is meant, and for `pylock` what `addresses` raises.
    """
    lock = ensure_lock(loaded, world, tell, frozen=True).lock
    targets = _target_names(loaded, lock, target)
    part = view_target(lock, targets[0])
    text = _text(loaded, form, lock, targets[0], world, tell)
    return ExportedLock(
        text,
        targets,
        lock.digest,
        tuple(held.package.name for held in part.packages if held.package.unconfirmed),
    )


def check_output_path(out: Path, form: ExportFormat, reader: Reader, *, force: bool) -> None:
    """Raise UsageError for a name that installers do not take, Refused for a file that no export
    made (`force` replaces it), WorldError without a folder.
    """
    if form is ExportFormat.PYLOCK and not _PYLOCK.fullmatch(out.name):
        raise UsageError(
            f"{out} is no name for a pylock file",
            why="installers take pylock.toml and pylock.NAME.toml only (PEP 751)",
            hint="rename it",
        )
    if not reader.exists(out.parent):
        raise ExternalError(
            f"cannot write {out}",
            why=f"there is no folder {out.parent}",
            hint="make it, or name a file elsewhere",
        )
    if (
        reader.exists(out)
        and not force
        and MADE_BY.encode() not in reader.read(out, _LIMIT)[:_HEAD]
    ):
        raise Refused(
            f"{out} is there, and no export made it",
            hint="name another file, or replace it with --force",
        )


def write_export(out: Path, exported: ExportedLock, world: System, tell: ProgressCallback) -> None:
    """Write the document in one step."""
    world.perform(WriteFile(out, exported.text), tell)


def _target_names(loaded: LoadedSpec, lock: Lock, target: str | None) -> tuple[str, ...]:
    known = tuple(loaded.spec.targets)
    if target is not None:
        return select_targets(loaded, (target,), everything=False)
    if all(
        target_environments(lock, name) == target_environments(lock, known[0]) for name in known
    ):
        return known
    listed = ", ".join(f"{name} ({place.kind})" for name, place in loaded.spec.targets.items())
    hint = f"name one, as in: provision export {shlex.quote(str(loaded.path))} --target {known[0]}"
    raise UsageError(
        "the spec has several targets, with environments of their own", why=listed, hint=hint
    )


def _text(
    loaded: LoadedSpec,
    form: ExportFormat,
    lock: Lock,
    target: str,
    world: System,
    tell: ProgressCallback,
) -> str:
    part = view_target(lock, target)
    match form:
        case ExportFormat.PYLOCK:
            return pylock.render_pylock(part, resolve_file_urls(part, loaded.facts, world, tell))
        case ExportFormat.REQUIREMENTS:
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
            return _launching(form, build_launch(loaded.spec.for_target(target), target, lock))
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
            return conda.render_explicit_list(part, world.channel_addresses(channels))
        case _:
            assert_never(form)


def _launching(form: ExportFormat, launch: Launch) -> str:
    if form is ExportFormat.DEEPSPEED and not launch.zero_stage:
        hint = "declare strategy: deepspeed-zero2 or deepspeed-zero3"
        raise UsageError(
            "there is no DeepSpeed configuration to write",
            why=f"the spec declares strategy: {launch.strategy}",
            hint=hint,
        )
    if form is ExportFormat.ACCELERATE:
        return launch_files.render_accelerate_config(launch)
    return (
        launch_files.render_deepspeed_config(launch)
        if form is ExportFormat.DEEPSPEED
        else launch_files.render_launch_command(launch)
    )


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
            f"{form} is for a target with manager: conda",
            why="this target's Python does not come from conda",
            hint="the other formats fit it",
        )
    if len(part.environments) > 1:
        platforms = ", ".join(environment.platform for environment in part.environments)
        why = f"the builds of conda differ by platform, and {loaded.path} lists {platforms}"
        one = f"`extends: {loaded.path.name}` and `platforms: [{part.environments[0].platform}]`"
        raise Refused(
            f"{form} is for one platform",
            why=why,
            hint=f"lock and export a spec beside it that says {one}",
        )
