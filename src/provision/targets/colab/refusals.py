"""Refusals of Colab targets: from the text of a spec, from its lock, and from existing files."""

from __future__ import annotations

from collections.abc import Iterator

from provision.facts import Facts
from provision.kinds.base import Refusal
from provision.target_facts import find_target_refusals
from provision.targets.context import TargetContext


def find_refusals(
    place: TargetContext, facts: Facts, foreign: tuple[str, ...]
) -> Iterator[Refusal]:
    """Yield every refusal; `foreign` are files of others with our names."""
    yield from find_target_refusals(place.spec, place.target, facts)
    yield from _lock_refusals(place)
    for name in foreign:
        yield Refusal(
            ("targets", place.target),
            f"{name} is there, and no render made it",
            "move it away, or rename the spec",
        )


def _lock_refusals(place: TargetContext) -> Iterator[Refusal]:
    gpu = place.spec.gpu
    if not gpu.is_none and "torch" not in place.lock.versions(place.environment):
        yield Refusal(
            ("gpu",),
            f"gpu: {gpu} cannot be shown to compute without torch",
            "add torch to `packages`, or write gpu: none",
        )
    if place.sandbox_sources is not None:
        yield Refusal(
            ("targets", place.target),
            "a sandbox has no Colab",
            "pick another target with --target, or leave --sandbox out",
        )
        return
    for name, address in place.lock.indexes.items():
        if address.startswith("file:") and name not in place.spec.indexes:
            yield Refusal(
                ("indexes",),
                f"the index {name} lies on this machine, out of the runtime's reach",
                "name an index with an http address",
            )
