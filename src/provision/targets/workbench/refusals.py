"""Refusals of Workbench targets: from the text of a spec, from its lock, and from the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.facts import Facts
from provision.kinds import WorkbenchTarget
from provision.kinds.base import Refusal
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext, refuse_gpu_without_torch
from provision.targets.workbench.capacity import CapacityCheck
from provision.targets.workbench.image import ImageChoice
from provision.targets.workbench.machine_type import MachineChoice
from provision.targets.workbench.ownership import describe_owner, is_made_for
from provision.targets.workbench.resource_names import get_workbench_target


def find_refusals(
    context: TargetContext,
    facts: Facts,
    chosen: MachineChoice,
    picked: ImageChoice,
    foreign: tuple[Mapping[str, Any], ...],
    outlook: CapacityCheck,
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are instances with the target's name that others made."""
    target, own = get_workbench_target(context), ("targets", context.target)
    yield from find_target_refusals(context.spec, context.target, facts)
    yield from _lock_refusals(context, target, facts)
    if chosen.problem:
        yield Refusal(
            (*own, "machine_type"), chosen.problem, "name a machine type, or ask for less"
        )
    if picked.problem:
        yield Refusal(
            (*own, "image"),
            picked.problem,
            "write the exact name: gcloud compute images list "
            "--project=cloud-notebooks-managed --no-standard-images",
        )
    yield from (
        _refuse_foreign_instance(context, own, real, alone=len(foreign) == 1) for real in foreign
    )
    if outlook.problem:
        yield Refusal(
            (*own, "zones"),
            outlook.problem,
            "ask for quota at console.cloud.google.com/iam-admin/quotas, or name other zones",
        )


def _refuse_foreign_instance(
    context: TargetContext, own: tuple[str, ...], real: Mapping[str, Any], *, alone: bool
) -> Refusal:
    """Return the refusal of an instance with the target's name that this state did not make."""
    renamed = "rename the spec file or the target"
    if not is_made_for(real, context):
        hint = f"it is not touched: {renamed}, or delete it yourself"
        return Refusal(
            own,
            "an instance of this name is there, and provision did not make it for this "
            f"spec and target: {describe_owner(real)}",
            hint,
        )
    adopt = (
        "if that state is lost, take the instance over with `provision apply --adopt --target "
        f"{context.target}`"
    )
    ways = (
        renamed,
        "or run `provision destroy` where it was made",
        f"or, {adopt}" if alone else "or delete all but one of them yourself",
    )
    return Refusal(
        own,
        f"an instance of this name is there, and another state made it: {describe_owner(real)}",
        ", ".join(ways),
    )


def _lock_refusals(
    context: TargetContext, target: WorkbenchTarget, facts: Facts
) -> Iterator[Refusal]:
    if context.sandbox_sources is None:
        for name, address in {**context.lock.indexes, **target.mirrors}.items():
            if address.startswith("file:"):
                yield Refusal(
                    ("targets", context.target, "mirrors"),
                    f"the index {name} lies on this machine, out of the instance's reach",
                    "name a mirror with an http address",
                )
    card = facts.card(context.spec.gpu.type)
    if card is not None and card.workbench:  # the others are refused already
        yield from refuse_gpu_without_torch(context)
