"""The part of a target's model that every kind shares, and the machine it asks for."""

import re
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from provision.field_types import EnvironmentName, ShorthandModel, Size, Specifiers, StrictModel

MAX_GPUS = 16
"""Most GPUs of a machine: a2-megagpu-16g (Compute Engine documentation, GPU machine types)."""


class Gpu(ShorthandModel):
    """The accelerator: `L4`, `A100:2`, `none` for CPU, `mps` for Apple silicon or {type, count}."""

    type: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    """Name of the card, as in L4, A100-80GB or RTX-4090; `none` for CPU; `mps` for Apple
    silicon.
    """
    count: int = Field(default=1, ge=0, le=MAX_GPUS)
    """How many cards one machine carries."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, colon, count = value.partition(":")
        if colon and not re.fullmatch(r"[1-9][0-9]?", count):
            raise PydanticCustomError(
                "gpu_count", "after the colon stands the number of cards, as in A100-80GB:2"
            )
        return {"type": name, "count": int(count or 1)}

    def __str__(self) -> str:
        """Return the short form."""
        return self.type if self.is_none or self.count == 1 else f"{self.type}:{self.count}"

    @property
    def is_none(self) -> bool:
        """Whether the work runs on the CPU."""
        return self.type == "none"


class Requires(StrictModel):
    """What the machine must have; each is checked on the device."""

    ram: Size | None = None
    """Memory that the process may use (the smaller of the machine's and the container's)."""
    disk: Size | None = None
    """Free disk where the environment and the declared paths lie."""
    shm: Size | None = None
    """Size of /dev/shm, which DataLoader workers share batches through."""
    vram: Size | None = None
    """Memory of one GPU."""
    driver: Specifiers | None = None
    """NVIDIA driver version, as in `>=580`."""
    compute_capability: Specifiers | None = None
    """CUDA compute capability, as in `>=8.0`."""


class TargetModel(StrictModel):
    """Fields that every kind of target has; they take precedence over the spec's own."""

    if TYPE_CHECKING:
        kind: str  # each kind narrows it to its name, the discriminator of the union
    gpu: Gpu | None = None
    """In place of the spec's `gpu`."""
    cuda: str | None = Field(default=None, pattern=r"^(auto|none|\d+\.\d+)$")
    """In place of the spec's `cuda`."""
    paths: dict[EnvironmentName, str] = {}
    """Merged over the spec's `paths`."""
    requires: Requires | None = None
    """In place of the spec's `requires`, key by key; a target with gpu: none is not asked for what
    only cards have.
    """
