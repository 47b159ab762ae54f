"""Refusals of local targets: fields that cannot be honoured on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

from provision.facts import load_facts
from provision.kinds.base import Refusal
from provision.spec import Spec
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext
from provision.targets.local.conda_prefix import list_python_names, uses_conda
from provision.targets.local.environment import describe_changes
from provision.targets.local.observation import LocalObservation


def find_spec_refusals(spec: Spec, target: str, platform: str) -> Iterator[Refusal]:
    """Yield the fields that no local target can honour."""
    yield from find_target_refusals(spec, target, load_facts())
    if spec.gpu.type == "mps" and not platform.startswith("macos"):
        yield Refusal(
            ("gpu",),
            f"mps is Apple silicon, and this machine is {platform}",
            "write gpu: none, or name the card",
        )


def find_machine_refusals(context: TargetContext, observed: LocalObservation) -> Iterator[Refusal]:
    """Yield the fields that this machine cannot honour, and what stands in the way of a repair."""
    known = observed.pythons
    if known.selected is None and not known.is_downloadable and not uses_conda(context):
        found = (
            ", ".join(f"{python.version} ({python.path})" for python in known.installed) or "none"
        )
        why = f"no Python {known.requested} on this machine, and {known.why_not}; found: {found}"
        yield Refusal(("python",), why, f"install Python {known.requested}, or change `python`")
    if os.pathsep in str(context.folder):
        yield Refusal(
            (),
            f"the folder {context.folder} has a {os.pathsep!r} in its name, which PATH cannot hold",
            "put the spec in another folder",
        )
    if not context.spec.gpu.is_none and "torch" not in {
        *context.lock.versions(context.environment),
        *list_python_names(context),
    }:
        yield Refusal(
            ("gpu",),
            f"gpu: {context.spec.gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )
    if (
        observed.running_programs
        and observed.exists
        and (observed.differences or not observed.is_complete)
    ):
        what = describe_changes(observed) if observed.is_complete else observed.problem
        why = (
            f"the environment has to be repaired ({what}) and is in use: "
            f"{', '.join(observed.running_programs)}"
        )
        yield Refusal(
            (),
            why,
            "end that program, or remove the environment under it: "
            f"{context.command('destroy')} --force",
        )
    if not observed.writable:
        yield Refusal(
            (),
            f"the folder {context.folder} cannot be written to",
            "put the spec in a folder that you may write to",
        )
    if observed.missing_system_packages is None and context.spec.system_packages:
        yield Refusal(
            ("system_packages",),
            "whether they are installed cannot be told here (no dpkg)",
            "remove the field for this machine and install them by its own means",
        )
    elif observed.missing_system_packages:
        names = " ".join(observed.missing_system_packages)
        yield Refusal(
            ("system_packages",),
            f"not installed on this machine: {names}",
            f"sudo apt-get install {names}",
        )
