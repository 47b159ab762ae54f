"""Refusals of Workbench targets: from the text of a spec, from its lock, and from the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.facts import Facts
from provision.kinds import WorkbenchTarget
from provision.kinds.base import Refusal
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext, refuse_untestable_gpu
from provision.targets.workbench.capacity import CapacityCheck
from provision.targets.workbench.choices import ImageChoice, MachineChoice
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
    """Yield every refusal; `foreign` are instances with the target's name that are not ours."""
    target, own = get_workbench_target(context), ("targets", context.target)
    yield from find_target_refusals(context.spec, context.target, facts)
    yield from _lock_refusals(context, target, facts)
    if chosen.problem:
        yield Refusal(
            (*own, "machine_type"), chosen.problem, "set `machine_type`, or lower the requirements"
        )
    if picked.problem:
        yield Refusal(
            (*own, "image"),
            picked.problem,
            "set the exact name of an image that `gcloud compute images list "
            "--project=cloud-notebooks-managed --no-standard-images` lists",
        )
    yield from (
        _refuse_foreign_instance(context, own, real, alone=len(foreign) == 1) for real in foreign
    )
    if outlook.problem:
        yield Refusal(
            (*own, "zones"),
            outlook.problem,
            "request quota at console.cloud.google.com/iam-admin/quotas, or set different zones",
        )


def _refuse_foreign_instance(
    context: TargetContext, own: tuple[str, ...], real: Mapping[str, Any], *, alone: bool
) -> Refusal:
    """Return the refusal of an instance with the target's name that this state did not create."""
    renamed = "rename the spec file or the target"
    if not is_made_for(real, context):
        hint = f"{renamed}, or delete the instance yourself"
        return Refusal(
            own,
            "an instance with this name exists, and provision did not create it for this spec and "
            f"target: {describe_owner(real)}",
            hint,
        )
    adopt = f"if that state is lost, adopt the instance with `{context.command('apply')} --adopt`"
    ways = (
        renamed,
        "or run `provision destroy` in the folder that created it",
        f"or, {adopt}" if alone else "or delete all but one of them yourself",
    )
    return Refusal(
        own,
        f"an instance with this name exists, and another state created it: {describe_owner(real)}",
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
                    f"the index {name} is on this machine, where the instance cannot reach it",
                    "use a mirror with an HTTP or HTTPS address",
                )
    card = facts.card(context.spec.gpu.type)
    if card is not None and card.workbench:  # other GPUs are already refused
        yield from refuse_untestable_gpu(context)
