"""Refusals that several kinds have in common."""

from collections.abc import Iterator

from provision.field_types import parse_size
from provision.kinds.base import NOT_SUPPORTED_YET, Refusal, TargetFacts, TargetFields


def refuse_cuda_toolkit(
    fields: TargetFields, machine: str, hint: str, rule: str = ""
) -> Iterator[Refusal]:
    """Yield the refusal of a CUDA toolkit; `machine` is where it would be installed."""
    if fields.cuda_toolkit is not None:
        yield Refusal(
            ("cuda_toolkit",),
            f"installing a CUDA toolkit on {machine} is {NOT_SUPPORTED_YET}",
            hint,
            rule=rule,
        )


def refuse_disk_size(
    target: TargetFacts, field: str, size: str, limits: tuple[int, int]
) -> Iterator[Refusal]:
    """Yield the refusal of a disk whose size is outside of the limits, in GiB."""
    least, most = limits
    if not least <= parse_size(size) / 2**30 <= most:
        yield Refusal(
            target.route_to(field, "size"),
            f"the size of the {field.replace('_', ' ')} is {size}, but must be between {least} and "
            f"{most} GiB",
            "set a size in this range",
        )
