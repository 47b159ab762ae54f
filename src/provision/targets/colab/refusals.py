"""Refusals of Colab targets: from the text of a spec, from its lock, and from existing files."""

from __future__ import annotations

from collections.abc import Iterator

from provision.facts import Facts
from provision.kinds.base import Refusal
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext, refuse_gpu_without_torch


def find_refusals(
    context: TargetContext, facts: Facts, foreign: tuple[str, ...]
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are files of others with our names."""
    yield from find_target_refusals(context.spec, context.target, facts)
    yield from _lock_refusals(context)
    for name in foreign:
        yield Refusal(
            ("targets", context.target),
            f"{name} is there, and no render made it",
            "move it away, or rename the spec",
        )


def _lock_refusals(context: TargetContext) -> Iterator[Refusal]:
    yield from refuse_gpu_without_torch(context)
    if context.sandbox_sources is not None:
        yield Refusal(
            ("targets", context.target),
            "a sandbox has no Colab",
            "pick another target with --target, or leave --sandbox out",
        )
        return
    for name, address in context.lock.indexes.items():
        if address.startswith("file:") and name not in context.spec.indexes:
            yield Refusal(
                ("indexes",),
                f"the index {name} lies on this machine, out of the runtime's reach",
                "name an index with an http address",
            )
