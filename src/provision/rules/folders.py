"""The folders that a spec declares under `paths`, and predicates of paths on a target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from provision.diagnostics import Fix, Insert, Route
from provision.kinds.base import TargetFacts
from provision.rules.edits import unsafe_fix
from provision.rules.rule import LintContext

COLAB_HOME, WORKBENCH_HOME = "/content", "/home/jupyter"
DRIVE_MOUNTS = ("/content/drive", "/content/gdrive")
"""Mount points of Google Drive in the documentation of drive.mount()."""
_IN_MEMORY = ("/dev/shm", "/run", "/var/run")  # noqa: S108
_CLEARED = ("/tmp", "/var/tmp")  # noqa: S108
_RESULTS = re.compile(
    r"(^|_)(outputs?|out|results?|checkpoints?|ckpts?|models?|runs?|logs?|artifacts?"
    r"|saves?|saved|exports?)(_|$)",
    re.IGNORECASE,
)
"""Names of folders with results to keep. Our choice."""


class DeclaredFolder(NamedTuple):
    """A folder of a target: its key under `paths`, its path, and the route of the path."""

    key: str
    path: str
    route: Route
    target: TargetFacts

    @property
    def holds_results(self) -> bool:
        """True if its name suggests results to keep."""
        return _RESULTS.search(self.key) is not None


def declared_folders(context: LintContext) -> Iterator[DeclaredFolder]:
    """Yield the folders of every target; a target's own path overrides the spec's."""
    for target in context.targets:
        for key, path in {**context.spec.paths, **target.target.paths}.items():
            route: Route = ("paths", key)
            if key in target.target.paths:
                route = (*target.route, *route)
            yield DeclaredFolder(key, path, route, target)


def is_within(path: str, *roots: str) -> bool:
    """Return whether an absolute path is one of the folders or is inside one."""
    folder = PurePosixPath(path)
    return any(folder.is_relative_to(root) for root in roots)


def is_in_memory(path: str) -> bool:
    """Return whether a path is in memory on every Linux machine."""
    return is_within(path, *_IN_MEMORY)


def is_cleared_by_system(path: str) -> bool:
    """Return whether the system cleans up a path."""
    return is_within(path, *_CLEARED)


def is_in_container(target: TargetFacts) -> bool:
    """Return whether a target is a Workbench container, which keeps only its home folder."""
    return target.image is not None and target.image.kind == "container"


def to_target_path(path: str, home: str) -> str:
    """Return a path below the home of Colab or Workbench as a path below another home."""
    for root in (
        *(f"{drive}/{name}" for drive in DRIVE_MOUNTS for name in ("MyDrive", "My Drive")),
        *DRIVE_MOUNTS,
        COLAB_HOME,
        WORKBENCH_HOME,
    ):
        if is_within(path, root):
            return str(PurePosixPath(home) / PurePosixPath(path).relative_to(root))
    return str(PurePosixPath(home) / PurePosixPath(path).name)


def override_fix(folder: DeclaredFolder, path: str) -> Fix | None:
    """Return the fix that gives a target its own path for a folder of the spec, if it has none."""
    if not path or folder.route[0] != "paths":
        return None
    target = folder.target
    edit = Insert(target.route, "paths", f"{{{folder.key}: {path}}}")
    if target.target.paths:
        edit = Insert((*target.route, "paths"), folder.key, path)
    return unsafe_fix(f"use {path} on target `{target.name}`", edit)
