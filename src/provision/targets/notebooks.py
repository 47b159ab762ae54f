"""Notebooks of targets whose report a person brings back."""

from __future__ import annotations

from pathlib import Path

from provision.effects.system import Reader
from provision.kinds import ColabTarget
from provision.spec import Spec
from provision.targets.colab.github_link import build_colab_link
from provision.targets.colab.planning import describe_kept_copy


def has_notebook_target(spec: Spec) -> bool:
    """Return whether a spec has a target that is a notebook."""
    return any(isinstance(target, ColabTarget) for target in spec.targets.values())


def notebook_link(notebook: Path, reader: Reader) -> str | None:
    """Return the address that opens a notebook once it is pushed; None if it is not known."""
    return build_colab_link(notebook, reader)


def kept_copy_note(cell: str) -> str:
    """Return the remark about an edited copy of a rendered cell, which stays in its notebook."""
    return describe_kept_copy(cell)
