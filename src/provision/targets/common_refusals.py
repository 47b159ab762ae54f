"""What no kind of place can do: refused by each, so that no field is without effect."""

from __future__ import annotations

from collections.abc import Iterator

from provision.spec import Spec
from provision.targets.base import Refusal

NOT_SUPPORTED_YET = "this version does not do that yet"


def find_common_refusals(spec: Spec) -> Iterator[Refusal]:
    """Yield what is refused at every kind of place."""
    for field in ("vram", "driver", "compute_capability"):
        if getattr(spec.requires, field) is not None and (
            spec.gpu.is_none or spec.gpu.type == "mps"
        ):
            yield Refusal(
                ("requires", field),
                f"gpu: {spec.gpu} has no {field} that could be checked",
                f"remove it ({field}: null where a profile brings it), or name the card",
            )
