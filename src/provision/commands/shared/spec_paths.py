"""The path of a spec's lock, and the names that no spec may have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import UsageError

if TYPE_CHECKING:
    from provision.effects.system import Reader


def lock_path(path: Path) -> Path:
    """Return the path of the lock next to a spec, or next to the target of a link."""
    return (path.resolve() if path.is_symlink() else path).with_suffix(".lock")


def check_spec_name(path: Path, reader: Reader) -> None:
    """Raise UsageError for a name whose lock and environments could be another spec's."""
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"{path} is no name for a spec",
            why="its lock and environments are named by what stands before .yaml",
            hint="name it NAME.yaml",
        )
    other = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
    if reader.exists(path) and reader.exists(other):
        raise UsageError(
            f"{path} and {other} would share one lock and one environment",
            hint="rename one of them",
        )
