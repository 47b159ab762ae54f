"""Write a lock as a document of another tool: pylock.toml, requirements, a bill of materials, a uv project, or what conda reads."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from provision.commands.launching import launch_of
from provision.commands.loading import Loaded
from provision.commands.lock import settle
from provision.commands.planning import choose
from provision.effects import CondaChannel, Reader, Tell, World, WriteFile
from provision.errors import Refused, UsageError, WorldError
from provision.lock import Lock
from provision.lock.addresses import addresses
from provision.lock.conda import asked_of_conda
from provision.lock.portion import Portion, environments_of, portion
from provision.probe.proofs.launching import Launch
from provision.views.exports import MADE_BY, conda, cyclonedx, launching, pylock, pyproject, requirements

_LIMIT = 64 * 2**20
_HEAD = 1024
_PYLOCK = re.compile(r"pylock(\.[^.]+)?\.toml")


class Format(StrEnum):
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
class Exported:
    """A document, the targets that it is for, the digest of its lock, and the packages whose hashes nothing but the locking machine vouches for."""

    text: str
    targets: tuple[str, ...]
    digest: str
    unconfirmed: tuple[str, ...]


def export(loaded: Loaded, form: Format, target: str | None, world: World, tell: Tell) -> Exported:
    """Return what a target uses of the lock beside the spec, in another tool's format; only `pylock` asks the indexes.

    Raises LockError when the lock is missing or stale, UsageError when it is not clear which target is meant, and for `pylock` what `addresses` raises.
    """
    lock = settle(loaded, world, tell, frozen=True).lock
    targets = _meant(loaded, lock, target)
    part = portion(lock, targets[0])
    text = _text(loaded, form, lock, targets[0], world, tell)
    return Exported(text, targets, lock.digest, tuple(held.package.name for held in part.held if held.package.unconfirmed))


def check_out(out: Path, form: Format, reader: Reader, *, force: bool) -> None:
    """Raise UsageError for a name that installers do not take, Refused for a file that no export made (`force` replaces it), WorldError without a folder."""
    if form is Format.PYLOCK and not _PYLOCK.fullmatch(out.name):
        raise UsageError(f"{out} is no name for a pylock file", why="installers take pylock.toml and pylock.NAME.toml only (PEP 751)", hint="rename it")
    if not reader.exists(out.parent):
        raise WorldError(f"cannot write {out}", why=f"there is no folder {out.parent}", hint="make it, or name a file elsewhere")
    if reader.exists(out) and not force and MADE_BY.encode() not in reader.read(out, _LIMIT)[:_HEAD]:
        raise Refused(f"{out} is there, and no export made it", hint="name another file, or replace it with --force")


def write_export(out: Path, exported: Exported, world: World, tell: Tell) -> None:
    """Write the document in one step."""
    world.perform(WriteFile(out, exported.text), tell)


def _meant(loaded: Loaded, lock: Lock, target: str | None) -> tuple[str, ...]:
    known = tuple(loaded.spec.targets)
    if target is not None:
        return choose(loaded, (target,), everything=False)
    if all(environments_of(lock, name) == environments_of(lock, known[0]) for name in known):
        return known
    listed = ", ".join(f"{name} ({place.kind})" for name, place in loaded.spec.targets.items())
    hint = f"name one, as in: provision export {shlex.quote(str(loaded.path))} --target {known[0]}"
    raise UsageError("the spec has several targets, with environments of their own", why=listed, hint=hint)


def _text(loaded: Loaded, form: Format, lock: Lock, target: str, world: World, tell: Tell) -> str:
    part = portion(lock, target)
    match form:
        case Format.PYLOCK:
            return pylock.text(part, addresses(part, loaded.facts, world, tell))
        case Format.REQUIREMENTS:
            return requirements.text(part)
        case Format.CYCLONEDX:
            return cyclonedx.text(part, loaded.spec.name, tuple(package.key for package in loaded.spec.packages), asked_of_conda(loaded.spec))
        case Format.PYPROJECT:
            return pyproject.text(part, loaded.spec)
        case Format.ACCELERATE | Format.DEEPSPEED | Format.LAUNCH:
            return _launching(form, launch_of(loaded.spec.at(target), target, lock))
        case Format.ENVIRONMENT_YML:
            _refuse_without_conda(part, form, loaded)
            return conda.environment_yml(part, loaded.spec.name, asked_of_conda(loaded.spec), _own_channels(part, loaded))
        case Format.CONDA_EXPLICIT:
            _refuse_without_conda(part, form, loaded)
            own = _own_channels(part, loaded)
            channels = tuple(CondaChannel(name, own.get(name, "")) for name in sorted({package.channel for package in part.conda}))
            return conda.explicit(part, world.channel_addresses(channels))
        case _:
            assert_never(form)


def _launching(form: Format, launch: Launch) -> str:
    if form is Format.DEEPSPEED and not launch.zero_stage:
        hint = "declare strategy: deepspeed-zero2 or deepspeed-zero3"
        raise UsageError("there is no DeepSpeed configuration to write", why=f"the spec declares strategy: {launch.strategy}", hint=hint)
    if form is Format.ACCELERATE:
        return launching.accelerate(launch)
    return launching.deepspeed(launch) if form is Format.DEEPSPEED else launching.command(launch)


def _own_channels(part: Portion, loaded: Loaded) -> dict[str, str]:
    indexes = loaded.spec.indexes
    return {package.channel: indexes[package.channel].url for package in part.conda if package.channel in indexes}


def _refuse_without_conda(part: Portion, form: Format, loaded: Loaded) -> None:
    if not part.conda:
        raise Refused(f"{form} is for a target with manager: conda", why="this target's Python does not come from conda", hint="the other formats fit it")
    if len(part.environments) > 1:
        platforms = ", ".join(environment.platform for environment in part.environments)
        why = f"the builds of conda differ by platform, and {loaded.path} lists {platforms}"
        one = f"`extends: {loaded.path.name}` and `platforms: [{part.environments[0].platform}]`"
        raise Refused(f"{form} is for one platform", why=why, hint=f"lock and export a spec beside it that says {one}")
