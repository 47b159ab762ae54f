"""Traces of a local target: its paths, the marker of a complete environment, its records."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from provision.state import Record, to_folder_name
from provision.targets.context import TargetContext

MARKER_FILE = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"


def environment_path(context: TargetContext) -> Path:
    """Return the prefix of the environment that is locked."""
    digest = context.environment.digest.removeprefix("sha256:")[:12]
    return context.folder / "envs" / f"{to_folder_name(context.address)}-{digest}"


def stable_path(context: TargetContext) -> Path:
    """Return the link that follows the target's environment through upgrades."""
    return context.folder / "envs" / to_folder_name(context.address)


def build_marker(context: TargetContext) -> dict[str, Any]:
    """Return the content of the marker of a complete environment."""
    marker = {
        "schema": _MARKER_SCHEMA,
        "spec": context.stem,
        "target": context.target,
        "digest": context.environment.digest,
        "prefix": str(environment_path(context)),
    }
    return {**marker, "sources": contents_to_install(context)} if context.sources else marker


def contents_to_install(context: TargetContext) -> dict[str, str]:
    """Return the digests of packages that are installed again after an edit.

    An edit of an editable package has an effect at once.
    """
    return {source.name: source.digest for source in context.sources if not source.editable}


@dataclass(frozen=True, slots=True)
class EnvironmentRecord(Record):
    """An environment with its stable path, and earlier ones in which a program runs."""

    part: ClassVar[str] = "environment"

    title: str
    manager: str
    paths: tuple[str, ...]
    digest: str
    lock: str
    python: str
    kind: str = "local"
    earlier: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def environments(self) -> tuple[str, ...]:
        """The current environment and the earlier ones, relative to the state folder."""
        return (*self.paths[:1], *self.earlier)


@dataclass(frozen=True, slots=True)
class KernelRecord(Record):
    """A Jupyter kernel: its name, and its folder outside the state folder."""

    part: ClassVar[str] = "kernel"

    title: str
    name: str
    outside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CondaLinkRecord(Record):
    """A name for the user's conda: our link and its end, or the rival that has the name."""

    part: ClassVar[str] = "name"

    title: str
    name: str
    program: str = ""
    link: str = ""
    end: str = ""
    rival: str = ""


@dataclass(frozen=True, slots=True)
class CodeRecord(Record):
    """Code of a repository that is unpacked on this machine: the folder of all its digests."""

    part: ClassVar[str] = "code"

    title: str
    paths: tuple[str, ...]
    digest: str
