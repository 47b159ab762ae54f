"""Folders that a spec names: where each is used, what becomes of it there, and what another place
calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from provision.diagnostics import Edit, Insert, Route
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts

COLAB_HOME, WORKBENCH_HOME = "/content", "/home/jupyter"
DRIVE_MOUNTS = ("/content/drive", "/content/gdrive")
"""Where notebooks mount Google Drive: drive.mount(...) takes any folder, and its documentation
these.
"""
_IN_MEMORY = ("/dev/shm", "/run", "/var/run")  # noqa: S108
_CLEARED = ("/tmp", "/var/tmp")  # noqa: S108
_RESULTS = re.compile(
    r"(^|_)(outputs?|out|results?|checkpoints?|ckpts?|models?|runs?|logs?|artifacts?|saves?|saved|exports?)(_|$)",
    re.IGNORECASE,
)
"""Words in the name of a folder that say that what lies there is wanted afterwards. Our choice."""


class DeclaredFolder(NamedTuple):
    """A declared folder as it holds at one target: its key under `paths`, its path, where that is
    written, and the target.
    """

    key: str
    path: str
    route: Route
    target: TargetFacts

    @property
    def holds_results(self) -> bool:
        """Whether its name says that what lies there is wanted afterwards."""
        return _RESULTS.search(self.key) is not None


def declared_folders(context: LintContext) -> Iterator[DeclaredFolder]:
    """Yield every declared folder at every target, its own over the spec's."""
    for target in context.targets:
        for key, path in {**context.spec.paths, **target.target.paths}.items():
            own = key in target.target.paths
            yield DeclaredFolder(
                key, path, (*target.route, "paths", key) if own else ("paths", key), target
            )


def is_within(path: str, *roots: str) -> bool:
    """Tell whether an absolute path is one of the folders or lies in it."""
    folder = PurePosixPath(path)
    return any(folder.is_relative_to(root) for root in roots)


def is_in_memory(path: str) -> bool:
    """Tell whether a path lies in memory on every Linux machine."""
    return is_within(path, *_IN_MEMORY)


def is_cleared_by_system(path: str) -> bool:
    """Tell whether a path lies where systems clean up by themselves."""
    return is_within(path, *_CLEARED)


def is_in_container(target: TargetFacts) -> bool:
    """Tell whether a target is a container of Workbench, which keeps nothing but its home."""
    return target.image is not None and target.image.kind == "container"


def to_target_path(path: str, home: str) -> str:
    """Return a path as another place has it: what stands behind the home of Colab or Workbench,
    behind that home.
    """
    for root in (
        *(f"{drive}/{name}" for drive in DRIVE_MOUNTS for name in ("MyDrive", "My Drive")),
        *DRIVE_MOUNTS,
        COLAB_HOME,
        WORKBENCH_HOME,
    ):
        if is_within(path, root):
            return str(PurePosixPath(home) / PurePosixPath(path).relative_to(root))
    return str(PurePosixPath(home) / PurePosixPath(path).name)


def override_edit(context: LintContext, folder: DeclaredFolder, path: str) -> Edit:
    """Return the edit that gives one target another path for a folder that the whole spec names."""
    if context.spec.targets[folder.target.name].paths:
        return Insert((*folder.target.route, "paths"), folder.key, path)
    return Insert(folder.target.route, "paths", f"{{{folder.key}: {path}}}")
