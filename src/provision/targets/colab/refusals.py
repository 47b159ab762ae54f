"""Refusals of Colab targets: fields that are not supported, or cannot be had there."""

from __future__ import annotations

from collections.abc import Iterator

from provision.facts import Facts
from provision.kinds.models import ColabTarget
from provision.targets.colab.file_names import get_colab_target
from provision.targets.colab.shapes import find_shape
from provision.targets.common_refusals import NOT_SUPPORTED_YET, find_common_refusals
from provision.targets.context import Refusal, TargetContext


def find_refusals(
    context: TargetContext, facts: Facts, foreign: tuple[str, ...]
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are files of others with our names."""
    target = get_colab_target(context)
    yield from find_common_refusals(context.spec)
    yield from _runtime_refusals(context, target, facts)
    yield from _gpu_refusals(context, target, facts)
    yield from _unsupported_fields(context)
    for name in foreign:
        yield Refusal(
            ("targets", context.target),
            f"{name} is there, and no render made it",
            "move it away, or rename the spec",
        )


def _runtime_refusals(
    context: TargetContext, target: ColabTarget, facts: Facts
) -> Iterator[Refusal]:
    route = ("targets", context.target, "runtime")
    if target.runtime not in facts.runtimes and target.isolation == "system":
        hint = f"write one of {', '.join(facts.runtimes)}, or isolation: venv"
        yield Refusal(route, f"what Colab runtime {target.runtime} holds is not known", hint)
    if target.via == "colab-cli" and target.runtime != "latest":
        yield Refusal(
            route,
            "via: colab-cli gets the newest runtime, whatever is asked for",
            "write runtime: latest, or via: browser",
        )


def _gpu_refusals(context: TargetContext, target: ColabTarget, facts: Facts) -> Iterator[Refusal]:
    gpu, shape = context.spec.gpu, find_shape(context.spec.gpu, target.shape, facts)
    route = ("targets", context.target, "gpu") if target.gpu is not None else ("gpu",)
    if shape is None:
        elsewhere = find_shape(gpu, "standard", facts)
        offered = ", ".join(dict.fromkeys(row.card for row in facts.shapes))
        if elsewhere is not None:
            yield Refusal(
                ("targets", context.target, "shape"),
                f"Colab has no machine of shape high with {gpu.type}",
                "leave shape out, or name another card",
            )
        else:
            yield Refusal(route, f"Colab has no {gpu.type}", f"take one of {offered}")
    if gpu.is_none:
        return
    if gpu.count > 1:
        yield Refusal(
            route,
            f"a Colab runtime has one GPU, and {gpu.count} are asked for",
            f"write gpu: {gpu.type}",
        )
    if "torch" not in context.lock.versions(context.environment):
        yield Refusal(
            route,
            f"gpu: {gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )


def _unsupported_fields(context: TargetContext) -> Iterator[Refusal]:
    spec = context.spec
    if spec.cuda_toolkit is not None:
        yield Refusal(
            ("cuda_toolkit",),
            f"installing a CUDA toolkit on a runtime: {NOT_SUPPORTED_YET}",
            "remove the field; a runtime with a GPU brings its own toolkit",
        )
    for name, reference in spec.secrets.items():
        if get_colab_target(context).via == "colab-cli":
            yield Refusal(
                ("secrets", name),
                "Colab gives its secrets to a browser only, and via: colab-cli has none",
                "write via: browser, or leave it out",
            )
        elif reference.colab is None:
            yield Refusal(
                ("secrets", name),
                "a notebook takes secrets from Colab's own store only",
                f"write {{colab: {name}}}",
            )
    if context.sandbox_sources is not None:
        yield Refusal(
            ("targets", context.target),
            "a sandbox has no Colab",
            "pick another target with --target, or leave --sandbox out",
        )
        return
    for name, address in context.lock.indexes.items():
        if address.startswith("file:"):
            yield Refusal(
                ("indexes",),
                f"the index {name} lies on this machine, out of the runtime's reach",
                "name an index with an http address",
            )
