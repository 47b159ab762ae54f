"""Refusals of Workbench targets: fields that are not supported, or cannot be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.facts import Facts
from provision.facts.machines import region_of
from provision.kinds.models import WorkbenchTarget
from provision.targets.common_refusals import NOT_SUPPORTED_YET, find_common_refusals
from provision.targets.context import Refusal, TargetContext
from provision.targets.workbench.capacity import CapacityCheck
from provision.targets.workbench.image import ImageChoice
from provision.targets.workbench.machine_type import MachineChoice
from provision.targets.workbench.ownership import describe_owner, is_made_for


def get_workbench_target(context: TargetContext) -> WorkbenchTarget:
    """Return the target of a context; the registry asks by kind."""
    target = context.spec.targets[context.target]
    assert isinstance(target, WorkbenchTarget)  # noqa: S101
    return target


def find_refusals(
    context: TargetContext,
    facts: Facts,
    chosen: MachineChoice,
    picked: ImageChoice,
    foreign: tuple[Mapping[str, Any], ...],
    outlook: CapacityCheck,
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are instances of others that have our name."""
    target, own = get_workbench_target(context), ("targets", context.target)
    yield from find_common_refusals(context.spec)
    yield from _unsupported_fields(context, target)
    yield from _gpu_refusals(context, facts)
    if target.bucket is None:
        hint = (
            "make one (gcloud storage buckets create gs://NAME "
            f"--location={region_of(target.zones[0])}) and write bucket: gs://NAME/provision"
        )
        yield Refusal(
            (*own, "bucket"),
            "the program and the report travel through a bucket, and none is named",
            hint,
        )
    if target.subnet is not None and len({region_of(zone) for zone in target.zones}) > 1:
        yield Refusal(
            (*own, "zones"),
            "a subnet lies in one region, and the zones in several",
            "name zones of one region",
        )
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
    """Return the refusal because of an instance with our name that another state made."""
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


def _unsupported_fields(context: TargetContext, target: WorkbenchTarget) -> Iterator[Refusal]:
    spec, own = context.spec, ("targets", context.target)
    if spec.cuda_toolkit is not None:
        yield Refusal(
            ("cuda_toolkit",),
            f"installing a CUDA toolkit on an instance: {NOT_SUPPORTED_YET}",
            "remove the field; the image brings its own toolkit",
        )
    if target.managed_euc:
        yield Refusal(
            (*own, "managed_euc"),
            "with managed credentials the service may drop the program that makes the "
            "environment without a word",
            "leave it out",
        )
    if target.image is not None and ("/" in target.image or ":" in target.image):
        yield Refusal(
            (*own, "image"),
            f"container images: {NOT_SUPPORTED_YET}",
            "name an image of a virtual machine, as in workbench-instances-2603",
        )
    for name, reference in spec.secrets.items():
        if reference.secret is None:
            yield Refusal(
                ("secrets", name),
                "an instance fetches secrets from Secret Manager only",
                "write {secret: projects/PROJECT/secrets/NAME/versions/1}",
            )
    if context.sandbox_sources is None:
        for name, address in {**context.lock.indexes, **target.mirrors}.items():
            if address.startswith("file:"):
                yield Refusal(
                    (*own, "mirrors"),
                    f"the index {name} lies on this machine, out of the instance's reach",
                    "name a mirror with an http address",
                )


def _gpu_refusals(context: TargetContext, facts: Facts) -> Iterator[Refusal]:
    gpu = context.spec.gpu
    if gpu.is_none:
        return
    card = facts.card(gpu.type)
    if card is None or not card.workbench:
        known = ", ".join(
            one.name for one in facts.cards if one.workbench and one.status == "offered"
        )
        yield Refusal(
            ("gpu",), f"Workbench has no {gpu.type}", f"take one of {known}, or gpu: none"
        )
    elif "torch" not in context.lock.versions(context.environment):
        yield Refusal(
            ("gpu",),
            f"gpu: {gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )
