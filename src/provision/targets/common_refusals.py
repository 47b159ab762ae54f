"""Refusals that several kinds of target share, so that no field is without effect."""

from __future__ import annotations

from collections.abc import Iterator

from provision.errors import Refused
from provision.spec import Spec
from provision.targets.context import Refusal, TargetContext

NOT_SUPPORTED_YET = "this version does not do that yet"


def find_common_refusals(spec: Spec) -> Iterator[Refusal]:
    """Yield the fields that every kind of target refuses."""
    if not spec.gpu.is_none and spec.gpu.type != "mps":
        return
    for field in ("vram", "driver", "compute_capability"):
        if getattr(spec.requires, field) is not None:
            yield Refusal(
                ("requires", field),
                f"gpu: {spec.gpu} has no {field} that could be checked",
                f"remove it ({field}: null where a profile brings it), or name the card",
            )


def refuse_single_checks(context: TargetContext, only: tuple[str, ...]) -> None:
    """Raise Refused if single checks are requested of a target that runs all of them."""
    if only:
        raise Refused(
            "single checks are repeated on this machine only",
            why=f"{context.address} verifies itself as a whole",
            hint="leave --only out",
        )
